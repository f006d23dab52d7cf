"""The state of the local batch system: accounts, nodes, jobs, what pilots report, and what happened.

Each change is one transaction, made by whoever makes it: a client submits, removes and gives orders although no daemon
runs. Only the daemon starts leases and says how they ended (`DaemonStore`).
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from drainwise.facts.errors import ActionRefused, RunEnded, UsageError
from drainwise.local.database import (
    Database,
    accounts_in,
    add_event,
    job_in,
    live_in,
    nodes_in,
    parts_in,
    report_in,
    waiting_in,
)
from drainwise.local.job import (
    ENDED,
    LIVE,
    RUNNING,
    STARTING,
    WAITING,
    AccountQuota,
    JobRequest,
    LocalJob,
    LocalNode,
    check_name,
    check_request,
    run_name,
)
from drainwise.local.returned import returned_parts
from drainwise.local.schedule import WaitingJob
from drainwise.pilotad.partial_return import PartialReturn, ReturnedPart
from drainwise.pilotad.report import PilotReport, as_plain
from drainwise.processes.process import Process

LEASES = "leases"

S = TypeVar("S", bound="LocalStore")
Read = TypeVar("Read")


@dataclass(frozen=True)
class LocalState:
    """All that a snapshot is made of, at one moment. `reports` and `parts`, what is asked of pilots, by run."""

    accounts: tuple[AccountQuota, ...]
    nodes: tuple[LocalNode, ...]
    live: tuple[LocalJob, ...]
    waiting: tuple[WaitingJob, ...]
    reports: Mapping[str, PilotReport]
    parts: Mapping[str, PartialReturn] = field(default_factory=dict)

    def returned(self, now: float) -> Mapping[str, ReturnedPart]:
        """Return what pilots are believed to have returned at `now` (UNIX s), by run."""
        return returned_parts(self.live, self.reports, now)


@dataclass(frozen=True)
class JobEvent:
    """Something that happened to a job, `time` in UNIX seconds."""

    time: float
    job_id: int
    text: str


class LocalStore(Database):
    """The state in `directory`; `create` makes it. Raises UsageError when it cannot be kept there.

    Every method raises PoolUnreachable or PoolError when the state cannot be read or written.
    """

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, reader: Callable[[sqlite3.Connection], Read]) -> Read:
        with self.transaction(write=False) as look:
            return reader(look)

    def lease_directory(self, run: str) -> str:
        """Return where the lease of this run lies."""
        return os.path.join(self.directory, LEASES, run)

    # By users and admins

    def set_account(self, account: AccountQuota) -> None:
        """Make the account, or change its quota. Raises UsageError."""
        check_name("account", account.name)
        if account.quota < 0:
            raise UsageError(f"quota: {account.quota}: expected cores, 0 or more")
        with self.transaction() as change:
            change.execute("INSERT OR REPLACE INTO accounts VALUES (?, ?)", (account.name, account.quota))

    def drop_account(self, name: str) -> None:
        """Remove an account that no job waits or runs for. Raises UsageError."""
        with self.transaction() as change:
            [jobs] = change.execute(
                "SELECT count(*) FROM jobs WHERE account = ? AND state != ?", (name, ENDED)
            ).fetchone()
            if jobs:
                raise UsageError(f"account {name}: {jobs} of its jobs wait or run; remove them first")
            if not change.execute("DELETE FROM accounts WHERE name = ?", (name,)).rowcount:
                raise UsageError(f"account {name[:100]!a}: there is none of that name")

    def accounts(self) -> tuple[AccountQuota, ...]:
        """Return all accounts by name."""
        return self._read(accounts_in)

    def set_nodes(self, nodes: Sequence[LocalNode]) -> None:
        """Say what nodes there are from now on; leases on others run on."""
        with self.transaction() as change:
            change.execute("DELETE FROM nodes")
            rows = [(node.name, place, node.cores) for place, node in enumerate(nodes)]
            change.executemany("INSERT INTO nodes VALUES (?, ?, ?)", rows)

    def nodes(self) -> tuple[LocalNode, ...]:
        """Return the nodes in their order; none before the first start."""
        return self._read(nodes_in)

    def submit(self, request: JobRequest, now: float, count: int = 1) -> list[int]:
        """Put `count` such jobs into the queue, all or none; their ids. Raises UsageError."""
        check_request(request)
        if not 1 <= count <= 10_000:
            raise UsageError(f"count: {count}: expected 1 to 10000")
        texts = {"command": json.dumps(request.command), "environment": json.dumps(dict(request.environment))}
        row = {**vars(request), **texts, "submitted": now}
        with self.transaction() as change:
            known = [account.name for account in accounts_in(change)]
            if request.account not in known:
                there = f"there are {', '.join(known)}" if known else "there is none yet"
                raise UsageError(
                    f"no account is called {request.account}; {there};"
                    f" `drainwise local account {request.account} --quota CORES` makes it"
                )
            largest = max((node.cores for node in nodes_in(change)), default=request.cores)
            if request.cores > largest:
                raise UsageError(f"{request.cores} cores: the largest node has {largest}")
            statement = (
                "INSERT INTO jobs (account, user, cores, wall_limit, priority, command, environment, submitted)"
                " VALUES (:account, :user, :cores, :wall_limit, :priority, :command, :environment, :submitted)"
            )
            return [int(change.execute(statement, row).lastrowid or 0) for _ in range(count)]

    def remove(self, job_ids: Iterable[int], now: float) -> list[int]:
        """End these jobs: at once those that wait; the daemon ends the others. The ids that were not ended already.

        Raises UsageError, and removes none, when one of them is unknown.
        """
        ids, removed = list(job_ids), []
        with self.transaction() as change:
            for job_id in ids:
                if change.execute("SELECT 1 FROM jobs WHERE job_id = ?", (job_id,)).fetchone() is None:
                    raise UsageError(f"job {job_id}: there is none of that number; nothing was removed")
            for job_id in ids:
                waiting = change.execute(
                    "UPDATE jobs SET state = ?, ended = ?, removed = 1, note = 'removed before it started'"
                    " WHERE job_id = ? AND state = ?",
                    (ENDED, now, job_id, WAITING),
                ).rowcount
                running = change.execute(
                    "UPDATE jobs SET removed = 1 WHERE job_id = ? AND state IN (?, ?) AND removed = 0", (job_id, *LIVE)
                ).rowcount
                if waiting or running:
                    add_event(change, now, job_id, "removed")
                    removed.append(job_id)
        return removed

    def order(self, run: str, deadline: int, now: float, reason: str) -> None:
        """Shorten the lease of exactly this run to `deadline` (UNIX s).

        Raises RunEnded when it does not run (any more), ActionRefused when it was ordered to end earlier: a
        deadline may come nearer, never move away, since the pilot counts on it.
        """
        with self.transaction() as change:
            job = _running(change, run)
            if job.deadline is not None and job.deadline < deadline:
                raise ActionRefused(
                    f"{run} is already ordered to end by {job.deadline}; cannot be moved later to {deadline}"
                )
            change.execute("UPDATE jobs SET deadline = ? WHERE job_id = ?", (deadline, job.job_id))
            add_event(change, now, job.job_id, f"ordered to end by {deadline}: {reason}"[:1000])

    def withdraw_order(self, run: str, now: float, reason: str) -> None:
        """Give this run its lease back as it was granted, if it has an order; `now`: UNIX s.

        Raises RunEnded when it does not run (any more), ActionRefused when it is being ended already.
        """
        with self.transaction() as change:
            job = _running(change, run)
            if job.deadline is None:
                return
            if job.term_sent is not None or job.deadline <= now:
                raise ActionRefused(f"{run}: its deadline has come: it is being ended")
            change.execute("UPDATE jobs SET deadline = NULL WHERE job_id = ?", (job.job_id,))
            add_event(change, now, job.job_id, f"order withdrawn: {reason}"[:1000])

    def ask_for_part(self, run: str, cores: int, by: int | None, chunk: int, now: float, reason: str) -> None:
        """Ask the pilot of exactly this run to return so many cores in all; 0: none any more. `by`, `now`: UNIX s.

        by, chunk: see `PartialReturn`.

        Raises RunEnded when it does not run (any more), ActionRefused when not one core would stay with it.
        """
        with self.transaction() as change:
            job = _running(change, run)
            if not 0 <= cores < job.cores or chunk < 1:
                raise ActionRefused(f"{run}: {cores} of its {job.cores} cores: expected 0 to {job.cores - 1}")
            if cores:
                change.execute("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?)", (run, cores, by, chunk))
            else:
                change.execute("DELETE FROM parts WHERE run = ?", (run,))
            add_event(change, now, job.job_id, f"asked to return {cores} cores: {reason}"[:1000])

    # To look at

    def jobs(self, ended: bool = False) -> list[LocalJob]:
        """Return the jobs that wait and run, and with `ended` also those that have ended, by id."""
        with self.transaction(write=False) as look:
            rows = look.execute("SELECT * FROM jobs WHERE ? OR state != ? ORDER BY job_id", (ended, ENDED))
            return [job_in(row) for row in rows]

    def job(self, job_id: int) -> LocalJob | None:
        """Return one job, None when it is unknown."""
        with self.transaction(write=False) as look:
            row = look.execute("SELECT * FROM jobs WHERE job_id = ?", (job_id,)).fetchone()
        return None if row is None else job_in(row)

    def ended_runs(self, runs: Iterable[str]) -> list[LocalJob]:
        """Return those of these runs that have ended and are not forgotten yet."""
        found = []
        with self.transaction(write=False) as look:
            for run in runs:
                job_id, _, _ = run.partition("@")
                row = look.execute(
                    "SELECT * FROM jobs WHERE job_id = ? AND run = ? AND state = ?", (job_id, run, ENDED)
                ).fetchone()
                found += [] if row is None else [job_in(row)]
        return found

    def live(self) -> list[LocalJob]:
        """Return the jobs that hold cores, by id."""
        return self._read(live_in)

    def state(self, now: float) -> LocalState:
        """Read all of it at one moment; a job that is to be tried again later than `now` does not count as waiting."""
        with self.transaction(write=False) as look:
            said = {row["run"]: report_in(row["report"]) for row in look.execute("SELECT run, report FROM reports")}
            reports = {run: report for run, report in said.items() if report is not None}
            rows = look.execute(
                "SELECT job_id, account, cores, wall_limit, priority FROM jobs WHERE state = ? AND not_before <= ?",
                (WAITING, now),
            )
            waiting = tuple(waiting_in(row) for row in rows)
            return LocalState(accounts_in(look), nodes_in(look), tuple(live_in(look)), waiting, reports, parts_in(look))

    def events(self, job_id: int) -> list[JobEvent]:
        """Return what happened to a job, in order."""
        with self.transaction(write=False) as look:
            rows = look.execute("SELECT time, job_id, text FROM events WHERE job_id = ? ORDER BY rowid", (job_id,))
            return [JobEvent(*row) for row in rows]


class DaemonStore(LocalStore):
    """The state, with what only the holder of the daemon's lock may write. Raises as `LocalStore` does."""

    def begin_start(self, job_id: int, node: str, started: int) -> LocalJob | None:
        """Write down that this job starts, before it does; None when it does not wait any more."""
        with self.transaction() as change:
            begun = change.execute(
                "UPDATE jobs SET state = ?, node = ?, run = ?, started = ?, note = '' WHERE job_id = ? AND state = ?",
                (STARTING, node, run_name(job_id, started), started, job_id, WAITING),
            ).rowcount
            if not begun:
                return None
            return job_in(change.execute("SELECT * FROM jobs WHERE job_id = ?", (job_id,)).fetchone())

    def started(self, job: LocalJob, supervisor: Process, now: float) -> None:
        """Record that the lease of this run has come to be."""
        with self.transaction() as change:
            change.execute(
                "UPDATE jobs SET state = ?, keeper_pid = ?, keeper_birth = ? WHERE run = ? AND state = ?",
                (RUNNING, supervisor.pid, supervisor.birth, job.run, STARTING),
            )
            add_event(change, now, job.job_id, f"started on {job.node}")

    def not_started(self, job: LocalJob, now: float, not_before: float, note: str) -> None:
        """Record that the lease never comes to be: the job waits again, or has ended when it was removed."""
        with self.transaction() as change:
            change.execute(
                "UPDATE jobs SET state = ?, node = '', run = '', started = 0, deadline = NULL, not_before = ?,"
                " note = ? WHERE run = ? AND state = ? AND removed = 0",
                (WAITING, not_before, note, job.run, STARTING),
            )
            change.execute(
                "UPDATE jobs SET state = ?, ended = ?, note = 'removed before it started' WHERE run = ? AND state = ?",
                (ENDED, now, job.run, STARTING),
            )
            add_event(change, now, job.job_id, f"not started: {note}")

    def ended(
        self,
        job: LocalJob,
        ended: float,
        code: int | None,
        signal: int | None,
        note: str,
        cpu_seconds: float | None = None,
    ) -> None:
        """Record that this run has ended."""
        with self.transaction() as change:
            change.execute(
                "UPDATE jobs SET state = ?, ended = ?, code = ?, signal = ?, note = ?, cpu_seconds = ?"
                " WHERE run = ? AND state IN (?, ?)",
                (ENDED, ended, code, signal, note, cpu_seconds, job.run, *LIVE),
            )
            change.execute("DELETE FROM reports WHERE run = ?", (job.run,))
            change.execute("DELETE FROM parts WHERE run = ?", (job.run,))
            add_event(change, ended, job.job_id, note)

    def signalled(self, job: LocalJob, now: float, kill: bool, why: str) -> None:
        """Record that SIGTERM, or with `kill` SIGKILL, was sent to this run."""
        sent = "kill_sent" if kill else "term_sent"
        with self.transaction() as change:
            change.execute(f"UPDATE jobs SET {sent} = ?, note = ? WHERE run = ?", (now, why, job.run))  # noqa: S608
            add_event(change, now, job.job_id, f"{'killed' if kill else 'sent SIGTERM'}: {why}")

    def set_reports(self, reports: Mapping[str, PilotReport | None]) -> None:
        """Set what the pilots of these runs report; None: nothing."""
        with self.transaction() as change:
            for run, report in reports.items():
                if report is None:
                    change.execute("DELETE FROM reports WHERE run = ?", (run,))
                else:
                    change.execute("INSERT OR REPLACE INTO reports VALUES (?, ?)", (run, json.dumps(as_plain(report))))

    def parts(self) -> dict[str, PartialReturn]:
        """Return what is asked of pilots, by run."""
        return self._read(parts_in)

    def forget(self, before: float, most: int = 1000) -> list[str]:
        """Forget jobs that ended before (UNIX s); the directories of their leases, which are to be removed."""
        with self.transaction() as change:
            rows = change.execute(
                "SELECT job_id, run FROM jobs WHERE state = ? AND ended < ? LIMIT ?", (ENDED, before, most)
            ).fetchall()
            for row in rows:
                change.execute("DELETE FROM jobs WHERE job_id = ?", (row["job_id"],))
                change.execute("DELETE FROM events WHERE job_id = ?", (row["job_id"],))
            return [self.lease_directory(row["run"]) for row in rows if row["run"]]

    def earliest_retry(self, now: float) -> float | None:
        """Return when the next job is to be tried again, UNIX s; None when none is put off."""
        with self.transaction(write=False) as look:
            [found] = look.execute(
                "SELECT min(not_before) FROM jobs WHERE state = ? AND not_before > ?", (WAITING, now)
            ).fetchone()
        return None if found is None else float(found)


def _running(look: sqlite3.Connection, run: str) -> LocalJob:
    """Return the job of a run that holds cores. Raises RunEnded."""
    row = look.execute("SELECT * FROM jobs WHERE run = ? AND state IN (?, ?)", (run, *LIVE)).fetchone()
    if row is None:
        raise RunEnded(f"run {run[:100]} does not run any more")
    return job_in(row)
