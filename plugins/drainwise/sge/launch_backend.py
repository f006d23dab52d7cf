"""The launcher's jobs in Grid Engine: qsub, qstat, qdel, qalter, and qacct for how they ended."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping

from drainwise.errors import ActionRefused, PoolUnreachable
from drainwise.launch.backend import DONE, RUNNING, VANISHED, WAITING, Backend, Place, Start, State
from drainwise.launch.resources import Resources
from drainwise.sge import accounting, queue_state
from drainwise.sge.accounting import DIED, Record
from drainwise.sge.commands import SgeCommands, is_no_answer
from drainwise.sge.ladder import Ladder
from drainwise.sge.names import job_name, tag_of
from drainwise.sge.queue_state import QueuedJob
from drainwise.sge.settings import LOWEST, SgeSettings, sge_settings
from drainwise.sge.submission import qsub_arguments, qsub_script, true_code, unfit

IN_ERROR = 126
"""Code of a job that Grid Engine put into its error state: it never ran."""
DELETED = 128 + 15
"""Code of a job that was deleted, by us, while it waited: Grid Engine has no record of those."""

_NUMBER = re.compile(r"[0-9]{1,10}")
_TOGETHER = 200  # jobs in one order
_ONE_BY_ONE = 3  # so many questions to the accounting before one for all is cheaper
_LOOK_AGAIN = 2.0  # seconds before the accounting is asked again for a job it did not have
_MARGIN = 2 * 86_400  # seconds: of clocks and time zones, when the accounting is asked for what began lately


def open_backend(settings: Mapping[str, object], options: str, place: Place) -> Backend:
    """Grid Engine as the table [backends.sge] of `place.file` describes it; `options`: `-p PRIORITY`, or nothing.

    Raises ConfigurationError or UsageError for what is written wrongly, PoolUnreachable when there is none here.
    """
    backend = SgeBackend(sge_settings(settings, options, place.file), place.key, place.state)
    backend.poll(())
    return backend


class SgeBackend:
    """Grid Engine, see `Backend`. `key` is put before the names of jobs; with `state` their tags begin.

    Grid Engine gives numbers anew after some millions of jobs, so that what bears another tag is somebody else's.
    """

    name = "sge"

    def __init__(self, settings: SgeSettings, key: str, state: str = "") -> None:
        self._settings, self._key, self._state = settings, key, state
        self._commands = SgeCommands(settings)
        highest = settings.default_prio
        self._ladder = Ladder(highest, max(LOWEST, highest - settings.prio_span))
        self._began = time.time()
        self._waiting: set[str] = set()  # as of the last answer
        self._killed: set[str] = set()
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
        step = self._ladder.step_for(job.priority)
        said = self._commands.order(
            "qsub", *qsub_arguments(self._settings, self._key, job, step), stdin=qsub_script(job)
        ).strip()
        if not _NUMBER.fullmatch(said):
            raise PoolUnreachable("qsub ended well but printed no job number")
        self._ladder.put(said, job.priority, step)
        self._waiting.add(said)
        return said

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """See `Backend`."""
        found = {tag_of(job.name): job.number for job in self._queued().values()}
        for tag in set(tags) - set(found):
            for record in self._records("-j", f"*.{tag}"):
                if tag_of(record.name) == tag:
                    found[tag] = record.number
        return {tag: found[tag] for tag in tags if tag in found}

    def poll(self, ids: Collection[str]) -> Mapping[str, State]:
        """See `Backend`."""
        jobs = self._queued()
        states, ended = {}, []
        for one in ids:
            job = jobs.get(one)
            if job is None:
                ended.append(one)
            else:
                self._missing.pop(one, None)
                states[one] = self._clear_away(job) if job.in_error else _state_of(job)
        gone = self._ended(ended)
        self._waiting = {one for one in ids if one in states and states[one].state == WAITING}
        self._ladder.keep(self._waiting)
        return {**states, **gone}

    def kill(self, ids: Collection[str]) -> None:
        """See `Backend`."""
        for some in _parts(ids):
            answer = self._commands.answer("qdel", ",".join(some))
            if answer.code < 0 or is_no_answer(answer):
                raise PoolUnreachable(f"qdel failed: {answer.complaint}")
            self._killed.update(some)

    def reprioritise(self, priorities: Mapping[str, float]) -> None:
        """See `Backend`. Grid Engine is told the order of those that wait, see `Ladder`."""
        if not self._settings.prio_span:
            return
        by_step: dict[int, list[str]] = {}
        for one, step in self._ladder.moved(priorities).items():
            by_step.setdefault(step, []).append(one)
        for step, those in by_step.items():
            for some in _parts(those):
                # One that has started meanwhile or ended stays as it is; the others are changed all the same.
                answer = self._commands.answer("qalter", "-p", str(step), ",".join(some))
                if answer.code < 0 or is_no_answer(answer):
                    raise PoolUnreachable(f"qalter failed: {answer.complaint}")
                for one in some:
                    self._ladder.put(one, self._ladder.date_of(one), step)

    def wait(self, seconds: float) -> None:
        """See `Backend`."""
        time.sleep(seconds)

    def close(self) -> None:
        """See `Backend`."""

    # ---- the queue ----

    def _queued(self) -> dict[str, QueuedJob]:
        jobs = queue_state.jobs_in(self._commands.ask(*queue_state.COMMAND))
        return {number: job for number, job in jobs.items() if self._is_ours(job.name)}

    def _is_ours(self, name: str) -> bool:
        return tag_of(name).startswith(self._state)

    def _clear_away(self, job: QueuedJob) -> State:
        """A job in error stays in the queue until somebody clears it; it has failed, and why is told by qstat alone."""
        self.kill([job.number])
        return State(DONE, IN_ERROR, why=f"in Grid Engine's error state ({job.letters}): it could not be started")

    # ---- the accounting ----

    def _ended(self, ids: Iterable[str]) -> dict[str, State]:
        """How those fare that are in no queue; one whose record may still come is left out."""
        now = time.monotonic()
        asked = [one for one in ids if now - self._looked.get(one, -_LOOK_AGAIN) >= _LOOK_AGAIN]
        records = self._records_of(asked)
        states = {}
        for one in asked:
            since = self._missing.setdefault(one, now)
            self._looked[one] = now
            late = now - since >= self._settings.accounting_seconds
            record = records.get(one) or (self._records_of([one]).get(one) if late else None)
            if record is not None:
                states[one] = _ending(record)
            elif one in self._killed and one in self._waiting:
                states[one] = State(DONE, DELETED, why="deleted before it began")
            elif late:
                states[one] = State(VANISHED, why="in no queue of Grid Engine, and its accounting has no record of it")
        for one in states:
            del self._missing[one], self._looked[one]
            self._killed.discard(one)
        return states

    def _records_of(self, ids: list[str]) -> dict[str, Record]:
        """The final records of those that have one: of a few one by one, of many in one question."""
        if len(ids) <= _ONE_BY_ONE:
            records = [record for one in ids for record in self._records("-j", one)]
        else:
            since = time.strftime("%Y%m%d%H%M.%S", time.localtime(self._began - _MARGIN))
            ours = job_name(self._key, "", "x").rpartition(".")[0] if self._key else ""
            records = self._records("-b", since, "-j", f"{ours}*")
        return accounting.last_by_number(records)

    def _records(self, *which: str) -> list[Record]:
        answer = self._commands.answer("qacct", *which)
        if answer.code == 0:
            return [record for record in accounting.records_in(answer.out) if self._is_ours(record.name)]
        if any(sign in answer.said + answer.out for sign in accounting.NONE_SAID):
            return []
        raise PoolUnreachable(f"qacct failed: {answer.complaint}")


def _state_of(job: QueuedJob) -> State:
    if not job.waits:
        return State(RUNNING)
    return State(WAITING, why="held back (qhold)" if job.held else "")


def _ending(record: Record) -> State:
    code = true_code(record.exit_status)
    why = ""
    if record.failed:
        why = f"failed {record.failed}: {record.reason}" if record.reason else f"failed {record.failed}"
        if record.failed != DIED or not code:
            code = code or 1
    return State(DONE, code, record.wall, record.cpu, why)


def _parts(ids: Collection[str]) -> Iterator[list[str]]:
    ordered = list(ids)
    for first in range(0, len(ordered), _TOGETHER):
        yield ordered[first : first + _TOGETHER]
