"""The files between the site and each job: reports of its pilot are read each round, site notices are written.

Notices that a job removes or changes are written again after a while, as a real node does with every update.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from drainwise.common.local_file import Held
from drainwise.common.service import Faults
from drainwise.facts.client_rules import ClientRules
from drainwise.facts.errors import FeatureError, RefusedFile
from drainwise.features.facts import planned_in_lease
from drainwise.local.job import LocalJob, client_of
from drainwise.local.lease.files import work_directory
from drainwise.local.store import DaemonStore
from drainwise.node import JOB_STATUS
from drainwise.node.site_notice import SiteNotice, give_notice, write_job_slots
from drainwise.pilotad.node_reader import read_report, reasons_line
from drainwise.pilotad.partial_return import Acknowledgement, PartialReturn
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.safe_open import Patience, open_dir


class Reports:
    """The last report of each run, as the state has it."""

    def __init__(self, store: DaemonStore, faults: Faults) -> None:
        self._store, self._faults = store, faults
        self._published: dict[str, PilotReport | None] = {}

    @property
    def known(self) -> Mapping[str, PilotReport]:
        """The reports by run."""
        return {run: report for run, report in self._published.items() if report is not None}

    def read(self, jobs: Iterable[LocalJob], patience: float) -> None:
        """Read the reports of the pilots of these jobs; `patience`: seconds to wait for locks, all together."""
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

    def forget(self, job: LocalJob) -> None:
        """Forget a run that has ended."""
        self._published.pop(job.run, None)
        self._faults.forget(f"report of job {job.job_id}")


def report_of(
    directory: str, cores: int, patience: Patience | None = None
) -> tuple[PilotReport | None, tuple[str, ...]]:
    """Read the report of a job's pilot, not bounded yet, and why parts were refused; no job can make it raise.

    cores: of the lease. patience: shared by the leases of a round.
    """
    try:
        with Held(open_dir(work_directory(directory), uid=os.getuid())) as work:
            return read_report(work, os.getuid(), cores, JOB_STATUS, patience)
    except RefusedFile as refused:
        return None, (f"work: {refused.reason}",)


class SiteNotices:
    """The last site notice of each run. repair: seconds after which one that still holds is written again."""

    def __init__(self, faults: Faults, repair: float) -> None:
        self._faults, self._repair = faults, repair
        self._written: dict[str, tuple[object, float]] = {}

    def write(
        self,
        job: LocalJob,
        directory: str,
        planned: int | None,
        slots: int | None,
        now: float,
        clients: ClientRules | None = None,
        part: PartialReturn | None = None,
        answer: Acknowledgement | None = None,
    ) -> None:
        """Write the notices of the job in the lease `directory`, unless they are there; `planned`, `now`: UNIX s.

        slots: the job slots of its node, which a restart of the daemon or the node's settings may change. clients:
        which jobs are of which kind of client. part, answer: what is asked and acknowledged of a partial return.
        """
        client = client_of(job.request, clients)
        planned = planned_in_lease(planned, job.deadline, job.wall_end, int(now))
        told = job.deadline, planned, slots, client.name, part, answer
        last, at = self._written.get(job.run, (None, now))
        nothing = (job.deadline, planned, part, answer) == (None,) * 4
        if last == told and (nothing or now < at + self._repair):
            return
        self._written[job.run] = (told, now)
        fault = ""
        try:
            notice = SiteNotice(job.deadline, planned, client, part, answer)
            give_notice(work_directory(directory), notice, int(now))
            write_job_slots(work_directory(directory), slots)
        except FeatureError as error:
            fault = f"site notice: {error}"
        self._faults.set(f"job {job.job_id}", fault)

    def forget(self, job: LocalJob) -> None:
        """Forget a run that has ended."""
        self._written.pop(job.run, None)
        self._faults.forget(f"job {job.job_id}")
