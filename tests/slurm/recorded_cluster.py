"""One moment of a real cluster, recorded from Slurm 22.05.8 and 24.11.5: what each command printed.

Four nodes of 8 cores, the last one draining. alice (atlas, share 2): a pilot that reports (1), one that was asked to
leave (2), one without time limit (3), an array of two (4), a job of two nodes (5), one being requeued (6), one being
cancelled (7), a heterogeneous job (8, 9 on the draining node). bob (cms, share 1; below it cms-prod 3, cms-users 1,
and cms-old with its parent's share): a job with an administrator's comment (10), an array of 20 of which 3 may run at a
time (12), a job of two nodes (13), one that depends on another (14), a held one (15), and a held one with a name of
bytes that are no text (16).
"""

from __future__ import annotations

from pathlib import Path

from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.pool.node_line import SlurmNode, nodes_in
from drainwise.slurm.pool.shares import Shares, shares_in
from whole_jobs import jobs_in

VERSIONS = ("22.05", "24.11")
NOW = {"22.05": 1795273993, "24.11": 1795274136}
START = {"22.05": 1795273853, "24.11": 1795273996}
_FOLDER = Path(__file__).parent / "recorded"


def recorded(version: str, name: str) -> bytes:
    """A file of the recording."""
    return (_FOLDER / version / name).read_bytes()


def jobs(version: str) -> list[SlurmJob]:
    return jobs_in(recorded(version, "squeue.json"))


def nodes(version: str) -> list[SlurmNode]:
    return nodes_in(recorded(version, "sinfo.txt").decode())


def shares(version: str) -> Shares:
    return shares_in(recorded(version, "sshare.txt").decode())
