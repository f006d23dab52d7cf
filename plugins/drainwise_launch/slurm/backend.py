"""The launcher's jobs in Slurm: sbatch, squeue, scancel, scontrol, and sacct for what slurmctld has forgotten.

All questions are for the jobs of this user alone, in one answer: so slurmctld packs no others, and no other user's job
is ever taken for ours. A job's id is its number and its tag, see `launch_states`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from drainwise.common.bounded_command import Answer
from drainwise.facts.errors import ActionRefused, PoolFull, PoolUnreachable
from drainwise.slurm.jobs.commands import NO_ANSWER, PLAIN, SHOW_CONFIG
from drainwise_launch.backend import VANISHED, Backend, Commands, JobState, LaunchPlace, Queueing, Start, in_parts
from drainwise_launch.choice.resources import Resources
from drainwise_launch.job_script import job_script
from drainwise_launch.slurm import states as launch_states
from drainwise_launch.slurm import submission

_NUMBER = re.compile(r"([0-9]{1,10})(?:;[A-Za-z0-9_.-]+)?")
_LICENSE = re.compile(r"^LicenseName=(\S+)", re.MULTILINE)
_NO_ANSWER = (
    *NO_ANSWER,
    *("send failure", "receive failure", "zero bytes were transmitted", "slurm_persist_conn", "authentication"),
    *("resource temporarily unavailable", "standby mode", "find an address", "try again"),
)
# Behind these words stands Slurm's own reason, before them may be what a user wrote.
_VERDICT = "submission failed: "
# Any limit violates the policy; one on jobs is AssocGrpSubmitJobsLimit, QOSMaxSubmitJobPerUserLimit, or another such.
_POLICY, _LIMIT = "policy", "submitjob"
# Against MaxJobCount sbatch tries for two minutes, the second time after a second.
_TRIES_AGAIN = "unable to accept job, sleeping and retrying"
_SECOND_TRY = 1.0
_NO_ACCOUNTING = "accounting storage is disabled"
_TOGETHER = 500  # jobs in one question
_LOOK_AGAIN = 2.0  # seconds before the accounting is asked again for a job it did not have
_SPARED = 30.0  # seconds before an accounting that did not answer is asked again
_OURS = "now-30days"  # how long ago the tags that are looked for may have been used
_LEFT_BEHIND = ("LC_ALL", "INPUTRC", "TERM", "OLDPWD")
_OF_SLURM = ("SLURM_", "SLURMD_")  # a launcher that is in a job itself has its own, which are none of this job's


def open_backend(settings: Mapping[str, object], options: str, place: LaunchPlace) -> Backend:
    """Open Slurm as the table [backends.slurm] of `place.file` describes it; `options`: of the command line, see USAGE.

    Raises ConfigurationError or UsageError for what is written wrongly, PoolUnreachable when there is none here.
    """
    return SlurmBackend(submission.slurm_settings(settings, options, place.file), f"{place.key}:")


class SlurmBackend(Queueing):
    """Slurm, see `Backend`. `key`: what the names of jobs begin with, where the settings have no repo_key.

    Raises PoolUnreachable when it does not answer.
    """

    name = "slurm"

    def __init__(self, settings: submission.SlurmLaunchSettings, key: str) -> None:
        self._settings, self._key = settings, settings.repo_key or key
        self.max_queued = settings.n_max_queued_jobs
        config = settings.config or os.environ.get("SLURM_CONF", "")
        environment = {**PLAIN, **({"SLURM_CONF": config} if config else {})}
        self._commands = Commands(settings.bin, environment, settings.command_seconds, _is_no_answer)
        self._scale: submission.NiceScale | None = None
        ends = time.monotonic() + settings.init_timeout
        if settings.use_nice:
            self._scale = submission.nice_scale(self._commands.ask(*SHOW_CONFIG, ends=ends))
        licenses = self._commands.ask("scontrol", "--oneliner", "show", "licenses", ends=ends)
        self._licenses = settings.more_licenses.union(_LICENSE.findall(licenses))
        self._missing: dict[str, float] = {}  # since when, of the monotonic clock
        self._looked: dict[str, float] = {}
        self._silence: tuple[float, PoolUnreachable] | None = None  # since when the accounting has not answered

    def fits(self, resources: Resources) -> str:
        """See `Backend`."""
        return submission.unfit(resources)

    def start(self, job: Start) -> str:
        """See `Backend`."""
        if why := submission.unfit(job.resources):
            raise ActionRefused(f"job {job.name!r}: {why}")
        parts = submission.components(job.resources, self._licenses, self._settings.options)
        nice = None if self._scale is None else self._scale.nice(job.priority)
        arguments = submission.sbatch_arguments(
            parts, submission.job_name(self._key, job.name, job.tag), nice, job.wall_limit
        )
        mine = {name: value for name, value in job.environment.items() if not name.startswith(_OF_SLURM)}
        number = self._submitted(arguments, job_script(replace(job, environment=mine), unwanted=_LEFT_BEHIND))
        return launch_states.native_of(number, job.tag)

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """See `Backend`."""
        found = launch_states.by_tag(self._queued(), set(tags))
        left = set(tags) - set(found)
        if left:
            found.update(launch_states.by_tag(self._accounted(f"--starttime={_OURS}"), left))
        return found

    def poll(self, ids: Collection[str]) -> Mapping[str, JobState]:
        """See `Backend`. Whom slurmctld has forgotten is left out while the accounting does not answer."""
        queued = self._queued()
        states: dict[str, JobState] = {}
        looked_for = []
        for one in ids:
            if one in queued:
                self._forget(one)
                states[one] = queued[one]
            if one not in queued or queued[one].has_ended:  # for its CPU time
                looked_for.append(one)
        states.update(self._completed(looked_for, states))
        if looked_for and not states and self._silence:
            raise self._silence[1]  # as there is nothing else to wait for
        return states

    def kill(self, ids: Collection[str]) -> None:
        """See `Backend`. The numbers of those that slurmctld does not know may be others' by now."""
        queued = self._queued()
        for some in in_parts([one for one in ids if one in queued], _TOGETHER):
            self._commands.order("scancel", *map(launch_states.number_of, some))

    def reprioritise(self, priorities: Mapping[str, float]) -> None:
        """See `Backend`. Only with use_nice."""
        if self._scale is None:
            return
        orders = [
            f"update JobId={launch_states.number_of(one)} Nice={self._scale.nice(date)}\n"
            for one, date in priorities.items()
        ]
        if orders:
            # One that has started meanwhile or ended is refused; the others are changed all the same.
            self._commands.order("scontrol", stdin="".join(orders))

    # ---- slurmctld ----

    def _submitted(self, arguments: list[str], script: str) -> str:
        """Return the number of a new job. Raises ActionRefused, PoolFull, PoolUnreachable."""
        begin = time.monotonic()
        answer = self._commands.answer("sbatch", *arguments, stdin=script, until=_TRIES_AGAIN)
        if _TRIES_AGAIN in answer.whole and time.monotonic() - begin < _SECOND_TRY:
            raise PoolFull(f"sbatch: {answer.complaint}")
        if answer.code < 0 or _is_no_answer(answer):
            raise PoolUnreachable(f"sbatch failed: {answer.complaint}")
        if answer.code != 0:
            said = answer.whole.lower()
            full = _POLICY in said.rpartition(_VERDICT)[2] and _LIMIT in said
            raise (PoolFull if full else ActionRefused)(f"sbatch refused: {answer.complaint}")
        number = _NUMBER.fullmatch(answer.text.strip())
        if number is None:
            raise PoolUnreachable("sbatch ended well but printed no job number")
        return number[1]

    def _queued(self) -> dict[str, JobState]:
        return launch_states.queued_in(self._commands.ask(*launch_states.QUEUE))

    # ---- the accounting ----

    def _completed(self, ids: Iterable[str], known: Mapping[str, JobState]) -> dict[str, JobState]:
        """Return what the accounting adds to ended jobs, and how those ended that slurmctld has forgotten."""
        now = time.monotonic()
        asked = [one for one in ids if now - self._looked.get(one, -_LOOK_AGAIN) >= _LOOK_AGAIN]
        records = self._records(asked)
        states = {}
        for one in asked:
            record = records.get(one) if records is not None else None
            if record is not None and record.has_ended:
                states[one] = launch_states.merged(known.get(one), record)
            elif one not in known and records is not None:
                since = self._missing.setdefault(one, now)
                self._looked[one] = now
                if now - since >= self._settings.accounting_seconds:
                    states[one] = JobState(VANISHED, why="slurmctld does not know it, nor the accounting how it ended")
        for one in states:
            self._forget(one)
        return states

    def _records(self, ids: list[str]) -> dict[str, JobState] | None:
        """Return what the accounting has of these; None when it does not answer, which says nothing about any."""
        if self._silence and time.monotonic() - self._silence[0] < _SPARED:
            return None
        found: dict[str, JobState] = {}
        try:
            for some in in_parts(ids, _TOGETHER):
                found.update(self._accounted(f"--jobs={','.join(map(launch_states.number_of, some))}"))
        except PoolUnreachable as fault:
            self._silence = (time.monotonic(), fault)
            return None
        self._silence = None
        return found

    def _accounted(self, which: str) -> dict[str, JobState]:
        """Return what the accounting has; nothing where Slurm keeps no accounts. Raises PoolUnreachable."""
        answer = self._commands.answer(*launch_states.ACCOUNTING, f"--user={os.getuid()}", which)
        if answer.code == 0:
            return launch_states.accounted_in(answer.text)
        if _NO_ACCOUNTING in answer.whole.lower():
            return {}
        raise PoolUnreachable(f"sacct failed: {answer.complaint}")

    def _forget(self, one: str) -> None:
        self._missing.pop(one, None)
        self._looked.pop(one, None)


def _is_no_answer(answer: Answer) -> bool:
    """Decide whether it failed for want of an answer, and was not refused."""
    said = answer.whole.lower().rpartition(_VERDICT)[2]
    return answer.code != 0 and any(sign in said for sign in _NO_ANSWER)
