"""One round of the node's agent: ask slurmctld once, tell the jobs what their leases are, publish what pilots report.

All state is what can be found again: a round after a restart does the same as one without. While slurmctld does not
answer, nothing is published, and what was told before stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from drainwise.errors import ActionRefused, FeatureError, PoolUnreachable
from drainwise.features import host, planned_shutdown
from drainwise.features.values import deadline_values
from drainwise.node.settings import NodeSettings
from drainwise.node.tell import site_word, tell_features
from drainwise.slurm.agent_errand import Errand, Found, answer_in, run_errands
from drainwise.slurm.agent_jobs import HostJobs, Key, NodeJob
from drainwise.slurm.agent_limits import complete, is_this_run, learn_granted, shortened_end
from drainwise.slurm.agent_log import Faults
from drainwise.slurm.agent_publish import FOREIGN, is_foreign, is_publishable, publish, wanted_comment
from drainwise.slurm.agent_query import Answer, ask
from drainwise.slurm.agent_user import Identity, Send, Users
from drainwise.slurm.commands import SlurmCommands
from drainwise.slurm.job_tree import mark_complete
from drainwise.slurm.node_record import NodeRecord, write_record

USER_SECONDS = 2.0
"""How long a round waits for all users' files together."""
JOBS_TOGETHER = 32
"""Jobs of a user for which one child is made: what holds a child up costs these, not all of the user's."""
RECORD_PERIOD = 3600
"""Seconds until a node's CPUs are asked for again."""
WORK_DIR_PERIOD = 300
"""Seconds until the WorkDir of a job that says nothing is looked at again: it may lie on a busy file server."""
SILENT_ROUNDS = 4
"""Rounds from one question to the next for a job that reports nothing: most are no pilots, and slurmctld would be asked
for every job of the cluster each round. It may be a pilot that only listens, so it hears of an order that much later.
"""
NEW_ROUNDS = 3
"""Rounds in which a job is new: it is asked for in each, because it may be a pilot that has not reported yet."""
SLOW_PERIOD = 600
"""Seconds in which no WorkDir of a user is looked at after one did not answer."""
UNCLEAR = "a text of its user's looks like a fact of Slurm's: it is neither published nor told of an order"

Jobs = dict[Key, NodeJob]


class NodeAgent:
    """The agent of one host. `close`: descriptors that its children must not keep."""

    def __init__(
        self, settings: NodeSettings, commands: SlurmCommands, faults: Faults, close: tuple[int, ...] = ()
    ) -> None:
        self._settings, self._commands, self._faults = settings, commands, faults
        self._users = Users(close)
        self._jobs = HostJobs(settings.runtime_dir, faults.set, lambda job: faults.forget(f"job {job}"))
        self._records: dict[str, NodeRecord] = {}
        self._record_due: dict[str, int] = {}
        self._slow_until: dict[int, int] = {}
        self._notes: dict[str, list[str]] = {}

    def greet(self, now: int) -> bool:
        """Complete the jobs that have come since the last round; `now` in UNIX s. Whether slurmctld was asked.

        Raises PoolUnreachable.
        """
        with self._jobs as jobs:
            new = {key: job for key, job in jobs.items() if job.facts is None and not job.marked}
            return self._learn(new, now)

    def round(self, now: int) -> bool:
        """Do everything for all jobs; `now` in UNIX s. Whether slurmctld was asked.

        Raises PoolUnreachable when slurmctld did not answer, after having done what can be done without.
        """
        with self._jobs as jobs:
            self._notes = {}
            planned, remark = planned_shutdown.read(self._settings.shutdown_file, now)
            self._faults.set("planned shutdown", remark or "")
            silence, has_asked = None, False
            asked = {key: job for key, job in jobs.items() if self._is_due(job)}
            try:
                has_asked = self._learn(asked, now)
            except PoolUnreachable as error:
                silence = error
            self._tell_features(jobs, planned, now)
            found = self._visit(jobs, planned, now, read=silence is None)
            try:
                self._note_foreign(jobs)
                if silence is None:
                    self._publish(asked, found, now)
            finally:
                for job in jobs.values():
                    self._faults.set(f"job {job.lease.job}", "; ".join(self._notes.get(job.lease.job, [])))
            if silence is not None:
                raise silence
            return has_asked

    def _is_due(self, job: NodeJob) -> bool:
        """Whether slurmctld is asked for this job in this round."""
        job.rounds += 1
        is_new, rests = job.rounds <= NEW_ROUNDS, (job.rounds - NEW_ROUNDS) % SILENT_ROUNDS
        return job.facts is None or job.reports or is_new or not rests

    def _note(self, job: NodeJob, text: str) -> None:
        if text:
            self._notes.setdefault(job.lease.job, []).append(text)

    # ---- what slurmctld says ----

    def _learn(self, jobs: Jobs, now: int) -> bool:
        """Ask for these jobs, and for the nodes whose record is due, if any; complete the jobs' features."""
        due = tuple(node for node in self._jobs.nodes if now >= self._record_due.get(node, 0))
        if not jobs and not due:
            return False
        try:
            asked = {job.lease.job: job.question for job in jobs.values()}
            answer = ask(self._commands, asked, due)
            self._record(due, answer, now)
            for job in jobs.values():
                self._take_in(job, answer)
        finally:
            for job in jobs.values():  # nothing more comes soon: its tasks need not wait
                self._mark(job)
        return True

    def _record(self, nodes: tuple[str, ...], answer: Answer, now: int) -> None:
        """Write down what the prolog of each node's next job wants to know."""
        for node in nodes:
            physical, logical = host.cores()
            record = self._records[node] = NodeRecord(answer.cpus.get(node), physical, logical)
            try:
                write_record(self._jobs.nodes[node], record)
            except OSError as error:
                self._faults.set(f"node {node}", f"its record is not written: {error.strerror}")
            self._record_due[node] = now + RECORD_PERIOD

    def _take_in(self, job: NodeJob, answer: Answer) -> None:
        facts = answer.facts.get(job.lease.job)
        job.facts = facts if facts is not None and is_this_run(job.lease, facts) else None
        if job.lease.job in answer.unclear:
            self._note(job, UNCLEAR)
        if job.facts is None:
            return
        if job.facts.label.startswith((f"{job.lease.job}_", f"{job.lease.job}+")):
            job.question = job.facts.label
        job.incomplete = ""
        try:
            learn_granted(job, job.facts)
            complete(job, job.facts, self._records.get(job.node, NodeRecord()), self._settings)
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

    # ---- what the jobs are told, and say ----

    def _tell_features(self, jobs: Jobs, planned: int | None, now: int) -> None:
        for job in jobs.values():
            if job.facts is None:
                continue  # nothing is sure: what was told stands
            self._note(job, job.incomplete)
            deadline = shortened_end(job.granted, job.facts)
            wanted = deadline_values(planned, deadline, now)
            if job.told == wanted:
                continue
            try:
                tell_features(job.place, deadline, planned, now)
                job.told = wanted
            except FeatureError as error:
                self._note(job, f"features: {error}")

    def _visit(self, jobs: Jobs, planned: int | None, now: int, read: bool) -> dict[Key, Found]:
        """Be each user once: write `.site.ad`, and `read` the reports."""
        by_user: dict[Identity, list[Errand]] = {}
        by_name: dict[str, NodeJob] = {}
        seen: Counter[int] = Counter()
        places = Counter((job.lease.uid, job.lease.work_dir) for job in jobs.values())
        for number, job in enumerate(jobs.values()):
            lease, facts = job.lease, job.facts
            stuck = self._users.lost(lease.uid)
            if facts is None or stuck > 1:
                continue
            wanted = read and is_publishable(facts) and not is_foreign(facts)
            look = wanted and not stuck and now >= max(job.look_again, self._slow_until.get(lease.uid, 0))
            errand = Errand(
                key=str(number),
                tree=job.tree,
                uid=lease.uid,
                told=True,
                word=site_word(shortened_end(job.granted, facts), planned, now),
                cores=lease.cores or facts.cores if wanted else None,
                work_dir=lease.work_dir if look and lease.work_dir.startswith(b"/") else b"",
                shared=places[lease.uid, lease.work_dir] > 1,
                started=facts.start or lease.started,
            )
            by_name[errand.key] = job
            part = seen[lease.uid] // JOBS_TOGETHER
            seen[lease.uid] += 1
            by_user.setdefault(Identity(lease.uid, lease.gid, part), []).append(errand)
        return self._answers(by_user, by_name, now)

    def _answers(
        self, by_user: dict[Identity, list[Errand]], by_name: dict[str, NodeJob], now: int
    ) -> dict[Key, Found]:
        outcomes = self._users.run({who: _errands(errands) for who, errands in by_user.items()}, USER_SECONDS)
        found: dict[Key, Found] = {}
        faults: dict[int, str] = {}
        for who, outcome in outcomes.items():
            for line in outcome.lines:
                name, answer = answer_in(line)
                found[by_name[name].key] = answer
            if outcome.fault:
                faults[who.uid] = outcome.fault
                self._slow_until[who.uid] = now + SLOW_PERIOD
            for errand in by_user[who]:
                job = by_name[errand.key]
                answer = found.get(job.key, Found(None, "", ""))
                if answer.report is not None or (errand.work_dir and not outcome.fault):
                    job.refused = ""  # all was looked at
                if errand.work_dir and answer.report is None:
                    job.look_again = now + WORK_DIR_PERIOD
                job.refused = answer.refused or job.refused
                job.reports = job.reports or answer.report is not None
                self._note(job, job.refused)
                self._note(job, answer.fault)
        for uid in {who.uid for who in by_user}:
            if uid in faults or now >= self._slow_until.get(uid, 0):
                self._faults.set(f"user {uid}", faults.get(uid, ""))
        return found

    def _note_foreign(self, jobs: Jobs) -> None:
        for job in jobs.values():
            if job.facts is not None and is_publishable(job.facts) and is_foreign(job.facts):
                self._note(job, FOREIGN)

    def _publish(self, jobs: Jobs, found: dict[Key, Found], now: int) -> None:
        """Set the comments that changed, of jobs whose own comment was just seen."""
        comments = {}
        for key, job in jobs.items():
            facts = job.facts
            if facts is None:
                continue
            report = found[key].report if key in found else None
            cores = job.lease.cores or facts.cores
            if report is None or not cores:
                continue
            comment = wanted_comment(facts, job.node, cores, report, now, self._settings.heartbeat_limit)
            if comment is not None and comment not in facts.comments:
                comments[facts.label] = comment
        try:
            if comments:
                publish(self._commands, comments)
            self._faults.set("publishing", "")
        except ActionRefused as error:
            self._faults.set("publishing", str(error))


def _errands(errands: list[Errand]) -> Callable[[Send], None]:
    return lambda send: run_errands(errands, send)
