"""Do one round of the node's agent: ask slurmctld, bring site notices to the jobs, publish what pilots report.

All state is what can be found again: a round after a restart does the same as one without. While slurmctld does not
answer, nothing is published, and earlier site notices stand.
"""

from __future__ import annotations

from drainwise.common.service import Faults
from drainwise.facts.errors import ActionRefused, FeatureError, PoolUnreachable
from drainwise.features import planned_shutdown
from drainwise.features.facts import planned_in_lease
from drainwise.node.settings_file import SettingsFile
from drainwise.node.site_notice import shutdown_values, site_notice, write_shutdown_files
from drainwise.pilotad.site_ad import SiteAd
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import SlurmJob, client_of
from drainwise.slurm.jobs.lease_change import lease_end, shortened_end
from drainwise.slurm.jobs.order_mark import entries_in, marked, unmarked
from drainwise.slurm.jobs.publish import FOREIGN, is_foreign, is_news, publish, wanted_comment
from drainwise.slurm.jobs.scontrol_jobs import JobAnswer, ask
from drainwise.slurm.node.job_tree import mark_complete
from drainwise.slurm.node.status_mount import is_full
from drainwise.slurm.node_agent.due import Due
from drainwise.slurm.node_agent.jobs import HostJobs, Key, NodeJob
from drainwise.slurm.node_agent.limits import complete, is_this_run, learn_granted
from drainwise.slurm.node_agent.node_records import NodeRecords
from drainwise.slurm.node_agent.observed_jobs import ObservedJobs
from drainwise.slurm.node_agent.user_task import UserTaskResult
from drainwise.slurm.node_agent.user_tasks import UserTasks
from drainwise.slurm.node_agent.without_tree import RunsWithoutTree
from drainwise.slurm.node_agent.work_dir_notices import WorkDirNotices
from drainwise.slurm.node_agent.work_dirs import WorkDirs, told_apart

FULL = "it has filled its $JOBSTATUS: what it reports, and .site.ad, may not be written any more"
CARRIERS = 3
"""Jobs that are asked for one after the other in a round, where those that carried the mark of a node have ended."""
NO_CARRIER = "every job's AdminComment is somebody else's: slurmctld is asked for every pilot in each round"
UNCLEAR = "a text of its user's looks like a fact of Slurm's: it is not published, and receives no order"

Jobs = dict[Key, NodeJob]


def _ends(job: SlurmJob, granted: int | None, planned: int | None, now: int) -> tuple[int | None, int | None]:
    """Return the deadline of a job and the planned end to state beside it, UNIX s."""
    deadline = shortened_end(job, granted)
    return deadline, planned_in_lease(planned, deadline, lease_end(job), now)


class NodeAgent:
    """The agent of one host. `close`: descriptors that its children must not keep."""

    def __init__(
        self, file: SettingsFile, commands: SlurmCommands, faults: Faults, close: tuple[int, ...] = ()
    ) -> None:
        settings = file.settings
        self._file, self._settings, self._commands, self._faults = file, settings, commands, faults
        self._user_tasks = UserTasks(self._note, faults.set, close)
        self._jobs = HostJobs(settings.runtime_dir, faults.set, lambda job: faults.forget(f"job {job}"))
        self._records = NodeRecords(faults.set)
        self._notes: dict[str, list[str]] = {}
        self._observed = ObservedJobs()
        self._work_dirs = WorkDirs(commands)
        self._placed = WorkDirNotices(self._note, self._work_dirs, close)
        self._due, self._without_tree = Due(), RunsWithoutTree(commands, faults.set)

    def greet(self, now: int) -> bool:
        """Complete the jobs that have come since the last round; `now` in UNIX s. Whether slurmctld was asked.

        Raises PoolUnreachable.
        """
        with self._jobs as jobs:
            self._follow_settings()
            self._placed.clear(jobs, self._jobs.nodes, now)  # before the tasks of a new job find it
            new = {key: job for key, job in jobs.items() if job.facts is None and not job.marked}
            return self._learn(new, now)

    def round(self, now: int) -> bool:
        """Do everything for all jobs; `now` in UNIX s. Whether slurmctld was asked.

        Raises PoolUnreachable when slurmctld did not answer, after having done what can be done without.
        """
        with self._jobs as jobs:
            self._notes = {}
            self._follow_settings()
            self._placed.clear(jobs, self._jobs.nodes, now)
            planned, remark = planned_shutdown.read(self._settings.shutdown_file, now)
            self._faults.set("planned shutdown", remark or "")
            full = bool(jobs) and is_full(self._settings.runtime_dir)
            self._faults.set("runtime_dir", "it is full: new jobs get no features, pilots no orders" if full else "")
            silence, has_asked = None, False
            try:
                has_asked = self._look(jobs, now)
            except PoolUnreachable as error:
                silence = error
            for job in jobs.values():
                self._complete(job)  # the settings, or the node, may have changed
            found = self._notify(jobs, planned, now, read=silence is None)
            reports = {key: one.report for key, one in found.items() if one.report is not None}
            self._observed.look(jobs, reports, self._settings, now)
            try:
                if silence is None:
                    self._publish(jobs, found, now)
                self._note_foreign(jobs)
            finally:
                for job in jobs.values():
                    self._faults.set(f"job {job.lease.job}", "; ".join(self._notes.get(job.lease.job, [])))
            if silence is not None:
                raise silence
            return has_asked

    def _follow_settings(self) -> None:
        self._settings = self._file.follow()
        self._faults.set("settings", self._file.fault)

    def _note(self, job: NodeJob, text: str) -> None:
        if text:
            self._notes.setdefault(job.lease.job, []).append(text)

    # ---- what slurmctld says ----

    def _look(self, jobs: Jobs, now: int) -> bool:
        """Ask for the jobs whose lease may have changed. Whether slurmctld was asked. Raises PoolUnreachable."""
        first = self._due.at_first(jobs)
        has_asked = self._learn(first, now)
        self._due.asked(first)
        for _ in range(CARRIERS):
            left = self._due.carriers_left(jobs)
            self._learn(left, now)
            self._due.asked(left)
        self._faults.set("marks of orders", NO_CARRIER if self._due.has_no_carrier(jobs) else "")
        changed = self._due.by_marks(jobs)
        self._learn(changed, now)
        self._due.asked(changed)
        self._due.seen(jobs)
        return has_asked

    def _learn(self, jobs: Jobs, now: int) -> bool:
        """Ask for these jobs, and for the nodes whose record is due, if any; complete the jobs' features."""
        due = self._records.due(self._jobs.nodes, now)
        if not jobs and not due:
            return False
        try:
            asked = {job.lease.job: job.question for job in jobs.values()}
            answer = ask(self._commands, asked, due)
            self._records.learn({node: self._jobs.nodes[node] for node in due}, answer, self._settings, now)
            for job in jobs.values():
                self._take_in(job, answer)
        finally:
            for job in jobs.values():  # nothing more comes soon: its tasks need not wait
                self._mark(job)
        return True

    def _take_in(self, job: NodeJob, answer: JobAnswer) -> None:
        facts = answer.jobs.get(job.lease.job)
        job.facts = facts if facts is not None and is_this_run(job.lease, facts) else None
        job.unclear = job.lease.job in answer.unclear
        if job.facts is None:
            return
        if job.facts.label.startswith((f"{job.lease.job}_", f"{job.lease.job}+")):
            job.question = job.facts.label
        self._complete(job)

    def _complete(self, job: NodeJob) -> None:
        """Bring a job's features up to date by what is known by now; what goes wrong is kept in `incomplete`."""
        if job.facts is None:
            return
        job.incomplete = ""
        try:
            learn_granted(job, job.facts)
            complete(job, job.facts, self._records.of(job.node), self._settings)
        except FeatureError as error:
            job.incomplete = f"features: {error}"
        except OSError as error:
            job.incomplete = f"what was granted is not written: {error.strerror}"

    def _mark(self, job: NodeJob) -> None:
        if job.marked:
            return
        try:
            mark_complete(job.tree)
            job.marked = True
        except OSError as error:
            self._note(job, f"not marked as complete: {error.strerror}")

    # ---- site notices and reports ----

    def _notify(self, jobs: Jobs, planned: int | None, now: int, read: bool) -> dict[Key, UserTaskResult]:
        """Bring site notices to all jobs, `.site.ad` first and last as node/site_notice.py says; `read` the reports."""
        notices: dict[Key, SiteAd | None] = {}
        for key, job in jobs.items():
            self._note(job, UNCLEAR if job.unclear else "")
            self._note(job, FULL if job.is_without_room else "")
            if job.facts is not None:  # else nothing is sure: the earlier notice stands
                client = client_of(job.facts, self._settings.clients, job.is_glidein)
                notices[key] = site_notice(*_ends(job.facts, job.granted, planned, now), now, client)
                self._note(job, job.incomplete)
        self._write_features({key: jobs[key] for key, notice in notices.items() if notice is None}, planned, now)
        found = self._user_tasks.run(jobs, notices, now, read, now - self._settings.heartbeat_limit)
        self._placed.bring(jobs, notices, self._jobs.nodes, now, self._user_tasks.is_slow)
        self._write_features({key: jobs[key] for key, notice in notices.items() if notice is not None}, planned, now)
        return told_apart(self._work_dirs, jobs, found, now, self._note)

    def _write_features(self, jobs: Jobs, planned: int | None, now: int) -> None:
        for job in jobs.values():
            if job.facts is None:
                continue
            ends = _ends(job.facts, job.granted, planned, now)
            client = client_of(job.facts, self._settings.clients, job.is_glidein)
            wanted = shutdown_values(*ends, now, client)
            if job.notice == wanted:
                continue
            try:
                write_shutdown_files(job.place, *ends, now, client)
                job.notice = wanted
            except FeatureError as error:
                self._note(job, f"features: {error}")

    def _note_foreign(self, jobs: Jobs) -> None:
        for job in jobs.values():
            if job.facts is not None and job.speaks and is_foreign(job.facts):
                self._note(job, FOREIGN)

    def _publish(self, jobs: Jobs, found: dict[Key, UserTaskResult], now: int) -> None:
        """Set the comments that changed; what stands there is looked at first, in this round."""
        news = self._news(jobs, found, now)
        again = {key: jobs[key] for key in news if not self._due.was_asked(jobs[key])}
        try:
            self._learn(again, now)
            self._due.asked(again)
            fresh = {key: job for key, job in jobs.items() if key in news}
            comments = self._news(fresh, found, now)
            if comments:
                publish(self._commands, {fresh[key].label: comment for key, comment in comments.items()})
            for key, comment in comments.items():
                fresh[key].published(comment)
            self._without_tree.round(self._jobs.named)
            self._faults.set("publishing", "")
        except ActionRefused as error:
            self._faults.set("publishing", str(error))

    def _news(self, jobs: Jobs, found: dict[Key, UserTaskResult], now: int) -> dict[Key, str]:
        """Return the comments that are to be set, as far as is known."""
        news = {}
        for key, job in jobs.items():
            facts = job.facts
            report = found[key].report if key in found else None
            cores, seen = job.cores, self._observed.told.get(key) if facts is not None and facts.single else None
            if facts is None or (report is None and seen is None) or not cores or not job.speaks or is_foreign(facts):
                continue
            limit = self._settings.heartbeat_limit
            refuted = key in self._observed.refuted
            whose = (job.is_first, job.lease.cores)
            comment = wanted_comment(facts, job.node, cores, report, now, limit, seen, refuted, *whose)
            if comment is not None and is_news(comment, [unmarked(one) for one in facts.comments], limit):
                mark = entries_in(facts.comments[0]) if facts.comments else {}
                news[key] = marked(comment, mark) if facts.single else comment
        return news
