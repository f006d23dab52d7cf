"""A job's AdminComment: one line of ASCII JSON in which its node publishes what the pilot reports. Both directions.

    {"drainwise":1,"job":17,"start":1795248000,"node":"n1","heartbeat":1795249000,"standing":"fresh","used_cpu":6,…}

`job` and `start` name the run: the field survives a requeue, and what a run reported must not count for the next. The
nine values stand under the names of `PilotReport`'s fields in absolute units: UNIX s, cores, core-seconds. One that is
not known is left out, and all nine are when the report contradicts itself. The line is made of numbers and of words
that we know, never of a user's text. Who reads it knows keys by type and range, and passes over those of later days.

A run that started without directories of ours cannot be told anything. Its node says so, in place of a report:

    {"drainwise":1,"job":17,"start":1795248000,"node":"n1","directories":false}

Readers of earlier versions take that for no report at all. An AdminComment that we did not write is somebody's own (an
administrator's, a job_submit plugin's): it is left alone, and a pilot that has one counts as silent.
"""

from __future__ import annotations

import math

from drainwise.fact import Fact, set_field
from drainwise.pilotad.attributes import ATTRIBUTES, FLAG, PRIORITY, TIME, Attribute
from drainwise.pilotad.report import CONTRADICTORY, FRESH, INCOMPLETE, STALE, PilotReport
from drainwise.pilotad.values import EARLIEST, LATEST, PRIORITY_LIMIT, decimal_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 1
LONGEST = 1024
"""Characters of the longest comment that is read; the longest that is written has half of it."""

_MARK = '{"drainwise":'
MARKED = f"{_MARK}{VERSION}}}"
"""A comment of ours that says nothing."""
_STANDINGS = (FRESH, STALE, CONTRADICTORY, INCOMPLETE)
_LARGEST_JOB = 2**32 - 1
_LARGEST = 1e15  # core-seconds; a pool of a million cores makes them in thirty years
_LONGEST_NODE = 64
_NODE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"


class Published(Fact):
    """What a node published of one run: the run (`job`, `start` in UNIX s), the node, and the pilot's report.

    standing: how far the node believed it (see `pilotad.report`), "" when it did not say. The report is a user's word.
    """

    __slots__ = ("job", "node", "report", "standing", "start")
    job: int
    start: int
    node: str
    report: PilotReport
    standing: str

    def __init__(self, job: int, start: int, node: str, report: PilotReport, standing: str = "") -> None:
        set_field(self, "job", job)
        set_field(self, "start", start)
        set_field(self, "node", node)
        set_field(self, "report", report)
        set_field(self, "standing", standing)


def comment_text(published: Published) -> str:
    """The line for `scontrol update AdminComment=`. What does not fit its type and range is left out.

    Raises ValueError when the run, the node, the heartbeat or the standing cannot be published at all.
    """
    report, node = published.report, published.node
    if (
        not _is_job(published.job)
        or _moment(published.start) is None
        or _moment(report.heartbeat) is None
        or not _is_node(node)
        or published.standing not in {*_STANDINGS, ""}
    ):
        raise ValueError("no report of a run: job, start, node, heartbeat or standing is none")
    parts = [f'{_MARK}{VERSION},"job":{published.job},"start":{published.start},"node":"{node}"']
    parts.append(f'"heartbeat":{report.heartbeat}')
    if published.standing:
        parts.append(f'"standing":"{published.standing}"')
    for row in ATTRIBUTES if published.standing != CONTRADICTORY else ():
        value = _value(row, getattr(report, row.field))
        if value is not None:
            parts.append(f'"{row.field}":{_text(value)}')
    return ",".join(parts) + "}"


def untold_text(job: int, start: int, node: str) -> str:
    """The line for a run that its node cannot tell of an order. Raises ValueError when it cannot be published."""
    if not _is_job(job) or _moment(start) is None or not _is_node(node):
        raise ValueError("no run: job, start or node is none")
    return f'{_MARK}{VERSION},"job":{job},"start":{start},"node":"{node}","directories":false}}'


def says_untold(comment: str) -> bool:
    """Whether it may be such a line, of whatever run."""
    return comment.startswith(_MARK) and '"directories":false' in comment


def is_untold(comment: str, job: int, start: int | None) -> bool:
    """Whether the node published of this very run that it cannot be told of an order."""
    if len(comment) > LONGEST or not says_untold(comment):
        return False
    keys = _object(comment) or {}
    named = (keys.get("drainwise"), keys.get("job"), keys.get("start"))
    return keys.get("directories") is False and named == (VERSION, job, start)


def is_ours(comment: str) -> bool:
    """Whether this comment may be replaced: there is none, or it is one that a drainwise of any version wrote."""
    return not comment or comment.startswith(_MARK)


def published_in(comment: str) -> Published | None:
    """What a node published in this comment; None when it is not ours, of another version, or not whole."""
    if len(comment) > LONGEST or not comment.startswith(_MARK) or not comment.isascii():
        return None
    keys = _object(comment)
    if keys is None or type(keys.get("drainwise")) is not int or keys["drainwise"] != VERSION:
        return None
    job, start, node, heartbeat = keys.get("job"), _moment(keys.get("start")), keys.get("node"), keys.get("heartbeat")
    seen = _moment(heartbeat)
    if not isinstance(job, int) or not _is_job(job) or start is None or seen is None:
        return None
    if not isinstance(node, str) or not _is_node(node):
        return None
    said = keys.get("standing")
    standing = said if isinstance(said, str) and said in _STANDINGS else ""
    values = {row.field: None if standing == CONTRADICTORY else _value(row, keys.get(row.field)) for row in ATTRIBUTES}
    return Published(job, start, node, PilotReport.from_values(seen, PilotReport(seen).source, values), standing)


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
    return 0 < len(node) <= _LONGEST_NODE and all(letter in _NODE for letter in node)


def _moment(value: object) -> int | None:
    return value if type(value) is int and EARLIEST <= value <= LATEST else None


def _value(row: Attribute, value: object) -> int | float | None:
    """A value by its row's type and range, else None."""
    if row.kind == FLAG:
        return value if isinstance(value, bool) else None
    if row.kind == TIME:
        return _moment(value)
    if row.kind == PRIORITY:
        return max(-PRIORITY_LIMIT, min(PRIORITY_LIMIT - 1, value)) if type(value) is int else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _LARGEST:  # no NaN either
        return None
    return float(value)


def _text(value: float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return decimal_text(value) if isinstance(value, float) and math.isfinite(value) else str(value)
