"""Choose which of one user's pilots give back the cores: the built-in policies, behind one small interface.

All are held to the same total of cores, which comes from the sizes of the pilots alone (see `subset_sums`), and all
count waste by the same figures. So `least-waste` never wastes more than another one, and no claim changes how many
cores go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from drainwise.facts.units import core_hours, duration
from drainwise.reclaim import policies
from drainwise.reclaim.candidates import LEAVE, Candidate, Candidates, Option, in_words
from drainwise.reclaim.figures import Figures
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.totals.arrays import Mask, Real, Whole
from drainwise.reclaim.totals.knapsack import cheapest_set
from drainwise.reclaim.totals.subset_sums import first_that_make, found_total, total_to_give
from drainwise.reclaim.valued import cost_of


@dataclass(frozen=True)
class Need:
    """Cores that one user has to give back: at least `cores` if pilots of fitting sizes exist, never above `most`."""

    cores: int
    most: int


@dataclass(frozen=True)
class Chosen:
    """One pilot that was chosen, what happens to it, and the rule in words."""

    candidate: Candidate
    option: Option
    reason: str


class Policy(Protocol):
    """A rule that chooses among the pilots of one user. Pure: the same candidates give the same answer."""

    def choose(self, candidates: Candidates, need: Need) -> tuple[Chosen, ...]:
        """Return pilots that make exactly the total which `need` and their sizes give, the most worthwhile first."""


class LeastWaste:
    """The pilots that make the total at the least total expected waste, each ended in its cheapest way.

    What its user values counts as waste: see `valued.cost_of`. Exactly so where bounded work proves it; else the best
    set found, and the reason says that it is not proven.
    """

    def choose(self, candidates: Candidates, need: Need) -> tuple[Chosen, ...]:
        """See `Policy`. Ties by PRIORITY_FACTOR, then by the name of the run: see `cheapest_set`."""
        it, sizes = candidates.figures, candidates.sizes
        total = found_total(sizes, need.cores, need.most)
        cost = cost_of(it, candidates.settings)
        found = cheapest_set(sizes, cost, it.priority, total.cores)
        rows = found.places
        rows = rows[np.lexsort((rows, it.priority[rows], cost[rows] / sizes[rows]))]
        chosen = [candidates[row] for row in rows.tolist()]
        so_far = "" if found.is_proven else " found (not proven)"
        smallest = "" if total.is_proven else "; whole pilots may make a smaller total"
        is_valued = bool((cost[~it.unprotected] > it.least[~it.unprotected]).any())
        valued = " (worth counted)" if is_valued else ""
        waste = core_hours(sum(one.best.waste for one in chosen))
        rule = f"in the least wasteful set{so_far}{valued} for {total.cores} cores, {waste}{smallest}"
        return tuple(Chosen(one, one.best, f"{in_words(one, one.best, it.now)}; {rule}") for one in chosen)


Keys = Sequence["Real | Whole | Mask"]


@dataclass(frozen=True)
class InOrder:
    """One pilot after the other by the keys that `order` gives, the first key first; all are killed.

    A pilot is passed over only where with it the total could not be made any more. `youngest-first` is what batch
    systems do by themselves: Slurm's PreemptParameters=youngest_first, HTCondor's default PREEMPTION_RANK within one
    user.
    """

    rule: str
    order: Callable[[Figures], Keys]

    def choose(self, candidates: Candidates, need: Need) -> tuple[Chosen, ...]:
        """See `Policy`; of equals by PRIORITY_FACTOR, then by the name of the run."""
        now, chosen = candidates.figures.now, _first(candidates, need, self.order(candidates.figures))
        return tuple(Chosen(one, one.killed, f"{in_words(one, one.killed, now)}; {self.rule}") for one in chosen)


class PaperPolicy:
    """The paper's example, as written (section 4.1), repeated until the cores are covered.

    "If there are any pilot jobs that can go away within 2 hours, pick the one with the least draining waste, else pick
    the one that is least expensive to kill." The 2 hours are `settings.horizon`, or the grace where it is shorter, to
    their last second: a pilot that goes away later than the margin before them counts as well, and has what is left of
    the margin. One that drains already loses nothing more by an order.
    """

    def choose(self, candidates: Candidates, need: Need) -> tuple[Chosen, ...]:
        """See `Policy`; of equals as in `InOrder`."""
        it, settings = candidates.figures, candidates.settings
        within = min(settings.horizon, max(settings.notice, min(settings.grace, settings.max_grace)))
        quick = it.columns.believed & (it.remaining <= within)
        idle = np.where(it.columns.draining, 0.0, np.minimum(it.draining_waste, it.columns.cores * it.remaining))
        order = _in_turn(candidates, (~quick, np.where(quick, idle, it.kill_waste)), as_written=True)
        rows = _that_make(candidates, need, order)
        taken, places = np.isin(order, rows), {row: place for place, row in enumerate(order.tolist())}
        choices = []
        for row in rows.tolist():
            one, time = candidates[row], duration(within)
            passed_over = quick[order[: places[row]]] & ~taken[: places[row]]
            option, rule = one.killed, f"no other can go away within {time}: least expensive to kill"
            if quick[row]:
                leaves = next((way for way in one.options if way.kind == LEAVE), None)
                option = leaves or Option(LEAVE, int(idle[row]), *_at(it, row))
                rule = f"least draining waste of those that can go away within {time}"
            elif passed_over.any():
                rule = f"no other of a size that fits can go away within {time}: least expensive to kill"
            if it.unprotected[row]:
                rule = "those whose protection has run out go first"
            elif quick[row] and passed_over.any():
                rule = f"{rule} and are of a size that fits"
            choices.append(Chosen(one, option, f"{in_words(one, option, it.now)}; {rule}"))
        return tuple(choices)


def _at(it: Figures, row: int) -> tuple[int, int]:
    """Return the deadline of an order to drain and when the pilot is gone by its own word, UNIX s."""
    return int(it.leave_deadline[row]), int(it.now + it.remaining[row])


def _first(candidates: Candidates, need: Need, keys: Keys) -> list[Candidate]:
    """Return the candidates that make the total: the unprotected, then by `keys`, PRIORITY_FACTOR and run."""
    return [candidates[row] for row in _that_make(candidates, need, _in_turn(candidates, keys)).tolist()]


def _in_turn(candidates: Candidates, keys: Keys, as_written: bool = False) -> Whole:
    """Return all rows: the unprotected first, then by `keys`, PRIORITY_FACTOR and run.

    By PRIORITY_FACTOR before `keys` where the site says so; not for a rule that is kept `as_written`.
    """
    it = candidates.figures
    first: Keys = (it.priority,) if candidates.settings.priority_first and not as_written else ()
    return np.lexsort((it.priority, *reversed(keys), *first, ~it.unprotected))


def _that_make(candidates: Candidates, need: Need, order: Whole) -> Whole:
    """Return the rows of `order` that make the total, those that come earlier first."""
    sizes = candidates.sizes
    rows: Whole = order[first_that_make(sizes[order], total_to_give(sizes, need.cores, need.most))]
    return rows


def _youngest_payload(it: Figures) -> Keys:
    """Return the age of the payload that started last; of a pilot that is not believed, its own run time."""
    return (it.now - np.where(it.columns.believed, it.columns.last_job_start, it.columns.started),)


def _dice(it: Figures) -> Keys:
    """Return random keys that nobody can know before the snapshot is taken, the same at every call."""
    return (np.random.default_rng(it.now).permutation(len(it)),)


LEAST_WASTE, PAPER = LeastWaste(), PaperPolicy()
LEAST_KILL = InOrder("least expensive to kill for each core", lambda it: (it.kill_waste / it.columns.cores,))
YOUNGEST_FIRST = InOrder("the shortest run time first", lambda it: (-it.columns.started,))
OLDEST_FIRST = InOrder("the longest run time first", lambda it: (it.columns.started,))
NEBRASKA = InOrder("the youngest payload first", _youngest_payload)
RANDOM = InOrder("drawn by lot", _dice)


def for_comparison(settings: ReclaimSettings) -> ReclaimSettings:
    """Return the settings for a plan that is only looked at: the policies that kill do so whatever `drain_only` says.

    Orders must not be given by such a plan. What the site itself means to do, least-waste, stays as the site bounds it.
    """
    return settings if settings.policy in policies.BY_WASTE else replace(settings, drain_only=False)
