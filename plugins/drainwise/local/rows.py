"""Between the rows of the state and the facts they hold.

SQLite keeps any value in any column, so a row that another program changed may hold anything. A command, an
environment or a report that cannot be read is none; any other value that cannot be is a PoolError that names its place.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping

from drainwise.facts.errors import PoolError
from drainwise.local.job import LIVE, AccountQuota, JobRequest, LocalJob, LocalNode
from drainwise.local.schedule import WaitingJob
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pilotad.report import PilotReport, as_plain, from_plain
from drainwise.processes.process import Process


def accounts_in(look: sqlite3.Connection) -> tuple[AccountQuota, ...]:
    """Return all accounts by name."""
    rows = look.execute("SELECT name, quota FROM accounts ORDER BY name").fetchall()
    return tuple(AccountQuota(_text(row, "name", "accounts"), _whole(row, "quota", "accounts")) for row in rows)


def nodes_in(look: sqlite3.Connection) -> tuple[LocalNode, ...]:
    """Return the nodes in their order."""
    rows = look.execute("SELECT name, cores FROM nodes ORDER BY place").fetchall()
    return tuple(LocalNode(_text(row, "name", "nodes"), _whole(row, "cores", "nodes")) for row in rows)


def live_in(look: sqlite3.Connection) -> list[LocalJob]:
    """Return the jobs that hold cores, by id."""
    rows = look.execute("SELECT * FROM jobs WHERE state IN (?, ?) ORDER BY job_id", LIVE)
    return [job_in(row) for row in rows]


def parts_in(look: sqlite3.Connection) -> dict[str, PartialReturn]:
    """Return what is asked of pilots beside leaving, by run."""
    found = {}
    for row in look.execute("SELECT run, cores, until, chunk FROM parts").fetchall():
        until = None if row["until"] is None else _whole(row, "until", "parts")
        part = PartialReturn(_whole(row, "cores", "parts"), until, _whole(row, "chunk", "parts"))
        found[_text(row, "run", "parts")] = part
    return found


def add_event(change: sqlite3.Connection, now: float, job_id: int, text: str) -> None:
    """Write down what happened to a job; `now` is UNIX seconds."""
    change.execute("INSERT INTO events VALUES (?, ?, ?)", (now, job_id, text))


def job_in(row: sqlite3.Row) -> LocalJob:
    """Read the job in a row; without a command, which cannot be run, where its own cannot be read."""
    place = f"job {row['job_id']!r} in jobs"
    for name in ("account", "user", "state", "node", "run", "note"):
        _text(row, name, place)
    for name in ("job_id", "cores", "wall_limit", "priority", "started", "removed"):
        _whole(row, name, place)
    for name in _NUMBERS_OR_NONE:
        if row[name] is not None:
            _number(row, name, place)
    command, environment = _command(row["command"]), _environment(row["environment"])
    request = JobRequest(
        account=row["account"],
        user=row["user"],
        cores=row["cores"],
        command=() if command is None or environment is None else command,
        wall_limit=row["wall_limit"],
        priority=row["priority"],
        environment=environment or {},
    )
    supervisor = None if row["keeper_pid"] is None else Process(row["keeper_pid"], row["keeper_birth"])
    return LocalJob(
        job_id=row["job_id"],
        request=request,
        submitted=row["submitted"],
        state=row["state"],
        node=row["node"],
        run=row["run"],
        started=row["started"],
        supervisor=supervisor,
        deadline=row["deadline"],
        removed=bool(row["removed"]),
        term_sent=row["term_sent"],
        kill_sent=row["kill_sent"],
        not_before=row["not_before"],
        ended=row["ended"],
        code=row["code"],
        signal=row["signal"],
        note=row["note"],
        cpu_seconds=row["cpu_seconds"],
    )


def waiting_in(row: sqlite3.Row) -> WaitingJob:
    """Read a waiting job, from the columns that a choice needs."""
    place = f"job {row['job_id']!r} in jobs"
    numbers = (_whole(row, name, place) for name in ("cores", "wall_limit", "priority"))
    return WaitingJob(_whole(row, "job_id", place), _text(row, "account", place), *numbers)


def report_text(report: PilotReport) -> str:
    """Write a report as the state keeps it."""
    return json.dumps(as_plain(report))


def report_in(text: object) -> PilotReport | None:
    """Read the report that `report_text` wrote; None for what it cannot have written."""
    values = _decoded(text)
    try:
        return from_plain(values) if isinstance(values, dict) else None
    except ValueError:
        return None


_LARGEST = 1 << 62
_NUMBERS_OR_NONE = (
    *("submitted", "keeper_pid", "keeper_birth", "deadline", "term_sent", "kill_sent", "not_before", "ended"),
    *("code", "signal", "cpu_seconds"),
)


def _decoded(text: object) -> object:
    """Parse JSON; None for what is none."""
    if not isinstance(text, (str, bytes)):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _command(text: object) -> tuple[str, ...] | None:
    words = _decoded(text)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return None
    return tuple(words)


def _environment(text: object) -> Mapping[str, str] | None:
    variables = _decoded(text)
    if not isinstance(variables, dict) or not all(isinstance(value, str) for value in variables.values()):
        return None
    return variables


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return -_LARGEST < value < _LARGEST and math.isfinite(value)


def _number(row: sqlite3.Row, name: str, place: str) -> None:
    if not _is_number(row[name]):
        raise _damaged(row, name, place, "a number")


def _whole(row: sqlite3.Row, name: str, place: str) -> int:
    value = row[name]
    if not isinstance(value, int) or not -_LARGEST < value < _LARGEST:
        raise _damaged(row, name, place, "a whole number")
    return value


def _text(row: sqlite3.Row, name: str, place: str) -> str:
    value = row[name]
    if not isinstance(value, str):
        raise _damaged(row, name, place, "a text")
    return value


def _damaged(row: sqlite3.Row, name: str, place: str, expected: str) -> PoolError:
    shown = repr(row[name])[:60]
    return PoolError(f"the state is damaged: {place}: {name} = {shown}: expected {expected}; mend or delete that row")
