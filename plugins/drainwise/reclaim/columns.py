"""The pilots of one user side by side: what the batch system knows and what each pilot claims, a column for each.

A pilot whose report is stale, contradictory, incomplete or missing has lost its protection: nothing it says counts.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from drainwise.facts.clients import PAPER, PROFILES
from drainwise.facts.waste import at_least, at_most
from drainwise.pilotad.attributes import PROCESSES
from drainwise.pilotad.report import (
    CONTRADICTORY,
    INCOMPLETE,
    SILENT,
    PilotReport,
    is_known,
    rules_of,
    standing_and_rule,
)
from drainwise.pilotad.values import MOST_POINTS, curve_points
from drainwise.pool.billing import CORES_ALONE
from drainwise.pool.facts import Pilot
from drainwise.reclaim.history import History, doubt
from drainwise.reclaim.settings import BROKEN_PROMISES, ReclaimSettings

if TYPE_CHECKING:
    from drainwise.facts.waste import Quantity
    from drainwise.reclaim.choose.problem import Mask, Real, Whole

_MOST = 1e15  # a claim in core-seconds or a priority beyond this counts as this: sums stay exact
_HIGHEST_PRIORITY = 1 << 24


def where(condition: Quantity, yes: Quantity, no: Quantity) -> Quantity:
    """Return `yes` where the condition holds, else `no`."""
    if isinstance(condition, bool):
        return yes if condition else no
    import numpy as np  # noqa: PLC0415 - there are arrays, so it is there

    return np.where(condition, yes, no)


def negated(condition: Quantity) -> Quantity:
    """Return whether it does not hold."""
    return condition ^ True


class ClaimedValues(NamedTuple):
    """What a pilot states of itself, bounded by what the batch system knows, under the names of its report.

    heartbeat tells when (UNIX s). last_exp_job_end: the guaranteed end where no expected one is stated.
    """

    heartbeat: int
    used_cpu: float
    last_job_start: float
    first_exp_job_end: float
    last_exp_job_end: float
    add_uncom_time: float
    add_final_exp_waste: float


class Saves(NamedTuple):
    """What a pilot has saved, as `Columns` has it: last, restart, following (next_save) and writing."""

    last: float
    restart: float
    following: float
    writing: float


@dataclass(frozen=True)
class Columns:
    """The batch system's facts and the claimed values of `ClaimedValues`, in its units; 0 for a pilot not believed.

    Times in UNIX s; lease_end is infinite where none is known. draining: it says itself that it takes no payload any
    more. doubt: see `trust`. vacate: how long before its
    deadline it begins to end, s: by the batch system, or by itself where its client does. drains: an order keeps it
    from starting payloads. broken: the probability that it does not leave as it says.
    saved: until when its work is saved, UNIX s, its start where it is not: by its batch system, or by itself. restart:
    core-seconds to begin again from there. next_save: when the next save should begin, UNIX s; infinite where that is
    not known. writing: s that one on demand takes, infinite where it makes none. billed: what the site bills for each
    core, with all that the pilot holds. least_grace: its share of `ReclaimSettings.min_grace`, s.
    heartbeat: of its report. seen: its node saw what a kill loses, and nothing else is known. curve: time, idle and
    lost core-seconds of each point of `pilotad.waste_curve`, one row after the other, NaN where it states none.
    """

    cores: Whole
    started: Real
    lease_end: Real
    believed: Mask
    used_cpu: Real
    last_job_start: Real
    first_exp_job_end: Real
    last_exp_job_end: Real
    add_uncom_time: Real
    add_final_exp_waste: Real
    priority_factor: Real
    draining: Mask
    doubt: Real
    vacate: Real
    drains: Mask
    broken: Real
    heartbeat: Real
    seen: Mask
    saved: Real
    restart: Real
    next_save: Real
    writing: Real
    billed: Real
    least_grace: Real
    curve: Real

    def __len__(self) -> int:
        return len(self.cores)

    def rows(self, which: slice | Whole | int) -> Columns:
        """Return some of the rows, or one as numbers."""
        return Columns(*(getattr(self, one.name)[..., which] for one in dataclasses.fields(self)))


def standing_of(pilot: Pilot, now: int, heartbeat_limit: int) -> tuple[str, str]:
    """Return how far its report is believed at `now` (UNIX s), and the rule that decided, "" when it is believed."""
    if pilot.contradictory:
        return CONTRADICTORY, "the node found that its report contradicts itself"
    if pilot.report is None:
        return SILENT, "it reports nothing"
    return standing_and_rule(pilot.report, now, heartbeat_limit, pilot.started, pilot.cores + pilot.returned)


def claimed_values(pilot: Pilot, now: int, heartbeat_limit: int) -> ClaimedValues | None:
    """Return the bounded claims of a pilot at `now` (UNIX s); None when it is not believed.

    A fresh report has all that the metrics need. One of what was seen has it once the ends are learned.
    """
    claims, is_believed, _ = _claims(_of_one(pilot), now, heartbeat_limit)
    return claims if is_believed else None


def _claims(it: Any, now: int, heartbeat_limit: int) -> tuple[ClaimedValues, Quantity, Quantity]:
    """Return what counts of reports as SPEC §2 bounds it by what the batch system knows: of one pilot, or of many.

    And whether it counts as a whole, or but for its ends: its node sees the pilot and knows none. 0 ≤ used ≤ cores;
    start ≤ last job start ≤ now; no end past the lease's; 0 ≤ uncommitted time ≤ cores × run time; 0 ≤ final waste
    ≤ cores × whole lease.
    """
    wrong, gap = it.contradictory > 0, False
    for holds, standing, _ in rules_of(it, it.seen > 0, now, heartbeat_limit, it.started, it.cores + it.returned):
        wrong, gap = (wrong, gap | holds) if standing == INCOMPLETE else (wrong | holds, gap)
    sound = negated(wrong)
    believed, seen = sound & negated(gap), sound & gap & (it.seen > 0) & negated(is_known(it.last_exp_job_end))
    counts = believed | seen

    def said(name: str, other: Quantity = 0) -> Quantity:
        return where(counts, _or(getattr(it, name), other), 0)

    lease_end, most = it.lease_end, at_most(it.cores * at_least(it.lease_end - it.started, 0.0), _MOST)
    claims = ClaimedValues(
        said("heartbeat"),
        at_most(at_least(said("used_cpu"), 0.0), it.cores),
        at_most(at_least(said("last_job_start", now), it.started), now),
        at_most(said("first_exp_job_end", now), lease_end),
        at_most(said("last_exp_job_end", _or(it.last_max_job_end, now)), lease_end),
        at_most(at_least(said("add_uncom_time"), 0.0), it.cores * at_least(now - it.started, 0.0)),
        at_most(at_least(said("add_final_exp_waste"), 0.0), most),
    )
    return claims, believed, seen


_OF_PILOT = "cores", "started", "lease_end", "contradictory", "vacate", "returned", "saved", "next_save", "lead"
_OF_REPORT = tuple(name for name in PilotReport.__match_args__ if name not in {"exp_waste_curve", "source"})
_NAMES = *_OF_PILOT, *_OF_REPORT, "seen", "stops_before", "drains"
_of_pilot, _of_report = attrgetter(*_OF_PILOT), attrgetter(*_OF_REPORT)
_SILENT = PilotReport(-(1 << 62))  # as good as none: it is stale


def _facts(pilot: Pilot) -> tuple[Any, ...]:
    """Return the values of a pilot by _NAMES, None where one is not known."""
    report, client = pilot.report or _SILENT, PROFILES.get(pilot.client, PAPER)
    facts = (report.source == PROCESSES, client.stops_before, client.drains)
    return *_of_pilot(pilot), *_of_report(report), *facts


def _named(values: Iterable[Quantity]) -> SimpleNamespace:
    """Return the values by _NAMES; what is not known is no number, but where it has a meaning."""
    it = SimpleNamespace(**dict(zip(_NAMES, values)))
    it.lease_end, it.returned_cores = _known(it.lease_end, math.inf), _known(it.returned_cores, 0)
    return it


def _of_one(pilot: Pilot) -> SimpleNamespace:
    return _named(math.nan if value is None else value for value in _facts(pilot))


def _known(value: Quantity, other: Quantity) -> Quantity:
    return where(is_known(value), value, other)


def _or(value: Quantity, other: Quantity) -> Quantity:
    """Return the value, or the other where it is not known, or 0."""
    return where(is_known(value) & (value != 0), value, other)


def columns_of(pilots: Sequence[Pilot], now: int, settings: ReclaimSettings, history: History) -> Columns:
    """Return the columns of `pilots`, a row for each in their order; `now` is UNIX s."""
    import numpy as np  # noqa: PLC0415 - the columns of one pilot need none

    table = np.array([_facts(one) for one in pilots], dtype=float).reshape(len(pilots), len(_NAMES))
    facts, known = _named(np.ascontiguousarray(table.T)), dict[str, int]()
    user = [known.setdefault(one.user, len(known)) for one in pilots]
    of_user = np.array([_of_user(name, history) for name in known]).reshape(len(known), 2)[user].T
    billed = np.ones(len(pilots))
    if settings.billing != CORES_ALONE:
        billed = np.array([settings.billing.each_core(one) for one in pilots], dtype=float)
    curves = np.full((3 * MOST_POINTS, len(pilots)), math.nan)
    for row, one in enumerate(pilots):
        if one.report is not None and one.report.exp_waste_curve is not None:
            curves[:, row] = _curve(one)
    found = _columns(facts, of_user, billed, curves, now, settings)
    return dataclasses.replace(found, cores=found.cores.astype(np.int64))


def columns_of_one(pilot: Pilot, now: int, settings: ReclaimSettings, history: History) -> Columns:
    """Return the values of one pilot at `now` (UNIX s); without numpy."""
    of_user, billed = _of_user(pilot.user, history), settings.billing.each_core(pilot)
    return _columns(_of_one(pilot), of_user, billed, _curve(pilot), now, settings)


def _of_user(user: str, history: History) -> tuple[float, float]:
    return doubt(history.trust.get(user)), history.broken.get(user, BROKEN_PROMISES)


def _curve(pilot: Pilot) -> tuple[float, ...]:
    """Return the points of the curve that a pilot states, the last one again and again; no numbers for none."""
    text = None if pilot.report is None else pilot.report.exp_waste_curve
    points = (None if text is None else curve_points(text)) or ((math.nan,) * 3,)
    return tuple(float(value) for point in (*points, *(points[-1:] * (MOST_POINTS - len(points)))) for value in point)


def saves_of(pilot: Pilot, now: int, heartbeat_limit: int) -> Saves | None:
    """Return what a pilot has saved at `now` (UNIX s), None where it is not known to save anything."""
    it = _of_one(pilot)
    found = _saves(it, _claims(it, now, heartbeat_limit)[1], now)
    return None if found == (pilot.started, 0, math.inf, math.inf) else found


def _saves(it: SimpleNamespace, believed: Quantity, now: int) -> Saves:
    """Return what is saved; believed: whether what reports say counts.

    What the batch system tells of the next save is for a job that goes on until it has saved.
    """
    said = where(believed & is_known(it.last_checkpoint), it.last_checkpoint, it.started)
    saved = at_least(at_most(at_least(_known(it.saved, it.started), said), now), it.started)
    following = where(believed & is_known(it.next_checkpoint), it.next_checkpoint, it.next_save)
    restart = where(believed & is_known(it.last_checkpoint), _known(it.restart_cost, 0), 0)
    return Saves(
        saved,
        at_most(restart, it.cores * (saved - it.started)),
        where(following >= now, following, math.inf),
        where(believed, _known(it.checkpoint_seconds, math.inf), math.inf),
    )


def _columns(
    it: SimpleNamespace,
    of_user: Sequence[Quantity],
    billed: Quantity,
    curve: Quantity,
    now: int,
    settings: ReclaimSettings,
) -> Columns:
    """Return the columns: of one pilot numbers, or arrays of many; of_user: doubt, probability of a broken promise.

    The least time to drain is the lead of its warning for who is requeued and says nothing, but where the deadline is
    fixed, so that no other is to be found.
    """
    said, believed, seen = _claims(it, now, settings.heartbeat_limit)
    saves: dict[str, Any] = dict(zip(("saved", "restart", "next_save", "writing"), _saves(it, believed, now)))
    is_fixed = settings.min_grace == settings.grace
    priority = at_least(where(believed, _known(it.priority_factor, 0.0), 0.0), -_HIGHEST_PRIORITY)
    return Columns(
        cores=it.cores,
        started=it.started,
        lease_end=it.lease_end,
        believed=believed,
        **said._asdict(),
        priority_factor=at_most(priority, _HIGHEST_PRIORITY),
        draining=believed & (it.can_postpone_last_job == 0),
        doubt=where(believed, of_user[0], 0.0),
        vacate=at_least(_known(it.vacate, settings.vacate), it.stops_before),
        drains=it.drains > 0,
        broken=of_user[1],
        seen=seen,
        **saves,
        billed=billed,
        least_grace=at_most(where(believed | is_fixed, math.inf, _known(it.lead, math.inf)), settings.min_grace),
        curve=where(believed, curve, (math.nan,) * len(curve) if isinstance(believed, bool) else math.nan),
    )
