"""The engine: which job starts next. Pure apart from what it is told; times are arguments.

Requests are served in the order of their ETA; of the jobs of one request that may start, the one with the highest
pressure does. A batch system is told a job's priority as one date, ETA − pressure. Source: SPEC §5, open-lmake.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from drainwise.errors import UsageError
from drainwise.launch import graph
from drainwise.launch.expected_time import MovingAverage, expected_time
from drainwise.launch.graph import Graph
from drainwise.launch.request import Eligible, Request
from drainwise.launch.work import BLOCKED, OVER, READY, STARTED, Job, Work

EVERYTHING = "everything"
"""The request that is there when nobody made one."""
_NOTABLE = 0.1
"""A rule's average that has moved by this part makes pressures old."""


class Engine:
    """`rules`: what is known of the rules' times from earlier."""

    def __init__(self, rules: Mapping[str, MovingAverage] | None = None) -> None:
        self.graph = Graph()
        self.rules: dict[str, MovingAverage] = dict(rules or {})
        self.requests: list[Request] = []
        self.started: dict[int, Job] = {}
        """Those that run, or that a batch system has, by index."""
        self.over = 0
        """How many jobs that were needed are not any more, since requests were made."""
        self.parallel = 1
        """On how many cores they run; whoever runs the engine says so."""
        self._reckoned: dict[str, float] = {}
        self._stale = False

    def add(self, works: Iterable[Work]) -> list[Job]:
        """Add jobs, all or none. Raises UsageError, as `Graph.add`."""
        new = self.graph.add(works)
        for job in new:
            self._expect(job)
        for request in self.requests:
            if request.targets is None:
                request.take_in(new)
        return new

    def put_before(self, job: Job, before: Collection[Job]) -> None:
        """From now on `job` comes after those, too. Raises UsageError, as `Graph.add_dependencies`."""
        self._skip(self.graph.add_dependencies(job, before))
        for request in self.requests:
            if request.pressure(job) is not None:
                request.take_in(before)

    def request(self, name: str = EVERYTHING, targets: Collection[str] | None = None) -> Request:
        """Somebody wants these jobs done, with all before them; None: everything. Raises UsageError."""
        if any(request.name == name for request in self.requests):
            raise UsageError(f"request {name[:100]!a}: stands twice")
        wanted = None if targets is None else [self.graph.find(target) for target in targets]
        made = Request(name, wanted)
        self._reckoned = {rule: average.seconds for rule, average in self.rules.items()}
        made.reckon(self.graph.jobs)
        self.requests.append(made)
        return made

    def remember(self, job: Job, last_success: float | None) -> None:
        """How long an earlier run says that the job took, in seconds."""
        if last_success is not None:
            job.last_success = last_success
            self._expect(job)
            self._stale = self._stale or bool(self.requests)

    def was_done(self, job: Job) -> None:
        """The job was done in an earlier run, and need not be run again."""
        freed = graph.done(job)
        self._forget([job])
        for after in freed:
            for request in self.requests:
                request.offer(after)

    def _expect(self, job: Job) -> None:
        job.ete = expected_time(job.last_success, self.rules.get(job.work.rule), job.work.expected)

    def choose(self, backend: str, eligible: Eligible) -> Job | None:
        """The job that starts next there; None when none may. It goes on waiting until `start`."""
        for request in self.requests:
            job = request.choose(backend, eligible)
            if job is not None:
                return job
        return None

    def start(self, job: Job, now: float) -> None:
        """The job starts at `now` (UNIX s); infinite where a batch system has it and says later when it runs."""
        if job.state != READY:
            raise UsageError(f"job {job.name[:100]!a} cannot start: it is {job.state}")
        job.state, job.started = STARTED, now
        self.started[job.index] = job

    def runs(self, job: Job, since: float) -> None:
        """A batch system has begun to run the job, at `since` (UNIX s)."""
        job.started = since

    def again(self, job: Job) -> None:
        """A job that was started has not run: it waits again."""
        self.started.pop(job.index, None)
        job.state = BLOCKED if job.missing else READY
        for request in self.requests if job.state == READY else ():
            request.offer(job)

    def succeeded(self, job: Job, seconds: float | None) -> None:
        """The job is done, after so many seconds; None: nobody knows."""
        job.seconds = seconds
        if seconds is not None:
            job.last_success = seconds
            self._learn(job.work.rule, seconds)
        self.was_done(job)

    def failed(self, job: Job, why: str, seconds: float | None = None) -> list[Job]:
        """The job has failed for good; those that are skipped for it."""
        job.seconds = seconds
        skipped = graph.failed(job, why)
        self._forget([job])
        self._skip(skipped)
        return skipped

    def _skip(self, skipped: Collection[Job]) -> None:
        """What else came before those is not as urgent any more."""
        self._forget(skipped)
        self._stale = self._stale or bool(skipped)

    def _forget(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self.started.pop(job.index, None)
            needed = [request.over(job) for request in self.requests]
            self.over += any(needed)

    def _learn(self, rule: str, seconds: float) -> None:
        if not rule:
            return
        average = self.rules.setdefault(rule, MovingAverage())
        average.add(seconds)
        before = self._reckoned.get(rule)
        if before is None or abs(average.seconds - before) > _NOTABLE * before:
            self._stale = True

    @property
    def stale(self) -> bool:
        """Whether so much has changed that `reckon` is due: expected times, or jobs that are skipped."""
        return self._stale

    def reckon(self) -> None:
        """Reckon expected times and pressures anew; costs the number of jobs."""
        for job in self.graph.jobs:
            if job.state not in OVER:
                self._expect(job)
        for request in self.requests:
            request.reckon(self.graph.jobs)
        self._reckoned = {rule: average.seconds for rule, average in self.rules.items()}
        self._stale = False

    def expect(self, now: float) -> float:
        """Say of each request when it will be done, and put them into that order; when the last one will, UNIX s."""
        for request in self.requests:
            request.expect(self.started.values(), self.parallel, now)
        self.requests.sort(key=lambda request: request.eta)
        return self.requests[-1].eta if self.requests else now

    def urgency(self, job: Job) -> tuple[float, float]:
        """Its priority (UNIX s: ETA − pressure, of the request that wants it soonest) and its pressure there (s)."""
        found = [
            (request.eta - pressure, pressure)
            for request in self.requests
            for pressure in (request.pressure(job),)
            if pressure is not None
        ]
        return min(found, default=(0.0, 0.0))

    @property
    def unfinished(self) -> bool:
        """Whether anything is still needed."""
        return any(request.left for request in self.requests)

    def left(self) -> int:
        """How many jobs are needed and not over; where there are several requests it costs their number."""
        if len(self.requests) == 1:
            return self.requests[0].left
        return len({index for request in self.requests for index in request.needed()})
