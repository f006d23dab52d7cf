"""Whether a node takes orders: what its cron finds of the configuration, kept over restarts and upgrades."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from drainwise.htcondor.node import ALWAYS, NEVER, cron_state
from drainwise.htcondor.node.cron_state import (
    NOTHING,
    START_SECONDS,
    USUAL_VACATE,
    CronState,
    checksum,
    hooks_since,
    marks_of,
    options,
    orders_possible,
    orders_since,
    placed_at,
    remember,
    remembered,
    seconds,
    state_of,
    unusable_files,
)

NOW = 1795249000
DAY = 86400


def test_each_startd_of_a_machine_has_a_state_of_its_own(tmp_path: Path) -> None:
    """One without a name has the file of before; a second one begins with what that says."""
    shared = tmp_path / "state"
    shared.write_text("drainwise 17 600 0\n")
    assert state_of(str(shared), os.getpid()) == str(shared)
    program = [sys.executable, "-c", "print(flush=True); input()", "-f", "-local-name", "two/b"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as startd:
        assert startd.stdin is not None and startd.stdout is not None
        startd.stdout.readline()  # it has its command line by now
        own = state_of(str(shared), startd.pid)
        assert own == f"{shared}@two-b" and Path(own).read_text() == shared.read_text()
        Path(own).write_text("drainwise 18 600 0\n")
        assert Path(state_of(str(shared), startd.pid)).read_text() == "drainwise 18 600 0\n"
        startd.stdin.write(b"\n")
    assert state_of(str(shared), startd.pid) == str(shared)


def test_an_option_may_have_several_words_or_none() -> None:
    """As HTCondor fills them in: a keyword that is not set, an expression of several words."""
    words = ["--execute", "/e", "--hooks", "--vacate", "10", "*", "60", "--runtime", "True"]
    assert options(words) == {"execute": "/e", "hooks": "", "vacate": "10 * 60", "runtime": "True"}
    assert options(["stray", "--a", "b"]) == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "value"),
    [("600", 600), ("10 * 60", 600), ("1*2*3", 6), ("", None), ("10 * x", None), ("-5", None), ("1.5", None)],
)
def test_seconds_are_a_number_or_a_product(text: str, value: int | None) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize(
    ("runtime", "hooks", "possible"),
    [("True", "DRAINWISE", True), ("true", "SITE", False), ("False", "DRAINWISE", False), ("", "", False)],
)
def test_orders_need_the_runtime_configuration_and_our_hooks(runtime: str, hooks: str, possible: bool) -> None:
    """A pilot on a node with another's hooks could not be told."""
    assert orders_possible({"runtime": runtime, "hooks": hooks, "keyword": "DRAINWISE"}) is possible


def test_an_older_drop_in_says_nothing() -> None:
    """The package may come before the drop-in: such a node is asked as it was."""
    assert orders_possible({"execute": "/e"}) is None


def test_a_new_installation_counts_from_the_drop_in() -> None:
    """A startd that started before it takes no orders, one that started after it does."""
    assert orders_since(None, False, True, NOW - 50, NOW) == NOW - 50
    assert orders_since(None, False, True, NOW + 50, NOW) == NOW, "a clock that was put back"
    assert orders_since(None, False, True, None, NOW) == NOW - START_SECONDS, "it lies elsewhere"


def test_what_was_found_once_stands() -> None:
    """The startd restarted, the node rebooted, the drop-in rendered again: since the first time."""
    assert orders_since(NOW - DAY, True, True, NOW - 5, NOW) == NOW - DAY


def test_an_upgrade_while_the_startd_runs_closes_no_node() -> None:
    """A version before this one ran here: its startd may well take orders, and is asked."""
    assert orders_since(None, True, True, NOW - 5, NOW) == ALWAYS


def test_what_was_switched_off_counts_from_when_it_is_on_again() -> None:
    """ENABLE_RUNTIME_CONFIG comes back: only a startd from then on takes orders."""
    off = orders_since(NOW - DAY, True, False, NOW - DAY, NOW)
    assert off == NEVER
    assert orders_since(off, True, True, NOW - DAY, NOW) == NOW - START_SECONDS


def test_the_drop_in_is_found_in_any_of_the_directories(tmp_path: Path) -> None:
    """When it was put there counts, not the time that it was given."""
    place = tmp_path / "b" / "drop-in"
    place.parent.mkdir()
    place.write_text("")
    os.utime(place, (5, 5))
    found = placed_at(f"{tmp_path}/a, {tmp_path}/b", "drop-in")
    assert found == int(place.stat().st_ctime)
    assert placed_at(str(tmp_path), "drop-in") is None
    assert placed_at("", "drop-in") is None


# ---- the node's files that jobs could not use, as the cron finds them ----


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that there must be, in directories of its own."""
    for name, mode in (("pilot-cron", 0o755), ("prepare-hook", 0o755), ("update-hook", 0o755), ("node.conf", 0o644)):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(mode)
    for name in ("hooks.conf", "prepare_hook.py", "update_hook.py"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o644)
    monkeypatch.setattr(sys, "argv", [f"{tmp_path}/pilot-cron"])
    monkeypatch.setattr(cron_state, "__file__", f"{tmp_path}/cron_state.py")
    return tmp_path


def found(node: Path) -> list[str]:
    return [Path(path).name for path in unusable_files(f"{node}/node.conf")]


def test_a_sound_node_has_none(node: Path) -> None:
    assert found(node) == []


@pytest.mark.parametrize(
    "name", ["prepare-hook", "update-hook", "hooks.conf", "node.conf", "prepare_hook.py", "update_hook.py"]
)
def test_what_is_gone_or_closed_to_the_jobs_users_is_named(node: Path, name: str) -> None:
    """Also what only root can read: as an installation under umask 077 leaves it."""
    (node / name).chmod(0o700)
    assert found(node) == [name]
    (node / name).unlink()
    assert found(node) == [name]


MARKS = {"slot1_1": ("a" * 16, "b" * 8, "1795249000"), "slot1_2": ("c" * 16, "d" * 8, "0")}


@pytest.mark.parametrize(
    "state",
    [CronState(17, 700, MARKS, True, "e" * 8), CronState(None, USUAL_VACATE, MARKS, True), CronState(0, 600, {}, True)],
)
def test_a_round_leaves_its_record_to_the_next(tmp_path: Path, state: CronState) -> None:
    path = str(tmp_path / "state")
    assert remembered(path) == CronState(None, USUAL_VACATE, {}, False)
    remember(path, state)
    assert remembered(path) == state
    assert os.listdir(tmp_path) == ["state"]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("", CronState(None, 600, {}, True)),
        ("drainwise 17 599 x\nslot1 a b\n", CronState(17, 600, {"slot1": ("a", "b", "0")}, True, "x")),
        ("drainwise 17 600\ndrainwise 17 -1 x\ndrainwise y 600 x\n", CronState(None, 600, {}, True)),
        (
            "slot1 a b 1234567890\nslot2 a b 12345678901\nslot3 a b x\n",
            CronState(None, 600, {"slot1": ("a", "b", "1234567890")}, True),
        ),
        ("slot1\nslot2 a\nslot3 a b 1 2\n\n", CronState(None, 600, {}, True)),
    ],
)
def test_of_a_broken_record_what_is_sound_counts(tmp_path: Path, text: str, state: CronState) -> None:
    (tmp_path / "state").write_text(text)
    assert remembered(str(tmp_path / "state")) == state


AD = "PilotHeartbeat = 5\nPilotReturned = 1\nPilotCores = 3\n"


@pytest.mark.parametrize(
    ("ad", "later", "is_sent"),
    [
        (AD, 5, False),
        (AD.replace("5", "6"), 5, False),
        (AD.replace("3", "4"), 299, False),
        (AD.replace("3", "4"), 300, True),
        (AD.replace("3", "4"), -1, True),
        (AD.replace("1", "2"), 5, True),
        ("PilotReturned = 1\n" + AD, 5, True),
        ("", 300, True),
    ],
    ids=["same", "heartbeat", "soon", "later", "clock", "returned", "more", "nothing"],
)
def test_an_ad_is_sent_when_it_tells_something_new(ad: str, later: int, is_sent: bool) -> None:
    """At once where it tells of another run or of returned cores, else not within the pause; else it goes by itself."""
    first = marks_of({"slot1": (AD, "why")}, {}, NOW, 300)
    mark, refused, sent = first["slot1"]
    assert (refused, sent, len(mark)) == (checksum("why"), str(NOW), 16)
    then = marks_of({"slot1": (ad, "")}, first, NOW + later, 300)["slot1"]
    assert then[1:] == (checksum(""), str(NOW + later) if is_sent else str(NOW))
    assert (then[0] == mark) is not is_sent
    assert (then[0] == NOTHING[0]) is not bool(ad)
    assert marks_of({}, first, NOW, 300) == {}


def test_all_jobs_find_the_hooks_since_the_rounds_have_no_gap(tmp_path: Path) -> None:
    """Nor a file that is missing; where an earlier drainwise was nobody knows."""
    state, note = str(tmp_path / "state"), tmp_path / "state.since"

    def since(now: int, age: int = 0, unusable: tuple[str, ...] = (), period: int = 60) -> int:
        if note.exists():
            os.utime(note, (now - age, now - age))
        found = hooks_since(state, period, now, unusable)
        assert note.read_text() == str(found)
        return found

    assert since(NOW) == NOW
    assert since(NOW + 60) == NOW and note.stat().st_mtime > NOW + 60, "this round has been"
    assert since(NOW + 300, age=3 * 60 + 60) == NOW
    assert since(NOW + 301, age=3 * 60 + 61, period=0) == NOW
    assert since(NOW + 302, age=3 * 60 + 61) == NOW + 302
    assert since(NOW + 400, unusable=("hook",)) == NOW + 400
    note.write_text("x")
    assert since(NOW + 500) == 0
    assert since(NOW + 501) == 0
    note.write_text("x")
    assert since(NOW + 502, unusable=("hook",)) == NOW + 502
    note.unlink()
    Path(state).touch()
    assert since(NOW + 600) == 0
