"""Have per-user tasks done once a round, by one child per user: decide what each child is to do, and for how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from drainwise.facts.errors import PoolUnreachable
from drainwise.pilotad.attributes import GLIDEIN_AD
from drainwise.pilotad.site_ad import SiteAd
from drainwise.slurm.jobs.publish import is_foreign
from drainwise.slurm.node_agent.as_user import Identity, Users
from drainwise.slurm.node_agent.jobs import Key, NodeJob
from drainwise.slurm.node_agent.user_task import SHARED, UserTask, UserTaskResult, result_in, run_tasks
from drainwise.slurm.node_agent.work_dirs import WorkDirs

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
        self,
        jobs: Mapping[Key, NodeJob],
        notices: Mapping[Key, SiteAd | None],
        now: int,
        read: bool,
        stale: int = 0,
        checkpoints: tuple[str, ...] = (),
    ) -> dict[Key, UserTaskResult]:
        """Write `notices` for their jobs (None: no `.site.ad`) and, if `read`, read the reports; `now` in UNIX s.

        stale: what a pilot reported before that, UNIX s, counts as nothing. checkpoints: see `UserTask`.

        A job without a notice is passed over, and so is one whose user's children do not end.
        """
        by_user: dict[Identity, dict[str, UserTask]] = {}
        given: list[tuple[Key, Identity, UserTask]] = []
        seen: Counter[int] = Counter()
        places = Counter((job.lease.uid, job.lease.work_dir) for job in jobs.values())
        for key, notice in notices.items():
            job, lease, facts = jobs[key], jobs[key].lease, jobs[key].facts
            stuck = self._users.lost(lease.uid)
            if facts is None or stuck > 1:
                continue
            wanted = read and job.speaks and not is_foreign(facts)
            look = wanted and job.is_first and not stuck
            is_slow = now < max(job.look_again, self._slow_until.get(lease.uid, 0))
            who = Identity(lease.uid, lease.gid, seen[lease.uid] // JOBS_TOGETHER)
            seen[lease.uid] += 1
            task = UserTask(
                tree=job.tree,
                uid=lease.uid,
                notice=notice,
                cores=job.cores if wanted else 0,
                work_dir=lease.work_dir if look and not is_slow and lease.work_dir.startswith(b"/") else b"",
                shared=places[lease.uid, lease.work_dir] > 1,
                started=facts.start or lease.started,
                job=lease.job if look and now >= job.look_inside else "",
                stale=stale,
                checkpoints=checkpoints,
            )
            by_user.setdefault(who, {})[job.name] = task
            given.append((key, who, task))
        results, faults = self._users.results(by_user, run_tasks, result_in, USER_SECONDS)
        self._judge_users(faults, now)
        found = {}
        for key, who, task in given:
            job = jobs[key]
            result = results.get(job.name, UserTaskResult())
            self._take_in(job, task, result, not faults[who], now)
            if job.name in results:
                is_told = job.glidein is not None and task.is_silent(result)
                found[key] = replace(result, report=job.glidein) if is_told else result
        return found

    def is_slow(self, uid: int, now: int) -> bool:
        """Decide whether a user's files did not answer in the round of `now` (UNIX s)."""
        return now + SLOW_PERIOD == self._slow_until.get(uid)

    def _judge_users(self, faults: Mapping[Identity, str], now: int) -> None:
        by_uid: dict[int, str] = {}
        for who, fault in faults.items():
            by_uid[who.uid] = fault or by_uid.get(who.uid, "")
        for uid, fault in by_uid.items():
            if fault:
                self._slow_until[uid] = now + SLOW_PERIOD
            if fault or now >= self._slow_until.get(uid, 0):
                self._fault(f"user {uid}", fault)

    def _take_in(self, job: NodeJob, task: UserTask, result: UserTaskResult, is_whole: bool, now: int) -> None:
        """Take note of a result; is_whole: whether the child did all of its work."""
        if result.report is not None or (task.work_dir and is_whole):
            job.refused = ""  # all was looked at
        says = result.report is not None and result.report.source != GLIDEIN_AD
        job.is_glidein |= result.report is not None and not says
        if task.job or not task.is_silent(result):
            # Between two looks what was told at the last one counts, not what is seen from outside.
            job.glidein = None if says else result.report
        if task.work_dir and not says:
            job.look_again = now + WORK_DIR_PERIOD
        if task.job and not says:
            job.look_inside = now + GLIDEIN_PERIOD
        if result.saved > job.saved:
            job.saved, job.saves_each = result.saved, result.saved - job.saved if job.saved else 0
        job.refused = result.refused or job.refused
        job.reports = job.reports or result.report is not None
        self._note(job, job.refused)
        self._note(job, result.fault)

    def tell_apart(
        self, found: dict[Key, UserTaskResult], jobs: Mapping[Key, NodeJob], work_dirs: WorkDirs, now: int
    ) -> None:
        """Take the reports out of a WorkDir that another job has, on whatever node: whose it is nobody can tell.

        Asked when such a report has changed; while slurmctld does not answer it counts as before.
        """
        for key, result in found.items():
            if not result.in_work_dir or result.report is None:
                continue
            job = jobs[key]
            if job.apart is None or job.apart[0] != result.report.heartbeat:
                try:
                    job.apart = (result.report.heartbeat, work_dirs.is_alone(job.lease, now))
                except PoolUnreachable:
                    job.apart = (0, job.apart is not None and job.apart[1])
            if not job.apart[1]:
                job.refused = SHARED
                self._note(job, SHARED)
                found[key] = replace(result, report=None, refused=SHARED, in_work_dir=False)
