"""The launcher's jobs in HTCondor: the schedd takes them, the event log tells how they fare."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar

from drainwise.errors import ActionRefused, PoolUnreachable
from drainwise.htcondor import launch_schedd, launch_states
from drainwise.htcondor.launch_log import EventLog
from drainwise.htcondor.launch_settings import CondorLaunchSettings, condor_settings
from drainwise.htcondor.launch_states import Course
from drainwise.htcondor.launch_submission import TAG, description, job_priority, unfit
from drainwise.htcondor.pool_ads import Ad, text
from drainwise.htcondor.time_limit import within
from drainwise.launch.backend import DONE, VANISHED, Backend, Place, Start, State
from drainwise.launch.job_script import job_script
from drainwise.launch.resources import Resources

T = TypeVar("T")

_NUMBER = re.compile(r"[0-9]{1,10}\.[0-9]{1,10}")
_TOGETHER = 200  # jobs in one question
_MARGIN = 2 * 86_400  # seconds: how long before the launch what it finds in the history may have ended
_FIRST_LOOK = 5.0  # seconds after which the queue is asked for a job of which the log has told nothing
_LOG = "htcondor-events.log"
_SCRIPTS = "htcondor-scripts"


def open_backend(settings: Mapping[str, object], options: str, place: Place) -> Backend:
    """HTCondor as the table [backends.htcondor] of `place.file` describes it; `options`: NAME=VALUE, of COMMANDS.

    Raises ConfigurationError or UsageError for what is written wrongly, PoolUnreachable when there is none here.
    """
    return CondorBackend(condor_settings(settings, options, place.file), place)


class CondorBackend:
    """HTCondor, see `Backend`. Raises PoolUnreachable when the schedd does not answer.

    A schedd that has lost its queue gives numbers anew, so that what bears another tag is somebody else's.
    """

    name = "htcondor"

    def __init__(self, settings: CondorLaunchSettings, place: Place) -> None:
        self._settings, self._key, self._directory, self._state = settings, place.key, place.directory, place.state
        if not place.directory.isprintable():
            raise PoolUnreachable(f"HTCondor cannot use a directory called {place.directory!a}")
        self._asked("False")
        os.makedirs(f"{place.directory}/{_SCRIPTS}", mode=0o700, exist_ok=True)
        self._log = EventLog(f"{place.directory}/{_LOG}")
        self._began = time.time()
        self._courses: dict[str, Course] = {}
        self._scripts: dict[str, str] = {}
        self._checked: dict[str, float] = {}  # when the queue was asked for it, of the monotonic clock
        self._missing: dict[str, float] = {}  # since when it is in no queue

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
        script = f"{self._directory}/{_SCRIPTS}/{job.tag}"
        _write(script, job_script(job))
        log, directory = f"{self._directory}/{_LOG}", self._directory
        settings = self._settings
        words = description(job, self._key, script, log, directory, settings.use_prio, settings.options)
        number = self._within(lambda: launch_schedd.submitted(settings.schedd, settings.collector, words))
        self._scripts[number] = script
        self._checked[number] = time.monotonic() + _FIRST_LOOK - settings.check_seconds
        return number

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """See `Backend`."""
        found: dict[str, str] = {}
        for some in _parts(tags):
            ads = self._asked(launch_schedd.tagged(some))
            found.update({text(ad, TAG) or "": launch_states.number_of(ad) for ad in ads})
            missing = [tag for tag in some if tag not in found]
            if missing:
                ads = self._history(launch_schedd.tagged(missing), len(missing))
                found.update({text(ad, TAG) or "": launch_states.number_of(ad) for ad in ads})
        return {tag: found[tag] for tag in tags if tag in found}

    def poll(self, ids: Collection[str]) -> Mapping[str, State]:
        """See `Backend`."""
        self._read_log()
        states = {one: state for one in ids if (state := self._told(one)) is not None}
        states.update(self._checked_in_queue([one for one in ids if one not in states or states[one].state != DONE]))
        held = [one for one, state in states.items() if state.state == DONE and state.why.startswith("on hold")]
        if held:
            self.kill(held)
        for one, state in states.items():
            if state.state in {DONE, VANISHED}:
                self._forget(one)
        return states

    def kill(self, ids: Collection[str]) -> None:
        """See `Backend`."""
        settings = self._settings
        for some in _parts(ids):
            self._within(lambda some=some: launch_schedd.removed(settings.schedd, settings.collector, some))  # type: ignore[misc]

    def reprioritise(self, priorities: Mapping[str, float]) -> None:
        """See `Backend`. Only with use_prio."""
        settings = self._settings
        if settings.use_prio and priorities:
            told = {one: job_priority(date) for one, date in priorities.items() if _NUMBER.fullmatch(one)}
            self._within(lambda: launch_schedd.with_priorities(settings.schedd, settings.collector, told))

    def wait(self, seconds: float) -> None:
        """See `Backend`."""
        time.sleep(seconds)

    def close(self) -> None:
        """See `Backend`."""
        self._log.close()

    # ---- the log ----

    def _read_log(self) -> None:
        for event in self._log.news():
            self._courses.setdefault(event.number, Course()).take(event)

    def _told(self, number: str) -> State | None:
        course = self._courses.get(number)
        return course.state if course is not None else None

    def _forget(self, number: str) -> None:
        for told in (self._courses, self._checked, self._missing):
            told.pop(number, None)
        script = self._scripts.pop(number, None)
        if script is not None:
            with contextlib.suppress(OSError):
                os.unlink(script)

    # ---- queue and history ----

    def _checked_in_queue(self, ids: list[str]) -> dict[str, State]:
        """Ask the queue for those for which it is time: the log may be lost, or the job."""
        now = time.monotonic()
        every = self._settings.check_seconds
        due = [one for one in ids if now - self._checked.setdefault(one, now) >= every]
        states: dict[str, State] = {}
        for some in _parts(due):
            queued = {launch_states.number_of(ad): ad for ad in self._asked(launch_schedd.numbered(some))}
            self._checked.update(dict.fromkeys(some, now))
            for one in some:
                if one in queued:
                    self._missing.pop(one, None)
                    state = launch_states.queued(queued[one])
                    if state is not None:
                        states[one] = state
            states.update(self._gone([one for one in some if one not in queued], now))
        return states

    def _gone(self, ids: list[str], now: float) -> dict[str, State]:
        """Those that are in no queue: by the log's last word, by the history, or vanished."""
        if not ids:
            return {}
        self._read_log()
        told = {one: state for one in ids if (state := self._told(one)) is not None and state.state == DONE}
        unknown = [one for one in ids if one not in told]
        ads = self._history(launch_schedd.numbered(unknown), len(unknown)) if unknown else []
        told.update({launch_states.number_of(ad): launch_states.ended(ad) for ad in ads})
        for one in ids:
            if one in told:
                continue
            since = self._missing.setdefault(one, now)
            # It is looked for again soon, not only when it is time for all.
            self._checked[one] = now - self._settings.check_seconds + min(1.0, self._settings.check_seconds)
            if now - since >= self._settings.history_seconds:
                told[one] = State(VANISHED, why="not in the queue, and the history does not know how it ended")
        return told

    def _asked(self, constraint: str) -> list[Ad]:
        settings = self._settings
        ads = self._within(lambda: launch_schedd.in_queue(settings.schedd, settings.collector, constraint))
        return [ad for ad in ads if self._is_ours(ad)]

    def _history(self, constraint: str, most: int) -> list[Ad]:
        settings, since = self._settings, int(self._began - _MARGIN)
        ads = self._within(
            lambda: launch_schedd.in_history(settings.schedd, settings.collector, constraint, most, since)
        )
        return [ad for ad in ads if self._is_ours(ad)]

    def _is_ours(self, ad: Ad) -> bool:
        tag = text(ad, TAG)
        return tag is not None and tag.startswith(self._state)

    def _within(self, call: Callable[[], T]) -> T:
        return within(self._settings.command_seconds, call, "the schedd")


def _write(path: str, script: str) -> None:
    """Write the script of a start; one that was begun before is replaced."""
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(script)
    except OSError as fault:
        raise ActionRefused(f"{path} cannot be written: {fault.strerror}") from None


def _parts(ids: Collection[str]) -> Iterator[list[str]]:
    ordered = list(ids)
    for first in range(0, len(ordered), _TOGETHER):
        yield ordered[first : first + _TOGETHER]
