"""One pilot with its figures and the ways to end it, as a plan shows it: a row of the arrays, made only when looked
at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from drainwise.facts.clients import PAPER, PROFILES
from drainwise.facts.units import core_hours, duration
from drainwise.facts.waste import bounded_remaining
from drainwise.pilotad.attributes import PROCESSES
from drainwise.pilotad.report import OBSERVED
from drainwise.pool.facts import Pilot
from drainwise.reclaim.columns import columns_of, columns_of_one, standing_of
from drainwise.reclaim.figures import Figures, figures_of, row_of_figures
from drainwise.reclaim.history import History, doubt_in_words
from drainwise.reclaim.settings import ReclaimSettings

if TYPE_CHECKING:
    from drainwise.reclaim.totals.arrays import Whole

LEAVE = "leave"
"""Ordered to drain, it leaves by itself before the deadline."""
CUT = "cut"
"""Ordered to drain, it is cut at the deadline."""
KILL = "kill"
"""Ended at once, or after the site's shortest notice."""
PUBLISHED = "published"
"""The ends of its payloads are in its report, or in what its node reads: the batch system shows the same."""
LEARNED = "learned"
"""The agent expects them, by how long such payloads ran: nobody else knows them."""
NO_PAYLOAD = "no payload"
"""Its node sees no payload: nothing is to end."""


@dataclass(frozen=True)
class Option:
    """One way to end a pilot: expected `waste` in core-seconds; `deadline` of the order and when the cores are back."""

    kind: str
    waste: int
    deadline: int
    cores_back: int


@dataclass(frozen=True)
class Candidate:
    """One pilot with its figures: remaining in seconds, wastes in core-seconds; None = not known or not believed.

    remaining: in good faith, by LAST_EXP_JOB_END; remaining_max: guaranteed, by LAST_MAX_JOB_END.

    rule: why its report is not believed or not taken as it is, "" when it is. draining: it says itself that it takes no
    payload any more, so what idles on its cores is lost with an order or without. options: the ways to end it that
    count, the cheapest first. vacate: seconds before its deadline at which it is begun to be ended.
    """

    pilot: Pilot
    standing: str
    rule: str
    remaining: int | None
    remaining_max: int | None
    draining_waste: int | None
    kill_waste: int
    priority_factor: int
    draining: bool
    options: tuple[Option, ...]
    vacate: int = 0

    @property
    def ends(self) -> str:
        """Where remaining and draining waste come from: PUBLISHED, LEARNED or NO_PAYLOAD; "" where they are unknown."""
        if self.draining_waste is None or self.pilot.report is None:
            return ""
        if self.pilot.report.source != PROCESSES:
            return PUBLISHED
        return LEARNED if self.pilot.seen is not None and self.pilot.seen.payloads else NO_PAYLOAD

    @property
    def best(self) -> Option:
        """The cheapest way; of equals the gentlest."""
        return self.options[0]

    @property
    def drained(self) -> Option:
        """The cheapest way that lets it drain."""
        return next(one for one in self.options if one.kind != KILL)

    @property
    def killed(self) -> Option:
        """The quickest way that the site allows: a kill, or a cut where nobody is killed."""
        return next((one for one in self.options if one.kind == KILL), self.drained)


@dataclass(frozen=True)
class Candidates:
    """The pilots of one decision with their figures, a row each in the order of their stable id (the run).

    made: the figures, or what makes them when they are looked at first.
    """

    pilots: tuple[Pilot, ...]
    made: Figures | Callable[[], Figures]
    settings: ReclaimSettings
    history: History

    @cached_property
    def figures(self) -> Figures:
        """The figures, a row for each pilot."""
        return self.made() if callable(self.made) else self.made

    def __len__(self) -> int:
        return len(self.pilots)

    def __iter__(self) -> Iterator[Candidate]:
        return (self[row] for row in range(len(self)))

    @property
    def sizes(self) -> Whole:
        """Cores of each."""
        return self.figures.columns.cores

    def some(self, rows: Sequence[int]) -> Candidates:
        """Return these rows, ascending, as candidates."""
        if len(rows) == len(self.pilots):
            return self
        return replace(self, pilots=tuple([self.pilots[row] for row in rows]), made=lambda: self.figures.some(rows))

    def __getitem__(self, row: int) -> Candidate:
        it = self.figures
        facts = _Facts(*(getattr(it.columns, name)[row] for name in _Facts._fields))
        figures = [float(getattr(it, name)[row]) for name in _FIGURES]
        return _candidate(self.pilots[row], facts, figures, it.now, self.settings, self.history)


def candidates_of(
    pilots: Iterable[Pilot], now: int, settings: ReclaimSettings, history: History | None = None
) -> Candidates:
    """Return the candidates at `now` (UNIX s)."""
    return in_order(tuple(sorted(pilots, key=lambda pilot: pilot.run)), now, settings, history or History())


def in_order(pilots: tuple[Pilot, ...], now: int, settings: ReclaimSettings, history: History) -> Candidates:
    """Return the candidates at `now` (UNIX s), a row for each in the order in which they are given."""
    made = lambda: figures_of(columns_of(pilots, now, settings, history), now, settings)  # noqa: E731
    return Candidates(pilots, made, settings, history)


def candidate_of(pilot: Pilot, now: int, settings: ReclaimSettings, history: History) -> Candidate:
    """Return one pilot's figures at `now` (UNIX s), as `candidates_of` has them; without numpy."""
    it = columns_of_one(pilot, now, settings, history)
    facts = _Facts(it.cores, it.believed, it.doubt, it.unprotected, it.draining, it.vacate)
    return _candidate(pilot, facts, row_of_figures(it, now, settings), now, settings, history)


_FIGURES = ("remaining", "draining_waste", "kill_waste", "leave", "leave_deadline", "cut", "cut_deadline", "kill")
"""In the order of `row_of_figures`."""


class _Facts(NamedTuple):
    """Of one pilot's columns what a candidate shows or is made by; numpy's numbers or Python's."""

    cores: Any
    believed: Any
    doubt: Any
    unprotected: Any
    draining: Any
    vacate: Any


def _candidate(
    pilot: Pilot, facts: _Facts, figures: Sequence[float], now: int, settings: ReclaimSettings, history: History
) -> Candidate:
    standing, rule = standing_of(pilot, now, settings.heartbeat_limit)
    believed, share = bool(facts.believed), float(facts.doubt)
    if share > 0:
        rule = doubt_in_words(history.trust[pilot.user], share)
    if facts.unprotected:
        ended = f"spared {history.spared[pilot.run]} times: its protection has run out"
        rule = f"{rule}; {ended}" if rule else ended
    remaining, draining_waste, kill_waste = figures[:3]
    return Candidate(
        pilot,
        standing,
        rule,
        remaining=_whole(remaining),
        remaining_max=_remaining_max(pilot, now) if believed else None,
        draining_waste=_whole(draining_waste),
        kill_waste=int(kill_waste),
        priority_factor=(pilot.report and believed and pilot.report.priority_factor) or 0,
        draining=bool(facts.draining),
        options=_options(figures, int(facts.cores), now, settings),
        vacate=int(facts.vacate),
    )


def _options(figures: Sequence[float], cores: int, now: int, settings: ReclaimSettings) -> tuple[Option, ...]:
    remaining, _, _, leave, leave_deadline, cut, cut_deadline, kill = figures
    at_once = now + settings.notice
    found = (
        (LEAVE, leave, leave_deadline, now + remaining),
        (CUT, cut, cut_deadline, cut_deadline),
        (KILL, kill, at_once, at_once),
    )
    counting = [Option(kind, int(waste), int(end), int(back)) for kind, waste, end, back in found if waste < math.inf]
    return tuple(sorted(counting, key=lambda one: one.waste + settings.waiting_cost * cores * (one.cores_back - now)))


def _remaining_max(pilot: Pilot, now: int) -> int | None:
    end = pilot.report.last_max_job_end if pilot.report is not None else None
    return None if end is None else int(bounded_remaining(end, now, pilot.lease_end))


def _whole(figure: float) -> int | None:
    return None if math.isnan(figure) else int(figure)


def _client_in_words(name: str) -> str:
    """Say what its client makes of an order, where that is not as the paper has it; "" where it is."""
    client = PROFILES.get(name, PAPER)
    if client.name == PAPER.name:
        return ""
    if client.stops_before:
        return f"{client.name} stops by itself {duration(client.stops_before)} before its deadline; "
    return f"{client.name} drains; " if client.drains else f"{client.name} goes on until SIGTERM; "


def in_words(candidate: Candidate, option: Option, now: int) -> str:
    """Return the sentence that a plan shows: what an option does to a pilot, with the formula's figures."""
    waste = core_hours(option.waste)
    rule = f"{candidate.rule}; " if candidate.rule else ""
    rule += _client_in_words(candidate.pilot.client)
    if candidate.remaining is None and candidate.standing == OBSERVED and option.kind != KILL:
        until = f"what a kill loses now, and {candidate.pilot.cores} cores until then"
        return f"{rule}cut in {duration(option.cores_back - now)}: at most {waste}: {until}"
    if candidate.remaining is None and candidate.standing != OBSERVED:
        run = duration(max(0, option.deadline - candidate.pilot.started))
        when = "killed" if option.kind == KILL else "if it is cut then"
        unknown = "" if candidate.rule else "not believed; "
        return f"{unknown}{rule}{candidate.pilot.cores} cores x {run} run time = {waste}, {when}"
    if option.kind == KILL:
        return f"{rule}killed: {waste} of running payloads lost"
    back = duration(option.cores_back - now)
    if option.kind == LEAVE and candidate.draining and option.waste == 0:
        return f"{rule}drains already and leaves in {back}: an order costs nothing"
    if option.kind == LEAVE and candidate.draining:
        return f"{rule}drains already and leaves in {back}: {waste} lost if it does not"
    if option.kind == LEAVE:
        return f"{rule}leaves by itself in {back}: {_idle_and_lost(candidate, option)}"
    return f"{rule}cut in {back}: {waste} idle until then or lost there"


def _idle_and_lost(candidate: Candidate, option: Option) -> str:
    """Tell what of a pilot that should leave by itself idles, and what the chance that it does not leave costs."""
    idle = min(candidate.draining_waste or 0, candidate.pilot.cores * (candidate.remaining or 0))
    report = candidate.pilot.report
    is_moved = bool(candidate.rule) or (report is not None and report.exp_waste_curve is not None)
    if is_moved or not 0 <= idle < option.waste:
        return f"{core_hours(option.waste)} idle until then or lost if it does not"
    return (
        f"{core_hours(idle)} idle until then, {core_hours(option.waste - idle)} for the chance that it does not leave"
    )
