"""The launcher's jobs in HTCondor: the schedd takes them, the event log shows how they fare."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TypeVar

from drainwise.common.bounded_call import within
from drainwise.facts.errors import ActionRefused, PoolFull, PoolUnreachable
from drainwise.htcondor.ads.values import Ad, text
from drainwise_launch.backend import DONE, VANISHED, Backend, JobState, LaunchPlace, Queueing, Start, in_parts
from drainwise_launch.choice.resources import Resources
from drainwise_launch.htcondor import schedd as launch_schedd
from drainwise_launch.htcondor import states as launch_states
from drainwise_launch.htcondor import submission
from drainwise_launch.htcondor.states import EventLogJobs

T = TypeVar("T")
_Found = tuple[str, str, Ad]  # number, tag, ad

_TOGETHER = 200  # jobs in one constraint
_MARGIN = 2 * 86_400  # seconds: how long before the launch what it finds in the history may have ended
_SOON, _SOONER = 5.0, 1.0  # seconds until the queue is asked for jobs that the log does not know, or the queue
_LOG = "htcondor-events.log"
_SCRIPTS = "htcondor-scripts"


def open_backend(settings: Mapping[str, object], options: str, place: LaunchPlace) -> Backend:
    """Open HTCondor as the table [backends.htcondor] of `place.file` describes it; `options`: NAME=VALUE, of COMMANDS.

    Raises ConfigurationError or UsageError for what is written wrongly, PoolUnreachable when there is none here.
    """
    return CondorBackend(submission.condor_settings(settings, options, place.file), place)


class CondorBackend(Queueing):
    """HTCondor, see `Backend`. Raises PoolUnreachable when the schedd does not answer.

    A schedd that has lost its queue gives numbers anew, so that what bears another tag is somebody else's.
    """

    name = "htcondor"

    def __init__(self, settings: submission.CondorLaunchSettings, place: LaunchPlace) -> None:
        self._settings, self._key, self._directory, self._state = settings, place.key, place.directory, place.state
        self.max_queued = settings.n_max_queued_jobs
        if not submission.is_sound(place.directory):
            raise PoolUnreachable(f"HTCondor cannot use a directory called {place.directory!a}")
        self._point = launch_schedd.AccessPoint(settings.schedd, settings.collector)
        self._sizes: list[tuple[int, int]] | None = None  # of slots
        self._queue()
        try:
            os.makedirs(f"{place.directory}/{_SCRIPTS}", mode=0o700, exist_ok=True)
        except OSError as fault:
            raise PoolUnreachable(f"{fault.filename}: cannot be made: {fault.strerror}") from None
        self._log = launch_schedd.EventLog(f"{place.directory}/{_LOG}")
        self._logged = EventLogJobs()
        self._began = time.time()
        self._tags: dict[str, str] = {}  # of those whose start, or finding, we have seen
        self._asked = time.monotonic()  # when the queue was
        self._missing: dict[str, float] = {}  # since when, of the same clock, it is in no queue

    def fits(self, resources: Resources) -> str:
        """See `Backend`. With check_slots also: no slot has the cores and the memory, whoever may use it."""
        return submission.unfit(resources) or (self._without_slot(resources) if self._settings.check_slots else "")

    def _without_slot(self, resources: Resources) -> str:
        if self._sizes is None:
            self._sizes = within(self._settings.command_seconds, self._point.slot_sizes, "the collector")
        return submission.without_slot(resources, self._sizes)

    def start(self, job: Start) -> str:
        """See `Backend`."""
        if why := submission.unfit(job.resources):
            raise ActionRefused(f"job {job.name!r}: {why}")
        if job.outputs and not (submission.is_sound(job.cwd) and submission.is_sound(job.stdout)):
            raise ActionRefused(f"job {job.name!r}: HTCondor cannot use a directory called {job.cwd!a}")
        script = self._script(job.tag)
        _write(script, submission.script_of(job))
        log, directory = f"{self._directory}/{_LOG}", self._directory
        settings = self._settings
        words = submission.description(job, self._key, script, log, directory, settings.use_prio, settings.options)
        try:
            number = self._within(partial(self._point.submit, words))
        except (ActionRefused, PoolFull):
            _remove(script)
            raise
        self._tags[number] = job.tag
        return number

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """See `Backend`."""
        wanted = set(tags)
        self._read_log()
        found = self._logged.numbers(wanted)
        if wanted - found.keys():
            found.update((tag, number) for number, tag, _ad in self._queue() if tag in wanted)
        for some in in_parts(wanted - found.keys(), _TOGETHER):
            ended = self._history(launch_schedd.tagged(some), len(some))
            found.update((tag, number) for number, tag, _ad in ended if tag in wanted)
        self._tags.update((number, tag) for tag, number in found.items())
        return found

    def poll(self, ids: Collection[str]) -> Mapping[str, JobState]:
        """See `Backend`."""
        self._read_log()
        states = {one: state for one in ids if (state := self._logged_state(one)) is not None}
        states.update(self._looked([one for one in ids if one not in states or states[one].state != DONE], states))
        if self._settings.fail_held:
            states = {one: launch_states.failed_if_held(state) for one, state in states.items()}
        held = [one for one, state in states.items() if launch_states.is_held(state)]
        if held:
            self.kill(held)
        for one, state in states.items():
            if state.has_ended:
                self._forget(one)
        return states

    def kill(self, ids: Collection[str]) -> None:
        """See `Backend`."""
        for which in map(self._which, in_parts(ids, _TOGETHER)):
            self._within(partial(self._point.remove, which))

    def reprioritise(self, priorities: Mapping[str, float]) -> None:
        """See `Backend`. Only with use_prio."""
        if self._settings.use_prio and priorities:
            wanted = {
                one: submission.job_priority(priorities[one]) for one in self._own(self._queue()) if one in priorities
            }
            self._within(partial(self._point.set_priorities, wanted))

    def close(self) -> None:
        """See `Backend`."""
        self._log.close()
        # Each job that is not known to have ended has a script still: after the last one the log is of no use either.
        with contextlib.suppress(OSError):
            os.rmdir(f"{self._directory}/{_SCRIPTS}")
            os.unlink(f"{self._directory}/{_LOG}")

    # ---- the log ----

    def _read_log(self) -> None:
        for event in self._log.news():
            self._logged.take(event)

    def _logged_state(self, number: str) -> JobState | None:
        return self._logged.state(number, self._tag(number))

    def _tag(self, number: str) -> str:
        """Return the tag of one of our jobs; empty for one of an earlier launch that is not in the log."""
        return self._tags.get(number) or self._logged.tag(number)

    def _forget(self, number: str) -> None:
        tag = self._tag(number)
        self._tags.pop(number, None)
        self._missing.pop(number, None)
        self._logged.forget(number)
        if tag:
            _remove(self._script(tag))

    def _script(self, tag: str) -> str:
        return f"{self._directory}/{_SCRIPTS}/{tag}"

    # ---- queue and history ----

    def _looked(self, ids: list[str], states: Mapping[str, JobState]) -> dict[str, JobState]:
        """Ask the queue for these when it is time: the log may be lost, or a job. states: by the log."""
        settings, now = self._settings, time.monotonic()
        every = _SOONER if self._missing else _SOON if any(one not in states for one in ids) else settings.check_seconds
        if not ids or now - self._asked < min(every, settings.check_seconds):
            return {}
        queue = self._own(self._queue())
        self._asked = now
        self._read_log()
        found: dict[str, JobState] = {}
        for one in ids:
            logged = self._logged_state(one)
            if logged is not None and logged.state == DONE:
                found[one] = logged
            elif one in queue:
                self._missing.pop(one, None)
                state = launch_states.queued(queue[one])
                if state is not None:
                    found[one] = state
        return {**found, **self._gone([one for one in ids if one not in found and one not in queue], now)}

    def _gone(self, ids: list[str], now: float) -> dict[str, JobState]:
        """Return the states of those that are in no queue: by the history, or vanished."""
        found: dict[str, JobState] = {}
        for some in in_parts(ids, _TOGETHER):
            ads = self._own(self._history(self._which(some), len(some)))
            found.update((number, launch_states.ended(ad)) for number, ad in ads.items())
        for one in ids:
            since = self._missing.setdefault(one, now)
            if one not in found and now - since >= self._settings.history_seconds:
                found[one] = JobState(VANISHED, why="not in the queue, and the history does not know how it ended")
        return found

    def _which(self, ids: Collection[str]) -> str:
        """Return the constraint for jobs: by their tags, where we know them."""
        tags = {one: tag for one in ids if (tag := self._tag(one))}
        return launch_schedd.either(tags.values(), [one for one in ids if one not in tags], self._state)

    def _own(self, found: list[_Found]) -> dict[str, Ad]:
        """Return jobs by number, without those that have the number of one of our jobs but not its tag."""
        return {number: ad for number, tag, ad in found if tag == (self._tag(number) or tag)}

    def _queue(self) -> list[_Found]:
        """Query our jobs in the queue."""
        return self._found(self._within(partial(self._point.in_queue, launch_schedd.tagged_with(self._state))))

    def _history(self, constraint: str, most: int) -> list[_Found]:
        since = int(self._began - _MARGIN)
        return self._found(self._within(partial(self._point.in_history, constraint, most, since)))

    def _found(self, ads: list[Ad]) -> list[_Found]:
        found = [(launch_states.number_of(ad), text(ad, submission.TAG) or "", ad) for ad in ads]
        return [one for one in found if one[1].startswith(self._state)]

    def _within(self, call: Callable[[], T]) -> T:
        return within(self._settings.command_seconds, call, "the schedd")


def _write(path: str, script: str) -> None:
    """Write the script of a start; one that was begun before is replaced. Raises PoolUnreachable: it may pass."""
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(script)
    except OSError as fault:
        raise PoolUnreachable(f"{path} cannot be written: {fault.strerror}") from None


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
