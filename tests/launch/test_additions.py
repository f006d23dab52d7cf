"""Jobs and dependencies that come by file while others run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from drainwise.launch.additions import Additions
from drainwise.launch.engine import Engine
from drainwise.launch.job_reader import JobReader
from drainwise.launch.store import Store
from drainwise.launch.work import BLOCKED, READY, Work


class Launch:
    """A launch of one job that reads what is appended to a file."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "jobs.jsonl"
        self.said: list[str] = []
        self.engine = Engine()
        self.engine.add([Work("old", ("true",))])
        self.engine.request()
        self.store = Store(str(directory))
        reader = JobReader("f.json", {}, "local", None, any_rule=True)
        self.additions = Additions(str(self.path), self.engine, self.store, reader, lambda work: work, self.said.append)

    def append(self, *rows: object, end: str = "\n") -> None:
        with self.path.open("a") as stream:
            stream.write("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + end)
        self.additions.look()

    def states(self) -> dict[str, str]:
        return {job.name: job.state for job in self.engine.graph.jobs}


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    made = Launch(tmp_path)
    yield made
    made.store.close()


def test_jobs_and_dependencies_are_taken_in_as_they_come(launch: Launch) -> None:
    """Whatever their order among lines that came together."""
    launch.additions.look()
    launch.append({"name": "b", "command": "true", "after": ["a"]}, {"name": "a", "command": "true"})
    assert launch.states() == {"old": READY, "b": BLOCKED, "a": READY} and not launch.said
    launch.append({"job": "old", "after": ["b"]})
    assert launch.states()["old"] == BLOCKED and not launch.additions.refused


def test_a_line_that_is_being_written_is_waited_for(launch: Launch) -> None:
    launch.append('{"name": "a", "comm', end="")
    assert launch.states() == {"old": READY}
    launch.append('and": "true"}')
    assert launch.states() == {"old": READY, "a": READY} and not launch.said


def test_what_is_wrong_is_refused_by_line_and_the_rest_is_taken(launch: Launch) -> None:
    """Also a circle among lines that came together: those of it that can be, are."""
    launch.append(
        "nonsense",
        {"name": "a", "command": "true"},
        {"name": "a", "command": "true"},
        {"name": "b", "command": "true", "after": ["b"]},
        {"job": "nobody", "after": ["a"]},
        {"job": "old", "after": 3},
        {"name": "c"},
        "[" * 20_000,
        '{"name": "\udcff"}'.encode("utf-8", "surrogateescape").decode("latin-1"),
    )
    assert launch.states() == {"old": READY, "a": READY}
    assert launch.additions.refused == len(launch.said) == 8
    assert all(line.startswith("a job was to be added, and is refused: ") for line in launch.said)


def test_a_line_without_an_end_is_given_up(launch: Launch) -> None:
    """HOSTILE 21."""
    launch.append("x" * (2 << 20), end="")
    assert launch.additions.refused == 1
    launch.append("", {"name": "a", "command": "true"})
    assert "a" in launch.states()
