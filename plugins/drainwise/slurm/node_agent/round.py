"""Do one round of the node's agent: ask slurmctld, bring site notices to the jobs, publish what pilots report.

All state is what can be found again: a round after a restart does the same as one without. While slurmctld does not
answer, nothing is published, and earlier site notices stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from drainwise.common.service import Faults
from drainwise.facts.errors import ActionRefused, FeatureError, PoolError, PoolUnreachable
from drainwise.facts.signs import SIGN_PERIOD
from drainwise.features import host, planned_shutdown
from drainwise.features.facts import planned_in_lease
from drainwise.node.payloads.observer import ObservedRun, Observer, claimed_cores
from drainwise.node.payloads.process_table import ProcessTable
from drainwise.node.settings import SettingsFile
from drainwise.node.site_notice import SiteNotice, write_shutdown_files
from drainwise.pilotad.site_ad import SiteAd
from drainwise.slurm.jobs.admin_comment import without_directories_text
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import client_of, lease_end, shortened_end
from drainwise.slurm.jobs.node_sign import sign_in, sign_text
from drainwise.slurm.jobs.order_mark import entries_in, marked, unmarked
from drainwise.slurm.jobs.publish import FOREIGN, is_foreign, is_news, is_publishable, publish, wanted_comment
from drainwise.slurm.jobs.scontrol_jobs import JobAnswer, ask
from drainwise.slurm.node.facts import NodeRecord, write_record
from drainwise.slurm.node.job_tree import is_full, mark_complete
from drainwise.slurm.node_agent import jobs as host_jobs
from drainwise.slurm.node_agent.due import Due, has_no_carrier
from drainwise.slurm.node_agent.jobs import HostJobs, Jobs, Key, NodeJob
from drainwise.slurm.node_agent.user_task import UserTaskResult
from drainwise.slurm.node_agent.user_tasks import UserTasks
from drainwise.slurm.node_agent.work_dirs import WorkDirNotices, WorkDirs

FULL = "it has filled its $JOBSTATUS: what it reports, and .site.ad, may not be written any more"
RECORD_PERIOD = SIGN_PERIOD
"""Seconds until a node's CPUs are asked for again, and it gives its next sign of life."""
OBSERVER_PERIOD = 60
"""Least seconds between two looks at the jobs' processes, however often the rounds are."""
OTHERS_EXTRA = "it is somebody else's, so the node gives no sign of life while no pilot of its reports"
NO_CARRIER = "every job's AdminComment is somebody else's: slurmctld is asked for every pilot in each round"
UNCLEAR = "a text of its user's looks like a fact of Slurm's: it is not published, and receives no order"
FIRST_LOOKS = 3
LOOK_ROUNDS = 20
"""Rounds from one look to the next, after the first few: a prolog seldom fails."""
MOST = 64
"""Runs that are asked for and published in one round."""

_LISTED = re.compile(r"^ *-?\d+ +(\d{1,10}) ", re.MULTILINE)


class RunsWithoutTree:
    """The runs without a tree on this host: they started before the installation, or their prolog failed.

    They receive no order, so their node publishes that in place of a report. slurmd itself says which runs are here
    (`scontrol listpids`, which asks slurmctld nothing). fault: called with a job's name and what is wrong.
    """

    def __init__(self, commands: SlurmCommands, fault: Callable[[str, str], None]) -> None:
        self._commands, self._fault = commands, fault
        self._round = 0
        self._suspects: set[str] = set()
        self._done: set[str] = set()

    def round(self, has_tree: Callable[[], Collection[str]]) -> None:
        """Publish what runs here and has no tree, in two looks: its prolog may just be making one.

        has_tree: the jobs that have one, as they are when it is called. Raises PoolUnreachable, ActionRefused.
        """
        self._round += 1
        if self._round > FIRST_LOOKS and self._round % LOOK_ROUNDS > 1:
            return
        try:
            listed = set(_LISTED.findall(self._commands.ask("scontrol", "listpids")))
        except PoolError:
            return  # no slurmd, so nothing is known
        without = listed - set(has_tree())
        self._done &= without
        sure, self._suspects = without & self._suspects, without
        new = sorted(sure - self._done, key=int)[:MOST]
        if not new:
            return
        answer = ask(self._commands, {job: job for job in new})
        comments = {}
        for job, facts in answer.jobs.items():
            if not is_publishable(facts):
                continue
            if is_foreign(facts):
                why = "it has no directories of ours, and its AdminComment is somebody else's: it gets orders in vain"
                self._fault(f"job {job}", why)
                continue
            comment = without_directories_text(facts.number, facts.start or 0, facts.node)
            if comment not in facts.comments:
                comments[facts.label] = comment
        if comments:
            publish(self._commands, comments)
        self._done.update(new)


class NodeAgent:
    """The agent of one host. `close`: descriptors that its children must not keep.

    host: the name of its node while no prolog has told of one, "" where that is not known.
    """

    def __init__(
        self, file: SettingsFile, commands: SlurmCommands, faults: Faults, close: tuple[int, ...] = (), host: str = ""
    ) -> None:
        settings = file.settings
        self._file, self._settings, self._commands, self._faults = file, settings, commands, faults
        self._user_tasks = UserTasks(self._note, faults.set, close)
        self._jobs = HostJobs(settings.runtime_dir, faults.set, lambda job: faults.forget(f"job {job}"))
        self._host = host
        self._records: dict[str, NodeRecord] = {}
        self._records_due: dict[str, int] = {}
        self._notes: dict[str, list[str]] = {}
        self._observer = Observer(least=OBSERVER_PERIOD)
        self._work_dirs = WorkDirs(commands)
        self._placed = WorkDirNotices(self._note, self._work_dirs, close)
        self._due, self._without_tree = Due(self._learn), RunsWithoutTree(commands, faults.set)

    def greet(self, now: int) -> bool:
        """Complete the jobs that have come since the last round; `now` in UNIX s. Whether slurmctld was asked.

        Raises PoolUnreachable.
        """
        with self._jobs.round() as jobs:
            self._follow_settings()
            self._placed.clear(jobs, self._jobs.nodes, now)  # before the tasks of a new job find it
            new = {key: job for key, job in jobs.items() if job.facts is None and not job.marked}
            return self._learn(new, now)

    def round(self, now: int) -> bool:
        """Do everything for all jobs; `now` in UNIX s. Whether slurmctld was asked.

        Raises PoolUnreachable when slurmctld did not answer, after having done what can be done without.
        """
        with self._jobs.round() as jobs:
            self._notes = {}
            self._follow_settings()
            self._placed.clear(jobs, self._jobs.nodes, now)
            planned, remark = planned_shutdown.read(self._settings.shutdown_file, now)
            self._faults.set("planned shutdown", remark or "")
            full = bool(jobs) and is_full(self._settings.runtime_dir)
            self._faults.set("runtime_dir", "it is full: new jobs get no features, pilots no orders" if full else "")
            silence, has_asked = None, False
            try:
                has_asked = self._due.look(jobs, now)
                self._faults.set("marks of orders", NO_CARRIER if has_no_carrier(jobs) else "")
            except PoolUnreachable as error:
                silence = error
            for job in jobs.values():
                self._complete(job)  # the settings, or the node, may have changed
            found = self._notify(jobs, planned, now, read=silence is None)
            self._observe(jobs, found, now)
            try:
                if silence is None:
                    self._publish(jobs, found, now)
                for job in jobs.values():
                    if job.facts is not None and job.speaks and is_foreign(job.facts):
                        self._note(job, FOREIGN)
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

    def _learn(self, jobs: Jobs, now: int) -> bool:
        """Ask for these jobs, and for the nodes whose record is due, if any; complete the jobs' features."""
        nodes = self._jobs.nodes or filter(None, [self._host])
        new = self._jobs.nodes.keys() - self._records.keys()
        due = tuple(node for node in nodes if node in new or now >= self._records_due.get(node, 0))
        if not jobs and not due:
            return False
        try:
            answer = ask(self._commands, {job.lease.job: job.question for job in jobs.values()}, due)
            for node in due:
                if node in self._jobs.nodes:
                    self._learn_node(node, answer)
                self._records_due[node] = now + RECORD_PERIOD
            for job in jobs.values():
                self._take_in(job, answer)
        finally:
            for job in jobs.values():  # nothing more comes soon: its tasks need not wait
                self._mark(job)
        for node in due:
            self._give_sign(node, answer.extras.get(node), now)
        return True

    def _give_sign(self, node: str, extra: str | None, now: int) -> None:
        """Give a sign of life where the node's Extra is ours or empty; None: slurmctld does not know the node."""
        fault = OTHERS_EXTRA if extra and sign_in(extra) is None else ""
        if not fault and extra is not None:
            try:
                line = f"update NodeName={node} Extra={sign_text(now)}\n"
                self._commands.order("scontrol", "--oneliner", stdin=line)
            except PoolError as error:
                fault = f"no sign of life: {error}"
        self._faults.set(f"Extra of {node}", fault)

    def _learn_node(self, node: str, answer: JobAnswer) -> None:
        """Write down what slurmctld and the kernel say of a node: what every prolog there wants to know."""
        scratch = host.scratch_bytes(self._settings.scratch_dir)
        features = answer.features.get(node, ())
        record = self._records[node] = NodeRecord(answer.cpus.get(node), *host.cores(), scratch, features)
        try:
            write_record(self._jobs.nodes[node], record)
        except OSError as error:
            self._faults.set(f"node {node}", f"its record is not written: {error.strerror}")

    def _take_in(self, job: NodeJob, answer: JobAnswer) -> None:
        facts = answer.jobs.get(job.lease.job)
        job.facts = facts if facts is not None and host_jobs.is_this_run(job.lease, facts) else None
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
            host_jobs.learn_granted(job, job.facts)
            host_jobs.complete(job, job.facts, self._records.get(job.node, NodeRecord()), self._settings)
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
        shown: dict[Key, SiteNotice] = {}
        notices: dict[Key, SiteAd | None] = {}
        for key, job in jobs.items():
            self._note(job, UNCLEAR if job.unclear else "")
            self._note(job, FULL if job.is_without_room else "")
            if job.facts is not None:  # else nothing is sure: the earlier notice stands
                deadline = shortened_end(job.facts, job.granted)
                in_lease = planned_in_lease(planned, deadline, lease_end(job.facts), now)
                client = client_of(job.facts, self._settings.clients, job.is_glidein)
                shown[key] = SiteNotice(deadline, in_lease, client)
                notices[key] = shown[key].site_ad(now)
                self._note(job, job.incomplete)

        def write_features(is_told: bool) -> None:
            for key, notice in notices.items():
                job, wanted = jobs[key], shown[key].shutdown_values(now)
                if (notice is not None) == is_told and job.notice != wanted:
                    try:
                        write_shutdown_files(job.place, wanted)
                        job.notice = wanted
                    except FeatureError as error:
                        self._note(job, f"features: {error}")

        write_features(is_told=False)
        files = (self._settings.text("checkpoint_files") or "").replace(",", " ").split()
        stale = now - self._settings.heartbeat_limit
        found = self._user_tasks.run(jobs, notices, now, read, stale, tuple(files))
        self._placed.bring(jobs, notices, self._jobs.nodes, now, self._user_tasks.is_slow)
        write_features(is_told=True)
        self._user_tasks.tell_apart(found, jobs, self._work_dirs, now)
        return found

    def _observe(self, jobs: Jobs, found: Mapping[Key, UserTaskResult], now: int) -> None:
        """See the payloads of jobs of one node; those of one of several nodes are seen in part, and passed over."""
        runs = {}
        for key, job in jobs.items():
            facts = job.facts
            if facts is not None and facts.single and facts.start is not None and job.cores:
                report, limit = found[key].report if key in found else None, self._settings.heartbeat_limit
                claimed = claimed_cores(report, job.cores, facts.start, now, limit)
                runs[job.name] = ObservedRun(job.cores, facts.start, claimed)

        def supervisors(table: ProcessTable) -> tuple[dict[str, Sequence[int]], set[int]]:
            steps, own = host_jobs.step_processes(table)
            return {job.name: steps.get(job.lease.job, ()) for job in jobs.values()}, own

        if self._settings.is_observing:
            self._observer.look(runs, supervisors, self._settings.text("payload_patterns"), now)
        else:
            self._observer.seen = {}

    def _publish(self, jobs: Jobs, found: dict[Key, UserTaskResult], now: int) -> None:
        """Set the comments that changed; what stands there is looked at first, in this round."""
        news = self._news(jobs, found, now)
        again = {key: jobs[key] for key in news if not self._due.was_asked(jobs[key])}
        try:
            self._due.ask(again, now)
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
            cores, seen = job.cores, self._observer.seen.get(job.name) if facts is not None and facts.single else None
            told = seen.told if seen is not None and seen.has_worked else None
            if facts is None or (report is None and told is None) or not cores or not job.speaks or is_foreign(facts):
                continue
            limit = self._settings.heartbeat_limit
            refuted = seen is not None and seen.contradicts(now, self._settings.contradictory_after)
            whose = (job.is_first, job.lease.cores)
            saves = (job.saved, job.saves_each)
            comment = wanted_comment(facts, job.node, cores, report, now, limit, told, refuted, *whose, saves=saves)
            if comment is not None and is_news(comment, [unmarked(one) for one in facts.comments], limit):
                mark = entries_in(facts.comments[0]) if facts.comments else {}
                news[key] = marked(comment, mark) if facts.single else comment
        return news
