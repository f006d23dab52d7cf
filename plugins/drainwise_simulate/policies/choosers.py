"""Ways to choose whole pilots once that are no price list: what batch systems do, and orders to compare with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from drainwise.facts.waste import uncommitted_run
from drainwise.reclaim.candidates import CUT, Candidate, Candidates, Option
from drainwise.reclaim.choose.problem import Whole
from drainwise.reclaim.plan import Need
from drainwise_simulate.policies.exact_totals import first_that_make, total_to_give


@dataclass(frozen=True)
class Chosen:
    """One pilot that was chosen, and what happens to it."""

    candidate: Candidate
    option: Option


class Chooser(Protocol):
    """A rule that chooses among the pilots of one user. Pure: the same candidates give the same answer."""

    def choose(self, candidates: Candidates, need: Need) -> tuple[Chosen, ...]:
        """Return pilots that make exactly the total which `need` and their sizes give, but where another one says."""


@dataclass(frozen=True)
class InOrder:
    """One pilot after the other by keys, the first key first.

    A pilot is passed over only where with it the total could not be made any more. is_drained: all are ordered to drain
    and ended when the horizon is over, none before; else all are killed.
    """

    keys: Callable[[Candidates], Sequence[Any]]
    is_drained: bool = False

    def choose(self, candidates: Candidates, need: Need) -> tuple[Chosen, ...]:
        """See `Chooser`."""
        sizes, order = candidates.sizes, np.lexsort(tuple(reversed(self.keys(candidates))))
        places = first_that_make(sizes[order], total_to_give(sizes, need.cores, need.most))
        return _ended(candidates, order[places], self.is_drained)


class GiveBack:
    """Kueue's: the latest admitted first until the need is covered; then each that is not needed is given back.

    Whole pilots may come to more than the need, and not to less: Kueue preempts only what lets a workload in. Those
    taken first are the last that are looked at for giving back, as in `minimalPreemptions` of Kueue's scheduler.
    """

    def choose(self, candidates: Candidates, need: Need) -> tuple[Chosen, ...]:
        """See `Chooser`, but for the total: it is what covers the need."""
        order = np.argsort(-candidates.figures.columns.started, kind="stable")
        return _ended(candidates, order[covering(candidates.sizes[order], need.cores)])


def covering(sizes: Whole, cores: int) -> list[int]:
    """Return the places of the first that cover `cores`, less those without which the others do; none where all do
    not.
    """
    if not 0 < cores <= sizes.sum():
        return []
    sums = np.cumsum(sizes)
    last = int(np.searchsorted(sums, cores))
    spare, kept = int(sums[last]) - cores, [last]
    for place in range(last - 1, -1, -1):
        if sizes[place] <= spare:
            spare -= int(sizes[place])
        else:
            kept.append(place)
    return sorted(kept)


def _ended(among: Candidates, rows: Whole, is_drained: bool = False) -> tuple[Chosen, ...]:
    chosen = (among[row] for row in rows.tolist())
    return tuple(Chosen(one, _drained(one, among) if is_drained else one.killed) for one in chosen)


def _drained(one: Candidate, among: Candidates) -> Option:
    now, end = among.figures.now, one.pilot.lease_end
    limit = now + max(among.settings.notice, _given(among))
    deadline = limit if end is None or end <= now else min(limit, end)
    # What HTCondor takes to be lost: the whole run so far and the whole time it is given.
    return Option(CUT, int(uncommitted_run(one.pilot.cores, one.pilot.started, deadline)), deadline, deadline)


def _given(among: Candidates) -> int:
    return min(among.settings.horizon, among.settings.grace, among.settings.max_grace)


def _badput(among: Candidates) -> Sequence[Any]:
    """Return what HTCondor takes to be lost by a graceful drain."""
    return (uncommitted_run(among.sizes, among.figures.columns.started, among.figures.now + _given(among)),)


def _youngest_payload(among: Candidates) -> Sequence[Any]:
    """Return the age of the payload that started last; of a pilot that is not believed, its own run time."""
    it = among.figures
    return (it.now - np.where(it.columns.believed, it.columns.last_job_start, it.columns.started),)


def _near_end_last(among: Candidates) -> Sequence[Any]:
    """Return the youngest first, but last those whose lease (LSF's run limit) ends within the horizon.

    LSF has no default for NO_PREEMPT_FINISH_TIME; the horizon is the longest for which waiting would do.
    """
    it, columns = among.figures, among.figures.columns
    near = (columns.lease_end > it.now) & (columns.lease_end <= it.now + among.settings.horizon)
    return near, -columns.started


def _lot(among: Candidates) -> Sequence[Any]:
    """Return random keys that nobody can know before the snapshot is taken, the same at every call."""
    return (np.random.default_rng(among.figures.now).permutation(len(among)),)


LEAST_KILL = InOrder(lambda among: (among.figures.kill_waste / among.sizes,))
BASELINES: Mapping[str, Chooser] = {
    "oldest-first": InOrder(lambda among: (among.figures.columns.started,)),
    "nebraska": InOrder(_youngest_payload),
    "random": InOrder(_lot),
    "condor-graceful": InOrder(_badput, is_drained=True),
    "youngest-drained": InOrder(lambda among: (-among.figures.columns.started,), is_drained=True),
    "drain-all": InOrder(_lot, is_drained=True),
    "lsf": InOrder(_near_end_last),
    "kueue": GiveBack(),
}
"""Policies beside the agent's that decide once."""
