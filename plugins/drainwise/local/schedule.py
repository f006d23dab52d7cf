"""The schedule: which waiting jobs start now, on which node. Pure.

Accounts take turns: whose next job lies within its quota comes first, then whose use is the smallest part of its quota.
Cores that nobody else wants may be used beyond the quota; what is used beyond it the reclaim agent can take
back. Within an account the highest priority starts first, then the oldest job. A job goes to one node, the first on
which it fits.

No job waits for ever because smaller ones slip in before it: the next job of an account that fits on no node gets one
where its cores come free first, by the ends of the leases there. Until then only such jobs start on that node as are
over by then, or need no core that it needs.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from drainwise.local.job import AccountQuota, LocalJob, LocalNode
from drainwise.local.returned import held_cores
from drainwise.pilotad.partial_return import ReturnedPart

_QUOTA_OF_NONE = 0.1
"""Cores that a quota of 0 counts as where something is divided by it."""


@dataclass(frozen=True)
class WaitingJob:
    """A job that waits, with what the choice depends on; `wall_limit` in seconds."""

    job_id: int
    account: str
    cores: int
    wall_limit: int
    priority: int = 0


@dataclass(frozen=True)
class Holding:
    """A lease that holds cores of a node until `lease_end` (UNIX s) at the latest."""

    account: str
    node: str
    cores: int
    lease_end: int


def holdings(live: Iterable[LocalJob], returned: Mapping[str, ReturnedPart]) -> list[Holding]:
    """Return the cores that jobs hold; returned: by run, those that they hold no more."""
    return [Holding(job.request.account, job.node, held_cores(job, returned), job.lease_end) for job in live]


@dataclass(frozen=True)
class JobStart:
    """A job that starts now on that node."""

    job_id: int
    node: str


@dataclass(frozen=True)
class Reservation:
    """A job that waits for its cores on that node, which are free at `at` (UNIX s) at the latest.

    spare: cores that will be free there beside it.
    """

    job_id: int
    node: str
    cores: int
    at: int
    spare: int


@dataclass(frozen=True)
class Schedule:
    """The jobs that start now, and the reservations."""

    starts: tuple[JobStart, ...]
    reservations: tuple[Reservation, ...]


def load(in_use: float, quota: float) -> float:
    """Return how much of its quota an account uses: 1.0 is all of it. A quota of 0 counts as a tenth of a core."""
    return in_use / max(quota, _QUOTA_OF_NONE)


def cores_of(job: LocalJob, returned: Mapping[str, ReturnedPart]) -> str:
    """Write the cores of a job for a person; returned: as in `holdings`."""
    held = held_cores(job, returned)
    return str(job.cores) if held == job.cores else f"{held} of {job.cores}"


def choose_starts(
    waiting: Iterable[WaitingJob],
    running: Sequence[Holding],
    nodes: Sequence[LocalNode],
    accounts: Iterable[AccountQuota],
    now: int,
) -> Schedule:
    """Choose the jobs that start at `now` (UNIX s), in order; one without account or larger than any node waits."""
    room = _Room(nodes, running, now)
    largest = max((node.cores for node in nodes), default=0)
    quotas = {account.name: account.quota for account in accounts}
    in_use = dict.fromkeys(quotas, 0)
    for lease in running:
        in_use[lease.account] = in_use.get(lease.account, 0) + lease.cores
    queues = _queues(job for job in waiting if job.account in quotas and job.cores <= largest)
    turns = {name: _turn(jobs[0], in_use[name], quotas[name]) for name, jobs in queues.items()}
    starts: list[JobStart] = []
    blocked: set[str] = set()
    # What did not fit once fits no more in this call: a job as large and as long need not be tried.
    hopeless: dict[int, int] = {}
    while turns and room.most_free > 0:
        queue = queues[min(turns, key=turns.__getitem__)]
        job = queue.popleft()
        if any(job.cores >= cores and job.wall_limit >= length for cores, length in hopeless.items()):
            node = None
        else:
            node = room.place(job)
            if node is None:
                hopeless[job.cores] = min(job.wall_limit, hopeless.get(job.cores, job.wall_limit))
        if node is not None:
            starts.append(JobStart(job.job_id, node))
            in_use[job.account] += job.cores
        elif job.account not in blocked:
            blocked.add(job.account)
            room.reserve(job)
        if queue:
            turns[job.account] = _turn(queue[0], in_use[job.account], quotas[job.account])
        else:
            del turns[job.account]
    return Schedule(tuple(starts), tuple(room.reservations.values()))


def _queues(waiting: Iterable[WaitingJob]) -> dict[str, deque[WaitingJob]]:
    """Return the jobs of each account that has any, the next one first: priority decides, then age.

    Only the next of each is looked at: one that does not fit holds its turn, and gets its reservation.
    """
    queues: defaultdict[str, deque[WaitingJob]] = defaultdict(deque)
    for job in sorted(waiting, key=lambda job: (-job.priority, job.job_id)):
        queues[job.account].append(job)
    return queues


def _turn(job: WaitingJob, in_use: int, quota: int) -> tuple[bool, float, int, int]:
    """Return a key, the smallest is next: beyond the quota or not, how full that is, larger quota, older job."""
    return in_use + job.cores > quota, load(in_use, quota), -quota, job.job_id


class _Room:
    """The free cores of each node, and what is kept of them."""

    def __init__(self, nodes: Sequence[LocalNode], running: Sequence[Holding], now: int) -> None:
        self._now = now
        self._free = {node.name: node.cores for node in nodes}
        self._cores = dict(self._free)
        self._ends: dict[str, list[tuple[int, int]]] = {name: [] for name in self._free}
        for lease in running:
            if lease.node in self._free:
                self._hold(lease.node, lease.cores, lease.lease_end)
        self.reservations: dict[str, Reservation] = {}

    @property
    def most_free(self) -> int:
        """Free cores of the node that has most."""
        return max(self._free.values(), default=0)

    def place(self, job: WaitingJob) -> str | None:
        """Take the job's cores on the first node on which it fits; None when there is none."""
        for node, free in self._free.items():
            if free < job.cores or not self._allowed(node, job):
                continue
            self._hold(node, job.cores, self._now + job.wall_limit)
            return node
        return None

    def reserve(self, job: WaitingJob) -> None:
        """Keep for the job the node on which its cores come free first; of equals the one with most free cores."""
        found = [
            (at, -self._free[node], node, spare)
            for node, cores in self._cores.items()
            if node not in self.reservations and cores >= job.cores
            for at, spare in (self._free_at(node, job.cores),)
        ]
        if found:
            at, _, node, spare = min(found, key=lambda one: one[:2])
            self.reservations[node] = Reservation(job.job_id, node, job.cores, at, spare)

    def _hold(self, node: str, cores: int, end: int) -> None:
        self._free[node] -= cores
        self._ends[node].append((max(end, self._now), cores))

    def _allowed(self, node: str, job: WaitingJob) -> bool:
        kept = self.reservations.get(node)
        if kept is None or self._now + job.wall_limit <= kept.at:
            return True
        if job.cores > kept.spare:
            return False
        self.reservations[node] = replace(kept, spare=kept.spare - job.cores)
        return True

    def _free_at(self, node: str, cores: int) -> tuple[int, int]:
        """Return when `cores` of the node are free, and how many are then free beside them."""
        free, at = self._free[node], self._now
        for end, held in sorted(self._ends[node]):
            if free >= cores and end > at:
                break
            free, at = free + held, end
        return at, free - cores


def usable_cores(
    waiting: Iterable[WaitingJob],
    running: Sequence[Holding],
    nodes: Sequence[LocalNode],
    accounts: Sequence[AccountQuota],
    now: int,
) -> int:
    """Free cores, as they lie, of jobs that wait and lie within their account's quota."""
    owed = owed_jobs(waiting, running, {account.name: account.quota for account in accounts})
    starts = choose_starts(owed, running, nodes, accounts, now).starts
    cores = {job.job_id: job.cores for job in owed}
    return sum(cores[start.job_id] for start in starts)


def owed_jobs(waiting: Iterable[WaitingJob], running: Iterable[Holding], quotas: Mapping[str, int]) -> list[WaitingJob]:
    """Return the next jobs of each account that lie within its quota."""
    left = dict(quotas)
    for lease in running:
        left[lease.account] = left.get(lease.account, 0) - lease.cores
    owed: list[WaitingJob] = []
    for account, queue in _queues(job for job in waiting if job.account in quotas).items():
        while queue and queue[0].cores <= left[account]:
            owed.append(queue.popleft())
            left[account] -= owed[-1].cores
    return owed
