"""The mark of orders in a node's Extra: what is written and read, and what is left to others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.slurm.commands import SlurmCommands
from drainwise.slurm.order_mark import MOST, OrderMarks, entries_in, extra_in, mark_text

NODE = "NodeName=n1 Arch=x86_64 CPUTot=64 Comment={} CurrentWatts=0 AveWatts=0 "


@given(st.lists(st.tuples(st.integers(1, 2**32 - 2), st.integers(0, 4102444800)), min_size=1, max_size=80))
def test_what_is_marked_is_read(changes: list[tuple[int, int]]) -> None:
    """The newest entries, one for each job; never longer than slurmctld likes."""
    entries: dict[str, str] = {}
    for job, end in changes:
        text = mark_text(entries, job, end)
        found = entries_in(text)
        assert found is not None and found[str(job)] == str(end)
        entries = found
    assert len(entries) <= MOST and len(text) < 1024
    assert extra_in(NODE.format("x") + f" Extra={text}\n") == text


@pytest.mark.parametrize(
    ("block", "extra"),
    [
        (NODE.format("x"), ""),
        (NODE.format("x") + " Extra= \n", ""),
        (NODE.format("a Extra=drainwise:17=1") + " Extra=drainwise:\n", None),
        (NODE.format("x") + " Extra=rack 7 | x\n", "rack"),
        ("Node n1 not found\n", None),
    ],
)
def test_the_extra_of_a_node(block: str, extra: str | None) -> None:
    assert extra_in(block) == extra


@pytest.mark.parametrize(
    "extra",
    [None, "rack", '{"a":1}', "drainwise", "drainwise:17", "drainwise:17=1,", "drainwise:a=1", "xdrainwise:1=1"],
)
def test_what_is_not_ours_is_no_mark(extra: str | None) -> None:
    assert entries_in(extra) is None


@pytest.mark.parametrize(
    ("extra", "written"), [("", "drainwise:17=0"), ("drainwise:3=4", "drainwise:3=4,17=0"), ("rack", "")]
)
def test_somebody_elses_extra_is_not_touched(tmp_path: Path, extra: str, written: str) -> None:
    text = NODE.format("x") + (f" Extra={extra}" if extra else "")
    script = f'case "$1" in update) echo "$3" >{tmp_path}/said;; *) echo "{text}";; esac'
    (tmp_path / "scontrol").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "scontrol").chmod(0o755)
    assert OrderMarks(SlurmCommands(str(tmp_path))).write("n1", 17, 0) == ""
    said = tmp_path / "said"
    assert (said.read_text() if said.exists() else "") == (f"Extra={written}\n" if written else "")
