"""The file of a supervisor whose launcher was killed: what is taken from it, and from a damaged one."""

from __future__ import annotations

import json
from pathlib import Path

from drainwise_launch.choice.engine import Engine
from drainwise_launch.choice.work import DONE, Work, digest_of
from drainwise_launch.run.earlier_runs import recall, take_in_unseen_ends
from drainwise_launch.run.starts import tag_of
from drainwise_launch.run.store import Store

WORKS = [Work("a", ("true",)), Work("b", ("true",), after=("a",)), Work("c", ("false",))]


def line(work: Work, *before: bytes, **other: object) -> bytes:
    tag = tag_of("state", digest_of(work, before))
    return json.dumps({"name": work.name, "tag": tag, "seconds": 2.5, "ended": 100.0, **other}).encode() + b"\n"


def done_by(directory: Path, content: bytes, again: bool = False) -> dict[str, float | None]:
    """Run time by name of the jobs that count as done."""
    path = directory / "unseen.jsonl"
    path.write_bytes(content)
    store = Store(str(directory))
    engine = Engine()
    engine.add(WORKS)
    take_in_unseen_ends(engine, store, str(path), again)
    recall(engine, store)
    store.close()
    assert not path.read_bytes()
    return {job.name: job.seconds for job in engine.graph.jobs if job.state == DONE}


def test_what_succeeded_unseen_is_done_for_good(tmp_path: Path) -> None:
    ends = line(WORKS[1], digest_of(WORKS[0], [])) + line(WORKS[0])
    assert done_by(tmp_path, ends) == {"a": 2.5, "b": 2.5}
    assert done_by(tmp_path, b"") == {"a": 2.5, "b": 2.5}


def test_what_is_another_job_by_now_or_nobody_knows_is_not(tmp_path: Path) -> None:
    other = Work("a", ("false",))
    assert done_by(tmp_path, line(other) + line(WORKS[1]) + line(Work("gone", ("true",)))) == {}


def test_no_damage_keeps_the_launch(tmp_path: Path) -> None:
    """A full disk, a killed writer, somebody else's text."""
    odd = [
        b"",
        b"{",
        b"null",
        b"[1]",
        b'{"name": "a"}',
        line(WORKS[0], seconds=None).strip(),
        b"\xff\x00",
        line(WORKS[2]),
    ]
    assert done_by(tmp_path, b"\n".join([*odd, line(WORKS[0])[:-20]])) == {"c": 2.5}


def test_anew_is_anew(tmp_path: Path) -> None:
    assert done_by(tmp_path, line(WORKS[0]), again=True) == {}
    take_in_unseen_ends(Engine(), Store(str(tmp_path)), str(tmp_path / "none"), False)
