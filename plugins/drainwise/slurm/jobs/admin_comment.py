"""A job's AdminComment: one line of ASCII JSON in which its node publishes what the pilot reports. Both directions.

    {"drainwise":1,"job":17,"start":1795248000,"node":"n1","heartbeat":1795249000,"standing":"fresh","used_cpu":6,…,
     "version":"0.1.0"}

`job` and `start` name the run: the field survives a requeue, and what a run reported must not count for the next. The
values stand under the names of `PilotReport`'s fields in absolute units: UNIX s, cores, core-seconds. One that is
not known is left out, and all are when the report contradicts itself. The line is made of numbers and of words
that we know, never of a user's text. Who reads it knows keys by type and range, and passes over those of later days.

A run that started without directories of ours receives no order. Its node publishes that in place of a report:

    {"drainwise":1,"job":17,"start":1795248000,"node":"n1","directories":false}

Readers of earlier versions take that for no report at all. A pilot of several nodes may report on each: behind the
first node's report stand those of the `others`, by node. An AdminComment that we did not write is somebody's own (an
administrator's, a job_submit plugin's): it is left alone, and a pilot that has one counts as silent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from drainwise.facts import fact
from drainwise.pilotad.attributes import ATTRIBUTES, GLIDEIN_AD, PILOT_AD, PROCESSES
from drainwise.pilotad.observation import Observation, observation_in, observation_text
from drainwise.pilotad.report import (
    BELIEVED_STANDINGS,
    CONTRADICTORY,
    FRESH,
    GLIDEIN,
    INCOMPLETE,
    OBSERVED,
    STALE,
    PilotReport,
)
from drainwise.pilotad.values import BELIEVED, decimal_text, unix_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from drainwise.slurm.jobs.job import SlurmJob

VERSION = 1
LONGEST = 1024
"""Characters of the longest comment about one node that is read; the longest written has three quarters of it."""
MOST_OTHERS = 31
"""Nodes beside the first one whose reports stand in a comment; with more, nothing is known of the whole run."""
LONGEST_OF_ALL = LONGEST * (MOST_OTHERS + 1)
OTHERS = ',"others":{'
"""What stands in a comment about several nodes."""

_MARK = '{"drainwise":'
MARKED = f"{_MARK}{VERSION}}}"
"""A comment of ours that says nothing."""
_STANDINGS = (FRESH, GLIDEIN, OBSERVED, STALE, CONTRADICTORY, INCOMPLETE)
_SEEN = "observed"
_LARGEST_JOB = 2**32 - 1
_LONGEST_NODE = 64
_LONGEST_VERSION = 32
_VERSION = "abcdefghijklmnopqrstuvwxyz0123456789.+-"
_NODE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"


@fact
class NodeReport:
    """The report on one node of a run of several; standing: as in `Published`."""

    node: str
    report: PilotReport
    standing: str = ""


@fact
class Published:
    """A node's publication of one run: the run (`job`, `start` in UNIX s), the node, and the pilot's report.

    standing: how far the node believed it (see `pilotad.report`), "" when it did not say. The report is a user's claim.
    seen: the payloads that the node saw, where it published that. others: of the run's other nodes, where they report.
    version: of drainwise on the node, "" where it did not say.
    """

    job: int
    start: int
    node: str
    report: PilotReport
    standing: str = ""
    seen: Observation | None = None
    others: tuple[NodeReport, ...] = ()
    version: str = ""


def comment_text(published: Published) -> str:
    """Return the line for `scontrol update AdminComment=`. What does not fit its type and range is left out.

    Raises ValueError when the run, the node, the heartbeat or the standing cannot be published at all.
    """
    report, node = published.report, published.node
    if (
        not _is_job(published.job)
        or unix_time(published.start) is None
        or unix_time(report.heartbeat) is None
        or not _is_node(node)
        or published.standing not in {*_STANDINGS, ""}
        or any(unix_time(one.report.heartbeat) is None or not _is_node(one.node) for one in published.others)
        or len(published.others) > MOST_OTHERS
    ):
        raise ValueError("no report of a run: job, start, node, heartbeat or standing is none")
    parts = [f'{_MARK}{VERSION},"job":{published.job},"start":{published.start},"node":"{node}"']
    parts += _parts(report, published.standing)
    if published.seen is not None:
        parts.append(f'"{_SEEN}":"{observation_text(published.seen)}"')
    others = [f'"{one.node}":{{{",".join(_parts(one.report, one.standing))}}}' for one in published.others]
    if is_version(published.version):
        parts.append(f'"version":"{published.version}"')
    if others:
        parts.append(f'"others":{{{",".join(others)}}}')
    return ",".join(parts) + "}"


def _parts(report: PilotReport, standing: str) -> list[str]:
    parts = [f'"heartbeat":{report.heartbeat}']
    if standing:
        parts.append(f'"standing":"{standing}"')
    for row in ATTRIBUTES if standing != CONTRADICTORY else ():
        value = BELIEVED[row.kind](getattr(report, row.field))
        if value is not None:
            parts.append(f'"{row.field}":{_text(value)}')
    return parts


def without_directories_text(job: int, start: int, node: str) -> str:
    """Return the line for a run without directories. Raises ValueError when it cannot be published."""
    if not _is_job(job) or unix_time(start) is None or not _is_node(node):
        raise ValueError("no run: job, start or node is none")
    return f'{_MARK}{VERSION},"job":{job},"start":{start},"node":"{node}","directories":false}}'


def may_lack_directories(comment: str) -> bool:
    """Decide whether it may be such a line, of whatever run."""
    return comment.startswith(_MARK) and '"directories":false' in comment


def lacks_directories(comment: str, job: int, start: int | None) -> bool:
    """Decide whether the node published of this very run that it has no directories."""
    if len(comment) > LONGEST or not may_lack_directories(comment):
        return False
    keys = _object(comment) or {}
    named = (keys.get("drainwise"), keys.get("job"), keys.get("start"))
    return keys.get("directories") is False and named == (VERSION, job, start)


def is_ours(comment: str) -> bool:
    """Decide whether this comment may be replaced: it is empty, or a drainwise of any version wrote it."""
    return not comment or comment.startswith(_MARK)


def published_in(comment: str) -> Published | None:
    """Read what a node published in this comment; None when it is not ours, of another version, or not whole."""
    if len(comment) > LONGEST_OF_ALL or not comment.startswith(_MARK) or not comment.isascii():
        return None
    keys = _object(comment)
    if keys is None or type(keys.get("drainwise")) is not int or keys["drainwise"] != VERSION:
        return None
    job, start, node = keys.get("job"), unix_time(keys.get("start")), keys.get("node")
    if not isinstance(job, int) or not _is_job(job) or start is None:
        return None
    if not isinstance(node, str) or not _is_node(node):
        return None
    first, others = _report_in(keys), keys.get("others")
    found = [(name, _report_in(one)) for name, one in others.items()] if isinstance(others, dict) else []
    if first is None or any(one is None or not _is_node(name) for name, one in found):
        return None
    parts = tuple(NodeReport(name, *one) for name, one in found if one is not None)
    known = observation_in(keys.get(_SEEN))
    said = keys.get("version")
    version = said if isinstance(said, str) and is_version(said) else ""
    return Published(job, start, node, *first, known, parts, version) if len(parts) <= MOST_OTHERS else None


def published_of(job: SlurmJob) -> Published | None:
    """Return what stands in a job's AdminComment of its run as it is; None when that is of another run, or nothing."""
    found = published_in(job.admin_comment)
    return found if found is not None and (found.job, found.start) == (job.number, job.start) else None


def _report_in(keys: object) -> tuple[PilotReport, str] | None:
    """Read a report and its standing; None when it has no heartbeat."""
    seen = unix_time(keys.get("heartbeat")) if isinstance(keys, dict) else None
    if seen is None or not isinstance(keys, dict):
        return None
    said = keys.get("standing")
    standing = said if isinstance(said, str) and said in _STANDINGS else ""
    source = {GLIDEIN: GLIDEIN_AD, OBSERVED: PROCESSES}.get(standing, PILOT_AD)
    rows = ATTRIBUTES if standing != CONTRADICTORY else ()
    values = {row.field: BELIEVED[row.kind](keys.get(row.field)) for row in rows}
    return PilotReport.from_values(seen, source, values), standing


def _object(text: str) -> Mapping[str, object] | None:
    import json  # noqa: PLC0415 - whoever only writes does not pay for it

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        keys = dict(pairs)
        if len(keys) < len(pairs):
            raise ValueError("a key twice")
        return keys

    try:
        found = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _is_job(job: object) -> bool:
    return type(job) is int and 0 < job <= _LARGEST_JOB


def _is_node(node: str) -> bool:
    return 0 < len(node) <= _LONGEST_NODE and not node.strip(_NODE)


def is_version(text: str) -> bool:
    """Decide whether it can be a version of drainwise; a comment has one of few letters, and short."""
    return 0 < len(text) <= _LONGEST_VERSION and not text.strip(_VERSION)


def _text(value: float | str) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return decimal_text(value) if isinstance(value, float) and math.isfinite(value) else str(value)


# The report of a run of several nodes: of its first node alone, or the sum of one from each node.
#
# One process may steer all nodes and report from the first one: that report stands for all cores. Once another node
# has reported, there is a pilot on each, and the run's figures are their sum; while one of them is silent or its report
# is not fresh, nothing is known of the whole, and the run has a report without figures.


def whole_report(published: Published, cores: Mapping[str, int]) -> PilotReport:
    """Return the report of the whole run; cores: of the run by node, {} where there is but one. Pure."""
    if not published.others:
        return published.report
    parts = [NodeReport(published.node, published.report, published.standing), *published.others]
    oldest = PilotReport(min(one.report.heartbeat for one in parts))
    is_whole = {one.node for one in parts} == set(cores) and len(parts) == len(cores)
    if not is_whole or any(one.standing not in BELIEVED_STANDINGS for one in parts):
        return oldest
    reports, of = [one.report for one in parts], [cores[one.node] for one in parts]
    needed: list[tuple[Any, ...]] = [
        (
            *(one.used_cpu, one.last_job_start, one.first_exp_job_end, one.add_uncom_time, one.add_final_exp_waste),
            one.last_exp_job_end if one.last_exp_job_end is not None else one.last_max_job_end,
        )
        for one in reports
    ]
    if any(None in values for values in needed):
        return oldest
    # What idles on one node until the last has ended counts as well: the pieces come back together, and a node whose
    # payloads have all ended idles until the last one of all. Both sums of core-seconds belong to the latest start and
    # to the earliest and latest end of all.
    used, started, first, spent, waste, last = zip(*needed)
    spent_in_all = sum(before + busy * (max(started) - at) for before, busy, at in zip(spent, used, started))
    idle = sum(
        known + (all_of_it - busy) * (begin - min(first)) + all_of_it * (max(last) - end)
        for known, all_of_it, busy, begin, end in zip(waste, of, used, first, last)
    )

    longest = [one.last_max_job_end for one in reports]
    factors = [one.priority_factor for one in reports if one.priority_factor is not None]
    postpone = [one.can_postpone_last_job for one in reports]
    return PilotReport(
        oldest.heartbeat,
        used_cpu=float(sum(used)),
        last_job_start=int(max(started)),
        first_exp_job_end=int(min(first)),
        last_exp_job_end=int(max(last)),
        last_max_job_end=None if None in longest else max(one for one in longest if one is not None),
        add_uncom_time=float(spent_in_all),
        add_final_exp_waste=float(idle),
        priority_factor=max(factors, default=None),
        can_postpone_last_job=None if None in postpone else any(postpone),
    )
