"""A pilot's report, typed; its standing; the bounds of its values; and plain values for JSON without loss.

Plain values go from a child to its parent, into the local batch system's store and into a snapshot.

Pure: time is an argument. Unknown is None and never zero.
"""

from __future__ import annotations

from drainwise.facts import fact
from drainwise.facts.waste import at_least, at_most
from drainwise.pilotad.attributes import ATTRIBUTES, CURVE, GLIDEIN_AD, PILOT_AD, PROCESSES, SCALE
from drainwise.pilotad.values import PLAIN, sound_curve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from drainwise.facts.waste import Quantity

FRESH = "fresh"
STALE = "stale"
CONTRADICTORY = "contradictory"
INCOMPLETE = "incomplete"
GLIDEIN = "glidein"
"""As good as fresh: the pilot says nothing, and its node read the figures from the files of its glidein."""
OBSERVED = "observed"
"""The pilot says nothing, and its node saw its processes: what a kill loses is known. How long its payloads run the
agent learns from what it saw begin and end; until then no end is known.
"""

SILENT = "silent"
"""Nothing is reported or seen."""

STANDINGS = (FRESH, GLIDEIN, OBSERVED, STALE, INCOMPLETE, CONTRADICTORY, SILENT)

BELIEVED_STANDINGS = frozenset({FRESH, GLIDEIN})
"""Standings of reports that have all that the metrics need; an observed one has it once its ends are learned."""

ROUNDED = 2
"""Seconds by which the time between two ends may differ that were rounded, each to whole seconds."""

FUTURE_ALLOWANCE = 60
"""Seconds a time that must be past may lie ahead of us: two clocks never agree."""


@fact
class PilotReport:
    """One pilot's statement, in absolute units (the draft's section 3, the paper's table 1).

    heartbeat: when the pilot wrote it, UNIX s. used_cpu: cores in use. last_job_start, first_exp_job_end,
    last_exp_job_end (good faith), last_max_job_end (enforced): UNIX s. add_uncom_time, add_final_exp_waste:
    core-seconds.
    priority_factor: higher is better, within one user. can_postpone_last_job: False means it is draining already.
    exp_waste_curve: optional, see `waste_curve`; what it states is bounded by whoever calculates with it.
    returned_cores, returned_memory (MiB), returned_since (UNIX s, of this statement): see `partial_return`; None of a
    pilot that cannot return a part.
    last_checkpoint: until when the work of all running payloads is saved, next_checkpoint: when they save next, UNIX s.
    checkpoint_seconds: to save on demand, restart_cost: core-seconds to begin again from there; None of all four of a
    pilot that saves nothing.
    source: which file said so. A value that is not known is None.
    """

    heartbeat: int
    used_cpu: float | None = None
    last_job_start: int | None = None
    first_exp_job_end: int | None = None
    last_exp_job_end: int | None = None
    last_max_job_end: int | None = None
    add_uncom_time: float | None = None
    add_final_exp_waste: float | None = None
    priority_factor: int | None = None
    can_postpone_last_job: bool | None = None
    exp_waste_curve: str | None = None
    returned_cores: int | None = None
    returned_memory: int | None = None
    returned_since: int | None = None
    last_checkpoint: int | None = None
    next_checkpoint: int | None = None
    checkpoint_seconds: int | None = None
    restart_cost: int | None = None
    source: str = PILOT_AD

    @classmethod
    def from_values(cls, heartbeat: int, source: str, values: Mapping[str, int | float | str | None]) -> PilotReport:
        """Make a report of `values` by field name, as the readers that follow the attribute table find them."""
        fields: list[Any] = [heartbeat, *map(values.get, cls.__match_args__[1:-1]), source]
        return cls(*fields)


def standing(
    report: PilotReport, now: int, heartbeat_limit: int, job_start: int | None = None, cores: int | None = None
) -> str:
    """Return how far `report` can be used at `now`: "fresh", "glidein", "observed", "stale", "contradictory" or
    "incomplete".

    now, job_start: UNIX s. heartbeat_limit: s a heartbeat may be old (SPEC §2: 3600 by default). cores: of the lease.
    With `job_start`, a heartbeat from before it is stale: the file was left by an earlier job. With `cores`, sums that
    no payloads on so many cores can make are a contradiction.
    """
    return standing_and_rule(report, now, heartbeat_limit, job_start, cores)[0]


def standing_and_rule(
    report: PilotReport, now: int, heartbeat_limit: int, job_start: int | None = None, cores: int | None = None
) -> tuple[str, str]:
    """Return `standing` and the rule that decided in words ("" when believed), without any value of the pilot's."""
    is_seen, it = report.source == PROCESSES, _Numbers(report)
    for holds, found, rule in rules_of(it, is_seen, now, heartbeat_limit, job_start, cores):
        if holds:
            return OBSERVED if is_seen and found == INCOMPLETE else found, rule
    return OBSERVED if is_seen else GLIDEIN if report.source == GLIDEIN_AD else FRESH, ""


_UNKNOWN, _ENDLESS = float("nan"), float("inf")


class _Numbers:
    """The values of one report as `rules_of` takes them."""

    def __init__(self, report: PilotReport) -> None:
        values = {name: getattr(report, name) for name in PilotReport.__match_args__}
        vars(self).update({name: _UNKNOWN if value is None else value for name, value in values.items()})
        self.returned_cores = report.returned_cores or 0


def rules_of(
    it: Any,
    seen: Quantity,
    now: int,
    heartbeat_limit: int,
    job_start: Quantity | None = None,
    cores: Quantity | None = None,
) -> Iterator[tuple[Quantity, str, str]]:
    """Yield the rules of a standing, of which the first that holds decides: whether it does, the standing, the words.

    it: a report's values by their names, or an array of each, of many reports; what is not known is no number, with
    which nothing compares, but 0 returned cores. seen: whether its node saw it and nothing is stated: then what is
    incomplete is observed. Others as in `standing`.
    """
    latest = now + FUTURE_ALLOWANCE
    yield it.heartbeat > latest, CONTRADICTORY, "heartbeat lies in the future"
    yield now - it.heartbeat > heartbeat_limit, STALE, "heartbeat is older than the limit"
    job_start = _UNKNOWN if job_start is None else job_start
    yield it.heartbeat < job_start - FUTURE_ALLOWANCE, STALE, "heartbeat is older than the job"
    start, first, last, last_max = it.last_job_start, it.first_exp_job_end, it.last_exp_job_end, it.last_max_job_end
    no_last, stated = is_known(last) ^ True, seen ^ True
    for holds, rule in (
        (start > latest, "last job start lies in the future"),
        (it.last_checkpoint > latest, "last checkpoint lies in the future"),
        (first > last, "first expected end is after the last"),
        (last > last_max, "last expected end is after the guaranteed one"),
        (first > last_max, "first expected end is after the guaranteed one"),
        ((start > last) | (no_last & (start > last_max)), "last job ends before it starts"),
        *(() if cores is None else _impossible(it, job_start, cores)),
    ):
        yield stated & holds, CONTRADICTORY, rule
    for gap, rule in (
        (is_known(it.used_cpu) ^ True, "cores in use are not known"),
        (no_last & (is_known(last_max) ^ True), "no remaining time: no last job end"),
        (is_known(first + it.add_final_exp_waste) ^ True, "no draining waste: first job end or final waste missing"),
        (is_known(start + it.add_uncom_time) ^ True, "no kill waste: last job start or uncommitted time missing"),
    ):
        yield gap, INCOMPLETE, rule


def is_known(value: Quantity) -> Quantity:
    """Return whether a value is a number, and a finite one."""
    return abs(value) < _ENDLESS


def _impossible(it: Any, job_start: Quantity, cores: Quantity) -> tuple[tuple[Quantity, str], ...]:
    """Return which sums no payloads can make that ran since `job_start` on at most the cores in use.

    Each payload that runs began between the job's start and the last start (e), so f × cores ≤ used × (e − job start):
    the kill waste is then at most used × (now − job start). From the first expected end (h) to the last one (g) at
    most the cores in use are busy, so (cores − used)·(g − h) ≤ i × cores ≤ cores·(g − h). Where both last ends are
    stated, either may be the one that i belongs to. Cores that were returned are neither in use nor idle.
    What rounding makes is allowed: the step of a fraction of the cores, seconds of two clocks.
    """
    known, used, step = is_known(it.used_cpu), at_most(at_least(it.used_cpu, 0.0), cores), cores / SCALE
    returned, final = at_most(it.returned_cores, cores - 1), it.add_final_exp_waste
    first, last, last_max = it.first_exp_job_end, it.last_exp_job_end, it.last_max_job_end
    age = it.last_job_start - job_start
    most = (used + step) * (at_least(age, 0) + FUTURE_ALLOWANCE)
    least = (cores - returned - used - step) * (last - first) - cores * ROUNDED
    above = (final > cores * (last - first + ROUNDED)) & (is_known(last_max) ^ True)
    return (
        (known & (used + returned > cores + step), "more cores in use and returned than the lease has"),
        (
            known & is_known(age) & (it.add_uncom_time > most),
            "more uncommitted time than the cores in use can have made",
        ),
        (known & (final < least), "less final waste than the cores that are not in use make"),
        (
            known & (above | (final > cores * (last_max - first + ROUNDED))),
            "more final waste than all cores can make",
        ),
    )


def bounded(report: PilotReport, cores: int, job_start: int, lease_end: int | None, now: int) -> PilotReport:
    """Clamp the values of `report` by SPEC §2; unknown stays unknown.

    cores: of the lease. job_start, lease_end (None: no limit known), now: UNIX s.
    0 ≤ used ≤ cores; job start ≤ last job start ≤ now; no estimate past the lease's end;
    0 ≤ uncommitted time ≤ cores × run time; 0 ≤ final waste (≤ cores × whole lease).
    The clamps on the metrics, and an overrun end counting as now, belong to the metrics.
    """
    run_time = max(0, now - job_start)
    lease = None if lease_end is None else cores * max(0, lease_end - job_start)
    return PilotReport(  # by place, as names take half as long again, and a plan bounds each report of a pool
        report.heartbeat,
        _clamped(report.used_cpu, 0, cores),
        None if report.last_job_start is None else min(now, max(job_start, report.last_job_start)),
        _earlier(report.first_exp_job_end, lease_end),
        _earlier(report.last_exp_job_end, lease_end),
        _earlier(report.last_max_job_end, lease_end),
        _clamped(report.add_uncom_time, 0, cores * run_time),
        _clamped(report.add_final_exp_waste, 0, lease),
        report.priority_factor,
        report.can_postpone_last_job,
        report.exp_waste_curve,
        None if report.returned_cores is None else max(0, min(cores - 1, report.returned_cores)),
        report.returned_memory,
        report.returned_since,
        None if report.last_checkpoint is None else min(now, max(job_start, report.last_checkpoint)),
        report.next_checkpoint,
        report.checkpoint_seconds,
        report.restart_cost,
        report.source,
    )


def newest(first: PilotReport | None, second: PilotReport | None) -> PilotReport | None:
    """Return the source with the newest heartbeat; `first` when both are as new."""
    if first is None or second is None:
        return second if first is None else first
    return second if second.heartbeat > first.heartbeat else first


def _clamped(value: float | None, low: float, high: float | None) -> float | None:
    if value is None:
        return None
    # max first: a NaN gives `low`
    value = max(low, value)
    return float(value if high is None else min(high, value))


def _earlier(value: int | None, limit: int | None) -> int | None:
    return value if value is None or limit is None else min(value, limit)


_LARGEST_PLAIN = 1e30  # more than a file of a pilot can state
_KINDS = {"heartbeat": "int", "source": "text", **{row.field: PLAIN[row.kind] for row in ATTRIBUTES}}
PLAIN_KINDS: Mapping[str, str] = {field: _KINDS[field] for field in PilotReport.__match_args__}
"""The kind of each field as a plain value; `?`: or None."""
_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "number": (int, float), "bool": (bool,), "text": (str,)}
_TYPES_OF = {
    field: _TYPES[kind.rstrip("?")] + ((type(None),) if kind[-1] == "?" else ()) for field, kind in PLAIN_KINDS.items()
}

_CURVES = [PilotReport.__match_args__.index(row.field) for row in ATTRIBUTES if row.kind == CURVE]
"""The places of curves among the fields."""


def as_plain(report: PilotReport) -> dict[str, object]:
    """Return all fields of a report by name."""
    return {field: getattr(report, field) for field in PLAIN_KINDS}


def from_plain(values: Mapping[str, Any]) -> PilotReport:
    """Return the report that `as_plain` wrote. Raises ValueError for what it cannot have written."""
    found: list[Any] = [*map(values.get, PLAIN_KINDS)]
    for (field, types), value in zip(_TYPES_OF.items(), found):
        kind = type(value)
        if kind not in types or ((kind is int or kind is float) and not -_LARGEST_PLAIN < value < _LARGEST_PLAIN):
            raise ValueError(f"no report: {field} is no {PLAIN_KINDS[field]}")
    return from_checked(found)


def from_checked(values: Sequence[Any]) -> PilotReport:
    """Return the report of values that have the kinds of PLAIN_KINDS, in its order. Raises ValueError for no curve."""
    for place in _CURVES:
        if values[place] is not None and sound_curve(values[place]) is None:
            raise ValueError(f"no report: {PilotReport.__match_args__[place]} is no curve")
    return PilotReport(*values)
