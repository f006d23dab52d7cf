"""One moment of a mixed cluster, recorded from Slurm 22.05.8 and 24.11.5, for whom waits and where it could start.

Five nodes of 8 cores and 16 GiB; node2 has 4 GiB, of which 512 MiB are kept from jobs, and the features fast, rack1;
node3 fast, rack2, two GPUs of type a100, one of type t4, and three of `fpga`; node5 rack2. Partitions: main (all but
node4), gpu (node3, jobs of one node), closed (node4, for atlas alone). alice has jobs on all nodes (1 to 6), two of
them with a GPU, of which one asked for no type. Reservations ahead: maintenance of node5 (maint1), two cores of node1
(part1), node2 with a start that is always half an hour ahead (float1); node4 for bob (now1) has begun. bob's job 7 runs
on node3, his others wait.
"""

from __future__ import annotations

from pathlib import Path

from drainwise.pool.facts import Snapshot
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.squeue_lines import jobs_of_lines
from drainwise.slurm.pool.node_line import SlurmNode, nodes_in
from drainwise.slurm.pool.rules import ClusterRules, rules_in
from drainwise.slurm.pool.shares import shares_in
from drainwise.slurm.pool.snapshot import SiteRules, snapshot_of
from drainwise.slurm.pool.transport import Answers

NOW = 1795367041
_FOLDER = Path(__file__).parent / "recorded" / "room"


def recorded(version: str, name: str) -> bytes:
    """A file of the recording."""
    return (_FOLDER / version / name).read_bytes()


def jobs(version: str) -> list[SlurmJob]:
    return jobs_of_lines(recorded(version, "squeue.txt"))


def rules(version: str) -> ClusterRules:
    return rules_in(recorded(version, "scontrol.txt").decode())


def nodes(version: str) -> list[SlurmNode]:
    return rules(version).on(nodes_in(recorded(version, "sinfo.txt").decode()))


def snapshot(version: str) -> Snapshot:
    tree = shares_in(recorded(version, "sshare.txt").decode())
    return snapshot_of(Answers(jobs(version), nodes(version), tree, rules(version)), SiteRules(7200), NOW)
