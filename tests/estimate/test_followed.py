"""A file of finished payloads is followed: what was appended is learned once, and nothing about it stops a pilot."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from drainwise.common.service import Faults
from drainwise.facts.errors import UsageError
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.queues.records import Records
from drainwise_tasks.estimate import followed
from drainwise_tasks.estimate.followed import FollowedRecords, core_power_here

from .jobs import T0, as_lines, record


def follow(path: Path, said: list[str], power: float | None = None) -> FollowedRecords:
    return FollowedRecords(str(path), power, Faults(said.append))


def ended(records: Records, name: str, seconds: float, task: str = "fit") -> None:
    payload = Payload(name, 1, ("true",), 50, 5000, task=task)
    records.started(payload, T0)
    records.add("done", name, T0 + seconds, code=0, seconds=seconds)


def about(seconds: float) -> object:
    """Ages are told apart by a tenth."""
    return pytest.approx(seconds, rel=0.1)


def test_what_ends_is_learned_at_the_next_look(tmp_path: Path) -> None:
    """The queue's own records: unknown at first, then what three in four keep to; half a line waits for the rest."""
    path, said = tmp_path / "records.jsonl", list[str]()
    known = follow(path, said)
    known.look(T0)
    assert known.run_time("fit", 1, 0, 0) is None
    records = Records(str(path), "pilot-1", print)
    for number, seconds in enumerate((10, 20, 30, 40)):
        ended(records, f"p{number}", seconds)
    known.look(T0)
    assert known.run_time("fit", 1, 0, 0) is None
    line = as_lines(record(task="fit", events=None, end=T0 + 50))
    with path.open("ab") as stream:
        stream.write(line[:20])
    known.look(T0)
    assert known.run_time("fit", 1, 0, 0) is None
    with path.open("ab") as stream:
        stream.write(line[20:])
    known.look(T0)
    known.look(T0)
    assert known.run_time("fit", 1, 0, 0) == about(40)
    assert 40 <= (known.run_time("fit", 1, 0, 35) or 0) <= 50 * 1.1
    assert (known.run_time("fit", 1, 0, 55) or 0) > 55 and known.run_time("other", 1, 0, 0) is None
    assert not said and not known.skips


def test_what_runs_is_told_by_the_file(tmp_path: Path) -> None:
    """Of many that started nine short ones have ended, whichever pilot they are in: a payload is one of the others."""
    path = tmp_path / "records.jsonl"
    first, second = Records(str(path), "pilot-1", print), Records(str(path), "pilot-2", print)
    for number in range(10):
        ended(first, f"p{number}", 10 if number < 9 else 4000)
    known = follow(path, [])
    known.look(T0)
    assert known.run_time("fit", 1, 0, 0) == about(10)
    for number in range(30):
        second.started(Payload(f"q{number}", 1, ("true",), 50, 5000, task="fit"), T0)
    known.look(T0 + 500)
    assert known.run_time("fit", 1, 0, 0) == about(4000)
    # Some end; a payload that is past its maximum does not run any more, nor does one that went back to the queue.
    for number in range(5):
        second.add("requeued", f"q{number}", T0 + 600, seconds=600)
    known.look(T0 + 700)
    assert known.run_time("fit", 1, 0, 0) == about(4000)
    known.look(T0 + 5000)
    assert known.run_time("fit", 1, 0, 0) == about(10)
    for number in range(5, 30):
        second.add("done", f"q{number}", T0 + 20, code=0, seconds=20)
    known.look(T0 + 700)
    assert known.run_time("fit", 1, 0, 0) == about(20) and not known.skips


def test_a_new_task_is_like_its_user_s_others(tmp_path: Path) -> None:
    """Whose name says so; a task that stands alone is told by its own jobs."""
    path = tmp_path / "records"
    path.write_bytes(as_lines(*[record(task="alice/sim", events=None)] * 6))
    known = follow(path, [])
    assert known.run_time("alice/new", 1, 0, 0) == about(100)
    assert known.run_time("bob/new", 1, 0, 0) is None and known.run_time("new", 1, 0, 0) is None


def test_odd_starts_run_nowhere(tmp_path: Path) -> None:
    """HOSTILE 36, 37: no task, no times, none that are numbers, a thousand digits, what starts in the future."""
    path = tmp_path / "records.jsonl"
    good = {"event": "started", "pilot": "a", "task": "fit", "time": T0, "maximum": 5000}
    odd: list[dict[str, object]] = [{"task": 7}, {"task": None}, {"time": "x"}, {"time": None}, {"maximum": [1]}]
    odd += [{"time": 10**400}, {"time": -(10**400)}, {"time": float("nan")}, {"maximum": float("nan")}, {"maximum": 0}]
    odd += [{"time": T0 + 501}, {"time": 0}, {"maximum": -1}]
    path.write_bytes(as_lines(*[{**good, **one, "payload": f"p{number}"} for number, one in enumerate(odd)]))
    pairing = follow(path, [])._pairing
    assert not list(pairing.running(T0 + 500))
    path.write_bytes(as_lines({**good, "payload": "p", "maximum": 10**400}))
    assert list(follow(path, [])._pairing.running(T0 + 500)) == [("fit", 500)]


def test_events_and_the_power_of_this_node_count(tmp_path: Path) -> None:
    """Records of nodes of 10 HS06 per core; here it is 20: what scales takes half, by events."""
    path = tmp_path / "records"
    one = record(task="sim", end=T0 + 4600, events=1000, core_power=10)
    path.write_bytes(as_lines(*[one] * 5))
    assert follow(path, [], 20.0).run_time("sim", 1, 1000, 0) == pytest.approx(2600)
    assert follow(path, [], 10.0).run_time("sim", 1, 2000, 0) == pytest.approx(8600)
    assert follow(path, [], 20.0).run_time("sim", 1, 0, 0) == about(4600)
    # Without powers on either side all nodes count as this one.
    path.write_bytes(as_lines(*[{key: value for key, value in one.items() if key != "core_power"}] * 5))
    assert follow(path, [], 20.0).run_time("sim", 1, 1000, 0) == pytest.approx(4600)
    assert follow(path, [], None).run_time("sim", 1, 1000, 0) == pytest.approx(4600)


def test_another_file_is_read_from_its_beginning(tmp_path: Path) -> None:
    """Rotated, or cut short: what the new one says counts, alone."""
    path = tmp_path / "records"
    path.write_bytes(as_lines(*[record(events=None)] * 6))
    known = follow(path, [])
    assert known.run_time("t", 1, 0, 0) == about(100)
    new = tmp_path / "new"
    new.write_bytes(as_lines(*[record(events=None, end=T0 + 7)] * 5))
    os.replace(new, path)
    known.look(T0)
    assert known.run_time("t", 1, 0, 0) == about(7)
    path.write_bytes(as_lines(record(events=None)))
    known.look(T0)
    assert known.run_time("t", 1, 0, 0) is None


def test_a_look_is_bounded_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 22, 25: a file that grows fast is read in pieces, and none of it is lost."""
    monkeypatch.setattr(followed, "PIECE", 1000)
    monkeypatch.setattr(followed, "MOST_AT_A_LOOK", 3000)
    path = tmp_path / "records"
    known = follow(path, [])
    path.write_bytes(as_lines(*(record(events=None, end=T0 + number) for number in range(100))))
    known.look(T0)
    first = known._survey.tasks["t"].ended
    assert 0 < first < 100
    for _ in range(10):
        known.look(T0)
    assert known._survey.tasks["t"].ended == 100 and not known.skips


def test_of_a_large_file_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 22: the newest records alone, from the first whole line on; the pilot starts at once."""
    monkeypatch.setattr(followed, "NEWEST", 1000)
    path = tmp_path / "records"
    path.write_bytes(as_lines(*[record(events=None)] * 1000, *[record(events=None, end=T0 + 9)] * 20))
    known = follow(path, [])
    assert known.run_time("t", 1, 0, 0) == about(9) and not known.skips
    assert known._survey.tasks["t"].ended < 20


def test_garbage_is_counted(tmp_path: Path) -> None:
    """HOSTILE 21, 24, 34, 36: what is no record costs itself, a line of megabytes included."""
    path = tmp_path / "records"
    good = as_lines(*[record(events=None)] * 3)
    path.write_bytes(
        good
        + b'\0\0\n[1]\nnan\n"a task of mine"\n'
        + b"x" * (3 << 20)
        + b"\n{}\n"
        + json.dumps({"event": 7}).encode()
        + b"\n"
        + good
    )
    known = follow(path, [])
    assert known.run_time("t", 1, 0, 0) == about(100) and sum(known.skips.values()) == 7
    assert "a task of mine" not in known.skips  # reasons are ours, and no text of a line


def test_what_cannot_be_followed(tmp_path: Path) -> None:
    """HOSTILE 5, 8: at the start a wrong file is wrong usage, at once; later one line, and what is known stays."""
    for number, make in enumerate((os.mkdir, os.mkfifo)):
        place = tmp_path / str(number)
        make(place)
        with pytest.raises(UsageError, match=r"--estimate .*expected a regular file"):
            follow(place, [])
    path, said = tmp_path / "records", list[str]()
    path.write_bytes(as_lines(*[record(events=None)] * 5))
    known = follow(path, said)
    path.unlink()
    known.look(T0)
    os.mkfifo(path)
    known.look(T0)
    known.look(T0)
    assert known.run_time("t", 1, 0, 0) == about(100)
    assert said == ["estimate: expected a regular file"]


def test_the_power_of_a_core_here(tmp_path: Path) -> None:
    """hs06_job / allocated_cpu; absent or garbage: unknown."""
    environment = {"JOBFEATURES": str(tmp_path)}
    assert core_power_here({}, 4) is None and core_power_here(environment, 4) is None
    (tmp_path / "hs06_job").write_text("80.5\n")
    assert core_power_here(environment, 4) == 80.5 / 4
    (tmp_path / "allocated_cpu").write_text("8\n")
    assert core_power_here(environment, 4) == 80.5 / 8
    (tmp_path / "hs06_job").write_text("strong\n")
    assert core_power_here(environment, 4) is None
