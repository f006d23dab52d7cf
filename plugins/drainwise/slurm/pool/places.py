"""Slurm's nodes as places, what runs hold there, and the times for which reservations take nodes from them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from drainwise.common.printable import one_line
from drainwise.facts.errors import PoolUnreachable
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Closure, Piece
from drainwise.pool.job_kinds import Place
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.gres import Gres, gres_in, with_shards
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.scontrol_jobs import answers
from drainwise.slurm.node.host_list import hosts
from drainwise.slurm.pool.demand import Wanted, amounts_of, shared_cores
from drainwise.slurm.pool.node_line import SlurmNode
from drainwise.slurm.pool.rules import MAINTENANCE, ClusterRules, NodeReservation

UNBOUNDED_MEMORY = 1 << 30
"""MiB that a node has for whoever reckons with it, where Slurm was not told what it has."""

_MIB = 1 << 20
_LONGEST = 80


def holdings(jobs: Sequence[SlurmJob], nodes: Iterable[SlurmNode], rules: ClusterRules) -> dict[int, Amounts]:
    """Return what each of these jobs, of one node, has there, by its number.

    rules: whether jobs have memory to themselves, and which partitions bound the cores of their jobs on a node.
    """
    bounded = _bounded(rules)
    typed = {node.name: node for node in nodes if node.gres}
    there: dict[str, list[SlurmJob]] = defaultdict(list)
    for job in jobs:
        if job.node in typed and job.gres:
            there[job.node].append(job)
    gres = {job.number: job.gres for job in jobs}
    for name, found in there.items():
        gres.update(_with_types(found, typed[name]))
    return {
        job.number: amounts_of(
            job.cores,
            -(-(job.memory or 0) // _MIB) if rules.selection.memory else 0,
            with_shards(gres[job.number], (typed[job.node].gres if job.node in typed else (),)),
            [(shared_cores(name), job.cores) for name in job.partitions if name in bounded],
        )
        for job in jobs
    }


def _bounded(rules: ClusterRules) -> frozenset[str]:
    """Return the partitions whose jobs may have so many cores of a node together."""
    return frozenset(name for name, one in rules.partitions.items() if one.cpus_on(1) is not None)


def pieces_of(
    allocations: Mapping[int, Allocation], classes: Mapping[str, str], rules: ClusterRules
) -> dict[int, tuple[Piece, ...]]:
    """Return what each job of several nodes has on them, by its number; parameters as for `places_of`."""
    return {
        number: tuple(
            Piece(
                one.node,
                one.node if one.node in classes else "",
                amounts_of(one.cores, one.memory if rules.selection.memory else 0, one.gres),
            )
            for one in allocation
        )
        for number, allocation in allocations.items()
    }


def _with_types(jobs: Iterable[SlurmJob], node: SlurmNode) -> dict[int, Gres]:
    """Return the jobs' generic resources with the types of those that were asked for without one.

    Known where there is one type on the node, or one of which more is in use than was asked for by type.
    """
    found: dict[int, Gres] = {}
    jobs = tuple(jobs)
    for name in {name for name, _ in node.gres if ":" not in name}:
        types = [kind for kind, _ in node.gres if kind.startswith(f"{name}:")]
        used = dict(node.used_gres)
        left = {kind: used.get(kind, 0) - sum(dict(job.gres).get(kind, 0) for job in jobs) for kind in types}
        in_use = types if len(types) == 1 else [kind for kind, number in left.items() if number > 0]
        for job in jobs:
            had = dict(found.get(job.number, job.gres))
            count = had.get(name, 0)
            if count and len(in_use) == 1 and not any(kind in had for kind in types):
                found[job.number] = tuple(sorted({**had, in_use[0]: count}.items()))
    return found


def places_of(
    nodes: Iterable[SlurmNode],
    classes: Mapping[str, str],
    held: Mapping[str, list[Amounts]],
    rules: ClusterRules,
    is_all_held: bool,
) -> tuple[Place, ...]:
    """Return the nodes that have a class as places.

    held: what jobs have on a node. It is not free, whatever sinfo says: that does not count jobs that are being ended,
    and was asked at another moment. rules: as for `holdings`. is_all_held: whether these are all jobs; what sinfo has
    in use beside them is unseen then.
    """
    found = []
    bounded, memory = _bounded(rules), rules.selection.memory
    for node in nodes:
        if node.name in classes:
            shared = {name: rules.partitions[name].cpus_on(node.sockets) or 0 for name in bounded & node.partitions}
            more = [(shared_cores(name), cores) for name, cores in shared.items()]
            had = UNBOUNDED_MEMORY if node.memory is None else node.memory
            total = amounts_of(node.cpus, had if memory else 0, node.gres, more)
            used_gres = with_shards(node.used_gres, (node.gres,))
            in_use = amounts_of(node.cpus - node.unused, node.used_memory if memory else 0, used_gres)
            place = Place(node.name, node.name, classes[node.name], total.minus(in_use), total)
            tells_all = is_all_held and node.unused + node.allocated == node.cpus
            found.append(place.beside(held.get(node.name, ()), tells_all=tells_all))
    return tuple(found)


def nodes_of_user(want: Wanted, jobs: int, places: Iterable[Place], users: Mapping[str, Collection[str]]) -> int:
    """Return how many whole nodes so many jobs need that share theirs with jobs of their own user alone.

    users: whose jobs are on each node. What the user's own nodes have free serves some of them.
    """
    mine = [one for one in places if one.node_class in want.classes]
    theirs = [one for one in mine if set(users.get(one.node, ())) == {want.of_user}]
    left = jobs - sum(_times(one.free, want.each) for one in theirs)
    each = min((_times(one.total, want.each) for one in mine), default=1)
    return max(0, -(-left // max(1, each)))


def _times(room: Amounts, need: Amounts) -> int:
    had = dict(room.named())
    return min((had.get(name, 0) // amount for name, amount in need.named()), default=0)


def closures_of(reservations: Iterable[NodeReservation], nodes: Iterable[str], now: int) -> tuple[Closure, ...]:
    """Return the reservations of whole nodes that are ahead.

    nodes: the cluster's. now: UNIX s. One that floats begins always later; one that has begun keeps others out itself.
    """
    known = frozenset(nodes)
    found = []
    for one in reservations:
        if one.start > now and not one.active and not one.floats and one.nodes & known:
            what = "maintenance" if MAINTENANCE in one.flags else "reserved for others"
            reason = f"{what}: Slurm's reservation {one_line(one.name, _LONGEST)}"
            found.append(Closure(one.name, one.nodes & known, one.start, one.end, reason))
    return tuple(found)


# Ask what runs of several nodes have on each of them: no list of jobs says that, only `scontrol --details show job`.
#
# One question for each such run, once: what a run has does not change while its nodes and cores stay the same. The
# answer mixes facts with what users chose, so it counts only when it adds up to what the list of jobs says.

MOST = 512
"""Runs that are asked for at a time; each costs slurmctld about a millisecond. The others' turn comes later."""
_PART = re.compile(r" Nodes=(\S{1,4096}) CPU_IDs=([0-9,-]{1,4096}) Mem=([0-9]{1,12}) GRES=(\S{0,4096})")


@dataclass(frozen=True)
class NodeShare:
    """What a run has on one node: cores, memory in MiB, generic resources."""

    node: str
    cores: int
    memory: int
    gres: Gres = ()


Allocation = tuple[NodeShare, ...]


def allocation_in(block: str, job: SlurmJob) -> Allocation:
    """Read what a run has on each of its nodes; () where that does not add up to its nodes and cores."""
    found: list[NodeShare] = []
    try:
        for nodes, numbers, memory, gres in _PART.findall(block):
            held = gres_in(gres)
            cores = len(hosts(f"[{numbers}]"))
            found += [NodeShare(node, cores, int(memory), held) for node in hosts(nodes)]
        names = hosts(job.node)
    except ValueError:
        return ()
    is_whole = sorted(one.node for one in found) == sorted(names) and sum(one.cores for one in found) == job.cores
    return tuple(found) if is_whole else ()


class Allocations:
    """What is known of the runs of several nodes."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands
        self._known: dict[tuple[object, ...], Allocation] = {}

    def of(self, jobs: Iterable[SlurmJob]) -> Mapping[int, Allocation]:
        """Return what each running job of several nodes or components has on its nodes, by its number.

        One that ended meanwhile, or that nobody could be asked for, is absent.
        """
        wanted = {_run(job): job for job in jobs if job.runs and not job.single}
        self._known = {run: known for run, known in self._known.items() if run in wanted}
        new = [run for run in wanted if run not in self._known][:MOST]
        if new:
            try:
                questions = [f"show job {_only(wanted[run])}" for run in new]
                blocks = answers(self._commands, questions, "--details")
            except PoolUnreachable:
                blocks = []  # the snapshot's own questions say whether slurmctld answers
            for run, block in zip(new, blocks):
                found = allocation_in(block, wanted[run])
                if found:
                    self._known[run] = found
        return {wanted[run].number: known for run, known in self._known.items()}


def _only(job: SlurmJob) -> str:
    """Return what scontrol takes for this job alone; a component's number lies as far from the first one's."""
    return job.label if job.het is None else f"{job.het}+{job.number - job.het}"


def _run(job: SlurmJob) -> tuple[object, ...]:
    return job.number, job.start, job.node, job.cores
