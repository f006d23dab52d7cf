"""The launcher's jobs in Slurm: sbatch, squeue, scancel, scontrol, and sacct for what slurmctld has forgotten."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping

from drainwise.errors import ActionRefused, PoolUnreachable
from drainwise.launch.backend import VANISHED, Backend, Place, Start, State
from drainwise.launch.bounded_command import Answer, run_bounded
from drainwise.launch.job_script import job_script
from drainwise.launch.resources import Resources
from drainwise.slurm import launch_states
from drainwise.slurm.launch_nice import NiceScale, nice_scale
from drainwise.slurm.launch_settings import SlurmLaunchSettings, slurm_settings
from drainwise.slurm.launch_states import Sighting
from drainwise.slurm.launch_submission import components, job_name, sbatch_arguments, tag_of, unfit

_NUMBER = re.compile(r"([0-9]{1,10})(?:;[A-Za-z0-9_.-]+)?")
_LICENSE = re.compile(r"^LicenseName=(\S+)", re.MULTILINE)
_GONE = "invalid job id"
_NO_ANSWER = (
    *("unable to contact", "unexpected message received", "connection refused", "timed out", "communication"),
    *("zero bytes were transmitted", "slurm_persist_conn", "resource temporarily unavailable"),
)
# Limits on jobs that are reached pass.
_PASSES = ("maxsubmitjob", "try again")
_NO_ACCOUNTING = "accounting storage is disabled"
_TOGETHER = 500  # jobs in one question
_LOOK_AGAIN = 2.0  # seconds before the accounting is asked again for a job it did not have
_OURS = "now-30days"  # how long ago the tags that are looked for may have been used
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "INPUTRC": "/dev/null", "TERM": "dumb"}
_UNIX_TIMES = {"SLURM_TIME_FORMAT": "%s"}
_LEFT_BEHIND = ("LC_ALL", "INPUTRC", "TERM", "OLDPWD")


def open_backend(settings: Mapping[str, object], options: str, place: Place) -> Backend:
    """Slurm as the table [backends.slurm] of `place.file` describes it; `options`: of the command line, see USAGE.

    Raises ConfigurationError or UsageError for what is written wrongly, PoolUnreachable when there is none here.
    """
    return SlurmBackend(slurm_settings(settings, options, place.file), place.key)


class SlurmBackend:
    """Slurm, see `Backend`. `key` is put before the names of jobs. Raises PoolUnreachable when it does not answer."""

    name = "slurm"

    def __init__(self, settings: SlurmLaunchSettings, key: str) -> None:
        self._settings, self._key = settings, key
        config = settings.config or os.environ.get("SLURM_CONF", "")
        self._environment = {**_ENVIRONMENT, **({"SLURM_CONF": config} if config else {})}
        self._scale: NiceScale | None = None
        if settings.use_nice:
            self._scale = nice_scale(self._ask("scontrol", "show", "config"))
        licenses = self._ask("scontrol", "--oneliner", "show", "licenses")
        self._licenses = frozenset(_LICENSE.findall(licenses))
        self._missing: dict[str, float] = {}  # since when, of the monotonic clock
        self._looked: dict[str, float] = {}

    @property
    def max_queued(self) -> int | None:
        """See `Backend`."""
        return self._settings.n_max_queued_jobs

    def fits(self, resources: Resources) -> str:
        """See `Backend`."""
        return unfit(resources)

    def free(self) -> Mapping[str, int] | None:
        """See `Backend`."""
        return None

    def start(self, job: Start) -> str:
        """See `Backend`."""
        if why := unfit(job.resources):
            raise ActionRefused(f"job {job.name!r}: {why}")
        parts = components(job.resources, self._licenses, self._settings.options)
        nice = None if self._scale is None else self._scale.nice(job.priority)
        arguments = sbatch_arguments(parts, job_name(self._key, job.name, job.tag), nice, job.wall_limit)
        answer = self._run("sbatch", *arguments, stdin=job_script(job, unwanted=_LEFT_BEHIND))
        if answer.code != 0:
            if answer.code < 0 or _is_no_answer(answer):
                raise PoolUnreachable(f"sbatch failed: {answer.complaint}")
            raise ActionRefused(f"sbatch refused: {answer.complaint}")
        number = _NUMBER.fullmatch(answer.out.strip())
        if number is None:
            raise PoolUnreachable("sbatch ended well but printed no job number")
        return number[1]

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """See `Backend`."""
        found: dict[str, str] = {}
        if tags:
            accounted = self._accounted(f"--starttime={_OURS}", f"--format={launch_states.ACCOUNTING_NAMES}")
            queued = self._ask(*launch_states.QUEUE, "--me", launch_states.QUEUE_NAMES)
            for number, name in launch_states.names_in(accounted or "") + launch_states.names_in(queued):
                tag = tag_of(name.strip())
                # Of the components of a heterogeneous job the first is the job.
                found[tag] = min(number, found.get(tag, number), key=int)
        return {tag: found[tag] for tag in tags if tag in found}

    def poll(self, ids: Collection[str]) -> Mapping[str, State]:
        """See `Backend`."""
        states, looked_for = {}, []
        for some in _parts(ids):
            queued = self._queued(some)
            for one in some:
                sighting = queued.get(one)
                if sighting is None:
                    looked_for.append(one)
                    continue
                self._forget(one)
                states[one] = sighting.as_state()
                if sighting.ended:
                    looked_for.append(one)  # for its CPU time
        states.update(self._completed(looked_for, states))
        return states

    def kill(self, ids: Collection[str]) -> None:
        """See `Backend`."""
        for some in _parts(ids):
            answer = self._run("scancel", *some)
            if answer.code < 0 or (answer.code != 0 and _is_no_answer(answer)):
                raise PoolUnreachable(f"scancel failed: {answer.complaint}")

    def reprioritise(self, priorities: Mapping[str, float]) -> None:
        """See `Backend`. Only with use_nice."""
        if self._scale is None:
            return
        orders = [f"update JobId={one} Nice={self._scale.nice(date)}\n" for one, date in priorities.items()]
        if orders:
            # One that has started meanwhile or ended is refused; the others are changed all the same.
            answer = self._run("scontrol", stdin="".join(orders))
            if answer.code < 0 or (answer.code != 0 and _is_no_answer(answer)):
                raise PoolUnreachable(f"scontrol failed: {answer.complaint}")

    def wait(self, seconds: float) -> None:
        """See `Backend`."""
        time.sleep(seconds)

    def close(self) -> None:
        """See `Backend`."""

    # ---- slurmctld ----

    def _queued(self, numbers: list[str]) -> dict[str, Sighting]:
        form = f"--Format={launch_states.QUEUE_FORMAT}"
        answer = self._run(*launch_states.QUEUE, f"--jobs={launch_states.joined(numbers)}", form, times=True)
        if answer.code == 0:
            return launch_states.queued_in(answer.out)
        if _GONE in answer.said.lower():
            return {}
        raise PoolUnreachable(f"squeue failed: {answer.complaint}")

    # ---- the accounting ----

    def _completed(self, numbers: Iterable[str], known: Mapping[str, State]) -> dict[str, State]:
        """What the accounting adds to those that have ended, and how those ended that slurmctld has forgotten."""
        now = time.monotonic()
        asked = [one for one in numbers if now - self._looked.get(one, -_LOOK_AGAIN) >= _LOOK_AGAIN]
        records = self._records(asked)
        states = {}
        for one in asked:
            record = records.get(one) if records is not None else None
            if record is not None and record.ended:
                states[one] = _merged(known.get(one), record)
            elif one not in known and records is not None:
                since = self._missing.setdefault(one, now)
                self._looked[one] = now
                if now - since >= self._settings.accounting_seconds:
                    states[one] = State(VANISHED, why="slurmctld does not know it, nor the accounting how it ended")
        for one in states:
            self._forget(one)
        return states

    def _records(self, numbers: list[str]) -> dict[str, Sighting] | None:
        """What the accounting has of these; None when it does not answer, which says nothing about any."""
        found: dict[str, Sighting] = {}
        try:
            for some in _parts(numbers):
                form = f"--format={launch_states.ACCOUNTING_FORMAT}"
                answer = self._accounted(f"--jobs={launch_states.joined(some)}", form)
                found.update(launch_states.accounted_in(answer or ""))
        except PoolUnreachable:
            return None
        return found

    def _accounted(self, *which: str) -> str | None:
        """What sacct prints; None where Slurm keeps no accounts. Raises PoolUnreachable."""
        answer = self._run(*launch_states.ACCOUNTING, *which)
        if answer.code == 0:
            return answer.out
        if _NO_ACCOUNTING in answer.said.lower():
            return None
        raise PoolUnreachable(f"sacct failed: {answer.complaint}")

    def _forget(self, number: str) -> None:
        self._missing.pop(number, None)
        self._looked.pop(number, None)

    # ---- commands ----

    def _run(self, name: str, *arguments: str, stdin: str = "", times: bool = False) -> Answer:
        environment = {**self._environment, **(_UNIX_TIMES if times else {})}
        return run_bounded(
            [f"{self._settings.bin}/{name}", *arguments], environment, self._settings.command_seconds, stdin
        )

    def _ask(self, name: str, *arguments: str) -> str:
        answer = self._run(name, *arguments)
        if answer.code != 0:
            raise PoolUnreachable(f"{name} failed: {answer.complaint}")
        return answer.out


def _is_no_answer(answer: Answer) -> bool:
    said = answer.said.lower()
    return any(sign in said for sign in (*_NO_ANSWER, *_PASSES))


def _merged(known: State | None, record: Sighting) -> State:
    """slurmctld's word on how a job ended with the CPU time of the accounting, or the accounting's alone."""
    told = record.as_state()
    if known is None:
        return told
    return State(known.state, known.code, known.wall if told.wall is None else told.wall, told.cpu, known.why)


def _parts(ids: Collection[str]) -> Iterator[list[str]]:
    ordered = list(ids)
    for first in range(0, len(ordered), _TOGETHER):
        yield ordered[first : first + _TOGETHER]
