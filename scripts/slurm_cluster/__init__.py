"""A real Slurm cluster for tests and demonstrations: Debian's own daemons in namespaces of their own.

    with SlurmCluster(nodes=4, cpus=8, release="trixie") as cluster:
        job = cluster.submit("sleep 60", user="alice", options=["--nodes=2"])

munge, MariaDB, slurmdbd, slurmctld and a slurmd per node. What it has in common with other batch systems, and what it
needs and leaves, stands in `real_daemons`.
"""

from real_daemons.errors import CommandError, DaemonsError, DeadlineError, MissingToolError, RootUnavailableError
from slurm_cluster.cluster import SlurmCluster
from slurm_cluster.jobs import Job
from slurm_cluster.layout import Account, Qos
from slurm_cluster.mixed import mixed_cluster
from slurm_cluster.recipe import RELEASES, SUPPORTED, obtain_root

__all__ = [
    "RELEASES",
    "SUPPORTED",
    "Account",
    "CommandError",
    "DaemonsError",
    "DeadlineError",
    "Job",
    "MissingToolError",
    "Qos",
    "RootUnavailableError",
    "SlurmCluster",
    "mixed_cluster",
    "obtain_root",
]
