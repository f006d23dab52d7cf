"""What a run has on each of its nodes, as both releases print it, and as a user may forge it."""

from __future__ import annotations

import pytest

from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.pool.places import NodeShare, allocation_in

# Recorded on 22.05.8 and 24.11.5, which say the same there.
ALIKE = (
    "JobId=1 JobName=sbatch NodeList=node[1-2] BatchHost=node1 NumNodes=2 NumCPUs=8 NumTasks=2 CPUs/Task=4"
    " Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=* JOB_GRES=(null)   Nodes=node[1-2] CPU_IDs=0-3 Mem=300 GRES="
    " MinCPUsNode=4 MinMemoryNode=300M WorkDir=/home/alice"
)
UNLIKE = (
    "JobId=2 JobName=sbatch NodeList=node[1,3] NumNodes=2 NumCPUs=12 JOB_GRES=(null)   Nodes=node1 CPU_IDs=4-7"
    " Mem=100 GRES=   Nodes=node3 CPU_IDs=0-7 Mem=200 GRES=gpu:a100:2(IDX:0-1) MinCPUsNode=4 WorkDir=/home/alice"
)


def job(cores: int, node: str) -> SlurmJob:
    return SlurmJob(1, cores=cores, node_count=2, node=node)


def test_nodes_that_are_alike_stand_together_and_others_alone() -> None:
    assert allocation_in(ALIKE, job(8, "node[1-2]")) == (NodeShare("node1", 4, 300), NodeShare("node2", 4, 300))
    gpus = (("gpu", 2), ("gpu:a100", 2))
    assert allocation_in(UNLIKE, job(12, "node[1,3]")) == (
        NodeShare("node1", 4, 100),
        NodeShare("node3", 8, 200, gpus),
    )


@pytest.mark.parametrize(
    "block",
    [
        "",
        ALIKE.replace("0-3", "0-9"),
        ALIKE.replace("node[1-2] CPU", "node[1-3] CPU"),
        ALIKE.replace("node[1-2] CPU", "node[1- CPU"),
        ALIKE.replace("0-3", "0--3"),
        f"{ALIKE} Comment=x Nodes=node9 CPU_IDs=0-7 Mem=1 GRES= x",
        f"{ALIKE} Comment=x Nodes=node2 CPU_IDs=0-3 Mem=1 GRES= x",
    ],
)
def test_what_does_not_add_up_is_not_believed(block: str) -> None:
    """Other cores, other nodes, or a user's text that looks like more of them."""
    assert allocation_in(block, job(8, "node[1-2]")) == ()
