"""The demand of a waiting job on the nodes: what it takes of each, and on which it could start, were they empty."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from drainwise.common.printable import one_line
from drainwise.pool.amounts import Amounts, amounts
from drainwise.slurm.cluster.constraint import is_met
from drainwise.slurm.cluster.rules import ClusterRules
from drainwise.slurm.jobs.gres import Gres
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.pool.node_classes import NodeClass, NodeClasses

_MIB = 1 << 20
_SHOWN = 5
_TRIES = 8
_LONGEST = 240


@dataclass(frozen=True)
class Wanted:
    """What one task of a waiting job wants: `needs` on each of `nodes` nodes of `classes`; none: it can run nowhere.

    whole: it shares no node. cores: what it counts for on each: of a job that wants a part of a node's memory at least
    the same part of its cores. asks: what else it asks, as options of sbatch.
    """

    cores: int
    nodes: int
    needs: Amounts
    classes: frozenset[str]
    whole: bool = False
    asks: str = ""


@dataclass(frozen=True)
class _Spot:
    """A class of nodes where a job may run as far as its size goes, in partitions with at most `cpus` for it."""

    nodes: NodeClass
    cpus: int


class SlurmDemand:
    """The demand of waiting jobs on the nodes; some want nothing.

    hosts: names of nodes where cores can come back. now: UNIX s.
    """

    def __init__(self, classes: NodeClasses, rules: ClusterRules, hosts: Collection[str], now: int) -> None:
        self._classes, self._rules, self._now = classes, rules, now
        self._reach = classes.of_nodes(hosts)
        self._partitions = frozenset(
            name for one in classes.all if one.name in self._reach for name in one.sample.partitions
        )
        self._known: dict[tuple[object, ...], Wanted | None] = {}
        self._spots_of: dict[tuple[object, ...], tuple[list[_Spot], frozenset[str]]] = {}
        self._allowed: dict[tuple[object, ...], tuple[str, ...]] = {}
        self._impossible: list[str] = []

    def of(self, job: SlurmJob) -> Wanted | None:
        """Return what one task of a waiting job wants; None when it would not run, however many pilots left.

        Of a job that no node would do for, the classes are none, and it is named in the notices.
        """
        if self._partitions.isdisjoint(job.partitions):
            return None
        size = (job.cores, job.node_count, job.memory, job.whole_nodes, job.gres, job.disk, job.ranks)
        where = (job.partitions, job.account, job.limit, job.reservation, job.features, job.required, job.excluded)
        kind = (size, where)
        if kind not in self._known:
            found = self._wanted(job)
            in_reach = not found.classes or not found.classes.isdisjoint(self._reach)
            self._known[kind] = found if in_reach else None
        want = self._known[kind]
        if want is not None and not want.classes:
            self._impossible.append(job.label)
        return want

    def _wanted(self, job: SlurmJob) -> Wanted:
        spots, in_the_way = self._spots(job)
        asks = _asks(job, in_the_way)
        count, fitting = 1, spots
        for count in self._counts(job, spots):
            needs = self._needs(job, count)
            fitting = [spot for spot in spots if _fits(spot, needs, job, count)]
            if sum(spot.nodes.count for spot in fitting) >= count:
                break
        else:
            return Wanted(0, max(1, job.node_count), self._needs(job, max(1, job.node_count)), frozenset(), asks=asks)
        classes = frozenset(spot.nodes.name for spot in fitting)
        if job.whole_nodes or self._rules.selection.whole_nodes:
            cores = min(spot.nodes.sample.cpus for spot in fitting)
            whole = amounts(cores, needs.memory, needs.gpus, 0, needs.others)
            return Wanted(cores, count, whole, classes, whole=True, asks=asks)
        counted = needs.cores
        if needs.memory:
            nodes = [spot.nodes.sample for spot in fitting]
            parts = [round(node.cpus * needs.memory / node.memory) for node in nodes if node.memory]
            counted = max(counted, min(parts, default=0))
        return Wanted(counted, count, needs, classes, asks=asks)

    def _counts(self, job: SlurmJob, spots: Iterable[_Spot]) -> Iterator[int]:
        """Yield on how many nodes the job could lie: the fewest, then more where its tasks may be spread."""
        fewest = max(1, job.node_count)
        yield fewest
        largest = max((spot.cpus for spot in spots), default=0)
        if fewest == 1 and job.ranks > 1 and largest:
            first = max(2, -(-job.cores // largest))
            yield from range(first, min(job.ranks, first + _TRIES) + 1)

    def _needs(self, job: SlurmJob, count: int) -> Amounts:
        memory = _memory(job, count) if self._rules.selection.memory else 0
        return amounts_of(-(-job.cores // count), memory, job.gres)

    def _spots(self, job: SlurmJob) -> tuple[list[_Spot], frozenset[str]]:
        """Return the classes where a job may run, whatever its size, and the reservations that it would run into."""
        allowed = self._partitions_for(job)
        end = None if job.limit is None else self._now + job.limit * 60
        over = frozenset(
            one.name
            for one in self._classes.whole
            if not one.active and one.name != job.reservation and (end is None or end > one.start)
        )
        nodes = max(1, job.node_count)
        key = (allowed, over, job.reservation, job.features, job.required, job.excluded, nodes)
        if key not in self._spots_of:
            may = [one for one in self._classes.all if self._may_run(job, one, allowed, nodes)]
            clear = [one for one in may if not any(ahead.name in over for ahead in one.ahead)]
            in_the_way = {ahead.name for one in may for ahead in one.ahead if ahead.name in over}
            self._spots_of[key] = ([_Spot(one, self._most_cpus(one, allowed)) for one in clear], frozenset(in_the_way))
        return self._spots_of[key]

    def _partitions_for(self, job: SlurmJob) -> tuple[str, ...]:
        """Return those of a job's partitions that take it."""
        key = (job.partitions, job.account, job.limit, job.node_count, job.reservation)
        if key not in self._allowed:
            known, nodes = self._rules.partitions, max(1, job.node_count)
            self._allowed[key] = tuple(
                name
                for name in job.partitions
                if name not in known or known[name].takes(job.account, nodes, job.limit, job.reservation)
            )
        return self._allowed[key]

    def _may_run(self, job: SlurmJob, one: NodeClass, allowed: tuple[str, ...], nodes: int) -> bool:
        if one.sample.partitions.isdisjoint(allowed):
            return False
        if job.reservation:
            if job.reservation not in one.reservations:
                return False
        elif one.reservations:
            return False
        if job.excluded and job.excluded in one.lists:
            return False
        # Of a list that is shorter than the job the other nodes may be any.
        length = self._classes.lists.get(job.required, 0)
        if length >= nodes and job.required not in one.lists:
            return False
        return is_met(job.features, one.sample.features, nodes)

    def _most_cpus(self, one: NodeClass, allowed: tuple[str, ...]) -> int:
        """Return how many cores a job may have on a node, in the partition that gives most."""
        known = self._rules.partitions
        limits = [known[name].most_cpus if name in known else None for name in allowed if name in one.sample.partitions]
        return min(one.sample.cpus, max(one.sample.cpus if limit is None else limit for limit in limits))

    def tier(self, job: SlurmJob) -> int:
        """Return the tier of the job's highest partition: jobs of a higher one start first."""
        known = self._rules.partitions
        return max((known[name].tier for name in job.partitions if name in known), default=0)

    def notices(self) -> tuple[str, ...]:
        """Return what was left out, for the administrator."""
        if not self._impossible:
            return ()
        shown = ", ".join(self._impossible[:_SHOWN]) + (", …" if len(self._impossible) > _SHOWN else "")
        count = len(self._impossible)
        what = "1 waiting job is" if count == 1 else f"{count} waiting jobs are"
        return (
            f"{what} no demand, as no nodes that take jobs have the cores, memory, features and other resources, or are"
            f" for them: {shown}",
        )


def amounts_of(cores: int, memory: int, gres: Gres) -> Amounts:
    """Return amounts of `cores`, `memory` in MiB, and generic resources, of which GPUs have a name of their own."""
    if not gres:
        return amounts(cores, memory)
    gpus = sum(count for name, count in gres if name == "gpu")
    return amounts(cores, memory, gpus, 0, tuple(one for one in gres if one[0] != "gpu"))


def _memory(job: SlurmJob, count: int) -> int:
    """Return the MiB that a job wants on each of `count` nodes."""
    return -(-(job.memory or 0) // (count * _MIB))


def _fits(spot: _Spot, needs: Amounts, job: SlurmJob, count: int) -> bool:
    node = spot.nodes.sample
    if spot.cpus < needs.cores or node.disk < job.disk:
        return False
    if job.memory and node.memory is not None and _memory(job, count) > node.memory:
        return False
    return not job.gres or all(dict(node.gres).get(name, 0) >= number for name, number in job.gres)


def _asks(job: SlurmJob, in_the_way: Iterable[str]) -> str:
    """Return what a job asks beside amounts, as options of sbatch; and the reservations that it is too long for."""
    asked = {
        "partition": ",".join(job.partitions),
        "constraint": job.features,
        "nodelist": job.required,
        "exclude": job.excluded,
        "reservation": job.reservation,
        "tmp": f"{job.disk}M" if job.disk else "",
    }
    said = [f"--{name}={value}" for name, value in asked.items() if value]
    said += [f"too long for the time before reservation {name}" for name in sorted(in_the_way)]
    return one_line(", ".join(said), _LONGEST)
