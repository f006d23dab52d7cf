"""The demand of waiting jobs: what each takes of a node, on which it could start were they empty; in kinds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from drainwise.common.printable import one_line
from drainwise.pool.amounts import NOTHING, Amounts, amounts
from drainwise.pool.job_kinds import JobKind, kind_name, merged
from drainwise.slurm.jobs.gres import Gres, with_shards
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.node.host_list import hosts
from drainwise.slurm.pool.limits import Allowance, Asked, Bound, Holder
from drainwise.slurm.pool.node_classes import NodeClass, NodeClasses, is_met
from drainwise.slurm.pool.node_line import SlurmNode
from drainwise.slurm.pool.rules import MAGNETIC, ClusterRules, Submitter

_MIB = 1 << 20
_SHOWN = 5
_TRIES = 8
_LONGEST = 240


@dataclass(frozen=True)
class Wanted:
    """What one task of a waiting job wants: `needs` on each of `nodes` nodes of `classes`; none: it can run nowhere.

    whole: it shares no node. cores: what it counts for on each: of a job that wants a part of a node's memory at least
    the same part of its cores. asks: what else it asks, as options of sbatch. of_user: it shares its node with jobs of
    this user alone ("": with anybody's); then a node counts as whole, and takes jobs of `each` that many at once.
    """

    cores: int
    nodes: int
    needs: Amounts
    classes: frozenset[str]
    whole: bool = False
    asks: str = ""
    of_user: str = ""
    each: Amounts = NOTHING


@dataclass(frozen=True)
class _Spot:
    """A class of nodes where a job may run as far as its size goes, in partitions with at most `cpus` for it."""

    nodes: NodeClass
    cpus: int


class SlurmDemand:
    """The demand of waiting jobs on the nodes; some want nothing.

    hosts: names of nodes where cores can come back. now: UNIX s. lineage: an account with those above it.
    """

    def __init__(
        self,
        classes: NodeClasses,
        rules: ClusterRules,
        hosts: Collection[str],
        now: int,
        lineage: Callable[[str], tuple[str, ...]] = lambda account: (account,),
    ) -> None:
        self._classes, self._rules, self._now, self._lineage = classes, rules, now, lineage
        self._allowance = Allowance(rules.limits)
        self._reach = classes.of_nodes(hosts)
        self._partitions = frozenset(
            name for one in classes.all if one.name in self._reach for name in one.sample.partitions
        )
        self._known: dict[tuple[object, ...], Wanted | None] = {}
        self._spots_of: dict[tuple[object, ...], tuple[list[_Spot], frozenset[str]]] = {}
        self._allowed: dict[tuple[object, ...], tuple[str, ...]] = {}
        self._submitters: dict[tuple[str, str, str], Submitter] = {}
        self._whose: dict[tuple[object, ...], tuple[int, str, int]] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._bounds: dict[tuple[object, ...], tuple[Bound, ...]] = {}
        # What no rule asks for makes no two jobs unlike.
        partitions = rules.partitions.values()
        self._asks_qos = any(one.qos or one.denied_qos for one in partitions)
        self._asks_user = any(one.groups for one in partitions) or any(MAGNETIC in one.flags for one in classes.whole)
        self._impossible: list[str] = []

    def of(self, job: SlurmJob) -> Wanted | None:
        """Return what one task of a waiting job wants; None when it would not run, however many pilots left.

        Of a job that no node would do for, the classes are none, and it is named in the notices.
        """
        if self._partitions.isdisjoint(job.partitions):
            return None
        size = (job.cores, job.node_count, job.memory, job.whole_nodes, job.gres, job.disk, job.ranks, job.threads)
        where = (job.partitions, job.limit, job.reservation, job.features, job.required, job.excluded)
        whose, unknown, _ = self._whose_of(job)
        kind = (size, where, whose)
        if kind not in self._known:
            found = self._unplaced(job, f"where it is not known: {unknown}") if unknown else self._wanted(job)
            in_reach = not found.classes or not found.classes.isdisjoint(self._reach)
            self._known[kind] = found if in_reach else None
        want = self._known[kind]
        if want is not None and not want.classes:
            self._impossible.append(job.label)
        return want

    def _whose_of(self, job: SlurmJob) -> tuple[int, str, int]:
        """Return a number for jobs to which the same rules apply by whose they are; what is not known of them; the tier
        of their highest partition.
        """
        facts = (job.partitions, job.user, job.account, job.qos, job.user_alone, job.unknown)
        if facts not in self._whose:
            alone, who = job.user if self._is_alone(job, job.partitions) else "", self._submitter(job)
            known = [self._rules.partitions[name] for name in job.partitions if name in self._rules.partitions]
            unknown = job.unknown or next(filter(None, (one.unknown(who) for one in known)), "")
            whose = self._numbers.setdefault((unknown, who, alone), len(self._numbers))
            tier = max((one.tier for one in known), default=0)
            self._whose[facts] = whose, unknown, tier
        return self._whose[facts]

    def allowed_tasks(self, job: SlurmJob, want: Wanted, tasks: int) -> int:
        """Return how many tasks of a waiting job the accounting's limits allow, and count them.

        The jobs are given in the order of the queue.
        """
        if not self._rules.limits:
            return tasks
        alike = (id(want), job.limit, job.partitions, job.qos, job.user, job.account)
        if alike not in self._bounds:
            self._bounds[alike] = self._allowance.bounds(_counted(job, want), self._holders(job))
        return self._allowance.take(tasks, self._bounds[alike])

    def _holders(self, job: SlurmJob) -> Iterator[Holder]:
        """Yield whose limits bind a job, those that bind most first."""
        known, lineage = self._rules.partitions, self._lineage(job.account)
        for qos in dict.fromkeys((*(known[name].own_qos for name in job.partitions if name in known), job.qos)):
            if qos:
                yield from (("qos", qos), ("qos", qos, "user", job.user), ("qos", qos, "account", job.account))
        yield from ((job.account, job.user, partition) for partition in dict.fromkeys((*job.partitions, "")))
        yield from ((account, "", "") for account in lineage)

    def _submitter(self, job: SlurmJob) -> Submitter:
        key = (job.user if self._asks_user else "", job.account, job.qos if self._asks_qos else "")
        if key not in self._submitters:
            self._submitters[key] = self._rules.submitter(key[0], self._lineage(job.account), key[2])
        return self._submitters[key]

    def _is_alone(self, job: SlurmJob, partitions: Collection[str]) -> bool:
        """Decide whether a job shares its nodes with jobs of its own user alone, in whichever of these partitions."""
        known = self._rules.partitions
        return job.user_alone or all(name in known and known[name].user_alone for name in partitions)

    def _wanted(self, job: SlurmJob) -> Wanted:
        spots, in_the_way = self._spots(job)
        asks = _asks(job, in_the_way)
        count, fitting = 1, spots
        for count in self._counts(job, spots):
            fitting = [spot for spot in spots if _fits(spot, self._needs(job, count, [spot]), job, count)]
            if sum(spot.nodes.count for spot in fitting) >= count:
                break
        else:
            return self._unplaced(job, asks)
        needs, classes = self._needs(job, count, fitting), frozenset(spot.nodes.name for spot in fitting)
        allowed = self._partitions_for(job)
        alone = self._is_alone(job, allowed)
        if job.whole_nodes or alone or self._rules.selection.whole_nodes:
            cores = min(spot.nodes.sample.cpus for spot in fitting)
            whole = amounts(cores, needs.memory, needs.gpus, 0, needs.others)
            if job.whole_nodes or self._rules.selection.whole_nodes:
                return Wanted(cores, count, whole, classes, whole=True, asks=asks)
            asks = one_line(f"{asks}, on nodes with jobs of {job.user} alone", _LONGEST)
            return Wanted(cores, count, whole, classes, True, asks, job.user, needs)
        counted = needs.cores
        if needs.memory:
            nodes = [spot.nodes.sample for spot in fitting]
            parts = [round(node.cpus * needs.memory / node.memory) for node in nodes if node.memory]
            counted = max(counted, min(parts, default=0))
        return Wanted(counted, count, needs, classes, asks=asks)

    def _unplaced(self, job: SlurmJob, asks: str) -> Wanted:
        nodes = max(1, job.node_count)
        return Wanted(0, nodes, self._needs(job, nodes), frozenset(), asks=one_line(asks, _LONGEST))

    def _counts(self, job: SlurmJob, spots: Iterable[_Spot]) -> Iterator[int]:
        """Yield on how many nodes the job could lie: the fewest, then more where its tasks may be spread."""
        fewest = max(1, job.node_count)
        yield fewest
        largest = max((spot.cpus for spot in spots), default=0)
        if fewest == 1 and job.ranks > 1 and largest:
            first = max(2, -(-job.cores // largest))
            yield from range(first, min(job.ranks, first + _TRIES) + 1)

    def _needs(self, job: SlurmJob, count: int, spots: Sequence[_Spot] = ()) -> Amounts:
        """Return what a job takes of each of `count` nodes of these classes, where that differs the most."""
        memory = _memory(job, count) if self._rules.selection.memory else 0
        nodes = [spot.nodes.sample for spot in spots]
        each = -(-job.cores // count)
        cores = max((_granted(each, job.threads, node) for node in nodes), default=each)
        others = [(shared_cores(name), cores) for name in self._bounded_partition(job)]
        return amounts_of(cores, memory, with_shards(job.gres, (node.gres for node in nodes)), others)

    def _bounded_partition(self, job: SlurmJob) -> tuple[str, ...]:
        """Return the partition whose jobs have a bounded part of each node, where a job has no other choice."""
        allowed, known = self._partitions_for(job), self._rules.partitions
        bounded = [name for name in allowed if name in known and known[name].cpus_on(1) is not None]
        return tuple(bounded[:1]) if len(bounded) == len(allowed) else ()

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
        who = self._submitter(job)
        attracted = frozenset(one.name for one in self._classes.whole if one.active and one.attracts(who))
        mine = frozenset({job.reservation}) if job.reservation else attracted
        key = (allowed, over, mine, bool(job.reservation), job.features, job.required, job.excluded, nodes)
        if key not in self._spots_of:
            may = [one for one in self._classes.all if self._may_run(job, one, allowed, nodes, mine)]
            clear = [one for one in may if not any(ahead.name in over for ahead in one.ahead)]
            in_the_way = {ahead.name for one in may for ahead in one.ahead if ahead.name in over}
            self._spots_of[key] = ([_Spot(one, self._most_cpus(one, allowed)) for one in clear], frozenset(in_the_way))
        return self._spots_of[key]

    def _partitions_for(self, job: SlurmJob) -> tuple[str, ...]:
        """Return those of a job's partitions that take it."""
        who = self._submitter(job)
        key = (job.partitions, who, job.limit, job.node_count, job.reservation)
        if key not in self._allowed:
            known, nodes = self._rules.partitions, max(1, job.node_count)
            self._allowed[key] = tuple(
                name
                for name in job.partitions
                if name not in known or known[name].takes(who, nodes, job.limit, job.reservation)
            )
        return self._allowed[key]

    def _may_run(
        self, job: SlurmJob, one: NodeClass, allowed: tuple[str, ...], nodes: int, mine: frozenset[str]
    ) -> bool:
        """Decide whether a job could start on a class; mine: reservations in which it may, or must where it asks."""
        if one.sample.partitions.isdisjoint(allowed):
            return False
        if one.reservations.isdisjoint(mine) if one.reservations or job.reservation else False:
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
        known, node = self._rules.partitions, one.sample
        limits = [
            known[name].cpus_on(node.sockets) if name in known else None for name in allowed if name in node.partitions
        ]
        return min(node.cpus, max(node.cpus if limit is None else limit for limit in limits))

    def tier(self, job: SlurmJob) -> int:
        """Return the tier of the job's highest partition: jobs of a higher one start first."""
        return self._whose_of(job)[2]

    def notices(self) -> tuple[str, ...]:
        """Return what was left out, for the administrator."""
        found = [
            f"{tasks} waiting {'job is' if tasks == 1 else 'jobs are'} held back by a limit of the accounting: {limit}"
            for limit, tasks in sorted(self._allowance.held_back.items())
        ]
        if count := len(self._impossible):
            shown = ", ".join(self._impossible[:_SHOWN]) + (", …" if count > _SHOWN else "")
            what = "1 waiting job is" if count == 1 else f"{count} waiting jobs are"
            found.append(
                f"{what} no demand, as no nodes that take jobs have the cores, memory, features and other resources, or"
                f" are for them: {shown}"
            )
        return tuple(found)


def _counted(job: SlurmJob, want: Wanted) -> Asked:
    """Return what one task of a waiting job counts for in the accounting's limits."""
    each, nodes = want.each if want.of_user else want.needs, want.nodes
    resources = {"cpu": each.cores * nodes, "mem": each.memory * nodes, "node": nodes, "gres/gpu": each.gpus * nodes}
    resources.update((f"gres/{name}", amount * nodes) for name, amount in each.others)
    return Asked(math.inf if job.limit is None else job.limit, resources)


def amounts_of(cores: int, memory: int, gres: Gres, more: Iterable[tuple[str, int]] = ()) -> Amounts:
    """Return amounts of `cores`, `memory` in MiB, and generic resources, of which GPUs have a name of their own.

    more: what is counted beside them, by name.
    """
    others = (*gres, *more)
    if not others:
        return amounts(cores, memory)
    gpus = sum(count for name, count in gres if name == "gpu")
    return amounts(cores, memory, gpus, 0, tuple(sorted(one for one in others if one[0] != "gpu")))


def shared_cores(partition: str) -> str:
    """Return the name of the cores of a node that the jobs of a partition have together."""
    return f"cores of partition {partition}"


def _granted(cores: int, threads: int | None, node: SlurmNode) -> int:
    """Return the CPUs of a node that Slurm gives to a job which asks for `cores`, and so many threads of a core."""
    if threads is not None and threads < node.threads:
        cores = -(-cores // threads) * node.threads
    return -(-cores // node.grain) * node.grain


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


def _memory(job: SlurmJob, count: int) -> int:
    """Return the MiB that a job wants on each of `count` nodes."""
    return -(-(job.memory or 0) // (count * _MIB))


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
