"""Requeue runs right before the deadline of an order, where the site says so, with a warning before that.

Slurm's own words count: the lead of the warning is the GraceTime of a run's QOS or partition, and what is warned are
its steps, as by Slurm's own preemption. What `--signal` asks for slurmctld sends by itself, as by any end of a lease.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from drainwise.facts.errors import PoolError, RunEnded
from drainwise.facts.scope_rules import REQUEUE, ScopeRules
from drainwise.pool.facts import Pilot
from drainwise.pool.scope import job_facts
from drainwise.slurm.jobs.job import SlurmJob, run_name
from drainwise.slurm.pool.orders import SlurmOrders
from drainwise.slurm.pool.qos_rules import Qos
from drainwise.slurm.pool.rules import Partition

_BEFORE = 15  # s before a deadline: there slurmctld would end the run for good
_UNKNOWN = 300  # s: the lead while no accounting has told the GraceTime of a QOS


class SlurmRequeues:
    """Knows by the site's rules which runs are requeued at a deadline, and warns and requeues them by `orders`."""

    def __init__(self, orders: SlurmOrders, scope: ScopeRules) -> None:
        self._orders, self._scope = orders, scope
        self._warned: set[str] = set()

    def with_leads(
        self,
        pilots: Iterable[Pilot],
        jobs: Iterable[SlurmJob],
        partitions: Mapping[str, Partition],
        qos: Mapping[str, Qos],
    ) -> tuple[Pilot, ...]:
        """Return the pilots of these jobs; those that are requeued at a deadline with their lead.

        Slurm requeues no run whose owner does not let it: that one ends.
        """
        if not self._scope.may_requeue:
            return tuple(pilots)
        able = {run_name(one.label, one.start or 0) for one in jobs if one.runs and one.can_requeue}

        def lead(pilot: Pilot) -> int | None:
            if pilot.run not in able or self._scope.at_deadline_of(job_facts(pilot)) != REQUEUE:
                return None
            traits = dict(pilot.traits)
            of_qos = [qos[one].grace if one in qos else _UNKNOWN for one in traits["qos"]]
            return max([*of_qos, *(partitions[one].grace for one in traits["partition"] if one in partitions)])

        leads = ((one, lead(one)) for one in pilots)
        return tuple(one if its is None else replace(one, lead=its, vacate=_BEFORE) for one, its in leads)

    def carry_out(self, pilots: Sequence[Pilot], now: float) -> Iterator[str]:
        """Warn and requeue those whose time has come at `now` (UNIX s); yield what was done, and what was refused."""
        self._warned &= {one.run for one in pilots}
        for pilot in pilots:
            if pilot.deadline is None or pilot.leaving or pilot.lead is None:
                continue
            warned, requeued = pilot.due(pilot.deadline)
            try:
                if now >= requeued:
                    self._orders.requeue(pilot.run)
                    yield f"{pilot.name} is requeued at its deadline, with the time limit that it was granted"
                elif now >= warned and pilot.run not in self._warned:
                    self._warned.add(pilot.run)
                    self._orders.warn(pilot.run)
                    yield f"{pilot.name} was sent SIGTERM: it is requeued in {requeued - int(now)} s"
            except RunEnded:
                continue
            except PoolError as fault:
                yield f"{pilot.name} is not requeued: {fault}"
