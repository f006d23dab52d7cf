"""The engine: which job starts next. Pure: every event and time is an argument.

Requests are served in the order of their ETA; of the jobs of one request that may start, the one with the highest
pressure does. A batch system receives a job's priority as one date, ETA − pressure. Source: SPEC §5, open-lmake.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from drainwise.facts.errors import UsageError
from drainwise_launch.choice import graph
from drainwise_launch.choice.graph import Graph
from drainwise_launch.choice.request import Eligible, LaunchRequest
from drainwise_launch.choice.work import BLOCKED, OVER, READY, STARTED, LaunchJob, MovingAverage, Work, expected_time

EVERYTHING = "everything"
"""The request that is there when nobody made one."""
_NOTABLE = 0.1
"""A rule's average that has moved by this part makes pressures old."""


class Engine:
    """`rules`: what is known of the rules' times from earlier."""

    def __init__(self, rules: Mapping[str, MovingAverage] | None = None) -> None:
        self.graph = Graph()
        self.rules: dict[str, MovingAverage] = dict(rules or {})
        self.requests: list[LaunchRequest] = []
        self.started: dict[int, LaunchJob] = {}
        """Those that run, or that a batch system has, by index."""
        self.over = 0
        """The number of needed jobs that are over since requests were made."""
        self.parallel = 1
        """On how many cores they run; whoever runs the engine says so."""
        self._reckoned: dict[str, float] = {}
        self.stale = False
        """Whether `reckon` is due: expected times have changed, or jobs are skipped."""

    def add(self, works: Iterable[Work]) -> list[LaunchJob]:
        """Add all jobs before anything is requested. Raises UsageError, as `Graph.add`."""
        new = self.graph.add(works)
        for job in new:
            self._expect(job)
        return new

    def request(self, name: str = EVERYTHING, targets: Collection[str] | None = None) -> LaunchRequest:
        """Add a request for these jobs, with all before them; None: for all jobs. Raises UsageError."""
        wanted = None if targets is None else [self.graph.find(target) for target in targets]
        made = LaunchRequest(name, wanted)
        self._reckoned = {rule: average.seconds for rule, average in self.rules.items()}
        made.reckon(self.graph.jobs)
        self.requests.append(made)
        return made

    def remember(self, job: LaunchJob, last_success: float | None) -> None:
        """Note the run time of an earlier run, in seconds."""
        if last_success is not None:
            job.last_success = last_success
            self._expect(job)

    def was_done(self, job: LaunchJob) -> None:
        """Note that the job was done in an earlier run and need not run again."""
        freed = graph.done(job)
        self._forget([job])
        for after in freed:
            for request in self.requests:
                request.offer(after)

    def _expect(self, job: LaunchJob) -> None:
        job.ete = expected_time(job.last_success, self.rules.get(job.work.rule), job.work.expected)

    def choose(self, backend: str, eligible: Eligible) -> LaunchJob | None:
        """Return the job that starts next on this backend, None when none may; it waits until `start`."""
        for request in self.requests:
            job = request.choose(backend, eligible)
            if job is not None:
                return job
        return None

    def start(self, job: LaunchJob, now: float) -> None:
        """Note that the job starts at `now` (UNIX s); infinite while a batch system has yet to run it."""
        if job.state != READY:
            raise UsageError(f"job {job.name[:100]!a} cannot start: it is {job.state}")
        job.state, job.started = STARTED, now
        self.started[job.index] = job

    def runs(self, job: LaunchJob, since: float) -> None:
        """Note that a batch system has begun to run the job, at `since` (UNIX s)."""
        job.started = since

    def again(self, job: LaunchJob) -> None:
        """Let a job that was started but has not run wait again."""
        self.started.pop(job.index, None)
        job.state = BLOCKED if job.missing else READY
        for request in self.requests if job.state == READY else ():
            request.offer(job)

    def succeeded(self, job: LaunchJob, seconds: float | None) -> None:
        """Note that the job is done, after `seconds`; None: nobody knows."""
        job.seconds = seconds
        if seconds is not None:
            job.last_success = seconds
            self._learn(job.work.rule, seconds)
        self.was_done(job)

    def failed(self, job: LaunchJob, why: str, seconds: float | None = None) -> list[LaunchJob]:
        """Note that the job has failed for good; return the jobs that are skipped for it."""
        job.seconds = seconds
        skipped = graph.failed(job, why)
        self._forget([job, *skipped])
        self.stale = self.stale or bool(skipped)  # what came before those is less urgent now
        return skipped

    def _forget(self, jobs: Iterable[LaunchJob]) -> None:
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
            self.stale = True

    def reckon(self) -> None:
        """Reckon expected times and pressures anew; costs the number of jobs."""
        for job in self.graph.jobs:
            if job.state not in OVER:
                self._expect(job)
        for request in self.requests:
            request.reckon(self.graph.jobs)
        self._reckoned = {rule: average.seconds for rule, average in self.rules.items()}
        self.stale = False

    def expect(self, now: float) -> float:
        """Say of each request when it will be done, and put them into that order; when the last one will, UNIX s."""
        for request in self.requests:
            request.expect(self.started.values(), self.parallel, now)
        self.requests.sort(key=lambda request: request.eta)
        return self.requests[-1].eta if self.requests else now

    def priority(self, job: LaunchJob) -> float:
        """Return a job's soonest date over all requests, UNIX s: ETA − pressure."""
        pressures = ((request.eta, request.pressure(job)) for request in self.requests)
        return min((eta - pressure for eta, pressure in pressures if pressure is not None), default=0.0)

    @property
    def unfinished(self) -> bool:
        """Tell whether anything is still needed."""
        return any(request.left for request in self.requests)

    def left(self) -> int:
        """Return the number of jobs that are needed and not over; with several requests it costs that number."""
        if len(self.requests) == 1:
            return self.requests[0].left
        return len({index for request in self.requests for index in request.needed()})
