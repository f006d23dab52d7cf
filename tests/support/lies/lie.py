"""The lies: what a pilot says in place of its report, and whether it stays when it should leave.

Each but `idle` is possible by what one report tells (see `pilotad.report`). Every pilot of a user tells it at any time,
with an order or without.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from drainwise.pilot.decide.lease import Lease
from drainwise.pilotad.report import PilotReport


@dataclass(frozen=True)
class Lie:
    """tell: its report, its lease, and by when (UNIX s) a pilot must leave that is left to drain. stays: it does not
    drain: it goes on until it is ended.
    """

    name: str
    meaning: str
    stays: bool
    tell: Callable[[PilotReport, Lease, int], PilotReport]


def _busy(report: PilotReport, lease: Lease, end: int, lost: float, can_postpone: bool = True) -> PilotReport:
    """Return a report of all cores busy until `end`, with `lost` (0 to 1) of all that it can have run to lose."""
    return PilotReport(
        report.heartbeat,
        used_cpu=float(lease.cores),
        last_job_start=report.heartbeat,
        first_exp_job_end=end,
        last_exp_job_end=end,
        last_max_job_end=end,
        add_uncom_time=lost * lease.cores * max(0.0, report.heartbeat - lease.start),
        add_final_exp_waste=0.0,
        priority_factor=report.priority_factor,
        can_postpone_last_job=can_postpone,
    )


def _precious(report: PilotReport, lease: Lease, leaves: int) -> PilotReport:
    return _busy(report, lease, leaves if lease.end is None else max(leaves, math.floor(lease.end)), 1.0)


def _within(report: PilotReport, lease: Lease, leaves: int) -> PilotReport:
    return _busy(report, lease, leaves, 1.0)


def _modestly_within(report: PilotReport, lease: Lease, leaves: int) -> PilotReport:
    return _busy(report, lease, leaves, 0.5)


def _draining(report: PilotReport, lease: Lease, leaves: int) -> PilotReport:
    return _busy(report, lease, leaves, 1.0, can_postpone=False)


def _idle(report: PilotReport, lease: Lease, leaves: int) -> PilotReport:
    said = _busy(report, lease, leaves, 1.0)
    lost = said.add_uncom_time
    return PilotReport(
        said.heartbeat, 0.0, said.last_job_start, leaves, leaves, leaves, lost, 0.0, said.priority_factor, True
    )


LIES = (
    Lie("precious", "all would be lost, and nothing ends before the lease does", False, _precious),
    Lie("within", "all payloads end just within the horizon; it stays", True, _within),
    Lie("modest", "the same, and half of what it can have run would be lost; it stays", True, _modestly_within),
    Lie("draining", "it drains already, and all payloads end just within the horizon; it stays", True, _draining),
    Lie("idle", "no core is in use, and all would be lost; it stays", True, _idle),
)
