"""Jobs and dependencies that come by file while others run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from drainwise.launch.choice.engine import Engine
from drainwise.launch.choice.work import BLOCKED, READY, LaunchJob, Work
from drainwise.launch.files.job_reader import JobReader
from drainwise.launch.run import additions
from drainwise.launch.run.additions import Additions
from drainwise.launch.run.store import Store


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
        {"name": "a", "command": "false"},
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
    assert all(str(launch.path) in line for line in launch.said), launch.said


def test_what_is_said_again_is_no_news(launch: Launch) -> None:
    """A job that adds jobs is run again, as it failed or was interrupted. Another job of that name is refused."""
    rows = [{"name": "a", "command": "true"}, {"job": "old", "after": ["a"]}]
    launch.append(*rows)
    launch.append(*rows)
    launch.append(*rows, *rows)
    assert launch.states() == {"old": BLOCKED, "a": READY} and not launch.said
    launch.append({"name": "a", "command": "false"})
    assert launch.additions.refused == 1 and "'a': stands twice" in launch.said[0]


def test_the_last_line_needs_no_newline(launch: Launch) -> None:
    """Nobody may write another one; and what is added next is a line of its own, for the next run too."""
    launch.append({"name": "a", "command": "true"}, end="")
    assert launch.states() == {"old": READY, "a": READY}
    launch.append({"name": "b", "command": "true"}, end="")
    launch.append({"name": "c", "command": "true"})
    assert set(launch.states()) == {"old", "a", "b", "c"} and not launch.said
    assert len(launch.path.read_text().splitlines()) == 3


def test_a_line_that_was_torn_by_a_kill_is_cut_off(launch: Launch) -> None:
    """HOSTILE 51: its job is run again, and writes it again."""
    launch.path.write_text('{"name": "a", "command": "true"}\n{"name": "b", "comm')
    launch.additions.mend()
    launch.additions.look_first()
    launch.append({"name": "b", "command": "true"})
    assert launch.states() == {"old": READY, "a": READY, "b": READY} and not launch.said
    launch.path.write_text('{"name": "a", "command": "true"}')
    launch.additions.mend()
    assert launch.path.read_text().endswith("}\n")


def test_a_file_that_was_emptied_is_read_from_its_beginning(launch: Launch) -> None:
    """`>` for `>>`."""
    launch.append({"name": "first-one", "command": "true"}, {"name": "second", "command": "true"})
    launch.path.write_text("")
    launch.append({"name": "b", "command": "true"})
    assert set(launch.states()) == {"old", "first-one", "second", "b"}
    assert len(launch.said) == 1 and "was emptied" in launch.said[0]


def test_many_dependencies_of_one_job_are_one_act(launch: Launch) -> None:
    """All of them, or none where one cannot be; and it does not cost their square."""
    names = [f"part-{n}" for n in range(5000)]
    launch.append(*({"name": name, "command": "true"} for name in names))
    launch.append({"name": "behind", "command": "true", "after": ["old"]})
    launch.append({"job": "old", "after": [*names[:5], "behind"]})
    assert launch.states()["old"] == READY and "circle" in launch.said[0]
    launch.append({"job": "old", "after": names})
    old = launch.engine.graph.find("old")
    assert (old.state, old.missing) == (BLOCKED, 5000) and len(launch.said) == 1


def test_whoever_writes_something_else_there_keeps_nobody(launch: Launch) -> None:
    """HOSTILE 22: `yes` for some seconds. After a thousand wrong lines nobody reads on, and that is said."""
    launch.path.write_bytes(b"y\n" * 2_000_000)
    launch.additions.look()
    launch.append({"name": "a", "command": "true"})
    assert launch.states() == {"old": READY}
    assert launch.additions.refused == 1000 and len(launch.said) == 1001 and "nothing more is read" in launch.said[-1]


def test_a_file_that_grows_while_it_is_read_is_read_later(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 25: each look takes what there was when it began."""
    monkeypatch.setattr(additions, "_PIECE", 100)
    add = launch.engine.add

    def add_and_grow(works: Iterable[Work]) -> list[LaunchJob]:
        with launch.path.open("a") as stream:
            stream.write(json.dumps({"name": f"more-{stream.tell()}", "command": "true"}) + "\n")
        return add(works)

    monkeypatch.setattr(launch.engine, "add", add_and_grow)
    launch.append(*({"name": f"a{n}", "command": "true"} for n in range(10)))
    assert 11 <= len(launch.states()) < 20


def test_a_line_without_an_end_is_given_up(launch: Launch) -> None:
    """HOSTILE 21."""
    launch.append("x" * (2 << 20), end="")
    assert launch.additions.refused == 1
    launch.append("", {"name": "a", "command": "true"})
    assert "a" in launch.states()
