r"""A real HTCondor pool for tests and demonstrations: Debian's own daemons in namespaces of their own.

    with CondorPool(nodes=3, cpus=24, release="trixie") as pool:
        cluster = pool.submit("executable = /bin/sleep\narguments = 60\nqueue\n", user="alice")

What it has in common with other batch systems, and what it needs and leaves, stands in `real_daemons`.
"""

from condor_pool.ads import Ad
from condor_pool.errors import CommandError, DeadlineError, MissingToolError, PoolError, RootUnavailableError
from condor_pool.layout import DOMAIN, Node
from condor_pool.pool import CondorPool, running_pools
from condor_pool.recipe import RELEASES
from condor_pool.roots import Root, obtain_root, require_tools

__all__ = [
    "DOMAIN",
    "RELEASES",
    "Ad",
    "CommandError",
    "CondorPool",
    "DeadlineError",
    "MissingToolError",
    "Node",
    "PoolError",
    "Root",
    "RootUnavailableError",
    "obtain_root",
    "require_tools",
    "running_pools",
]
