"""Partitions, reservations and kept memory out of what scontrol prints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.cluster.partitions import Partition
from drainwise.slurm.cluster.reservations import NodeReservation, reservations_in
from drainwise.slurm.cluster.rules import QUESTIONS, Selection, controller_time, rules_in

from .recorded_cluster import VERSIONS, recorded
from .recorded_room import NOW, rules
from .recorded_room import recorded as recorded_room


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_rules(version: str) -> None:
    found = rules(version)
    assert found.selection == Selection(whole_nodes=False, memory=True)
    assert found.kept_memory == {"node2": 512}
    assert found.partitions == {
        "main": Partition("main"),
        "closed": Partition("closed", accounts=frozenset({"atlas"})),
        "gpu": Partition("gpu", most_nodes=1),
    }
    seen = {one.name: (sorted(one.nodes), one.cpus, one.active, one.floats) for one in found.reservations}
    assert seen == {
        "maint1": (["node5"], 8, False, False),
        "part1": (["node1"], 2, False, False),
        "now1": (["node4"], 8, True, False),
        "float1": (["node2"], 8, False, True),
    }
    (maintenance,) = (one for one in found.reservations if one.is_maintenance)
    assert (maintenance.name, maintenance.end - maintenance.start) == ("maint1", 3600)
    assert controller_time(recorded_room(version, "scontrol.txt").decode()) == NOW


@pytest.mark.parametrize("version", VERSIONS)
def test_a_cluster_without_reservations(version: str) -> None:
    """The whole of its configuration stands before the partitions."""
    answer = recorded(version, "config.txt").decode() + "scontrol: show partition\n"
    answer += recorded(version, "partition.txt").decode() + "No reservations in the system\n"
    found = rules_in(answer)
    assert (set(found.partitions), found.reservations, dict(found.kept_memory)) == ({"main"}, (), {})
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
    assert partition.takes(*job) is takes


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
