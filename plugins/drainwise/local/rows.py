"""Between the rows of the state and the facts they hold."""

from __future__ import annotations

import json
import sqlite3

from drainwise.local.job import LIVE, Account, Job, JobRequest, Node
from drainwise.local.processes import Process
from drainwise.pilotad.report import PilotReport


def accounts_in(look: sqlite3.Connection) -> tuple[Account, ...]:
    """All accounts by name."""
    return tuple(Account(*row) for row in look.execute("SELECT name, quota FROM accounts ORDER BY name"))


def nodes_in(look: sqlite3.Connection) -> tuple[Node, ...]:
    """The nodes in their order."""
    return tuple(Node(*row) for row in look.execute("SELECT name, cores FROM nodes ORDER BY place"))


def live_in(look: sqlite3.Connection) -> list[Job]:
    """The jobs that hold cores, by id."""
    rows = look.execute("SELECT * FROM jobs WHERE state IN (?, ?) ORDER BY job_id", LIVE)
    return [job_in(row) for row in rows]


def add_event(change: sqlite3.Connection, now: float, job_id: int, text: str) -> None:
    """Write down what happened to a job; `now` is UNIX seconds."""
    change.execute("INSERT INTO events VALUES (?, ?, ?)", (now, job_id, text))


def job_in(row: sqlite3.Row) -> Job:
    """The job in a row of the table."""
    request = JobRequest(
        account=row["account"],
        user=row["user"],
        cores=row["cores"],
        command=tuple(json.loads(row["command"])),
        wall_limit=row["wall_limit"],
        priority=row["priority"],
        environment=json.loads(row["environment"]),
    )
    keeper = None if row["keeper_pid"] is None else Process(row["keeper_pid"], row["keeper_birth"])
    return Job(
        job_id=row["job_id"],
        request=request,
        submitted=row["submitted"],
        state=row["state"],
        node=row["node"],
        run=row["run"],
        started=row["started"],
        keeper=keeper,
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


def report_text(report: PilotReport) -> str:
    """A report as the state keeps it."""
    return json.dumps({name: getattr(report, name) for name in PilotReport.__slots__})


def report_in(text: str) -> PilotReport:
    """The report that `report_text` wrote."""
    values = json.loads(text)
    return PilotReport.from_values(values.pop("heartbeat"), values.pop("source"), values)
