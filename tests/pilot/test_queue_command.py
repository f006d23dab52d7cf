"""A command as the queue: read as it comes, bounded, and what is not run is written down."""

from __future__ import annotations

import json
import os
import select
import signal
from pathlib import Path

import pytest

from apart import apart
from drainwise.facts.errors import UsageError
from drainwise.pilot.decide.payload import Payload, parse_payload
from drainwise.pilot.queues.command import BAD_LINES, NAMED_LINES, READ_AHEAD, CommandQueue
from drainwise.pilot.queues.records import EndedPayload
from drainwise.processes.process import children
from drainwise.processes.tree import adopt_orphans
from real_daemons.waiting import wait_for


class Queue:
    """A command and a pilot that reads from it."""

    def __init__(self, place: Path, command: str) -> None:
        self.place, self.said = place, list[str]()
        self.view = CommandQueue(command, str(place), os.environ, "one", self.said.append)

    def read(self) -> None:
        """Look until the command has no more to say."""
        while self.view.more_may_come():
            descriptor = self.view.fileno()
            if descriptor is None:
                return
            select.select([descriptor], [], [], 1)
            self.view.look(1.0)

    def names(self) -> list[str]:
        return [payload.name for payload in self.view.waiting()]

    def requeued(self) -> list[Payload]:
        path = self.place / "requeued.jsonl"
        return [parse_payload(line) for line in path.read_text().splitlines()] if path.exists() else []

    def records(self) -> list[tuple[object, ...]]:
        path = self.place / "records.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(each["event"], each["payload"]) for each in map(json.loads, lines)]

    def end(self) -> None:
        self.view.close(2.0)
        wait_for(lambda: os.waitpid(self.view.pid, os.WNOHANG)[0], what="the command's end")


def line(**keys: object) -> str:
    return json.dumps({"command": "true", "maximum": 5, **keys})


@apart
def test_payloads_in_the_order_they_are_printed(tmp_path: Path) -> None:
    """Named or numbered by line; empty lines are passed over; the last line needs no end when the command has one."""
    (tmp_path / "list").write_text("\n".join([line(name="b"), "", line(), line(name="a")]))
    queue = Queue(tmp_path, "cat list")
    queue.read()
    assert queue.names() == ["b", "payload-3", "a"] and queue.said == []
    assert not queue.view.more_may_come() and queue.view.fileno() is None
    queue.end()


@apart
def test_a_payloads_way(tmp_path: Path) -> None:
    """Every end is recorded; what was stopped, was too large or never started is written down whole."""
    names = ("done", "failed", "stopped", "large", "unlucky", "waits")
    (tmp_path / "list").write_text("".join(line(name=name, cores=3, priority=1.5) + "\n" for name in names))
    queue = Queue(tmp_path, "cat list")
    queue.read()
    of = {payload.name: payload for payload in queue.view.waiting()}
    for name in ("done", "failed", "stopped", "unlucky"):
        assert queue.view.claim(of[name], 1.0)
    queue.view.finished(EndedPayload(of["done"], 0, 1.0), 2.0)
    queue.view.finished(EndedPayload(of["failed"], 1, 1.0), 2.0)
    queue.view.requeue(of["stopped"], "deadline", 1.0, 2.0)
    queue.view.refuse(of["large"], "needs 3 cores", 2.0)
    queue.view.unclaim(of["unlucky"], "no space", 2.0)
    assert queue.names() == ["unlucky", "waits"]
    queue.end()
    assert queue.requeued() == [of["stopped"], of["large"], of["unlucky"], of["waits"]]
    assert queue.records()[4:] == [
        ("done", "done"),
        ("failed", "failed"),
        ("requeued", "stopped"),
        ("requeued", "large"),
        ("requeued", "unlucky"),
        ("requeued", "unlucky"),
        ("requeued", "waits"),
    ]


@apart
def test_lines_that_are_no_payloads(tmp_path: Path) -> None:
    """HOSTILE 21, 32, 41: a line each, and the sound ones between them run; a name is taken once."""
    (tmp_path / "list").write_bytes(
        b"rubbish \x1b[31m\n" + line(name="a").encode() + b"\n\xff\xfe\n" + b"x" * 3_000_000 + b"\n"
        + line(name="a").encode() + b"\n" + line(name="b").encode() + b"\n"
    )  # fmt: skip
    queue = Queue(tmp_path, "cat list")
    queue.read()
    assert queue.names() == ["a", "b"]
    assert [said.partition(" refused")[0] for said in queue.said] == [
        f"payload command: line {n}" for n in (1, 3, 4, 5)
    ]
    queue.end()


@apart
def test_a_command_that_prints_rubbish_without_end(tmp_path: Path) -> None:
    """A few lines of log, then it is not read any more, and each look comes to an end."""
    queue = Queue(tmp_path, "yes rubbish")
    queue.read()
    assert not queue.view.more_may_come() and len(queue.said) == NAMED_LINES + 1
    assert f"{BAD_LINES} lines in a row" in queue.said[-1]
    queue.end()


@pytest.mark.daemons
@apart
def test_at_most_a_thousand_are_read_ahead(tmp_path: Path) -> None:
    """Then the command waits, until there is room again."""
    queue = Queue(tmp_path, f"yes '{json.dumps({'command': 'true', 'maximum': 5})}' | head -n 20000")
    queue.read()
    assert len(queue.names()) == READ_AHEAD and queue.view.fileno() is None and queue.view.more_may_come()
    for payload in list(queue.view.waiting())[:10]:
        queue.view.claim(payload, 1.0)
        queue.view.finished(EndedPayload(payload, 0, 0.0), 1.0)
    assert queue.view.fileno() is not None
    queue.read()
    assert len(queue.names()) == READ_AHEAD
    queue.end()
    assert len(queue.requeued()) >= READ_AHEAD


@apart
def test_what_stands_in_the_pipe_is_not_lost(tmp_path: Path) -> None:
    """The pilot ends while the command has printed more: whole lines are written down, half a line is not."""
    queue = Queue(
        tmp_path,
        f"printf '%s\\n' '{line(name='a')}' '{line(name='b')}'; printf '{{\"name\":'; touch printed; sleep inf",
    )
    wait_for((tmp_path / "printed").exists, what="the command has printed")
    queue.end()
    assert [payload.name for payload in queue.requeued()] == ["a", "b"]


@apart
def test_a_command_that_fails(tmp_path: Path) -> None:
    """Its code is told, and where its standard error is; ending it ourselves is no failure."""
    queue = Queue(tmp_path, "echo why >&2; exit 3")
    queue.view.gone(3)
    assert queue.said == ["payload command: ended with 3; see payload-command.stderr"]
    wait_for(lambda: (tmp_path / "payload-command.stderr").read_text() == "why\n", what="its words")
    queue.end()
    other = Queue(tmp_path, "sleep 60")
    other.end()
    other.view.gone(-signal.SIGTERM)
    assert other.said == []


@apart
def test_the_command_dies_with_the_pilot(tmp_path: Path) -> None:
    """Its whole group gets TERM when the pilot ends."""
    adopt_orphans()
    queue = Queue(tmp_path, "sleep 60 & touch ready; sleep 60 | cat")
    wait_for((tmp_path / "ready").exists, what="a group of several")
    queue.end()
    wait_for(lambda: not children() or not os.waitpid(-1, os.WNOHANG), what="nobody is left")


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    """No startup directory, no command: a usage error. No room for requeued payloads: the log names each."""
    with pytest.raises(UsageError, match="cannot be started"):
        CommandQueue("true", str(tmp_path / "none"), os.environ, "one", print)

    @apart
    def check() -> None:
        (tmp_path / "requeued.jsonl").mkdir()
        queue = Queue(tmp_path, f"echo '{line(name='a')}'; echo '{line(name='b')}'")
        queue.read()
        queue.end()
        assert [said for said in queue.said if "payload a was to be requeued" in said]
        assert [said for said in queue.said if "payload b was to be requeued" in said]

    check()
