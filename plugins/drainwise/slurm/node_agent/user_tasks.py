"""Have per-user tasks done once a round, by one child per user: decide what each child is to do, and for how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from drainwise.pilotad.attributes import GLIDEIN_AD
from drainwise.pilotad.site_ad import SiteAd
from drainwise.slurm.jobs.publish import is_foreign
from drainwise.slurm.node_agent.as_user import ChildOutcome, Identity, Send, Users
from drainwise.slurm.node_agent.jobs import Key, NodeJob
from drainwise.slurm.node_agent.user_task import UserTask, UserTaskResult, is_silent, result_in, run_tasks

USER_SECONDS = 2.0
"""How long a round waits for all users' files together."""
JOBS_TOGETHER = 32
"""Jobs of a user for which one child is made: what holds a child up costs these, not all of the user's."""
WORK_DIR_PERIOD = 300
"""Seconds until the WorkDir of a job that says nothing is looked at again: it may lie on a busy file server."""
GLIDEIN_PERIOD = 60
"""Seconds until the processes of a job that says nothing are looked through again for a glidein."""
SLOW_PERIOD = 600
"""Seconds in which no WorkDir of a user is looked at after one did not result."""

_NOTHING = UserTaskResult(None, "", "")


class UserTasks:
    """The per-user tasks of all rounds, and which users' file servers are slow.

    note: called with a job and what is wrong with what is its user's. fault: called with `user UID` and what was wrong
    with the child, "" when nothing is any more. close: descriptors that a child must not keep open.
    """

    def __init__(
        self, note: Callable[[NodeJob, str], None], fault: Callable[[str, str], None], close: tuple[int, ...] = ()
    ) -> None:
        self._note, self._fault = note, fault
        self._users = Users(close)
        self._slow_until: dict[int, int] = {}

    def run(
        self, jobs: Mapping[Key, NodeJob], notices: Mapping[Key, SiteAd | None], now: int, read: bool, stale: int = 0
    ) -> dict[Key, UserTaskResult]:
        """Write `notices` for their jobs (None: no `.site.ad`) and, if `read`, read the reports; `now` in UNIX s.

        stale: what a pilot reported before that, UNIX s, counts as nothing.

        A job without a notice is passed over, and so is one whose user's children do not end.
        """
        by_user: dict[Identity, list[UserTask]] = {}
        by_name: dict[str, NodeJob] = {}
        seen: Counter[int] = Counter()
        places = Counter((job.lease.uid, job.lease.work_dir) for job in jobs.values())
        for number, (key, job) in enumerate(jobs.items()):
            lease, facts = job.lease, job.facts
            stuck = self._users.lost(lease.uid)
            if facts is None or key not in notices or stuck > 1:
                continue
            wanted = read and job.speaks and not is_foreign(facts)
            look = wanted and not stuck and now >= max(job.look_again, self._slow_until.get(lease.uid, 0))
            task = UserTask(
                key=str(number),
                tree=job.tree,
                uid=lease.uid,
                notice=notices[key],
                cores=job.cores if wanted else None,
                work_dir=lease.work_dir if look and job.is_first and lease.work_dir.startswith(b"/") else b"",
                shared=places[lease.uid, lease.work_dir] > 1,
                started=facts.start or lease.started,
                job=lease.job if wanted and job.is_first and not stuck and now >= job.look_inside else "",
                stale=stale,
            )
            by_name[task.key] = job
            part = seen[lease.uid] // JOBS_TOGETHER
            seen[lease.uid] += 1
            by_user.setdefault(Identity(lease.uid, lease.gid, part), []).append(task)
        outcomes = self._users.run({who: _run(tasks) for who, tasks in by_user.items()}, USER_SECONDS)
        found: dict[str, UserTaskResult] = {}
        for who, outcome in outcomes.items():
            results, outcomes[who] = _results(outcome, {task.key for task in by_user[who]})
            found.update(results)
        self._judge_users(outcomes, now)
        for who, tasks in by_user.items():
            for task in tasks:
                result, job = found.get(task.key, _NOTHING), by_name[task.key]
                self._take_in(job, task, result, not outcomes[who].fault, now)
                if task.key in found and job.glidein is not None and is_silent(task, result):
                    found[task.key] = replace(result, report=job.glidein)
        return {by_name[name].key: result for name, result in found.items()}

    def is_slow(self, uid: int, now: int) -> bool:
        """Decide whether a user's files did not answer in the round of `now` (UNIX s)."""
        return now + SLOW_PERIOD == self._slow_until.get(uid)

    def _judge_users(self, outcomes: Mapping[Identity, ChildOutcome], now: int) -> None:
        faults: dict[int, str] = {}
        for who, outcome in outcomes.items():
            if outcome.fault:
                faults[who.uid] = outcome.fault
                self._slow_until[who.uid] = now + SLOW_PERIOD
        for uid in {who.uid for who in outcomes}:
            if uid in faults or now >= self._slow_until.get(uid, 0):
                self._fault(f"user {uid}", faults.get(uid, ""))

    def _take_in(self, job: NodeJob, task: UserTask, result: UserTaskResult, is_whole: bool, now: int) -> None:
        """Take note of a result; is_whole: whether the child did all of its work."""
        if result.report is not None or (task.work_dir and is_whole):
            job.refused = ""  # all was looked at
        said = result.report is not None and result.report.source != GLIDEIN_AD
        job.is_glidein |= result.report is not None and not said
        if task.job or not is_silent(task, result):
            # Between two looks what was told at the last one counts, not what is seen from outside.
            job.glidein = None if said else result.report
        if task.work_dir and not said:
            job.look_again = now + WORK_DIR_PERIOD
        if task.job and not said:
            job.look_inside = now + GLIDEIN_PERIOD
        job.refused = result.refused or job.refused
        job.reports = job.reports or result.report is not None
        self._note(job, job.refused)
        self._note(job, result.fault)


def _results(outcome: ChildOutcome, keys: set[str]) -> tuple[dict[str, UserTaskResult], ChildOutcome]:
    """Read the results of a child that was given the tasks `keys`; whatever else it sent is a fault, of it alone."""
    found: dict[str, UserTaskResult] = {}
    for line in outcome.lines:
        try:
            key, result = result_in(line)
        except ValueError as error:
            return found, ChildOutcome((), outcome.fault or str(error))
        if key not in keys:
            return found, ChildOutcome((), outcome.fault or "a result of another user's task")
        found[key] = result
    return found, outcome


def _run(tasks: list[UserTask]) -> Callable[[Send], None]:
    return lambda send: run_tasks(tasks, send)
