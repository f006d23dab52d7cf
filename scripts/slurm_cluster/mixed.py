"""A small cluster of unlike nodes: where there is room for a job depends on what it asks."""

from __future__ import annotations

from slurm_cluster.cluster import SlurmCluster
from slurm_cluster.layout import node_line

NODES, CPUS, MEMORY = 5, 8, 16384
_POOR, _KEPT = 4096, 512
_CONFIG = (
    "GresTypes=gpu,fpga\n"
    + node_line("node2", CPUS, _POOR, f"MemSpecLimit={_KEPT} Features=fast,rack1")
    + node_line("node3", CPUS, MEMORY, "Features=fast,rack2 Gres=gpu:a100:2,gpu:t4:1,fpga:3")
    + node_line("node5", CPUS, MEMORY, "Features=rack2")
    + """\
PartitionName=main Nodes=node[1-3,5] Default=YES MaxTime=INFINITE DefaultTime=1:00:00 State=UP
PartitionName=closed Nodes=node4 AllowAccounts=atlas MaxTime=INFINITE DefaultTime=1:00:00 State=UP
PartitionName=gpu Nodes=node3 MaxNodes=1 MaxTime=INFINITE DefaultTime=1:00:00 State=UP
"""
)
# Nobody uses these files: a GPU must have one.
_GRES = """\
NodeName=node3 Name=gpu Type=a100 File=/dev/null
NodeName=node3 Name=gpu Type=a100 File=/dev/zero
NodeName=node3 Name=gpu Type=t4 File=/dev/full
NodeName=node3 Name=fpga Count=3
"""


def mixed_cluster(release: str, config: str = "") -> SlurmCluster:
    """Return a cluster of five nodes of 8 cores and 16 GiB, but for node2, which has 4 GiB and keeps 512 MiB of them.

    node3 has three GPUs, two of type a100 and one t4, and three `fpga`. Features: node2 fast, rack1; node3 fast, rack2;
    node5 rack2. Partitions: main, all but node4; closed, node4 for the account atlas alone; gpu, node3 for jobs of one
    node. config: further lines of slurm.conf.
    """
    return SlurmCluster(NODES, CPUS, release, _CONFIG + config, gres=_GRES)
