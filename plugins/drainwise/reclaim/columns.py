"""The pilots of one user side by side: what the batch system knows and what each pilot claims, a column for each.

A pilot whose report is stale, contradictory, incomplete or missing has lost its protection: nothing it says counts.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from drainwise.facts.clients import PAPER, PROFILES
from drainwise.facts.waste import at_least, at_most
from drainwise.pilotad.report import BELIEVED_STANDINGS, CONTRADICTORY, OBSERVED, SILENT, PilotReport, standing_and_rule
from drainwise.pilotad.values import MOST_POINTS, curve_points
from drainwise.pool.facts import Pilot
from drainwise.reclaim.history import History, doubt
from drainwise.reclaim.settings import BROKEN_PROMISES, ReclaimSettings

if TYPE_CHECKING:
    from drainwise.facts.waste import Quantity
    from drainwise.reclaim.choose.problem import Mask, Real, Whole

_MOST = 1e15  # a claim in core-seconds or a priority beyond this counts as this: sums stay exact
_HIGHEST_PRIORITY = 1 << 24


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
    values, is_whole = _stated(pilot, now, heartbeat_limit)
    lease_end = math.inf if pilot.lease_end is None else pilot.lease_end
    return values._replace(**_bounded(values, pilot.cores, pilot.started, lease_end, now)) if is_whole else None


def _stated(pilot: Pilot, now: int, heartbeat_limit: int) -> tuple[ClaimedValues, bool]:
    """Return what counts of its report, and whether its ends do; they do not where its node sees it and knows none."""
    report = pilot.report
    if report is None:
        return _NO_CLAIMS, False
    standing, rule = standing_of(pilot, now, heartbeat_limit)
    is_whole = standing in BELIEVED_STANDINGS or (standing == OBSERVED and not rule)
    if not is_whole and (standing != OBSERVED or report.last_exp_job_end is not None):
        return _NO_CLAIMS, False
    values = ClaimedValues(  # by place, as a plan does so for each report of a pool
        report.heartbeat,
        report.used_cpu or 0.0,
        report.last_job_start or now,
        report.first_exp_job_end or now,
        report.last_exp_job_end or report.last_max_job_end or now,
        report.add_uncom_time or 0.0,
        report.add_final_exp_waste or 0.0,
    )
    return values, is_whole


def _bounded(
    said: ClaimedValues | Columns, cores: Quantity, started: Quantity, lease_end: Quantity, now: int
) -> dict[str, Quantity]:
    """Return claimed values as SPEC §2 bounds them by what the batch system knows: of one pilot, or of many.

    0 ≤ used ≤ cores; start ≤ last job start ≤ now; no end past the lease's; 0 ≤ uncommitted time ≤ cores × run time;
    0 ≤ final waste ≤ cores × whole lease.
    """
    lease = at_most(cores * at_least(lease_end - started, 0.0), _MOST)
    return {
        "used_cpu": at_most(at_least(said.used_cpu, 0.0), cores * 1.0),
        "last_job_start": at_most(at_least(said.last_job_start, started), now),
        "first_exp_job_end": at_most(said.first_exp_job_end, lease_end),
        "last_exp_job_end": at_most(said.last_exp_job_end, lease_end),
        "add_uncom_time": at_most(at_least(said.add_uncom_time, 0.0), cores * at_least(now - started, 0.0)),
        "add_final_exp_waste": at_most(at_least(said.add_final_exp_waste, 0.0), lease),
    }


def columns_of(pilots: Sequence[Pilot], now: int, settings: ReclaimSettings, history: History) -> Columns:
    """Return the columns of `pilots`, a row for each in their order; `now` is UNIX s."""
    import numpy as np  # noqa: PLC0415 - the columns of one pilot need none

    rows, names = [_row(one, now, settings, history) for one in pilots], dataclasses.fields(Columns)[:-1]
    table = np.fromiter(chain.from_iterable(row[:-1] for row in rows), dtype=float).reshape(-1, len(names)).T
    table[np.isnan(table)] = 0.0  # as `at_least` has it of one
    columns = [column.astype(_DTYPES[one.type]) for one, column in zip(names, table)]
    curves = np.full((len(rows), len(_NO_CURVE)), math.nan)
    for number, row in enumerate(rows):
        if row[-1] is not _NO_CURVE:
            curves[number] = row[-1]
    return _with_bounds(Columns(*columns, curves.T), now)  # type: ignore[call-arg]


def columns_of_one(pilot: Pilot, now: int, settings: ReclaimSettings, history: History) -> Columns:
    """Return the values of one pilot at `now` (UNIX s); without numpy."""
    return _with_bounds(Columns(*_row(pilot, now, settings, history)), now)


def _with_bounds(it: Columns, now: int) -> Columns:
    priority = at_most(at_least(it.priority_factor, -_HIGHEST_PRIORITY), _HIGHEST_PRIORITY)
    return dataclasses.replace(it, priority_factor=priority, **_bounded(it, it.cores, it.started, it.lease_end, now))


def saves_of(pilot: Pilot, now: int, heartbeat_limit: int) -> Saves | None:
    """Return what a pilot has saved at `now` (UNIX s), None where it is not known to save anything."""
    found = _saves(pilot, pilot.report if _stated(pilot, now, heartbeat_limit)[1] else None, now)
    return None if found == (pilot.started, 0, math.inf, math.inf) else found


def _saves(pilot: Pilot, report: PilotReport | None, now: int) -> Saves:
    """Return what is saved; report: what it says, None where that is not believed.

    What the batch system tells of the next save is for a job that goes on until it has saved.
    """
    nothing = report is None or (report.last_checkpoint is report.next_checkpoint is report.checkpoint_seconds is None)
    if nothing and pilot.saved is pilot.next_save is None:  # as of most
        return Saves(float(pilot.started), 0.0, math.inf, math.inf)
    said = report.last_checkpoint if report is not None else None
    saved = max(pilot.started, min(now, max(pilot.saved or 0, said or 0)))
    following, writing, restart = pilot.next_save, None, None
    if report is not None:
        following = following if report.next_checkpoint is None else report.next_checkpoint
        writing, restart = report.checkpoint_seconds, report.restart_cost if said is not None else None
    return Saves(
        float(saved),
        float(min(restart or 0, pilot.cores * max(0, saved - pilot.started))),
        math.inf if following is None or following < now else float(following),
        math.inf if writing is None else float(writing),
    )


_NO_CLAIMS = ClaimedValues(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
_NO_CURVE = (math.nan,) * 3 * MOST_POINTS
_DTYPES: dict[Any, type] = {"Whole": int, "Real": float, "Mask": bool}


def _least_grace(pilot: Pilot, is_believed: bool, settings: ReclaimSettings) -> int:
    """Return the least time that it has to drain, s: the lead of its warning where it is requeued and says nothing.

    Not where the deadline is fixed, so that no other is to be found.
    """
    if pilot.lead is None or is_believed or settings.min_grace == settings.grace:
        return settings.min_grace
    return min(settings.min_grace, pilot.lead)


def _row(pilot: Pilot, now: int, settings: ReclaimSettings, history: History) -> tuple[Any, ...]:
    """Return the values of `Columns` for one pilot in their order, claims as they are stated."""
    values, is_believed = _stated(pilot, now, settings.heartbeat_limit)
    client, report = PROFILES.get(pilot.client, PAPER), pilot.report if is_believed else None
    points = None if report is None or report.exp_waste_curve is None else curve_points(report.exp_waste_curve)
    whole = (*points, *(points[-1:] * (MOST_POINTS - len(points)))) if points else ()  # the last one again and again
    return (
        pilot.cores,
        float(pilot.started),
        math.inf if pilot.lease_end is None else float(pilot.lease_end),
        is_believed,
        *values[1:],
        float((report is not None and report.priority_factor) or 0),
        report is not None and report.can_postpone_last_job is False,
        doubt(history.trust.get(pilot.user)) if is_believed else 0.0,
        float(max(settings.vacate if pilot.vacate is None else pilot.vacate, client.stops_before)),
        client.drains,
        history.broken.get(pilot.user, BROKEN_PROMISES),
        values.heartbeat,
        values is not _NO_CLAIMS and not is_believed,
        *_saves(pilot, report, now),
        settings.billing.each_core(pilot),
        float(_least_grace(pilot, is_believed, settings)),
        tuple(value for point in whole for value in point) or _NO_CURVE,
    )
