"""A real Grid Engine for tests and demonstrations: Debian's own daemons in namespaces of their own.

    with SgeCluster(slots=8) as cluster:
        number = cluster.submit("sleep 60", user="alice", options=["-N", "rest"])

sge_qmaster and one sge_execd on a machine called `central`. What it has in common with other batch systems, and what it
needs and leaves, stands in `real_daemons`.
"""

from real_daemons.errors import CommandError, DaemonsError, DeadlineError, MissingToolError, RootUnavailableError
from sge_cluster.cluster import SgeCluster
from sge_cluster.recipe import RELEASES, obtain_root

__all__ = [
    "RELEASES",
    "CommandError",
    "DaemonsError",
    "DeadlineError",
    "MissingToolError",
    "RootUnavailableError",
    "SgeCluster",
    "obtain_root",
]
