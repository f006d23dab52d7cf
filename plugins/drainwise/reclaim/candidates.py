"""One pilot with its figures and the ways to end it, as a plan shows it: a row of the arrays, made only when looked
at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from drainwise.facts.clients import PAPER, PROFILES
from drainwise.facts.units import CORE_H, core_hours, duration
from drainwise.facts.waste import bounded_remaining
from drainwise.pilotad.attributes import PROCESSES
from drainwise.pilotad.report import OBSERVED
from drainwise.pool.facts import Pilot
from drainwise.reclaim.columns import columns_of, columns_of_one, standing_of
from drainwise.reclaim.figures import FIGURES, Figures, figures_of, row_of_figures
from drainwise.reclaim.history import History, doubt_in_words
from drainwise.reclaim.settings import ReclaimSettings

if TYPE_CHECKING:
    from drainwise.reclaim.choose.problem import Whole

LEAVE = "leave"
"""Ordered to drain, it leaves by itself before the deadline."""
CUT = "cut"
"""Ordered to drain, it is cut at the deadline."""
COMMIT = "commit"
"""Likewise, and the deadline is right after the next time that it saves its work."""
KILL = "kill"
"""Ended at once, or after the site's shortest notice."""
PUBLISHED = "published"
"""The ends of its payloads are in its report, or in what its node reads: the batch system shows the same."""
LEARNED = "learned"
"""The agent expects them, by how long such payloads ran: nobody else knows them."""
NO_PAYLOAD = "no payload"
"""Its node sees no payload: nothing is to end."""
_SHOWN = "believed", "doubt", "draining", "vacate", "billed"  # of the columns


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
    count, the cheapest first. vacate: seconds before its deadline at which it is begun to be ended. billed: for each
    core, see `Columns`; times hours in `unit`.
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
    billed: float = 1.0
    unit: str = CORE_H

    @property
    def ends(self) -> str:
        """Where remaining and draining waste come from: PUBLISHED, LEARNED or NO_PAYLOAD; "" where they are unknown."""
        if self.draining_waste is None or self.pilot.report is None:
            return ""
        if self.pilot.report.source != PROCESSES:
            return PUBLISHED
        return LEARNED if self.pilot.seen is not None and self.pilot.seen.payloads else NO_PAYLOAD

    def in_unit(self, waste: int) -> str:
        """Write its waste (core-seconds) as the site bills it."""
        return core_hours(round(waste * self.billed), self.unit)

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
    """The pilots of one decision with their figures at `now` (UNIX s), which are made when they are looked at first.

    made: what makes them; None: the pilots' reports do.
    """

    pilots: tuple[Pilot, ...]
    now: int
    settings: ReclaimSettings
    history: History
    made: Callable[[], Figures] | None = None

    @cached_property
    def figures(self) -> Figures:
        """The figures, a row for each pilot."""
        if self.made is not None:
            return self.made()
        return figures_of(columns_of(self.pilots, self.now, self.settings, self.history), self.now, self.settings)

    def __len__(self) -> int:
        return len(self.pilots)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.at(range(len(self))))

    @property
    def sizes(self) -> Whole:
        """Cores of each."""
        return self.figures.columns.cores

    def some(self, rows: Sequence[int]) -> Candidates:
        """Return these rows, ascending, as candidates."""
        if len(rows) == len(self.pilots):
            return self
        made = None if self.made is None and "figures" not in vars(self) else lambda: self.figures.some(rows)
        return replace(self, pilots=tuple([self.pilots[row] for row in rows]), made=made)

    def __getitem__(self, row: int) -> Candidate:
        return self.at([row])[0]

    def at(self, rows: Sequence[int]) -> list[Candidate]:
        """Return the candidates in these rows."""
        it, some = self.figures, list(rows)
        figures = zip(*(getattr(it, name)[some].tolist() for name in FIGURES))
        facts = zip(*(getattr(it.columns, name)[some].tolist() for name in _SHOWN))
        pilots = (self.pilots[row] for row in some)
        return [_candidate(*one, it.now, self.settings, self.history) for one in zip(pilots, facts, figures)]


def candidates_of(
    pilots: Iterable[Pilot], now: int, settings: ReclaimSettings, history: History | None = None
) -> Candidates:
    """Return the candidates at `now` (UNIX s), in the order of their stable id (the run)."""
    return Candidates(tuple(sorted(pilots, key=lambda pilot: pilot.run)), now, settings, history or History())


def candidate_of(pilot: Pilot, now: int, settings: ReclaimSettings, history: History) -> Candidate:
    """Return one pilot's figures at `now` (UNIX s), as `candidates_of` has them; without numpy."""
    it = columns_of_one(pilot, now, settings, history)
    shown = tuple(getattr(it, name) for name in _SHOWN)
    return _candidate(pilot, shown, row_of_figures(it, now, settings), now, settings, history)


def _candidate(
    pilot: Pilot,
    shown: tuple[Any, ...],
    figures: Sequence[float],
    now: int,
    settings: ReclaimSettings,
    history: History,
) -> Candidate:
    believed, doubt, draining, vacate, billed = shown
    standing, rule = standing_of(pilot, now, settings.heartbeat_limit)
    if doubt > 0:
        rule = doubt_in_words(history.trust[pilot.user], doubt)
    remaining, draining_waste, kill_waste, leave, leave_deadline, cut, cut_deadline, kill, commits = figures
    report, at_once = pilot.report if believed else None, now + settings.notice
    last = None if report is None else report.last_max_job_end
    ways = (
        (LEAVE, leave, leave_deadline, now + remaining),
        (COMMIT if commits else CUT, cut, cut_deadline, cut_deadline),
        (KILL, kill, at_once, at_once),
    )
    options = [Option(kind, int(waste), int(end), int(back)) for kind, waste, end, back in ways if waste < math.inf]
    options.sort(key=lambda one: one.waste + settings.waiting_cost * pilot.cores * (one.cores_back - now))
    return Candidate(
        pilot,
        standing,
        rule,
        remaining=None if math.isnan(remaining) else int(remaining),
        remaining_max=None if last is None else int(bounded_remaining(last, now, pilot.lease_end)),
        draining_waste=None if math.isnan(draining_waste) else int(draining_waste),
        kill_waste=int(kill_waste),
        priority_factor=(report is not None and report.priority_factor) or 0,
        draining=draining,
        options=tuple(options),
        vacate=int(vacate),
        billed=billed,
        unit=settings.billing.unit,
    )


def in_words(candidate: Candidate, option: Option, now: int) -> str:
    """Return the sentence that a plan shows: what an option does to a pilot, with the formula's figures."""
    pilot, waste, back = candidate.pilot, core_hours(option.waste), duration(option.cores_back - now)
    rule, client = f"{candidate.rule}; " if candidate.rule else "", PROFILES.get(pilot.client, PAPER)
    if client.stops_before:
        rule += f"{client.name} stops by itself {duration(client.stops_before)} before its deadline; "
    elif client.name != PAPER.name:
        rule += f"{client.name} drains; " if client.drains else f"{client.name} goes on until SIGTERM; "
    rule += "it is requeued then; " if pilot.lead is not None else ""
    if option.kind == COMMIT:
        return f"{rule}cut in {back}, right after its next checkpoint: {waste} idle until then or lost"
    if candidate.remaining is None and candidate.standing == OBSERVED and option.kind != KILL:
        return f"{rule}cut in {back}: at most {waste}: what a kill loses now, and {pilot.cores} cores until then"
    if candidate.remaining is None and candidate.standing != OBSERVED:
        since = max(pilot.started, min(now, pilot.saved or 0))
        run = duration(max(0, option.deadline - since))
        when = "killed" if option.kind == KILL else "if it is cut then"
        unknown = "" if candidate.rule else "not believed; "
        what = "run time" if since == pilot.started else "since its last checkpoint"
        return f"{unknown}{rule}{pilot.cores} cores x {run} {what} = {waste}, {when}"
    if option.kind == KILL:
        return f"{rule}killed: {waste} of running payloads lost"
    if option.kind == CUT:
        return f"{rule}cut in {back}: {waste} idle until then or lost there"
    if candidate.draining:
        lost = f"{waste} lost if it does not" if option.waste else "an order costs nothing"
        return f"{rule}drains already and leaves in {back}: {lost}"
    idle = min(candidate.draining_waste or 0, pilot.cores * (candidate.remaining or 0))
    is_moved = candidate.rule or (pilot.report is not None and pilot.report.exp_waste_curve is not None)
    parts = f"{waste} idle until then or lost if it does not"
    if not is_moved and idle < option.waste:
        chance = core_hours(option.waste - idle)
        parts = f"{core_hours(idle)} idle until then, {chance} for the chance that it does not leave"
    return f"{rule}leaves by itself in {back}: {parts}"
