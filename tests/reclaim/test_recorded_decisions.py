"""Whole decisions on pools that differ in all that is looked at, to the last core and core-second.

After a change that is meant to decide otherwise: `PYTHONPATH=plugins python tests/support/varied_pools.py` prints the
lines anew; what differs between them is to be read.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from varied_pools import NUMBERS, decided

RECORDED = (Path(__file__).parent / "decisions.txt").read_text().splitlines()
HEADS = [place for place, line in enumerate(RECORDED) if not line.startswith(" ")]


@pytest.mark.parametrize("number", NUMBERS)
def test_it_decides_as_recorded(number: int) -> None:
    place = NUMBERS.index(number)
    begin, end = (*HEADS, None)[place : place + 2]
    assert decided(number) == RECORDED[begin:end]


def test_the_recording_has_each_act() -> None:
    words = {line.split()[0] for line in RECORDED if line.startswith(" ")}
    assert words >= {"kill", "leave", "cut", "return", "spare", "withdraw", "for", "missing", "since", "paused"}
    assert len(HEADS) == len(NUMBERS)
