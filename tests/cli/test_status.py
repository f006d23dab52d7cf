"""`drainwise status` shows everybody and everything, for people and for programs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pytest_mock import MockerFixture

from drainwise import __version__
from drainwise.cli.main import main
from drainwise.cli.screen.columns import BY_NAME
from drainwise.htcondor.system import HTCondor
from drainwise.journal.event import VERSION, Kind
from drainwise.journal.file import journal_line
from drainwise.journal.remembered import unmet_event
from drainwise.pilotad.observation import Observation, observed_report
from drainwise.reclaim.unmet_demand import UnmetDemand

from .conftest import pilot

if TYPE_CHECKING:
    from .conftest import AlicesPool


@pytest.fixture(autouse=True)
def time_stands_still(pool: AlicesPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the moment of the pool's facts, so that figures do not grow while a test looks at them."""
    monkeypatch.setattr(time, "time", lambda: float(pool.now))


def test_the_tables_are_complete_in_a_pipe(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is cut, however long a name is."""
    pool.user = "alice-" + "x" * 200 + "@pool"
    assert main(["status"]) == 0
    shown = capsys.readouterr().out
    [group] = [line.split() for line in shown.splitlines() if line.strip().startswith("group_a")]
    assert group == ["group_a", "16.0", "32.0", "0.0", "+16.0", "900.0"]
    [one] = [line.split() for line in shown.splitlines() if "slot1_2@node1" in line]
    assert one[:5] == ["slot1_2@node1", pool.user, "8", "2", "fresh,"]
    assert one[6:] == ["old", "16m40s", "1.67", "core-h", "0.333", "core-h", "3", "running"]
    [silent] = [line.split() for line in shown.splitlines() if "slot1_4@node1" in line]
    assert silent[2:] == ["8", "?", "silent", "?", "?", "16.0", "core-h", "?", "running"]


def test_remaining_time_in_good_faith_and_guaranteed(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    """Draft use case 9 has two forms: by last_exp_job_end, and by last_max_job_end."""
    assert main(["status", "--json"]) == 0
    pilots = json.loads(capsys.readouterr().out)["pilots"]
    found = {one["name"]: (one["remaining"], one["remaining_max"]) for one in pilots}
    assert found["slot1_2@node1"] == (1000, 4000)
    assert found["slot1_4@node1"] == (None, None), "it is silent"
    assert main(["status", "--format", "name,remaining,maxremaining"]) == 0
    [row] = [line.split() for line in capsys.readouterr().out.splitlines() if "slot1_2@node1" in line]
    assert row == ["slot1_2@node1", "1000", "4000"]


def test_json_has_the_figures_in_base_units(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [account["name"] for account in shown["accounts"]] == ["group_a", "group_b"]
    one = shown["pilots"][1]
    assert (one["name"], one["used_cpu"], one["remaining"], one["draining_waste"]) == ("slot1_2@node1", 2.0, 1000, 6000)
    assert shown["free_cores"] == 0


def test_nodes_of_another_version_are_named(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status"]) == 0
    assert "by the version" not in capsys.readouterr().out
    pool.versions = (("0.0.9", 2), (__version__, 1))
    assert main(["status"]) == 0
    assert f"2 of 0.0.9, 1 of {__version__}; here it is {__version__}" in capsys.readouterr().out
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["versions"] == {"0.0.9": 2, __version__: 1}


def test_paused_demand_is_shown_and_counts_as_none(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`status` and `plan`, from the journal that the site names and from the agent's own beside its lock."""
    paused = UnmetDemand(
        "group_b", failed=2, vain=32.0, since=pool.now - 60, until=pool.now + 840, held=16.0, held_jobs=2.0
    )
    (tmp_path / "agent.journal").write_text(journal_line(unmet_event(paused, pool.now - 60)))
    (tmp_path / "site.ini").write_text(f"[journal]\nfile = {tmp_path}/agent.journal\n")
    for options in ([], ["--site", f"{tmp_path}/site.ini"]):
        assert main(["plan", *options]) == 0
        planned = capsys.readouterr().out
        assert main(["status", *options]) == 0
        shown = capsys.readouterr().out
        for out in (planned, shown):
            assert "group_b waits for 16 cores that do not count from " in out
            assert ": 32 cores came back for it in 2 rounds and its jobs did not start;" in out
        assert "only demand that is paused waits: nothing to give back" in planned
    for command in ("plan", "status"):
        assert main([command, "--json"]) == 0
        [one] = json.loads(capsys.readouterr().out)["paused_demand"]
        assert (one["account"], one["cores"], one["until"]) == ("group_b", 16.0, pool.now + 840)
    assert main(["plan", "--cores", "8"]) == 0
    assert "1 pilot gives back 8 of 8 cores" in capsys.readouterr().out


def test_figures_that_the_agent_has_learned_are_those_of_the_plan_and_called_so(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a node sees begin and the journal knows to last; what a pilot states itself is called otherwise."""
    seen = Observation("plain", pool.now - 20, 2, 3.0, 4000, 0, (pool.now - 1200, pool.now - 900))
    observed = replace(pilot(5, pool.now, pool.now, None), seen=seen, report=observed_report(seen))
    idle = Observation("plain", pool.now - 20, 0, 0.0, 0, 60)
    free = replace(pilot(6, pool.now, pool.now, None), seen=idle, report=observed_report(idle))
    whole = pool.snapshot(pool.now)
    monkeypatch.setattr(pool, "snapshot", lambda _: replace(whole, pilots=(*whole.pilots, observed, free)))

    def figures(*words: str) -> dict[str, tuple[object, ...]]:
        assert main([*words, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        found = shown.get("pilots") or [one for user in shown["users"] for one in (*user["orders"], *user["spared"])]
        return {one["run"]: (one["ends"], one["remaining"], one["draining_waste"], one["kill_waste"]) for one in found}

    assert figures("status")[observed.run][:3] == (None, None, None)
    lives = [
        {
            "run": "r",
            "user": observed.user,
            "client": "plain",
            "began": pool.now - 9000,
            "ended": pool.now - 9000 + 3600,
        }
    ]
    event = {"event": Kind.PAYLOADS, "version": VERSION, "time": pool.now - 60, "ended": lives * 8}
    (tmp_path / "agent.journal").write_text(journal_line(event))
    learned = figures("status")
    ends, remaining, draining_waste, _ = learned[observed.run]
    assert (ends, draining_waste is not None) == ("learned", True)
    assert remaining == pytest.approx(3600 - 900, rel=0.15)
    assert learned[free.run] == ("no payload", 0, 0, 0)
    assert [learned[one.run][0] for one in whole.pilots] == ["published"] * 3 + [None]
    assert figures("plan") == figures("plan", "--cores", "16") == learned
    assert main(["status"]) == 0
    lines = capsys.readouterr().out.splitlines()
    [line] = [line for line in lines if line.lstrip().startswith(observed.name)]
    assert "observed, 20s old, ends learned" in line
    assert sum("learned" in line for line in lines) == 1
    (tmp_path / "agent.journal").write_text("nonsense\n")
    assert main(["status"]) == 0
    assert "1 line" in capsys.readouterr().out, "what of the journal cannot be used is said"


def test_names_cannot_speak_to_the_terminal(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    """HOSTILE 41, 45: no escape sequence, no new line, no markup."""
    pool.user = "al\x1b]0;x\x07\r\nice[bold]\u202e@pool"
    assert main(["status"]) == 0
    shown = capsys.readouterr().out
    assert "al]0;xice[bold]@pool" in shown
    assert all(line.isprintable() for line in shown.splitlines())


def test_a_pool_that_does_not_answer_is_one_line(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    """HOSTILE 54."""
    pool.go_away()
    assert main(["status"]) == 1
    assert capsys.readouterr() == ("", "drainwise: the collector did not answer within 8 s\n")


def test_format_gives_named_columns_as_single_words(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    pool.user = "alice smith@pool"
    assert main(["status", "--format", "name,USER,cores,killwaste,drainwaste,remaining"]) == 0
    heading, *rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert heading == ["name", "user", "cores", "killwaste", "drainwaste", "remaining"]
    assert rows[1] == ["slot1_2@node1", "alice_smith@pool", "8", "1200", "6000", "1000"]
    assert rows[3] == ["slot1_4@node1", "alice_smith@pool", "8", "57600", "?", "?"]


def test_every_column_can_be_asked_for(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    """Alone, without a heading, one word per pilot; and each is explained by --help."""
    for name in BY_NAME:
        assert main(["status", "--noheader", "--format", name, "--sort", f"{name}:desc"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [len(line.split()) for line in lines] == [1] * 4, (name, lines)
    with pytest.raises(SystemExit):
        main(["status", "--help"])
    explained = capsys.readouterr().out
    assert all(f"\n  {name} " in explained for name in BY_NAME)


def test_a_wrong_column_is_refused_with_one_that_is_near(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the pool is asked."""
    pool.go_away()
    for words in (["--format", "name,Core"], ["--sort", "Core"]):
        assert main(["status", *words]) == 2
        assert capsys.readouterr().err == (
            "drainwise: no column is called 'Core'; did you mean cores? `drainwise status --help` lists them\n"
        )
    assert main(["status", "--sort", "cores:down"]) == 2
    assert "expected COLUMN, COLUMN:asc or COLUMN:desc" in capsys.readouterr().err


def test_sorted_by_a_column_with_the_unknown_last(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    for order, expected in (("drainwaste", "1324"), ("drainwaste:desc", "2314"), ("name:desc", "4321")):
        assert main(["status", "--sort", order, "--format", "name", "--noheader"]) == 0
        assert "".join(line[6] for line in capsys.readouterr().out.splitlines()) == expected


def test_only_the_users_asked_for(
    pool: AlicesPool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With or without the domain; the accounts stay whole."""
    whole = pool.snapshot(pool.now)
    carols = replace(whole.pilots[0], user="carol@pool", run="ce.pool#9.0#1@1")
    monkeypatch.setattr(pool, "snapshot", lambda _: replace(whole, pilots=(*whole.pilots, carols)))
    for users, count in ((["alice"], 4), (["alice@pool"], 4), (["carol"], 1), (["carol", "alice"], 5)):
        assert main(["status", "--json", *(word for user in users for word in ("--user", user))]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert (len(shown["pilots"]), len(shown["accounts"])) == (count, 2), users


def test_no_line_is_wider_than_the_window(
    pool: AlicesPool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are cut first and say so, then columns are left out and named."""
    pool.user = "alice-" + "x" * 200 + "@pool"
    for width in (200, 120, 80, 40, 20):
        monkeypatch.setenv("COLUMNS", str(width))
        assert main(["status"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= width
        assert any("alice-" in line and "~" in line for line in lines)
        if width >= 80:
            assert any("0.333 core-h" in line for line in lines), "the figures stay"
        assert any(line.startswith("(left out") for line in lines) == (width < 100)


def test_no_box_and_no_colour_where_there_is_no_terminal(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status"]) == 0
    assert capsys.readouterr().out.isascii()


def on_a_terminal(words: list[str], monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    """What a terminal of 80 by 24 shows of the command, until the command has ended."""
    read, write = pty.openpty()
    fcntl.ioctl(write, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)
    with open(write, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "__stdout__", stream)
        assert main(words) == 0
    shown = b""
    with contextlib.suppress(OSError):  # the end: nobody holds the terminal any more
        while piece := os.read(read, 65536):
            shown += piece
    os.close(read)
    return shown.decode()


def test_colour_on_a_terminal_and_none_with_no_color(pool: AlicesPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a name says cannot colour anything in either."""
    pool.user = "al\x1b[31mice@pool"
    coloured = on_a_terminal(["status"], monkeypatch)
    assert "\x1b[1mAccounts" in coloured and "\x1b[31m" not in coloured
    plain = on_a_terminal(["status"], monkeypatch, NO_COLOR="1")
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[\d*m", "", coloured) == plain
    assert max(len(line) for line in plain.splitlines()) <= 80


WITHOUT_NUMPY = """
import contextlib, io, sys
sys.path[:0] = {path!r}
from drainwise.cli import agent_place, site_file
from drainwise.cli.main import main
from drainwise.htcondor.system import HTCondor
from cli.conftest import AlicesPool
HTCondor.open_pool, HTCondor.missing = (lambda *_: AlicesPool()), (lambda *_: "")
site_file.DEFAULT_SITE_FILE = "/nonexistent"
agent_place.lock_path = lambda *_: {journal!r}.replace(".journal", ".lock")
sys.modules["numpy"] = None  # whoever imports it fails
for words in {commands!r}:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = main(words)
    assert code == 0 and "slot1_1@node1" in said.getvalue(), (words, code, said.getvalue())
"""


PATH = [str(Path(__file__).parents[place] / name) for place, name in ((2, "plugins"), (1, "."), (1, "support"))]


def test_to_look_needs_no_numpy(pool: AlicesPool, tmp_path: Path) -> None:
    """With what an agent has written, too."""
    journal = f"{tmp_path}/agent.journal"
    assert main(["reclaim", "--once", "--act", "--journal", journal]) == 0
    commands = [
        ["status"],
        ["status", "--json"],
        ["status", "--format", "name,orderwaste,priority", "--sort", "orderwaste"],
        ["explain", "slot1_1@node1", "--journal", journal],
        ["explain", "--user", "alice", "--json", "--journal", journal],
    ]
    program = WITHOUT_NUMPY.format(path=PATH, commands=commands, journal=journal)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("module", ["htcondor.pool.pool", "slurm.pool.pool", "local.pool"])
def test_the_snapshot_of_a_pool_needs_no_numpy(module: str) -> None:
    program = f"import sys; sys.modules['numpy'] = None; sys.path[:0] = {PATH!r}\nimport drainwise.{module}"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_by_the_scheduler_alone_nothing_counts_that_a_pilot_or_its_node_says(
    pool: AlicesPool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cores x run time, or since the last checkpoint; no journal is read."""
    assert main(["status", "--scheduler-only", "--json"]) == 0
    pilots = json.loads(capsys.readouterr().out)["pilots"]
    assert [(one["standing"], one["kill_waste"]) for one in pilots] == [("silent", 8 * 7200)] * 4
    assert main(["status", "--scheduler-only"]) == 0
    shown = capsys.readouterr().out
    assert "saved" in shown and "draining waste" not in shown and shown.count("16.0 core-h") == 4


def test_what_glideins_advertise_at_a_ce_is_lost_with_their_jobs(
    pool: AlicesPool, capsys: pytest.CaptureFixture[str], mocker: MockerFixture
) -> None:
    """Of jobs of which it says nothing, cores x run time; a job is that of the access point that the glidein names."""
    runs = {one.name: one.run for one in pool.snapshot(pool.now).pilots}
    seen = observed_report(Observation("paper", pool.now, 1, 4.0, 2400, begins=(pool.now - 600,)))
    told = {runs["slot1_2@node1"].rpartition("#")[0]: seen, "another-access-point#1.0": seen}
    asked = mocker.patch.object(HTCondor, "payload_reports", autospec=True, return_value=told)
    assert main(["status", "--scheduler-only", "--ce-collector", "ce.example.org", "--format", "name,killwaste"]) == 0
    rows = dict(line.split() for line in capsys.readouterr().out.splitlines()[1:])
    assert rows.pop("slot1_2@node1") == "2400" and set(rows.values()) == {str(8 * 7200)}
    assert asked.call_args.args[1:] == ("ce.example.org", pool.now)


def test_the_collector_of_a_ce_is_for_what_the_scheduler_alone_knows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--ce-collector", "ce.example.org"]) == 2
    assert "--ce-collector goes with --scheduler-only" in capsys.readouterr().err
