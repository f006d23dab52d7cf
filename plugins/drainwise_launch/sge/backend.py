"""The launcher's jobs in Grid Engine: qsub, qstat, qdel, qalter, and qacct for how they ended."""

from __future__ import annotations

import os
import pwd
import re
import time
from collections.abc import Collection, Iterable, Mapping

from drainwise.common.bounded_command import Answer
from drainwise.common.printable import one_line
from drainwise.facts.errors import ActionRefused, PoolFull, PoolUnreachable
from drainwise_launch.backend import (
    DONE,
    RUNNING,
    VANISHED,
    WAITING,
    Commands,
    JobState,
    LaunchPlace,
    Queueing,
    Start,
    in_parts,
    tag_of,
)
from drainwise_launch.choice.resources import Resources
from drainwise_launch.job_script import job_script
from drainwise_launch.sge import answers, submission
from drainwise_launch.sge.priority_steps import PrioritySteps

IN_ERROR = 126
"""Code of a job that Grid Engine put into its error state: it never ran."""
DELETED = 128 + 15
"""Code of a job that was deleted, by us, while it waited: Grid Engine has no record of those."""

# What the commands say when sge_qmaster did not answer, or not whole, rather than refuse. Measured with 8.1.9.
_NO_ANSWER = (
    *("unable to send message to qmaster", "commlib error", "error reading answer list", "unable to contact"),
    # The file system of $SGE_ROOT is away.
    *("unable to initialize environment", "unable to read qmaster name", "directory doesn't exist"),
)
_PASSED_ON = ("SGE_QMASTER_PORT", "SGE_EXECD_PORT", "SGE_CELL", "HOME", "TZ")
_LIMIT_REACHED = 25  # code of qsub: max_u_jobs or max_jobs, see sge_submit(1)
_NUMBER = re.compile(r"[0-9]{1,10}")
_TOGETHER = 200  # jobs in one order
_ONE_BY_ONE = 3  # queries to the accounting before one for all is cheaper
_LOOK_AGAIN = 2.0  # seconds before the accounting is asked again for a job it did not have
_MARGIN = 2 * 3600  # seconds: of clocks, when the accounting is asked for what began lately
_EARLIER = 2 * 86_400  # seconds: how far back it is asked for jobs that an earlier launcher saw waiting


def open_backend(settings: Mapping[str, object], options: str, place: LaunchPlace) -> SgeBackend:
    """Open Grid Engine as [backends.sge] of `place.file` describes it; `options`: `-p PRIORITY`, or nothing.

    Raises ConfigurationError or UsageError for what is written wrongly, PoolUnreachable when there is none here.
    """
    backend = SgeBackend(submission.sge_settings(settings, options, place.file), place.key, place.state)
    backend.find([place.state])  # no job's tag: whether qstat and qacct answer at all
    return backend


class SgeBackend(Queueing):
    """Grid Engine, see `Backend`. `key`: of the launch, where the settings have none; with `state` tags begin.

    Grid Engine gives numbers anew after some millions of jobs, so that what bears another tag is somebody else's.
    """

    name = "sge"

    def __init__(self, settings: submission.SgeSettings, key: str, state: str = "") -> None:
        self._settings, self._key, self._state = settings, settings.repo_key or f"{key}:", state
        self.max_queued = settings.n_max_queued_jobs
        self._commands = _commands(settings)
        self._user = pwd.getpwuid(os.getuid()).pw_name
        highest = settings.default_prio
        self._steps = PrioritySteps(highest, max(submission.LOWEST, highest - settings.prio_span))
        self._earlier = time.time() - _EARLIER
        self._waiting: set[str] = set()  # as of the last answer
        self._waited: dict[str, float] = {}  # when it was seen to wait for the last time, UNIX s
        self._killed: set[str] = set()
        self._missing: dict[str, float] = {}  # since when, of the monotonic clock
        self._looked: dict[str, float] = {}

    def fits(self, resources: Resources) -> str:
        """See `Backend`."""
        return submission.unfit(resources)

    def start(self, job: Start) -> str:
        """See `Backend`."""
        if why := submission.unfit(job.resources):
            raise ActionRefused(f"job {job.name!r}: {why}")
        step = self._steps.step_for(job.priority)
        arguments = submission.qsub_arguments(self._settings, self._key, job, step)
        answer = self._commands.order("qsub", *arguments, stdin=job_script(job, submission.MOVED_CODES))
        if answer.code:
            fault = PoolFull if answer.code == _LIMIT_REACHED else ActionRefused
            raise fault(f"qsub refused: {answer.complaint}")
        number = answer.text.strip()
        if not _NUMBER.fullmatch(number):
            raise PoolUnreachable("qsub ended well but printed no job number")
        self._steps.put(number, job.priority, step)
        self._waiting.add(number)
        self._waited[number] = time.time()
        return number

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """See `Backend`."""
        # One that has ended may be missing in the accounting for some seconds.
        found = {tag_of(job.name): job.number for job in self._queued(answers.ENDED_TOO).values()}
        for tag in set(tags) - set(found):
            numbers = [record.number for record in self._records("-j", f"*.{tag}") if tag_of(record.name) == tag]
            numbers += [number for number, job in self._details([f"*.{tag}"]).items() if tag_of(job.name) == tag]
            found.update((tag, number) for number in numbers)
        return {tag: found[tag] for tag in tags if tag in found}

    def poll(self, ids: Collection[str]) -> Mapping[str, JobState]:
        """See `Backend`."""
        now = time.time()
        jobs = self._queued()
        states = self._ended([one for one in ids if one not in jobs])
        there = {one: jobs[one] for one in ids if one in jobs}
        for one, job in there.items():
            self._missing.pop(one, None)
            states[one] = self._clear_away(job) if job.in_error else _state_of(job)
        self._waiting = {one for one in there if states[one].state == WAITING}
        self._waited.update(dict.fromkeys(self._waiting, now))
        self._steps.set_waiting({one: jobs[one].priority for one in self._waiting})
        return states

    def kill(self, ids: Collection[str]) -> None:
        """See `Backend`. A number that another job has by now is left alone."""
        for some in in_parts(self._details(ids), _TOGETHER):
            self._commands.order("qdel", ",".join(some))
            self._killed.update(some)

    def reprioritise(self, priorities: Mapping[str, float]) -> None:
        """See `Backend`. Grid Engine receives the order of those that wait, see `PrioritySteps`."""
        if not self._settings.prio_span:
            return
        by_step: dict[int, list[str]] = {}
        for one, step in self._steps.to_lower(priorities).items():
            by_step.setdefault(step, []).append(one)
        for step, those in by_step.items():
            for some in in_parts(those, _TOGETHER):
                # One that has started meanwhile or ended stays as it is; the others are changed all the same.
                self._commands.order("qalter", "-p", str(step), ",".join(some))
                for one in some:
                    self._steps.lowered(one, step)

    # ---- the queue ----

    def _queued(self, which: str = answers.THERE) -> dict[str, answers.QueuedJob]:
        jobs = answers.jobs_in(self._commands.ask("qstat", *answers.LISTING, which))
        return {number: job for number, job in jobs.items() if self._is_ours(job)}

    def _details(self, which: Iterable[str]) -> dict[str, answers.Details]:
        """Return the details of these jobs, as far as they are there: numbers, or patterns of names."""
        jobs: dict[str, answers.Details] = {}
        for some in in_parts(list(which), _TOGETHER):
            jobs |= answers.details_in(self._commands.ask("qstat", *answers.DETAILS, ",".join(some)))
        return {number: job for number, job in jobs.items() if self._is_ours(job)}

    def _is_ours(self, job: answers.QueuedJob | answers.Details | answers.Record) -> bool:
        """Tell whether it is of this launch; anybody may give a job the name of one in the queue."""
        return tag_of(job.name).startswith(self._state) and job.owner == self._user

    def _clear_away(self, job: answers.QueuedJob) -> JobState:
        """Remove a job in error, which would stay in the queue; it has failed, and qstat alone says why."""
        known = self._details([job.number]).get(job.number)
        self._commands.order("qdel", job.number)
        why = (known.error if known else "") or "it could not be started"
        return JobState(DONE, IN_ERROR, why=f"in Grid Engine's error state ({job.letters}): {one_line(why)}")

    # ---- the accounting ----

    def _ended(self, ids: Iterable[str]) -> dict[str, JobState]:
        """Return the states of jobs that are in no queue; one whose record may still come is left out."""
        now = time.monotonic()
        asked = [one for one in ids if now - self._looked.get(one, -_LOOK_AGAIN) >= _LOOK_AGAIN]
        records = self._records_of(asked)
        self._looked.update(dict.fromkeys(asked, now))
        late = [one for one in asked if now - self._missing.setdefault(one, now) >= self._settings.accounting_seconds]
        lost = set(late).difference(records, self._details(late))
        for one in lost:  # more than the one query for all has found
            records.update(self._records_of([one]))
        states = {}
        for one in asked:
            if one in records:
                states[one] = _ending(records[one])
            elif one in self._killed and one in self._waiting:
                states[one] = JobState(DONE, DELETED, why="deleted before it began")
            elif one in lost:
                states[one] = JobState(
                    VANISHED, why="in no queue of Grid Engine, and its accounting has no record of it"
                )
        for one in states:
            del self._missing[one], self._looked[one]
            self._waited.pop(one, None)
            self._killed.discard(one)
        return states

    def _records_of(self, ids: list[str]) -> dict[str, answers.Record]:
        """Return the final records of those that have one: few are queried one by one, many in one query."""
        if len(ids) <= _ONE_BY_ONE:
            records = [record for one in ids for record in self._records("-j", one)]
        else:
            began = min(self._waited.get(one, self._earlier) for one in ids) - _MARGIN
            since = time.strftime("%Y%m%d%H%M.%S", time.localtime(began))
            records = self._records("-b", since, "-j", submission.pattern_of(self._key))
        return answers.last_by_number(records)

    def _records(self, *which: str) -> list[answers.Record]:
        answer = self._commands.answer("qacct", *which)
        if answer.code == 0:
            return [record for record in answers.records_in(answer.text) if self._is_ours(record)]
        if answers.is_none(answer):
            return []
        raise PoolUnreachable(f"qacct failed: {answer.complaint}")


def _state_of(job: answers.QueuedJob) -> JobState:
    if not job.waits:
        return JobState(RUNNING)
    return JobState(WAITING, why="held back (qhold)" if job.held else "")


def _ending(record: answers.Record) -> JobState:
    code = submission.true_code(record.exit_status)
    why = ""
    if record.failed:
        why = f"failed {record.failed}: {record.reason}" if record.reason else f"failed {record.failed}"
        if record.failed in answers.LOST:
            return JobState(VANISHED, wall=record.wall, why=why)
        code = code or 1
    return JobState(DONE, code, record.wall, record.cpu, why)


def _commands(settings: submission.SgeSettings) -> Commands:
    """Return Grid Engine's commands, with what they need to know: where they are, the cell, the cluster."""
    environment = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
    environment |= {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "SGE_ROOT": settings.root}
    if settings.cell:
        environment["SGE_CELL"] = settings.cell
    if settings.cluster:
        environment |= {"SGE_CLUSTER": settings.cluster, "SGE_CLUSTER_NAME": settings.cluster}

    def is_unanswered(answer: Answer) -> bool:
        return any(sign in answer.whole.lower() for sign in _NO_ANSWER)

    return Commands(settings.bin, environment, settings.command_seconds, is_unanswered)
