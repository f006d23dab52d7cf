"""Which nodes a waiting job may use, node by node, against the classes in which the demand has them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.pool.demand import SlurmDemand, Wanted
from drainwise.slurm.pool.node_classes import MOST_LISTS, NodeClasses, lists_of
from drainwise.slurm.pool.node_line import SlurmNode
from drainwise.slurm.pool.rules import ClusterRules, NodeReservation, Partition, Selection
from more_examples import more_examples

NOW = 1795270000
GIB = 1 << 30
NODE = SlurmNode("n1", 0, 8, 8, False, frozenset({"main"}), cpus=8, memory=16384)
JOB = SlurmJob(18, user="bob", account="cms", partitions=("main",), cores=1, node_count=1, limit=60)


def wanted(
    job: SlurmJob, nodes: list[SlurmNode], rules: ClusterRules | None = None
) -> tuple[Wanted | None, frozenset[str]]:
    """What the job wants, and the nodes of its classes, where cores can come back on all nodes."""
    rules = rules or ClusterRules()
    classes = NodeClasses(nodes, rules.reservations, lists_of([job]), NOW)
    want = SlurmDemand(classes, rules, {node.name for node in nodes}, NOW).of(job)
    within = want.classes if want else frozenset()
    return want, frozenset(name for name, one in classes.class_of.items() if one in within)


NAMES = ("n1", "n2", "n3", "n4")
MAINTENANCE = NodeReservation("r1", frozenset({"n1", "n2"}), NOW + 3600, NOW + 7200, flags=frozenset({"MAINT"}))
RESERVED = NodeReservation("r2", frozenset({"n3"}), NOW - 60, NOW + 7200, active=True)
RULES = ClusterRules(
    Selection(),
    {"main": Partition("main", most_minutes=600), "gpu": Partition("gpu", accounts=frozenset({"atlas"}))},
    (MAINTENANCE, RESERVED),
    enforced=frozenset({"associations"}),  # else no account is kept from a partition
)
GRES = st.sampled_from([(), (("gpu", 2), ("gpu:a100", 2)), (("gpu", 1), ("gpu:t4", 1))])


@st.composite
def clusters(draw: st.DrawFn) -> list[SlurmNode]:
    return [
        replace(
            NODE,
            name=name,
            partitions=draw(st.frozensets(st.sampled_from(["main", "gpu"]), min_size=1)),
            cpus=draw(st.sampled_from([4, 8])),
            memory=draw(st.sampled_from([4096, 16384, None])),
            features=draw(st.frozensets(st.sampled_from("ab"))),
            gres=draw(GRES),
            takes_jobs=draw(st.booleans()),
        )
        for name in NAMES
    ]


jobs = st.builds(
    replace,
    st.just(JOB),
    account=st.sampled_from(["atlas", "cms"]),
    partitions=st.sampled_from([("main",), ("gpu",), ("gpu", "main")]),
    cores=st.sampled_from([1, 4, 5, 8, 9]),
    memory=st.sampled_from([None, GIB, 5 * GIB, 17 * GIB]),
    features=st.sampled_from(["", "a", "a|b", "a&b"]),
    gres=st.sampled_from([(), (("gpu", 1),), (("gpu", 1), ("gpu:a100", 1))]),
    required=st.sampled_from(["", "n1", "n[2-3]"]),
    excluded=st.sampled_from(["", "n1", "n[2-3]"]),
    reservation=st.sampled_from(["", "r2"]),
    limit=st.sampled_from([60, 61, 601, None]),
)


def would_do(node: SlurmNode, job: SlurmJob) -> bool:
    """The rules for one node, one by one."""
    minutes = job.limit or 10**6
    partitions = set(job.partitions) - ({"main"} if minutes > 600 else set())
    partitions -= {"gpu"} if job.account != "atlas" else set()
    features = {"": True, "a": "a" in node.features, "a|b": bool(node.features), "a&b": len(node.features) == 2}
    return (
        node.takes_jobs
        and bool(node.partitions & partitions)
        and node.cpus >= job.cores
        and (node.memory is None or node.memory >= (job.memory or 0) >> 20)
        and features[job.features]
        and all(dict(node.gres).get(name, 0) >= count for name, count in job.gres)
        and (not job.required or node.name in {"n1": "n1", "n[2-3]": "n2 n3"}[job.required].split())
        and (not job.excluded or node.name not in {"n1": "n1", "n[2-3]": "n2 n3"}[job.excluded].split())
        and (node.name == "n3") == (job.reservation == "r2")
        and not (node.name in {"n1", "n2"} and minutes > 60)
    )


@more_examples(1.5)
@given(clusters(), jobs)
def test_a_kinds_classes_are_the_nodes_that_would_do(nodes: list[SlurmNode], job: SlurmJob) -> None:
    """Whatever the nodes have and the job asks: no node too many, none too few."""
    want, found = wanted(job, nodes, RULES)
    alone = frozenset(node.name for node in nodes if would_do(node, job))
    if want is None:
        # No node on which cores come back is in its partitions.
        assert not any(node.partitions & set(job.partitions) for node in nodes if node.takes_jobs)
        assert not alone
    else:
        assert found == alone


def test_what_a_job_needs_is_what_it_asked() -> None:
    """A core with half of the memory counts for half of the cores, and needs one."""
    want, _ = wanted(replace(JOB, memory=8 * GIB), [NODE])
    assert want is not None
    assert (want.cores, want.needs.cores, want.needs.memory) == (4, 1, 8192)
    plain, _ = wanted(replace(JOB, memory=8 * GIB), [NODE], ClusterRules(Selection(memory=False)))
    assert plain is not None
    assert (plain.cores, plain.needs.cores, plain.needs.memory) == (1, 1, 0)


@pytest.mark.parametrize(
    ("cores", "ranks", "nodes", "wants"),
    [
        (8, 8, 1, (8, 1)),
        (16, 16, 1, (8, 2)),
        (9, 9, 1, (5, 2)),
        (16, 1, 1, None),
        (17, 17, 1, None),
        (12, 12, 2, (6, 2)),
        (24, 24, 2, None),
    ],
)
def test_tasks_lie_on_as_few_nodes_as_there_must_be(
    cores: int, ranks: int, nodes: int, wants: tuple[int, int] | None
) -> None:
    """Of two nodes with 8 cores each; a job that says on how many lies on those."""
    want, found = wanted(replace(JOB, cores=cores, ranks=ranks, node_count=nodes), [NODE, replace(NODE, name="n2")])
    assert want is not None
    assert (want.needs.cores, want.nodes) == wants if wants else not found


def test_a_partitions_limit_of_cores_on_a_node() -> None:
    rules = ClusterRules(partitions={"main": Partition("main", most_cpus=4)})
    assert wanted(replace(JOB, cores=4), [NODE], rules)[1] == {"n1"}
    assert wanted(replace(JOB, cores=5), [NODE], rules)[1] == frozenset()


def test_a_reservation_of_some_cores_keeps_nobody_away() -> None:
    some = replace(RESERVED, nodes=frozenset({"n1"}), cpus=7)
    assert wanted(JOB, [NODE], ClusterRules(reservations=(some,)))[1] == {"n1"}
    assert wanted(JOB, [NODE], ClusterRules(reservations=(replace(some, cpus=8),)))[1] == frozenset()


def test_so_many_lists_of_nodes_are_looked_at() -> None:
    """Those of the most cores: a class for each node is more than any pool needs."""
    found = lists_of(replace(JOB, required=f"n{number}", cores=number) for number in range(1, 200))
    assert (len(found), found[0]) == (MOST_LISTS, "n199")
    hostile = [replace(JOB, excluded=text) for text in ("n[1-99999999]", "n[", "ü" * 10**6)]
    assert NodeClasses([NODE], (), lists_of(hostile), NOW).lists == {}
