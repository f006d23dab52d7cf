"""A batch system in memory with a clock of its own: a full `Backend`, whose daemon can go away and lose jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping

from drainwise.facts.errors import ActionRefused, PoolFull, PoolUnreachable
from drainwise_launch.backend import DONE, RUNNING, VANISHED, WAITING, JobState, Start
from drainwise_launch.choice.resources import Resources, bucket_of


class MadeUpSystem:
    """Runs `slots` jobs at once, each for the seconds that its last argument says; starts by priority.

    away: it does not answer. deaf: it takes a job and its answer is lost, for so many starts. limit: of jobs in it at
    once, None where there is none. hangs: the names of jobs that it never takes, without a word.
    keeps: it ends none.
    """

    name = "made-up"

    def __init__(self, slots: int = 4, max_queued: int | None = 3) -> None:
        self.slots = slots
        self._max_queued = max_queued
        self.now = 1000.0
        self.away = False
        self.deaf = 0
        self.limit: int | None = None
        self.tries = 0
        self.hangs: set[str] = set()
        self.refused: set[str] = set()
        self.keeps = False
        self.why = "no such partition"
        self.codes: dict[str, int] = {}
        self.lost: Counter[str] = Counter()
        self.jobs: dict[str, Start] = {}
        self.began: dict[str, float] = {}
        self.ended: dict[str, JobState] = {}
        self.priorities: dict[str, float] = {}
        self.order: list[str] = []
        self.submitted: list[str] = []
        self.most_queued = 0
        self.moves = 0
        self.at_start: Callable[[Start], None] = lambda job: None

    @property
    def max_queued(self) -> int | None:
        return self._max_queued

    def fits(self, resources: Resources) -> str:
        return "it has 64 CPUs" if resources.cpu > 64 else ""

    def free(self) -> Mapping[str, int] | None:
        return None

    def _answer(self) -> None:
        if self.away:
            raise PoolUnreachable("the daemon does not answer")

    def start(self, job: Start) -> str:
        self.tries += 1
        self._answer()
        if job.name in self.hangs:
            raise PoolUnreachable("no answer to a submission")
        if self.limit is not None and len(self.jobs) - len(self.ended) >= self.limit:
            raise PoolFull(f"at most {self.limit} jobs of a user")
        if job.name in self.refused:
            raise ActionRefused(self.why)
        assert job.tag not in self.jobs, "submitted twice"
        self.jobs[job.tag] = job
        self.priorities[job.tag] = job.priority
        self.submitted.append(job.name)
        waiting = Counter(bucket_of(self.jobs[tag].resources) for tag in self._waiting())
        self.most_queued = max([self.most_queued, *waiting.values()])
        if self.deaf:
            self.deaf -= 1
            raise PoolUnreachable("the answer was lost")
        return job.tag

    def _waiting(self) -> list[str]:
        waiting = [tag for tag in self.jobs if tag not in self.began and tag not in self.ended]
        return sorted(waiting, key=lambda tag: self.priorities[tag])

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        self._answer()
        return {tag: tag for tag in tags if tag in self.jobs}

    def poll(self, ids: Collection[str]) -> Mapping[str, JobState]:
        self._answer()
        return {each: self._state(each) for each in ids}

    def _state(self, tag: str) -> JobState:
        if tag in self.ended:
            return self.ended[tag]
        if tag in self.began:
            return JobState(RUNNING, wall=self.now - self.began[tag])
        return JobState(WAITING)

    def kill(self, ids: Collection[str]) -> None:
        self._answer()
        if self.keeps:
            raise ActionRefused("you may not end jobs")
        for each in ids:
            self.ended.setdefault(each, JobState(DONE, 143, why="killed"))

    def reprioritise(self, priorities: Mapping[str, float]) -> None:
        self._answer()
        self.moves += len(priorities)
        self.priorities.update(priorities)

    def wait(self, seconds: float) -> None:
        """Time passes: what is over ends, and what waits begins."""
        self.now += max(seconds, 1.0)
        for tag, began in self.began.items():
            job = self.jobs[tag]
            if tag not in self.ended and self.now >= began + float(job.argv[-1]):
                if self.lost[job.name]:
                    self.lost[job.name] -= 1
                    self.ended[tag] = JobState(VANISHED, why="no record of it")
                else:
                    self.ended[tag] = JobState(DONE, self.codes.get(job.name, 0), wall=float(job.argv[-1]))
        running = sum(tag not in self.ended for tag in self.began)
        for tag in self._waiting()[: max(0, self.slots - running)]:
            self.began[tag] = self.now
            self.order.append(self.jobs[tag].name)
            self.at_start(self.jobs[tag])

    def close(self) -> None:
        """Nothing is held."""
