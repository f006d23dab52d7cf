"""Turns Slurm's answers into the facts that the reclaim agent decides on. Pure: answers and a time in, a snapshot out.

Every job that runs counts as a pilot, as every claimed slot does on HTCondor; one without a report is silent. Jobs of
several nodes, heterogeneous ones, those on a draining node and those that their node cannot tell of an order are named
with the reason why they cannot be asked. Cores are Slurm's CPUs.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from drainwise.errors import PoolUnreachable
from drainwise.free_cores import Hole, Waiting, usable_cores
from drainwise.pilotad.report import CONTRADICTORY
from drainwise.pool import Pilot, Principal, Snapshot
from drainwise.slurm.admin_comment import is_untold, published_in
from drainwise.slurm.demand import Demand, Selection
from drainwise.slurm.job_record import COMPLETING, PENDING, RUNNING, Job
from drainwise.slurm.node_line import Node
from drainwise.slurm.orders import is_shortened
from drainwise.slurm.run import run_name
from drainwise.slurm.shares import Shares

WOULD_RUN = {"Resources", "Priority"}
"""Why a job waits that would start if cores were free; all other reasons (a limit, a hold, …) need something else."""

SEVERAL_NODES = "a job of several nodes, or a part of a heterogeneous one: an order would reach all of it"
DRAINING_NODE = "the node takes no new jobs: the cores would help nobody"
UNTOLD = "started without drainwise's directories, before it was installed or after a prolog that failed"

_ENDLESS = 365 * 86400  # seconds that Slurm gives to a job without time limit
_MISSING_CORES = 64  # that sinfo may count beyond squeue: jobs end between the two


@dataclass
class _Use:
    in_use: int = 0
    wanted: int = 0
    pieces: int = 0
    partitions: set[str] = field(default_factory=set)


def snapshot_of(
    jobs: Sequence[Job],
    nodes: Sequence[Node],
    shares: Shares,
    now: int,
    asked_within: int,
    exposed: Collection[int] = (),
    selection: Selection = Selection(),  # noqa: B008 - immutable
) -> Snapshot:
    """The facts in the answers at `now` (UNIX s).

    asked_within: the site's grace in s. A lease that was shortened to end within it counts as an order, whoever gave
    it: its cores come back as if it were ours. exposed: priorities that only runs have which Slurm may preempt at will.
    selection: how nodes are shared. Raises PoolUnreachable when the answers cannot be whole.
    """
    odd = [job for job in jobs if job.odd]
    jobs = [job for job in jobs if not job.odd]
    _require_whole(jobs, nodes, len(odd))
    draining = {node.name for node in nodes if node.draining}
    runs = (_pilot(job, shares, now, asked_within, exposed, _why_not(job, draining)) for job in jobs)
    pilots = tuple(pilot for pilot in runs if pilot is not None)
    demand = Demand(nodes, selection, _partitions_of(pilots, nodes))
    uses = _uses(jobs, shares, demand)
    cores = sum(node.cores for node in nodes)
    needs = {name: float(use.in_use + use.wanted) for name, use in uses.items()}
    owed, own = shares.owed(cores, needs), shares.own(cores, needs)
    principals = tuple(_principal(name, use, owed[name], own[name], shares) for name, use in sorted(uses.items()))
    partitions = {name for use in uses.values() if use.wanted for name in use.partitions}
    holes = [Hole(node.idle, divisible=True) for node in nodes if node.idle and node.partitions & partitions]
    return Snapshot(
        taken=now,
        pilots=pilots,
        principals=principals,
        free_cores=float(usable_cores(holes, (one for one in map(_waiting, principals) if one is not None))),
        user_priorities=shares.user_priorities(),
        notices=(*(f"job {job.label} is left out: {job.odd} can be no job's" for job in odd), *demand.notices()),
    )


def _why_not(job: Job, draining: Collection[str]) -> str:
    """Why a job cannot be asked, "" when it can."""
    if job.node_count != 1 or job.het is not None:
        return SEVERAL_NODES
    if job.node in draining:
        return DRAINING_NODE
    return UNTOLD if is_untold(job.admin_comment, job.number, job.start) else ""


def _require_whole(jobs: Sequence[Job], nodes: Sequence[Node], odd: int) -> None:
    if not nodes:
        raise PoolUnreachable("half an answer: sinfo knows no nodes")
    allocated, seen = sum(node.allocated for node in nodes), sum(job.cores for job in jobs if _holds_cores(job))
    if not odd and allocated - seen > max(_MISSING_CORES, allocated / 2):
        raise PoolUnreachable(
            f"half an answer: squeue shows jobs on {seen} cores where sinfo has {allocated} in use; PrivateData=jobs"
            " hides them from all but root, SlurmUser and operators"
        )


def _holds_cores(job: Job) -> bool:
    """Whether its cores are taken: it runs, is about to, or is being ended (also when it will wait again)."""
    return bool(job.node) and bool(job.states & {RUNNING, COMPLETING, "CONFIGURING", "STOPPED"})


def _would_run(job: Job) -> bool:
    is_held = job.priority == 0  # the reason is written later
    return PENDING in job.states and COMPLETING not in job.states and job.reason in WOULD_RUN and not is_held


def _partitions_of(pilots: Iterable[Pilot], nodes: Iterable[Node]) -> frozenset[str]:
    """The partitions whose jobs could use cores that a pilot gives back."""
    hosts = {pilot.node for pilot in pilots if not pilot.cannot}
    return frozenset(name for node in nodes if node.name in hosts for name in node.partitions)


def _uses(jobs: Sequence[Job], shares: Shares, demand: Demand) -> dict[str, _Use]:
    """Use and demand by principal: of those that use or want anything.

    Tasks beyond what their array may have running at a time are no demand.
    """
    uses: dict[str, _Use] = defaultdict(_Use)
    running = Counter(job.array for job in jobs if RUNNING in job.states)
    for job in jobs:
        if _holds_cores(job):
            uses[shares.principal_of(job.account)].in_use += job.cores
        elif _would_run(job):
            use, want = uses[shares.principal_of(job.account)], demand.of(job)
            if want is None:
                continue
            tasks = job.tasks if job.at_once is None else min(job.tasks, max(0, job.at_once - running[job.array]))
            use.wanted += max(job.cores, want.cores * want.nodes) * tasks
            use.pieces += want.nodes * tasks
            use.partitions.update(job.partitions)
    return dict(uses)


def _principal(name: str, use: _Use, owed: float, share: float, shares: Shares) -> Principal:
    return Principal(
        name,
        cores_in_use=float(use.in_use),
        cores_owed=owed,
        cores_wanted=float(use.wanted),
        priority=shares.priority_of(name),
        cores_per_job=max(1.0, use.wanted / use.pieces) if use.pieces else 1.0,
        cores_share=share,
    )


def _waiting(principal: Principal) -> Waiting | None:
    """The jobs of a principal that waits and is owed cores: free cores are for them first."""
    cores = math.ceil(principal.cores_per_job)
    jobs = math.floor(min(principal.cores_wanted, principal.cores_owed - principal.cores_in_use) / cores)
    return Waiting(cores, jobs) if jobs > 0 else None


def _pilot(
    job: Job, shares: Shares, now: int, asked_within: int, exposed: Collection[int], cannot: str
) -> Pilot | None:
    """The run of a job; None for one that does not run, or that is only about to."""
    completing = COMPLETING in job.states
    if job.start is None or not (job.states == {RUNNING} or (completing and job.node)) or job.cores < 1:
        return None
    published = published_in(job.admin_comment)
    if published is not None and (published.job, published.start) != (job.number, job.start):
        published = None  # of an earlier run
    lease_end = job.end if job.end is not None and job.end - job.start < _ENDLESS else None
    asked = (
        lease_end is not None
        and cannot in {"", UNTOLD}
        and not completing
        and is_shortened(job.start, lease_end, job.limit)
        and lease_end <= now + asked_within
    )
    return Pilot(
        run=run_name(job.label, job.start),
        name=job.label,
        node=job.node,
        principal=shares.principal_of(job.account),
        user=job.user,
        cores=job.cores,
        started=min(job.start, now) if completing else job.start,
        lease_end=now if completing else lease_end,
        report=None if published is None else published.report,
        contradictory=published is not None and published.standing == CONTRADICTORY,
        deadline=lease_end if asked else None,
        leaving=completing or job.priority in exposed,
        cannot=cannot,
    )
