"""Who may take from whom by Slurm's own rule of preemption, in place of shares: QOS lists, or tiers of partitions.

A job counts as demand where it may preempt somebody, and the runs that may be preempted give cores back. All that
counts at a time may take from each of these runs, so no order serves a job that might not have taken the cores itself.
Slurm's exemption of young runs counts, and a mode that does not end a run (OFF, SUSPEND, WITHIN) lets nobody take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from drainwise.pool.facts import Account, Pilot
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.pool.demand import WaitingTasks
from drainwise.slurm.pool.qos_rules import Qos
from drainwise.slurm.pool.rules import ClusterRules

PREEMPTIBLE = " (preemptible)"
"""Behind the account of runs that may be preempted: what they hold beyond what it is owed is all of it."""
_ENDS = frozenset({"requeue", "cancel"})
_BY_QOS, _BY_TIER = "preempt/qos", "preempt/partition_prio"


def may_preempt(job: SlurmJob, pilot: Pilot, rules: ClusterRules, qos: Mapping[str, Qos], now: int) -> bool:
    """Decide whether Slurm would let a waiting job end a run at `now` (UNIX s), if it needed what that holds."""
    traits = dict(pilot.traits)
    mine, its = qos.get(job.qos), qos.get(next(iter(traits["qos"]), ""))
    exempt = rules.preempt_exempt if its is None or its.exempt is None else its.exempt
    if now - pilot.started < exempt:
        return False
    if rules.preempt_type == _BY_QOS:
        modes = its.modes if its is not None and "cluster" not in its.modes else rules.preempt_modes
        return mine is not None and its is not None and its.name in mine.preempts and bool(modes & _ENDS)
    if rules.preempt_type == _BY_TIER:
        asked = [rules.partitions.get(name) for name in job.partitions]
        there = [rules.partitions.get(name) for name in traits["partition"]]
        return all(
            above is not None and below is not None and below.tier < above.tier and bool(below.modes & _ENDS)
            for above in asked
            for below in there
        )
    return False


def entitled(
    waiting: Sequence[WaitingTasks], pilots: Iterable[Pilot], rules: ClusterRules, qos: Mapping[str, Qos], now: int
) -> tuple[list[WaitingTasks], frozenset[str], list[str]]:
    """Return what of `waiting` (in the queue's order) counts, the runs that all of it may end, and what is left out."""
    pilots, known = tuple(pilots), dict[tuple[str, tuple[str, ...]], frozenset[str]]()
    counted, runs, left = list[WaitingTasks](), frozenset[str](), 0
    for one in waiting:
        key = one.job.qos, one.job.partitions
        if key not in known:
            known[key] = frozenset(it.run for it in pilots if may_preempt(one.job, it, rules, qos, now))
        common = known[key] & runs if counted else known[key]
        if common:
            counted, runs = [*counted, one], common
        elif known[key]:
            left += one.tasks
    others = f"{left} waiting jobs may take from others than the first in the queue, and count after these"
    said = [others] if left else []
    if rules.preempt_type not in {_BY_QOS, _BY_TIER}:
        said.append(f"PreemptType = {rules.preempt_type or 'preempt/none'} lets no job take from another")
    return counted, runs, [f"entitlement = preemption: {one}" for one in said]


def by_preemption(
    accounts: Iterable[Account], pilots: Iterable[Pilot], runs: Collection[str]
) -> tuple[tuple[Account, ...], tuple[Pilot, ...]]:
    """Return the accounts, each owed what it uses otherwise and waits for, and beside it what its `runs` hold.

    The runs are of that second account; conditions of the site file find them by the first.
    """
    held = Counter[str]()
    for pilot in (pilots := tuple(pilots)):
        held[pilot.account] += pilot.cores if pilot.run in runs else 0
    found = list[Account]()
    for one in accounts:
        uses = max(0.0, one.cores_in_use - held[one.name])
        found.append(replace(one, cores_in_use=uses, cores_owed=uses + one.cores_wanted, cores_share=None))
        if taken := float(held[one.name]):
            found.append(Account(f"{one.name}{PREEMPTIBLE}", taken, 0.0, 0.0, one.priority))
    return tuple(found), tuple(_of_second(one) if one.run in runs else one for one in pilots)


def _of_second(pilot: Pilot) -> Pilot:
    traits = (*pilot.traits, ("account", (pilot.account,)))
    return replace(pilot, account=f"{pilot.account}{PREEMPTIBLE}", traits=traits)
