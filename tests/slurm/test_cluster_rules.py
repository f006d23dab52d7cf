"""Partitions, reservations and kept memory out of what scontrol prints."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.pool.node_line import SlurmNode
from drainwise.slurm.pool.rules import (
    MAINTENANCE,
    QUESTIONS,
    ClusterRules,
    NodeReservation,
    Partition,
    Selection,
    Submitter,
    controller_time,
    reservations_in,
    rules_in,
)

from .recorded_cluster import VERSIONS, recorded
from .recorded_room import NOW, rules
from .recorded_room import recorded as recorded_room

OFF = frozenset({"off"})


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_rules(version: str) -> None:
    found = rules(version)
    assert found.selection == Selection(whole_nodes=False, memory=True)
    assert found.kept_memory == {"node2": 512}
    assert found.partitions == {
        "main": Partition("main", modes=OFF),
        "closed": Partition("closed", accounts=frozenset({"atlas"}), modes=OFF),
        "gpu": Partition("gpu", most_nodes=1, modes=OFF),
    }
    seen = {one.name: (sorted(one.nodes), one.cpus, one.active, one.floats) for one in found.reservations}
    assert seen == {
        "maint1": (["node5"], 8, False, False),
        "part1": (["node1"], 2, False, False),
        "now1": (["node4"], 8, True, False),
        "float1": (["node2"], 8, False, True),
    }
    (maintenance,) = (one for one in found.reservations if MAINTENANCE in one.flags)
    assert (maintenance.name, maintenance.end - maintenance.start) == ("maint1", 3600)
    assert controller_time(recorded_room(version, "scontrol.txt").decode()) == NOW


@pytest.mark.parametrize("version", VERSIONS)
def test_a_cluster_without_reservations(version: str) -> None:
    """The whole of its configuration stands before the partitions."""
    answer = recorded(version, "config.txt").decode() + "scontrol: show partition\n"
    answer += recorded(version, "partition.txt").decode() + "No reservations in the system\n"
    found = rules_in(answer)
    assert (set(found.partitions), found.reservations, dict(found.kept_memory)) == ({"main"}, (), {})
    assert (found.preempt_modes, found.preempt_exempt) == (OFF, 0)
    assert QUESTIONS.startswith("show config\n")


def test_who_does_not_tell_the_time_is_no_answer() -> None:
    with pytest.raises(PoolUnreachable, match="does not tell slurmctld's time"):
        controller_time("scontrol: show config\n")


@pytest.mark.parametrize(
    ("partition", "job", "takes"),
    [
        (Partition("p"), ("a", 9, None, ""), True),
        (Partition("p", up=False), ("a", 1, 1, ""), False),
        (Partition("p", accounts=frozenset({"b"})), ("a", 1, 1, ""), False),
        (Partition("p", denied=frozenset({"a"})), ("a", 1, 1, ""), False),
        (Partition("p", most_nodes=2), ("a", 3, 1, ""), False),
        (Partition("p", least_nodes=2), ("a", 1, 1, ""), False),
        (Partition("p", most_minutes=60), ("a", 1, 61, ""), False),
        (Partition("p", most_minutes=60), ("a", 1, None, ""), False),
        (Partition("p", most_minutes=60), ("a", 1, 60, ""), True),
        (Partition("p", reserved_only=True), ("a", 1, 60, ""), False),
        (Partition("p", reserved_only=True), ("a", 1, 60, "r"), True),
    ],
)
def test_whom_a_partition_takes(partition: Partition, job: tuple[str, int, int | None, str], takes: bool) -> None:
    account, nodes, minutes, reservation = job
    assert partition.takes(Submitter("u", frozenset({account})), nodes, minutes, reservation) is takes


WHO = Submitter("bob", frozenset({"cms-prod", "cms", "root"}), frozenset({"g1"}), "small")


@pytest.mark.parametrize(
    ("partition", "who", "takes"),
    [
        (Partition("p", accounts=frozenset({"cms"})), WHO, True),
        (Partition("p", denied=frozenset({"cms"})), WHO, False),
        (Partition("p", accounts=frozenset({"atlas"})), WHO, False),
        (Partition("p", accounts=frozenset({"atlas"})), replace(WHO, accounts=frozenset()), True),
        (Partition("p", denied=frozenset({"atlas"}), accounts=frozenset({"cms"})), WHO, True),
        (Partition("p", groups=frozenset({"g1", "g2"})), WHO, True),
        (Partition("p", groups=frozenset({"g2"})), WHO, False),
        (Partition("p", qos=frozenset({"small"})), WHO, True),
        (Partition("p", qos=frozenset({"large"})), WHO, False),
        (Partition("p", denied_qos=frozenset({"small"})), WHO, False),
        (Partition("p", qos=frozenset({"small"}), denied_qos=frozenset({"small"})), WHO, True),
    ],
)
def test_whose_jobs_a_partition_takes(partition: Partition, who: Submitter, takes: bool) -> None:
    """By an account above as well, group, quality of service; where Slurm enforces no accounts, none are asked."""
    assert not partition.unknown(who)
    assert partition.takes(who, 1, 60, "") is takes


def test_what_must_be_known_of_a_submitter() -> None:
    """Who is of no known group or quality of service is not taken for one whom the partition lists, or not."""
    assert "groups" in Partition("p", groups=frozenset({"g"})).unknown(replace(WHO, groups=None))
    assert "quality of service" in Partition("p", denied_qos=frozenset({"q"})).unknown(replace(WHO, qos=""))
    assert Partition("p").unknown(Submitter("bob", frozenset())) == ""


@pytest.mark.parametrize(
    ("said", "attracted"),
    [
        ("Users=(null) Accounts=cms Flags=MAGNETIC", True),
        ("Users=bob Accounts=(null) Flags=MAGNETIC,DAILY", True),
        ("Users=-bob Accounts=(null) Flags=MAGNETIC", False),
        ("Users=alice Accounts=cms Flags=MAGNETIC", False),
        ("Users=bob Accounts=cms Flags=", False),
        ("Users=bob Accounts=cms Flags=MAGNETIC,TIME_FLOAT", False),
    ],
)
def test_whom_a_magnetic_reservation_attracts(said: str, attracted: bool) -> None:
    """A minus keeps a user out; of users and accounts both must fit."""
    (one,) = reservations_in(f"ReservationName=r StartTime=1 EndTime=9 Nodes=n1 {said} State=ACTIVE\n")
    assert one.attracts(WHO) is attracted


@pytest.mark.parametrize(
    ("release", "enforced", "accounts"),
    [((24, 11), "associations", {"a", "b"}), ((22, 5), "associations", {"a"}), ((24, 11), "qos", set())],
)
def test_which_accounts_count_for_a_job(release: tuple[int, int], enforced: str, accounts: set[str]) -> None:
    """Those above its own since 23.02; none where accounting does not enforce them."""
    rules = ClusterRules(release=release, enforced=frozenset({enforced}))
    assert rules.submitter("u", ("a", "b"), "").accounts == accounts


def test_how_many_cores_slurm_gives_out_at_once() -> None:
    """Of nodes whose CPUs are threads; where a node has a CPU for each core, one at a time."""
    text = "SelectTypeParameters    = CR_CORE\nSLURM_VERSION           = 24.11.5\n\nPartitionName=main State=UP\n"
    text += "".join(
        f"NodeName=n{cpus} Arch=x CoresPerSocket=4 CPUTot={cpus} RealMemory=1 Sockets=2 Boards=1 ThreadsPerCore=2 \n"
        for cpus in (8, 16)
    )
    rules = rules_in(text)
    nodes = rules.on(SlurmNode(f"n{cpus}", 0, cpus, cpus, False, frozenset(), cpus=cpus) for cpus in (8, 16))
    assert [(node.grain, node.threads, node.sockets) for node in nodes] == [(1, 1, 2), (2, 2, 2)]
    assert rules.release == (24, 11)


LINE = "ReservationName=r StartTime=1795372876 EndTime=1795376476 Nodes={} NodeCnt=1 Flags={} TRES=cpu=8 State={}\n"


@pytest.mark.parametrize("nodes", ["(null)", "", "n[1-", "n[1-99999999]", "n[2-1]", "ü"])
def test_a_reservation_of_no_nodes_that_are_understood_takes_none(nodes: str) -> None:
    assert reservations_in(LINE.format(nodes, "MAINT", "ACTIVE")) == ()


def test_what_is_used_of_a_reservation() -> None:
    (found,) = reservations_in(LINE.format("n[1-2],m", "MAINT,TIME_FLOAT", "ACTIVE"))
    assert found == NodeReservation(
        "r", frozenset({"n1", "n2", "m"}), 1795372876, 1795376476, 8, True, frozenset({"MAINT", "TIME_FLOAT"})
    )


@given(st.text(max_size=60), st.text(max_size=60))
def test_whatever_stands_there_are_rules(text: str, more: str) -> None:
    rules_in(f"{text}\nPartitionName={more}\nReservationName={text} StartTime={more} EndTime=7 Nodes={more}\n")
