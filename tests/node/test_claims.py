"""What a pilot claims against what its node sees: only what cannot be so is wrong, and only when it stays so."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from drainwise.node.payloads.observer import KeptCores, ObservedRun, SeenJob, is_wrong, observe
from drainwise.node.payloads.payload_trees import PayloadTrees, job_processes, payload_trees
from drainwise.node.payloads.process_table import TICKS
from drainwise.node.settings import DEFAULT_CONTRADICTORY_AFTER
from made_up_processes import MadeUpTable, Row

NOW, UP, CORES = 1795249000, 90_000 * TICKS, 8
AFTER = DEFAULT_CONTRADICTORY_AFTER


@pytest.mark.parametrize(
    ("claimed", "busy", "active", "wrong"),
    [
        (8.0, 0.0, False, True),
        (8.0, 0.07, False, True),
        (8.0, 0.1, False, False),  # it copies something
        (8.0, 0.0, True, False),  # it waits for a disk
        (1.0, 0.0, False, False),  # a small claim
        (0.0, 8.0, True, True),
        (0.4, 4.0, True, True),
        (0.0, 3.9, True, False),
        (0.5, 8.0, True, False),
        (6.0, 2.0, True, False),
    ],
)
def test_only_what_cannot_be_so_is_wrong(claimed: float, busy: float, active: bool, wrong: bool) -> None:
    assert is_wrong(claimed, busy, active, CORES) is wrong
    assert bool(looks([claimed] * 2, busy, active).wrong) is wrong
    assert not looks([claimed] * 2, busy, active, elsewhere=True).wrong


def looks(
    claims: Sequence[float | None], busy: float, active: bool = False, every: int = 60, elsewhere: bool = False
) -> SeenJob:
    """Look at a job of eight cores each minute; `busy` cores work all the time."""
    seen = None
    for number, claimed in enumerate(claims):
        later = number * every
        found = PayloadTrees("plain", (), (), round(busy * later * TICKS), active, elsewhere)
        seen = observe(found, seen, ObservedRun(CORES, NOW - 5000, claimed), UP + later * TICKS, NOW + later)
    assert seen is not None
    return seen


def test_a_claim_contradicts_after_minutes() -> None:
    enough = AFTER // 60 + 2
    for claimed, busy in ((8.0, 0.0), (0.0, 8.0)):
        seen = looks([claimed] * enough, busy)
        assert seen.contradicts(NOW + (enough - 1) * 60, AFTER)
        assert not looks([claimed] * (enough - 1), busy).contradicts(NOW + (enough - 2) * 60, AFTER)


def test_one_look_alone_contradicts_nothing() -> None:
    """However long ago the last one was."""
    seen = looks([8.0] * 2, 0.0, every=86400)
    assert seen.wrong and not seen.contradicts(NOW + 86400, AFTER)


def test_an_honest_claim_in_between_begins_anew() -> None:
    assert looks([8.0] * 9 + [0.0], 0.0).wrong == 0
    assert looks([8.0] * 9 + [None], 0.0).wrong == 0
    assert looks([None] * 9, 0.0).wrong == 0


def test_a_job_that_waits_for_a_disk_or_a_container_is_not_held_against_its_claim() -> None:
    assert looks([8.0] * 9, 0.0, active=True).wrong == 0
    table = MadeUpTable(Row(10, 1, age=900), Row(20, 10, age=900), Row(30, 20, age=800, name="docker"))
    processes = job_processes(table, (10,))
    assert processes is not None and payload_trees(processes, table).elsewhere


# ---- cores that a pilot returned ----


def over(kept: Sequence[KeptCores | None], busy: float, elsewhere: bool = False) -> int:
    """Look at a job of eight cores each minute, of which `busy` work; return the looks in a row that were too many."""
    seen = None
    for number, one in enumerate(kept):
        later = number * 60
        found = PayloadTrees("plain", (), (), round(busy * later * TICKS), True, elsewhere)
        seen = observe(found, seen, ObservedRun(CORES, NOW - 5000, None, one), UP + later * TICKS, NOW + later)
    assert seen is not None
    return seen.over


def test_who_goes_on_using_what_it_returned_is_seen_at_each_look() -> None:
    """Only what was stated for the whole time between two looks counts, and a helper's work does not."""
    three = KeptCores(3, NOW)
    assert over([three] * 3, busy=8.0) == over([three] * 3, busy=3.6) == 2
    assert over([three] * 3, busy=3.5) == over([three] * 3, busy=8.0, elsewhere=True) == 0
    assert over([three], busy=8.0) == 0, "nothing is measured yet"
    assert over([three, three, KeptCores(3, NOW + 61)], busy=8.0) == 0, "it has just stated so"
    assert over([three, None, three, three], busy=8.0) == 2
    assert over([three, three, None], busy=8.0) == 0
    assert over([KeptCores(7, NOW)] * 3, busy=7.6) == 0
