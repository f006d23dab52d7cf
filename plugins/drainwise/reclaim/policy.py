"""Which of one user's pilots give back the cores: the policies by name, behind one small interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from drainwise.errors import UsageError
from drainwise.reclaim.candidates import Candidate, Option, in_words
from drainwise.reclaim.cover import Item, cheapest_cover
from drainwise.reclaim.settings import Settings
from drainwise.reclaim.words import core_hours, duration


@dataclass(frozen=True)
class Need:
    """Cores that one user has to give back: at least `cores` if pilots of fitting sizes exist, never above `most`."""

    cores: int
    most: int


@dataclass(frozen=True)
class Choice:
    """One pilot that was chosen, what happens to it, and the rule in words."""

    candidate: Candidate
    option: Option
    reason: str


class Policy(Protocol):
    """A rule that chooses among the pilots of one user. Pure: the same question has the same answer."""

    def choose(self, candidates: Sequence[Candidate], need: Need, now: int, settings: Settings) -> tuple[Choice, ...]:
        """Pilots that cover `need`, the most worthwhile first; `now` is UNIX s. Empty when nothing is needed."""


class LeastWaste:
    """The pilots that cover the cores at the least total expected waste, exactly. Each gets its notice.

    Expected waste of a pilot that is gone before the deadline is its draining waste, else what being cut there loses.
    """

    def choose(self, candidates: Sequence[Candidate], need: Need, now: int, settings: Settings) -> tuple[Choice, ...]:  # noqa: ARG002
        """See `Policy`; ties as in `cheapest_cover`, with PRIORITY_FACTOR as the rank."""
        by_run = {one.pilot.run: one for one in candidates}
        items = [Item(one.pilot.cores, one.asked.waste, one.priority_factor, run) for run, one in by_run.items()]
        chosen = cheapest_cover(items, need.cores, need.most)
        total = core_hours(sum(item.waste for item in chosen))
        rule = f"in the least wasteful set for {sum(item.cores for item in chosen)} cores, {total}"
        return tuple(
            Choice(one, one.asked, f"{in_words(one, one.asked, now)}; {rule}")
            for one in (by_run[item.name] for item in chosen)
        )


class Paper:
    """The paper's example, as written (section 4.1), repeated until the cores are covered.

    "If there are any pilot jobs that can go away within 2 hours, pick the one with the least draining waste, else pick
    the one that is least expensive to kill." The 2 hours are `settings.horizon`.
    """

    def choose(self, candidates: Sequence[Candidate], need: Need, now: int, settings: Settings) -> tuple[Choice, ...]:
        """See `Policy`; of equals as in `Candidate.tie_break`."""
        quick = [one for one in candidates if one.remaining is not None and one.remaining <= settings.horizon]
        slow = [one for one in candidates if one.remaining is None or one.remaining > settings.horizon]
        quick.sort(key=lambda one: (_draining_waste(one), one.tie_break))
        slow.sort(key=lambda one: (one.kill_waste, one.tie_break))
        within = duration(settings.horizon)
        chosen: list[Choice] = []
        given = 0
        for place, one in enumerate(quick + slow):
            if given >= need.cores:
                break
            if given + one.pilot.cores > need.most:
                continue
            given += one.pilot.cores
            if place < len(quick):
                rule, option = f"least draining waste of those that can go away within {within}", one.asked
            else:
                rule, option = f"no other can go away within {within}: least expensive to kill", one.killed
            chosen.append(Choice(one, option, f"{in_words(one, option, now)}; {rule}"))
        return tuple(chosen)


class YoungestFirst:
    """What batch systems do by themselves, for comparison: the shortest run time is killed first, whole pilots each.

    That is Slurm's PreemptParameters=youngest_first and, within one user, HTCondor's default PREEMPTION_RANK. Nobody
    drains, and nothing a pilot says counts but, between two of the same start, its PRIORITY_FACTOR.
    """

    def choose(self, candidates: Sequence[Candidate], need: Need, now: int, settings: Settings) -> tuple[Choice, ...]:  # noqa: ARG002
        """See `Policy`; of equals as in `Candidate.tie_break`."""
        chosen: list[Choice] = []
        given = 0
        for one in sorted(candidates, key=lambda one: (-one.pilot.started, one.tie_break)):
            if given >= need.cores:
                break
            if given + one.pilot.cores > need.most:
                continue
            given += one.pilot.cores
            age = duration(max(0, now - one.pilot.started))
            reason = f"{in_words(one, one.killed, now)}; of those left the shortest run time, {age}"
            chosen.append(Choice(one, one.killed, reason))
        return tuple(chosen)


def _draining_waste(one: Candidate) -> int:
    """What asking it to drain adds: nothing to one that drains already."""
    return 0 if one.draining or one.draining_waste is None else one.draining_waste


POLICIES: Mapping[str, Policy] = {
    "least-waste": LeastWaste(),
    "paper": Paper(),
    "youngest-first": YoungestFirst(),
}


def policy_called(name: str) -> Policy:
    """The policy of that name; raises UsageError, which names those there are."""
    try:
        return POLICIES[name]
    except KeyError:
        raise UsageError(f"no policy is called {name!r}; there are {', '.join(POLICIES)}") from None
