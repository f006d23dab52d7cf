"""The pilots of one user side by side: what the batch system knows and what each pilot claims, a column for each.

A pilot whose report is stale, contradictory, incomplete or missing has lost its protection: nothing it says counts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drainwise.pilotad.report import CONTRADICTORY, FRESH, bounded, standing_and_rule
from drainwise.pool import Pilot
from drainwise.reclaim.arrays import Mask, Real, Whole
from drainwise.reclaim.record import Record
from drainwise.reclaim.settings import Settings
from drainwise.reclaim.trust import doubt

SILENT = "silent"
"""Standing of a pilot that reports nothing."""

_MOST = 1e15  # a claim in core-seconds or a priority beyond this counts as this: sums stay exact
_HIGHEST_PRIORITY = 1 << 24


@dataclass(frozen=True)
class Columns:
    """Times in UNIX s, used in cores, uncommitted (f × cores) and final (i × cores) in core-seconds.

    lease_end is infinite where none is known. Claims are bounded by what the batch system knows; those of a pilot that
    is not believed say nothing. draining: it says itself that it takes no payload any more. doubt: see `trust`. worn:
    spared so often that its protection has run out. vacate: how long before its deadline it is begun to be ended, s.
    """

    cores: Whole
    started: Real
    lease_end: Real
    believed: Mask
    used: Real
    last_start: Real
    first_end: Real
    last_end: Real
    uncommitted: Real
    final: Real
    priority: Real
    draining: Mask
    doubt: Real
    worn: Mask
    vacate: Real

    def __len__(self) -> int:
        return len(self.cores)

    def part(self, begin: int, end: int) -> Columns:
        """The rows from `begin` to before `end`."""
        return Columns(*(getattr(self, one.name)[begin:end] for one in dataclasses.fields(self)))


def standing_of(pilot: Pilot, now: int, heartbeat_limit: int) -> tuple[str, str]:
    """How far its report is believed at `now` (UNIX s), and the rule that decided, "" when it is believed."""
    if pilot.contradictory:
        return CONTRADICTORY, "the node found that its report contradicts itself"
    if pilot.report is None:
        return SILENT, "it reports nothing"
    return standing_and_rule(pilot.report, now, heartbeat_limit, pilot.started)


def columns_of(pilots: Sequence[Pilot], now: int, settings: Settings, record: Record) -> Columns:
    """The columns of `pilots`, a row for each in their order; `now` is UNIX s."""
    doubts = {user: doubt(figures, settings.trust) for user, figures in record.trust.items()}
    worn_at = settings.trust.spared or np.inf
    facts = np.array(
        [
            (
                pilot.started,
                np.inf if pilot.lease_end is None else pilot.lease_end,
                doubts.get(pilot.user, 0.0),
                record.spared.get(pilot.run, 0) >= worn_at,
                settings.vacate if pilot.vacate is None else pilot.vacate,
                *_claims(pilot, now, settings.heartbeat_limit),
            )
            for pilot in pilots
        ],
        dtype=float,
    ).reshape(-1, 14)
    started, lease_end, doubted, worn, vacate, *claims, draining = facts.T
    believed, used, last_start, first_end, last_end, *amounts = claims
    uncommitted, final, priority = (np.clip(amount, -_MOST, _MOST) for amount in amounts)
    return Columns(
        cores=np.array([pilot.cores for pilot in pilots], dtype=np.int64),
        started=started,
        lease_end=lease_end,
        believed=believed > 0,
        used=used,
        last_start=last_start,
        first_end=first_end,
        last_end=last_end,
        uncommitted=uncommitted,
        final=final,
        priority=np.clip(priority, -_HIGHEST_PRIORITY, _HIGHEST_PRIORITY),
        draining=draining > 0,
        doubt=doubted * believed,
        worn=worn > 0,
        vacate=vacate,
    )


_NO_CLAIM = (False, 0.0, 0, 0, 0, 0.0, 0.0, 0, False)


def _claims(pilot: Pilot, now: int, heartbeat_limit: int) -> tuple[float, ...]:
    """Whether it is believed, and its bounded claims: a fresh report has all that the metrics need."""
    if pilot.report is None or standing_of(pilot, now, heartbeat_limit)[0] != FRESH:
        return _NO_CLAIM
    said = bounded(pilot.report, pilot.cores, pilot.started, pilot.lease_end, now)
    return (
        True,
        said.used_cpu or 0.0,
        said.last_job_start or now,
        said.first_exp_job_end or now,
        said.last_exp_job_end or said.last_max_job_end or now,
        said.add_uncom_time or 0.0,
        said.add_final_exp_waste or 0.0,
        said.priority_factor or 0,
        said.can_postpone_last_job is False,
    )
