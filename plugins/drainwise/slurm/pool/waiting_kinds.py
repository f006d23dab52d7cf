"""Slurm's waiting jobs in kinds, in the order in which Slurm would start them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from drainwise.pool.job_kinds import JobKind, kind_name, merged
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.node.host_list import hosts
from drainwise.slurm.pool.demand import Wanted


@dataclass(frozen=True)
class WaitingTasks:
    """`tasks` of a waiting job that could start together, for whose `account`, of which partition's tier."""

    job: SlurmJob
    account: str
    tasks: int
    want: Wanted
    tier: int = 0


def in_queue(waiting: Iterable[WaitingTasks]) -> list[WaitingTasks]:
    """Return what waits in the order of the queue.

    Slurm looks at the partitions' tiers first, then at the priorities, then at who came first.
    """
    return sorted(waiting, key=lambda one: (-one.tier, -(one.job.priority or 0), one.job.number))


def by_whole_nodes(waiting: Iterable[WaitingTasks], nodes: Callable[[Wanted, int], int]) -> Iterator[WaitingTasks]:
    """Yield what waits with whole nodes in place of jobs that share theirs with their own user's jobs alone.

    nodes: how many so many of them need.
    """
    waiting = tuple(waiting)
    jobs = Counter[int]()
    for one in waiting:
        jobs[id(one.want)] += one.tasks
    for one in waiting:
        yield replace(one, tasks=nodes(one.want, jobs.pop(id(one.want), 0))) if one.want.of_user else one


def kinds_in(waiting: Iterable[WaitingTasks]) -> tuple[tuple[JobKind, ...], tuple[str, ...]]:
    """Return the kinds in the order of `waiting`, and sentences that name what was left out."""
    jobs: dict[tuple[str, int], int] = {}
    first: dict[tuple[str, int], WaitingTasks] = {}
    for one in waiting:
        key = (one.account, id(one.want))  # those of like jobs are one object
        first.setdefault(key, one)
        jobs[key] = jobs.get(key, 0) + one.tasks
    return merged(_kind(one, jobs[key]) for key, one in first.items() if jobs[key])


def _kind(one: WaitingTasks, jobs: int) -> JobKind:
    want = one.want
    # A whole node's cores are those of the smallest that is there just now: the name is by what was asked.
    asked = replace(want.needs, cores=-(-one.job.cores // want.nodes)) if want.whole else want.needs
    return JobKind(
        kind_name(one.account, asked, want.asks, want.nodes, whole=want.whole),
        one.account,
        jobs,
        want.needs,
        want.classes,
        want.nodes,
        want.whole,
        want.asks,
        one.job.label,
        planned=_planned(one.job),
    )


def _planned(job: SlurmJob) -> frozenset[str]:
    try:
        return frozenset(hosts(job.planned)) if job.planned else frozenset()
    except ValueError:
        return frozenset()
