"""Nodes out of what real Slurms printed, and which of their cores are free."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.pool.node_line import SlurmNode, nodes_in

from .recorded_cluster import VERSIONS, nodes


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_nodes(version: str) -> None:
    """A full one, one on which a job is being ended, one with free cores, one that is draining."""
    main = frozenset({"main"})
    assert nodes(version) == [
        SlurmNode("node1", 8, 8, 0, False, main, True, 8, 16384, unused=0, used_memory=16384),
        SlurmNode("node2", 5, 8, 0, False, main, True, 8, 16384, unused=3, used_memory=10240),
        SlurmNode("node3", 4, 8, 4, False, main, True, 8, 16384, unused=4, used_memory=8192),
        SlurmNode("node4", 2, 2, 0, True, main, False, 8, 16384, unused=0, used_memory=4096),
    ]


@pytest.mark.parametrize(
    ("state", "idle", "cores"),
    [
        ("idle", 4, 8),
        ("mixed-", 4, 8),
        ("idle~", 4, 8),
        ("idle#", 4, 8),
        ("mixed*", 0, 4),
        ("idle$", 0, 4),
        ("mixed@", 4, 8),
        ("reserved", 0, 4),
        ("down*", 0, 4),
        ("drained", 0, 4),
        ("completing", 0, 8),
        ("maint", 0, 4),
        ("unknown", 0, 4),
    ],
)
def test_free_cores_by_state(state: str, idle: int, cores: int) -> None:
    """Those of a node that is down, reserved or not responding are of no use."""
    (node,) = nodes_in(f"n1|4/4/0/8|{state}|a|16384|8192|(null)|(null)|(null)|0|\n")
    assert (node.idle, node.cores) == (idle, cores)


def test_a_node_that_shall_reboot_takes_jobs_until_then_since_23_11() -> None:
    """`scontrol reboot` without ASAP; before, its free cores are of no use to anybody."""
    line = "n1|4/4/0/8|mixed@|a|16384|8192|(null)|(null)|(null)|0|\n"
    assert [nodes_in(line, release)[0].takes_jobs for release in ((22, 5), (23, 11), (26, 5))] == [False, True, True]


@pytest.mark.parametrize("state", ["allocated$", "mixed$", "maint", "idle$"])
def test_a_node_in_maintenance_takes_the_jobs_of_its_reservation(state: str) -> None:
    (node,) = nodes_in(f"n1|4/4/0/8|{state}|a|16384|8192|(null)|(null)|(null)|0|\n")
    assert (node.reserved, node.takes_jobs, node.idle) == (True, False, 0)


def test_a_node_of_two_partitions_is_one_node() -> None:
    (node,) = nodes_in("n1|0/8/0/8|idle|a|1|0|(null)|(null)|(null)|0|\nn1|0/8/0/8|idle|b|1|0|(null)|(null)|(null)|0|\n")
    assert (node.idle, node.partitions) == (8, frozenset({"a", "b"}))


def test_idle_cores_without_memory_are_not_free() -> None:
    (node,) = nodes_in("n1|4/4/0/8|mixed|a|16384|16384|(null)|(null)|(null)|0|\n")
    assert (node.idle, node.cores) == (0, 8)


@given(st.text())
def test_other_lines_are_an_incomplete_answer(text: str) -> None:
    """HOSTILE 54."""
    if text.strip("\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"):
        with pytest.raises(PoolUnreachable):
            nodes_in(text)
