"""The daemon store: what the daemon alone writes into the state of the jobs that it starts and ends."""

from __future__ import annotations

from collections.abc import Mapping

from drainwise.local.job import ENDED, LIVE, RUNNING, STARTING, WAITING, LocalJob, run_name
from drainwise.local.rows import add_event, job_in, parts_in, report_text
from drainwise.local.store import LocalStore
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pilotad.report import PilotReport
from drainwise.processes.process import Process


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
                    change.execute("INSERT OR REPLACE INTO reports VALUES (?, ?)", (run, report_text(report)))

    def parts(self) -> dict[str, PartialReturn]:
        """Return what is asked of pilots, by run."""
        with self.transaction(write=False) as look:
            return parts_in(look)

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
