"""A directory as the queue: what waits is offered in order, and each file ends where it belongs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import UsageError
from drainwise.pilot.decide.payload import Payload, parse_payload
from drainwise.pilot.queues import directory as queue_directory
from drainwise.pilot.queues.directory import PATIENCE, DirectoryQueue
from drainwise.pilot.queues.records import EndedPayload

TIME = 2_000_000_000.0  # long after the files were written: the directory has settled


class Queue:
    """A queue's directory with a pilot's view of it."""

    def __init__(self, place: Path, pilot: str = "one") -> None:
        self.place, self.said, self.now = place, list[str](), TIME
        self.view = DirectoryQueue(str(place), pilot, self.said.append)

    def put(self, file: str, written: int = 0, **keys: object) -> None:
        path = self.place / f"{file}.json"
        path.write_text(json.dumps({"command": "true", "maximum": 5, **keys}))
        if written:
            os.utime(path, (written, written))

    def look(self, later: float = 0) -> list[str]:
        self.now += later
        self.view.look(self.now)
        return [payload.name for payload in self.view.waiting()]

    def claim(self, name: str) -> bool:
        [payload] = [payload for payload in self.view.waiting() if payload.name == name]
        return self.view.claim(payload, self.now)

    def records(self) -> list[tuple[object, ...]]:
        lines = (self.place / "records.jsonl").read_text().splitlines()
        return [(each["event"], each["payload"], each.get("reason")) for each in map(json.loads, lines)]

    def folder(self, name: str) -> set[str]:
        return {path.name for path in (self.place / name).glob("*.json")}


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(tmp_path)


def test_the_oldest_waits_first(queue: Queue) -> None:
    """Order of writing, not of names; a stated name counts; dots and other files are not looked at."""
    queue.put("c", 100)
    queue.put("a", 300)
    queue.put("b", 200, name="stated")
    queue.put(".hidden")
    (queue.place / "notes.txt").write_text("no payload")
    assert queue.look() == ["c", "stated", "a"]
    assert queue.said == []


def test_a_payloads_way(queue: Queue) -> None:
    """Claimed, ended, requeued: each with a record, and each file in one place at a time."""
    for file in ("good", "bad", "late", "stopped", "unlucky"):
        queue.put(file)
    assert len(queue.look()) == 5
    claimed = {payload.name: payload for payload in queue.view.waiting()}
    for name in list(claimed):
        assert queue.claim(name)
    assert queue.look() == [] and queue.folder("running/one") == {f"{name}.json" for name in claimed}
    queue.view.finished(EndedPayload(claimed["good"], 0, queue.now - 4.0), queue.now)
    queue.view.finished(EndedPayload(claimed["bad"], 3, queue.now - 4.0), queue.now)
    queue.view.finished(EndedPayload(claimed["late"], 0, queue.now - 9.0, "maximum"), queue.now)
    queue.view.requeue(claimed["stopped"], "deadline", 4.0, queue.now)
    queue.view.unclaim(claimed["unlucky"], "not started: no space", queue.now)
    assert queue.folder("done") == {"good.json"} and queue.folder("failed") == {"bad.json", "late.json"}
    assert sorted(queue.look()) == ["stopped", "unlucky"]
    assert queue.records()[5:] == [
        ("done", "good", None),
        ("failed", "bad", None),
        ("failed", "late", "maximum"),
        ("requeued", "stopped", "deadline"),
        ("requeued", "unlucky", "not started: no space"),
    ]
    queue.view.close(queue.now)
    assert os.listdir(queue.place / "running") == []


def test_what_another_pilot_took_is_gone(queue: Queue) -> None:
    """A lost race is no fault: the payload is not offered any more."""
    queue.put("a")
    queue.put("b")
    other = Queue(queue.place, "two")
    assert sorted(queue.look()) == sorted(other.look()) == ["a", "b"]
    assert other.claim("a") and not queue.claim("a")
    assert [payload.name for payload in queue.view.waiting()] == ["b"]
    assert other.claim("b")
    assert queue.look() == [] and queue.said == []


def test_two_files_of_one_name_run_one_after_the_other(queue: Queue) -> None:
    """The second is offered when the first has ended; the first one's end is not the second one's."""
    queue.put("x", 100, name="same")
    queue.put("y", 200, name="same")
    assert queue.look() == ["same"]
    [payload] = queue.view.waiting()
    assert queue.claim("same")
    assert queue.look(10) == []
    queue.view.finished(EndedPayload(payload, 0, queue.now - 1.0), queue.now)
    assert queue.folder("done") == {"x.json"}
    assert queue.look() == ["same"] and queue.claim("same")
    queue.view.finished(EndedPayload(payload, 0, queue.now - 1.0), queue.now)
    assert queue.folder("done") == {"x.json", "y.json"}


def test_a_file_that_is_still_being_written(queue: Queue) -> None:
    """Half a payload is looked at again, without a word, until it is whole."""
    path = queue.place / "p.json"
    path.write_text('{"command": "true", ')
    assert queue.look() == [] and queue.look(PATIENCE / 2) == []
    path.write_text('{"command": "true", "maximum": 5}')
    assert queue.look(0.1) == ["p"] and queue.said == []


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b'{"command": "true"}', b'{"command": "true", "maximum": 5, "x": 1}', b"\xff\xfe", b"0" * 2_000_000],
)
def test_what_is_no_payload_is_refused_once(queue: Queue, content: bytes) -> None:
    """HOSTILE 19, 23, 35: out of the way after 5 s, with a line, a record and the reason."""
    (queue.place / "p.json").write_bytes(content)
    assert queue.look() == [] and queue.look(PATIENCE) == [] and queue.look(PATIENCE) == []
    assert queue.folder("refused") == {"p.json"} and queue.folder("") == set()
    assert len(queue.said) == 1 and queue.said[0].startswith("queue: p.json refused: ")
    assert [each[:2] for each in queue.records()] == [("refused", "p.json")]


def test_names_from_outside(queue: Queue) -> None:
    """HOSTILE 15: a file name that cannot be a payload's is refused and printed harmlessly; the log cuts it."""
    for name in (b"a\nb.json", b"\x1b[31m.json", b"\xff.json", b".." + b"x" * 200 + b".json"):
        (queue.place / os.fsdecode(name)).write_text('{"command": "true", "maximum": 5}')
    queue.look()
    queue.look(PATIENCE)
    assert len(queue.said) == 3  # the fourth begins with a dot
    assert len(os.listdir(queue.place / "refused")) == 3


def test_a_payload_for_a_larger_pilot_stays(queue: Queue) -> None:
    """Refused here, it is neither moved nor offered again, and another pilot sees it."""
    queue.put("big", cores=100)
    queue.look()
    [payload] = queue.view.waiting()
    queue.view.refuse(payload, "needs 100 cores", queue.now)
    assert queue.look() == [] and queue.look(100) == []
    assert queue.folder("") == {"big.json"} and len(queue.said) == 1
    assert Queue(queue.place, "two").look() == ["big"]


def test_looking_is_cheap_when_nothing_changed(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory is not read again until it changes."""
    for number in range(5):
        queue.put(f"p{number}")
    queue.look()
    queue.look()
    monkeypatch.setattr(os, "scandir", None)
    assert len(queue.look()) == 5
    monkeypatch.undo()
    queue.put("new")
    os.utime(queue.place, (TIME, TIME))
    assert len(queue.look()) == 6


def test_a_very_long_queue_is_taken_in_part_by_part(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 26: a hundred thousand files do not stop the pilot; none of them is forgotten."""
    monkeypatch.setattr(queue_directory, "MOST_WAITING", 10)
    for number in range(25):
        queue.put(f"p{number}")
    ran = set[str]()
    for _ in range(3):
        names = queue.look()
        assert len(names) <= 10
        ran |= {name for name in names if queue.claim(name)}
    assert len(ran) == 25 and queue.look() == []


def test_a_queue_that_is_gone_comes_back(queue: Queue) -> None:
    """One line when it cannot be read, one when it can."""
    queue.put("a")
    queue.look()
    away = queue.place.with_name("away")
    queue.place.rename(away)
    queue.look()
    queue.look()
    away.rename(queue.place)
    assert queue.look() == ["a"]
    assert queue.said == ["queue: No such file or directory", "queue: all right again"]


def test_a_claim_that_fails_is_tried_again(queue: Queue) -> None:
    """The claim directory is gone, so nothing can be claimed: a line, and the payload is not lost."""
    queue.put("a")
    queue.look()
    (queue.place / "running/one/.lock").unlink()
    (queue.place / "running/one").rmdir()
    (queue.place / "running/one").write_text("in the way")
    assert not queue.claim("a")
    assert len(queue.said) == 1 and "a.json cannot be claimed" in queue.said[0]
    assert queue.look() == ["a"]


def test_no_directory(tmp_path: Path) -> None:
    """A usage error that says what was expected."""
    with pytest.raises(UsageError, match="expected a directory"):
        DirectoryQueue(str(tmp_path / "none"), "one", print)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["put", "claim", "done", "back", "other"])), max_size=25))
def test_no_payload_is_ever_in_two_places_or_in_none(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]
) -> None:
    """Whatever happens in whatever order, two pilots at it: each file is somewhere, once."""
    place = tmp_path_factory.mktemp("queue")
    pilots = [Queue(place, "one"), Queue(place, "two")]
    written, claimed = set[str](), dict[str, int]()
    for number, step in steps:
        name, queue = f"p{number}", pilots[number % 2 if step != "other" else (number + 1) % 2]
        if step == "put" and name not in written:
            queue.put(name)
            written.add(name)
        elif step in {"claim", "other"} and name in queue.look(61):
            if queue.claim(name):
                claimed[name] = pilots.index(queue)
        elif step in {"done", "back"} and name in claimed:
            owner = pilots[claimed.pop(name)].view
            payload = parse(name)
            if step == "done":
                owner.finished(EndedPayload(payload, 0, TIME - 1.0), TIME)
            else:
                owner.requeue(payload, "deadline", 1.0, TIME)
        found = [path.stem for path in place.rglob("*.json")]
        assert sorted(found) == sorted(written)
    for queue in pilots:
        queue.view.close(TIME)


def parse(name: str) -> Payload:
    return parse_payload('{"command": "true", "maximum": 5}', name)
