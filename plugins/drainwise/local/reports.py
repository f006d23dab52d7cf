"""What the pilots report, read from their directories each round and published in the state when it has changed."""

from __future__ import annotations

from collections.abc import Iterable

from drainwise.local.job import Job
from drainwise.local.lease import report_of
from drainwise.local.ledger import Ledger
from drainwise.local.log import Faults
from drainwise.pilotad.node_reader import reasons_line
from drainwise.pilotad.patience import Patience
from drainwise.pilotad.report import PilotReport


class Reports:
    """The last report of each run, as the state has it."""

    def __init__(self, store: Ledger, faults: Faults) -> None:
        self._store, self._faults = store, faults
        self._published: dict[str, PilotReport | None] = {}

    def read(self, jobs: Iterable[Job], patience: float) -> None:
        """Read what the pilots of these jobs say; `patience`: seconds to wait for locks, all together."""
        shared = Patience(patience)
        news = {}
        for job in jobs:
            report, reasons = report_of(self._store.lease_directory(job.run), job.cores, shared)
            self._faults.set(f"report of job {job.job_id}", reasons_line(reasons))
            if job.run not in self._published or self._published[job.run] != report:
                news[job.run] = report
        if news:
            self._store.set_reports(news)
            self._published.update(news)

    def forget(self, job: Job) -> None:
        """The run has ended."""
        self._published.pop(job.run, None)
        self._faults.forget(f"report of job {job.job_id}")
