"""The site file: what is right is read with its units, and every fault is refused with its place."""

from __future__ import annotations

import os
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.cli.config import markdown
from drainwise.common.plugin_entries import PluginEntries
from drainwise.facts.errors import ConfigurationError
from drainwise.siteconfig import SiteConfig, load
from drainwise.siteconfig.kinds import Key
from drainwise.siteconfig.load import FORMER, effective_values, examine
from drainwise.siteconfig.schema import keys
from drainwise.systems import find
from made_up_package import put_package

LOOPBACK = "a loopback address such as 127.0.0.1; a proxy of the site has TLS and passwords"

GOOD = """\
; A site.
[features]
hs06 = 380.50      # measured
wall_limit=3d
scratch_limit = 20GB

[htcondor]
  cron_period = 30s
\tpython = /opt/python3.9/bin/python3
negotiator_policy = least-waste
[reclaim]
grace = 1h30m ; as agreed
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site.ini"


def fault_of(site: Path, text: str | bytes) -> ConfigurationError:
    """The refusal of this file."""
    site.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigurationError) as caught:
        load(str(site))
    return caught.value


def test_values_are_read_with_their_units(site: Path) -> None:
    """Durations are seconds, sizes bytes, decimals exact; the rest has its defaults."""
    site.write_text(GOOD)
    config = load(str(site))
    assert config.file == str(site)
    assert config.features.hs06 == Decimal("380.50")
    assert (config.features.wall_limit, config.features.scratch_limit) == (259200, 20 * 10**9)
    assert (config.htcondor.cron_period, config.htcondor.python) == (30, "/opt/python3.9/bin/python3")
    assert (config.htcondor.negotiator_policy, config.reclaim.grace) == ("least-waste", 5400)
    assert config.pilot == SiteConfig().pilot
    assert config.htcondor.retirement is None


@pytest.mark.parametrize("text", ["", "\n\n# nothing\n", "[features]\n", "\ufeff[pilot]\r\nheartbeat_limit = 2h\r\n"])
def test_a_file_may_leave_everything_out(site: Path, text: str) -> None:
    """Defaults serve a site that says nothing; a byte-order mark and CR LF do no harm."""
    site.write_bytes(text.encode())
    assert load(str(site)).htcondor == SiteConfig().htcondor


@pytest.mark.parametrize(
    ("line", "key", "value", "expected"),
    [
        ("grace = 90", "grace", "90", "with its unit"),
        ("grace = 2 hours", "grace", "2 hours", "with its unit"),
        ("grace = -2h", "grace", "-2h", "from 5s to 30d"),
        ("grace = 31d", "grace", "31d", "from 5s to 30d"),
        ("grace =", "grace", "", "a duration"),
        ("grace = %(x)s", "grace", "%(x)s", "a duration"),
        ("policy = cheapest", "policy", "cheapest", "one of least-waste, open-need, paper"),
        ("max_cores_per_cycle = 1.5", "max_cores_per_cycle", "1.5", "a whole number from 1"),
        ("max_cores_per_cycle = ten", "max_cores_per_cycle", "ten", "a whole number from 1"),
        ("max_core_per_cycle = 5", "max_core_per_cycle", "5", "perhaps max_cores_per_cycle"),
        ("Grace = 2h", "Grace", "2h", "perhaps grace"),
        ("heartbeat_limit = 1h", "heartbeat_limit", "1h", "in section [pilot]"),
        ("zzz = 1", "zzz", "1", "one of the keys policy, preemptible"),
        ("grace = 2h\ngrace = 3h", "grace", "3h", "the key once; it stands on line 2, too"),
    ],
)
def test_a_wrong_key_or_value_is_refused_with_its_place(
    site: Path, line: str, key: str, value: str, expected: str
) -> None:
    """File, section, key, value and expectation are all in the message, and the exit code is 2."""
    fault = fault_of(site, f"[reclaim]\n{line}\n")
    assert (fault.file, fault.section, fault.key, fault.value, fault.exit_code) == (str(site), "reclaim", key, value, 2)
    assert expected in fault.expected
    assert str(fault) == f"{site}:{fault.line}: [reclaim] {key} = {value!r}: expected {fault.expected}"
    assert fault.line == line.count("\n") + 2


@pytest.mark.parametrize(
    "line",
    [
        "python = usr/bin/python3",
        "python = /usr/bin/python3\x00",
        "python = /usr/bin/\x1b[31mpython3",
        'python = /usr/bin/"python3"',
        "python = /usr/bin/python3$(id)",
        "python = ${HOME}/python3",
        "python = /usr/bin/`id`",
        "python = /usr/bin/python3 -S",
        "hook_keyword = X\x0bY",
        "hook_keyword = 'X'",
        "retirement = 1h\u2028",
        "cron_period = 1m\x85",
    ],
)
def test_a_value_that_would_be_code_is_refused(site: Path, line: str) -> None:
    """Hostile cases 15, 41 and 44: nothing that would break out of a configuration line, a shebang or a log line."""
    key = line.partition(" ")[0]
    fault = fault_of(site, f"[htcondor]\n{line}\n")
    assert (fault.section, fault.key) == ("htcondor", key)
    assert str(fault).isprintable()


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("[reclaims]\n", "[reclaims]", "[reclaim]"),
        (
            "[xyz]\n",
            "[xyz]",
            "[features], [pilot], [observer], [clients], [htcondor], [slurm], [local], [reclaim], [identity],"
            " [journal], [agent], [metrics], [page]",
        ),
        ("[DEFAULT]\n", "[DEFAULT]", "a section of"),
        ("[features\n", "[features", "[features]"),
        ("[pilot]\n[features]\n[pilot]\n", "[pilot]", "the section once"),
        ("grace = 1h\n", "grace = 1h", "a [section] before the first key"),
        ("[pilot]\nnonsense\n", "nonsense", "key = value"),
        ("[pilot]\n= 3\n", "= 3", "key = value"),
        ("[pilot]\nheartbeat_limit : 1h\n", "heartbeat_limit : 1h", "key = value"),
    ],
)
def test_a_line_that_is_not_understood_is_refused_with_its_number(
    site: Path, text: str, value: str, expected: str
) -> None:
    """Unknown, double and broken sections, keys outside of a section, lines that are no assignment."""
    fault = fault_of(site, text)
    assert fault.value == value
    assert expected in fault.expected
    assert str(fault).startswith(f"{site}:{len(text.splitlines())}: ")


def test_a_continued_value_is_not_taken_over(site: Path) -> None:
    """An indented line is a line of its own, so no value ever holds a newline."""
    assert fault_of(site, "[reclaim]\ngrace = 2h\n   and more\n").value == "and more"


@pytest.mark.parametrize(
    ("text", "section", "key", "expected"),
    [
        ("[reclaim]\ngrace = 2d\n", "reclaim", "grace", "at most max_grace, 1d"),
        ("[features]\ngrace_job = 3h\n", "reclaim", "grace", "at least [features] grace_job, 3h"),
        (
            "[reclaim]\nhorizon = 1h\n[features]\ngrace_job = 90m\n",
            "reclaim",
            "horizon",
            "at least [features] grace_job, 1h30m",
        ),
        ("[htcondor]\nmax_vacate_time = 16m\n", "htcondor", "max_vacate_time", "at most [reclaim] margin, 15m"),
        ("[htcondor]\nmax_vacate_time = 2h\n", "htcondor", "max_vacate_time", "less than [reclaim] grace, 2h"),
        ("[slurm]\nagent_period = 1h\n", "slurm", "agent_period", "less than [pilot] heartbeat_limit, 1h"),
        (
            "[slurm]\nbin_dir = /usr/bin\n[reclaim]\ngrace = 30s\nmargin = 5s\n",
            "slurm",
            "agent_period",
            "less than [reclaim] grace, 30s",
        ),
        ("[pilot]\nheartbeat_limit = 1m\n", "htcondor", "cron_period", "less than [pilot] heartbeat_limit, 1m"),
        ("[htcondor]\nupdate_interval = 5s\n", "htcondor", "initial_update_interval", "at most update_interval, 5s"),
        (
            "[metrics]\nport = 9877\naddress = ::\n",
            "metrics",
            "address",
            "a loopback address such as 127.0.0.1; a proxy of the site has TLS and passwords",
        ),
        ("[reclaim]\ngrace = 15m\n", "reclaim", "margin", "less than grace, 15m"),
        ("[reclaim]\ngrace = 1m\nmargin = 5s\n", "htcondor", "update_interval", "less than [reclaim] grace, 1m"),
    ],
)
def test_values_that_contradict_each_other_are_refused(
    site: Path, text: str, section: str, key: str, expected: str
) -> None:
    """Each value is right by itself; together they would make a drain impossible."""
    fault = fault_of(site, text)
    assert (fault.section, fault.key, fault.expected) == (section, key, expected)


@pytest.mark.parametrize(
    "text",
    [
        "[slurm]\nagent_period = 10s\n[reclaim]\ngrace = 30s\nmargin = 5s\n",
        "[htcondor]\nupdate_interval = 10s\n[reclaim]\ngrace = 20s\nmargin = 5s\n",
    ],
)
def test_a_site_is_not_measured_by_the_batch_system_that_it_does_not_have(site: Path, text: str) -> None:
    """A short grace contradicts the default period of the other one, of which the file says nothing."""
    site.write_text(text)
    assert load(str(site)).reclaim.grace in {20, 30}


def test_a_file_that_is_not_utf_8_is_refused_with_the_line(site: Path) -> None:
    """The byte and its line are named."""
    fault = fault_of(site, b"[features]\nhs06 = 3\xff\n")
    assert (fault.value, fault.expected) == ("byte 0xff", "UTF-8 text on line 2")


def test_an_enormous_file_is_refused(site: Path) -> None:
    """Hostile case 20: a site file of megabytes is no site file."""
    assert "more than" in fault_of(site, "#" * ((1 << 20) + 1)).value


def test_a_key_that_cannot_be_printed_is_escaped(site: Path) -> None:
    """Hostile case 41: what stands in the file cannot speak to the terminal."""
    assert r"[features] \ud7fc = " in str(fault_of(site, "[features]\n\ud7fc = 1\n"))


def test_a_long_value_is_shown_in_short(site: Path) -> None:
    """Hostile case 21: a long line does not become a long message."""
    fault = fault_of(site, "[reclaim]\npolicy = " + "x" * 100000)
    assert len(str(fault)) < 400


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo", "device", "name with NUL"])
def test_a_file_that_cannot_be_read_is_refused(site: Path, kind: str) -> None:
    """Hostile cases 5, 7 and 8: a clear line at once, no wait, no traceback."""
    path = str(site)
    if kind == "directory":
        site.mkdir()
    elif kind == "fifo":
        os.mkfifo(site)
    elif kind == "device":
        path = "/dev/null"
    elif kind == "name with NUL":
        path += "\0"
    with pytest.raises(ConfigurationError) as caught:
        load(path)
    assert "a readable text file" in str(caught.value)


@given(key=st.sampled_from(list(keys())), text=st.text(st.characters(codec="utf-8"), max_size=30))
def test_any_value_is_read_or_refused_at_its_place(
    tmp_path_factory: pytest.TempPathFactory, key: Key, text: str
) -> None:
    """Whatever stands behind a key: a configuration or a ConfigurationError, never another exception."""
    site = tmp_path_factory.getbasetemp() / "any.ini"
    site.write_bytes(f"[{key.section}]\n{key.name} = {text}\n".encode())
    try:
        load(str(site))
    except ConfigurationError as fault:
        assert str(fault).isprintable()
        assert fault.file == str(site)


TOY = """\
from dataclasses import dataclass
from drainwise.siteconfig.kinds import duration, path
from drainwise.siteconfig.kinds import key
from drainwise.systems import System

@dataclass(frozen=True)
class Keys:
    directory: str = key(path(), "/var/lib/toy", "where its jobs lie")
    period: int = key(duration("1s", "1h"), 5, "how often it looks")

    def contradictions(self, site):
        if self.period > site.agent.period:
            yield "period", "at most [agent] period"

class Toy(System):
    name = "toy"
    site_keys = Keys

    def open_pool(self, site, directory):
        raise NotImplementedError

class Plain(System):
    name = "plain"
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two batch systems of an installed package: one says what its keys are."""
    put_package(tmp_path, "toy", f"[{find.GROUP}]\ntoy = toy_code:Toy\nplain = toy_code:Plain\n", TOY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "toy_code", raising=False)
    monkeypatch.setattr(find, "_installed", PluginEntries(find.GROUP, find._accept, find.OWN))


@pytest.mark.usefixtures("toy")
def test_a_batch_system_of_a_package_has_a_section_of_its_own(site: Path) -> None:
    """Typed by its own table, or as text."""
    site.write_text("[toy]\nperiod = 30s\n[plain]\nhost = a.b:80 # c\n[reclaim]\ngrace = 1h\n")
    config = load(str(site))
    toy, plain = find.installed("toy"), find.installed("plain")
    assert toy is not None
    assert plain is not None
    assert (toy.settings(config).period, toy.settings(config).directory) == (30, "/var/lib/toy")
    assert plain.settings(config) == {"host": "a.b:80"}
    assert toy.settings(SiteConfig()).period == 5
    assert config.reclaim.grace == 3600
    assert "| `period` | duration, 1s to 1h | `5s` | how often it looks |" in markdown()


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("[toy]\nperiod = 2h", "period", "a duration from 1s to 1h"),
        ("[toy]\nperiods = 2h", "periods", "a known key, perhaps period"),
        ("[toy]\nperiod = 2m", "period", "at most [agent] period"),
        ("[plain]\nhost = `id`", "host", "at most 200 letters"),
        ("[plain]\nhost = a\nhost = b", "host", "the key once; it stands on line 2, too"),
    ],
)
def test_a_fault_in_it_is_refused_as_in_any_other(site: Path, text: str, key: str, expected: str) -> None:
    fault = fault_of(site, text)
    assert fault.key == key
    assert fault.expected.startswith(expected)


def test_all_faults_of_a_file_are_found_at_once_in_the_order_of_their_lines(site: Path) -> None:
    """Lines, keys, values and contradictions; the keys of a section that there is not are no further faults."""
    site.write_text(
        "[reclaim]\ngrace = 90\nnonsense\nmin_age = 1h\n[no such]\nkey = 1\n"
        "[metrics]\nport = 9877\naddress = ::\n[pilot]\nhb = 1h\n"
    )
    faults = examine(str(site)).faults
    assert [(one.line, one.section, one.key) for one in faults] == [
        (2, "reclaim", "grace"),
        (3, "reclaim", ""),
        (5, "", ""),
        (9, "metrics", "address"),
        (11, "pilot", "hb"),
    ]
    with pytest.raises(ConfigurationError) as caught:
        load(str(site))
    assert str(caught.value).startswith(f"{site}:2: [reclaim] grace = '90': expected a duration")
    assert str(caught.value).endswith(" (4 more: `drainwise config check` shows all)")


def test_a_key_that_went_is_read_with_a_sentence(site: Path) -> None:
    """For a release; a key in a section that went, too. Of what was never a key nothing changes."""
    former = {section: list(keys) or ["window"] for section, keys in FORMER.items()}
    site.write_text("".join(f"[{name}]\n" + "".join(f"{key} = 1\n" for key in keys) for name, keys in former.items()))
    reading = examine(str(site))
    assert reading.faults == () and reading.config == SiteConfig(str(site), former=reading.config.former)
    assert len(reading.config.former) == sum(map(len, former.values()))
    first, *others = reading.config.former
    assert first.startswith(f"{site}, line 2: [reclaim] priority_first is read no more: of one user's pilots")
    assert f"{site}, line 9: [trust] window is read no more: what was its default counts for everybody" in others
    assert [one.key for one in (fault_of(site, "[page]\nserve = yes\n"), fault_of(site, "[trust\n"))] == ["serve", ""]


@pytest.mark.parametrize(
    ("text", "at_deadline", "sentence"),
    [
        ("[slurm]\nvacate = cancel\n[reclaim]\nmargin = 5m\n", "end", "write `at_deadline = end` in [reclaim]"),
        ("[slurm]\nvacate = requeue  # as ever\n", None, "leave it out"),
        ("[slurm]\nvacate = cancel\n[reclaim]\nat_deadline = requeue\n", "requeue", "write `at_deadline = end`"),
    ],
)
def test_a_line_of_former_releases_is_read_for_one_more(
    site: Path, text: str, at_deadline: str | None, sentence: str
) -> None:
    """With the line to write in its place; what was never a value of it is a fault."""
    site.write_text(text)
    reading = examine(str(site))
    assert reading.faults == () and reading.config.reclaim.at_deadline == at_deadline
    assert reading.config.former[0].startswith(f"{site}, line 2: [slurm] vacate is read for this release alone")
    assert sentence in reading.config.former[0]
    assert fault_of(site, "[slurm]\nvacate = stay\n").key == "vacate"


def test_a_default_in_the_place_of_a_wrong_value_contradicts_nothing(site: Path) -> None:
    """`grace` may not be above `max_grace`: which of both is wrong is seen when the unit is there."""
    site.write_text("[reclaim]\nmax_grace = 3\ngrace = 2d\n")
    assert [one.key for one in examine(str(site)).faults] == ["max_grace"]


def test_every_value_that_counts_is_known_with_its_origin(site: Path) -> None:
    site.write_text("[reclaim]\n\ngrace = 3h\n[kind old]\nhost = a*\n")
    values = {(one.section, one.key): one for one in effective_values(examine(str(site)))}
    assert (values["reclaim", "grace"].value, values["reclaim", "grace"].line) == ("3h", 3)
    assert (values["reclaim", "margin"].value, values["reclaim", "margin"].line) == ("15m", 0)
    assert (values["features", "hs06"].value, values["features", "hs06"].line) == ("", 0)
    assert (values["kind old", "host"].value, values["kind old", "host"].line) == ("a*", 5)
    assert {(key.section, key.name) for key in keys()} <= set(values)
