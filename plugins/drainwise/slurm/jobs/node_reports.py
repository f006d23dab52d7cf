"""The report of a run of several nodes: of its first node alone, or the sum of one from each node.

One process may steer all nodes and report from the first one: that report stands for all cores. Once another node
has reported, there is a pilot on each, and the run's figures are their sum; while one of them is silent or its report
is not fresh, nothing is known of the whole, and the run has a report without figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drainwise.facts.errors import FeatureError
from drainwise.pilotad.report import BELIEVED_STANDINGS, PilotReport
from drainwise.slurm.jobs.admin_comment import NodeReport, Published


class _UnknownError(FeatureError):
    """A value that the sum needs is not known."""


def whole_report(published: Published, cores: Mapping[str, int]) -> PilotReport:
    """Return the report of the whole run; cores: of the run by node, {} where there is but one. Pure."""
    if not published.others:
        return published.report
    parts = [NodeReport(published.node, published.report, published.standing), *published.others]
    oldest = PilotReport(min(one.report.heartbeat for one in parts))
    is_whole = {one.node for one in parts} == set(cores) and len(parts) == len(cores)
    if not is_whole or any(one.standing not in BELIEVED_STANDINGS for one in parts):
        return oldest
    try:
        return _sum([one.report for one in parts], [cores[one.node] for one in parts], oldest.heartbeat)
    except _UnknownError:
        return oldest


def _sum(reports: Sequence[PilotReport], cores: Sequence[int], heartbeat: int) -> PilotReport:
    """Return the sum, in which what idles on one node until the last has ended counts as well.

    The pieces come back together: a node whose payloads have all ended idles until the last one of all. Both sums of
    core-seconds belong to the latest start and to the earliest and latest end of all.
    """
    used = [_known(one.used_cpu) for one in reports]
    started = [_known(one.last_job_start) for one in reports]
    first = [_known(one.first_exp_job_end) for one in reports]
    last = [
        _known(one.last_exp_job_end if one.last_exp_job_end is not None else one.last_max_job_end) for one in reports
    ]
    spent = sum(
        _known(one.add_uncom_time) + busy * (max(started) - at) for one, busy, at in zip(reports, used, started)
    )
    idle = sum(
        _known(one.add_final_exp_waste) + (all_of_it - busy) * (begin - min(first)) + all_of_it * (max(last) - end)
        for one, all_of_it, busy, begin, end in zip(reports, cores, used, first, last)
    )
    longest = [one.last_max_job_end for one in reports]
    factors = [one.priority_factor for one in reports if one.priority_factor is not None]
    postpone = [one.can_postpone_last_job for one in reports]
    return PilotReport(
        heartbeat,
        used_cpu=float(sum(used)),
        last_job_start=int(max(started)),
        first_exp_job_end=int(min(first)),
        last_exp_job_end=int(max(last)),
        last_max_job_end=None if None in longest else max(one for one in longest if one is not None),
        add_uncom_time=float(spent),
        add_final_exp_waste=float(idle),
        priority_factor=max(factors, default=None),
        can_postpone_last_job=None if None in postpone else any(postpone),
    )


def _known(value: float | None) -> float:
    if value is None:
        raise _UnknownError("a value is not known")
    return value
