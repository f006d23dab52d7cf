"""Turns the state into the facts that the reclaim agent decides on. Pure."""

from __future__ import annotations

from collections import Counter

from drainwise.local.job import RUNNING, Job
from drainwise.local.schedule import Waiting, holdings, load, usable_cores
from drainwise.local.store import State
from drainwise.pool import Pilot, Principal, Snapshot


def snapshot_of(state: State, now: int) -> Snapshot:
    """The facts in `state` at `now` (UNIX s). A job larger than every node cannot run: it does not count as waiting."""
    largest = max((node.cores for node in state.nodes), default=0)
    waiting = [job for job in state.waiting if job.cores <= largest]
    in_use: Counter[str] = Counter()
    by_user: Counter[str] = Counter()
    for job in state.live:
        in_use[job.request.account] += job.cores
        by_user[job.request.user] += job.cores
    return Snapshot(
        taken=now,
        pilots=tuple(_pilot(job, state) for job in state.live if job.state == RUNNING),
        principals=tuple(
            _principal(account.name, account.quota, in_use[account.name], waiting) for account in state.accounts
        ),
        free_cores=float(usable_cores(waiting, holdings(state.live), state.nodes, state.accounts, now)),
        user_priorities={user: float(cores) for user, cores in by_user.items()},
    )


def _pilot(job: Job, state: State) -> Pilot:
    return Pilot(
        run=job.run,
        name=str(job.job_id),
        node=job.node,
        principal=job.request.account,
        user=job.request.user,
        cores=job.cores,
        started=job.started,
        lease_end=job.wall_end,
        report=state.reports.get(job.run),
        deadline=job.deadline,
        leaving=job.removed or job.term_sent is not None,
    )


def _principal(name: str, quota: int, in_use: int, waiting: list[Waiting]) -> Principal:
    """Its priority is how full its quota is, in per cent: the fuller, the worse."""
    wanted = [job.cores for job in waiting if job.account == name]
    return Principal(
        name,
        cores_in_use=float(in_use),
        cores_owed=float(quota),
        cores_wanted=float(sum(wanted)),
        priority=100.0 * load(in_use, quota),
        cores_per_job=sum(wanted) / len(wanted) if wanted else 1.0,
    )
