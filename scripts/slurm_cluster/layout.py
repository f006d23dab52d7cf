"""Who is where in a test cluster, and the configuration text of its daemons. Pure: text in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from real_daemons.errors import DaemonsError
from real_daemons.site import CENTRAL

CLUSTER = "test"
PARTITION = "main"
ADDRESS = "127.0.0.10"
DATABASE_PORT, CONTROLLER_PORT = 6819, 6817
MEMORY_PER_CPU = 2048  # MB
MUNGE_SOCKET = "/srv/munge/socket"
CONFIG_DIR = "/etc/slurm"
# What each node has for itself; all else (/home, /etc, /usr) is as if on a shared file system.
PRIVATE = ("/run", "/tmp", "/var/tmp")  # noqa: S108 - places to mount on, nothing is made there

_SLURM = """\
ClusterName={cluster}
SlurmctldHost={central}({address})
SlurmctldPort={port}
SlurmUser=slurm
AuthInfo=socket={socket}
StateSaveLocation=/srv/{central}/state
SlurmdSpoolDir=/srv/%n/spool
SlurmctldPidFile=/srv/{central}/slurmctld.pid
SlurmdPidFile=/srv/%n/slurmd.pid
SlurmctldLogFile=/srv/{central}/slurmctld.log
SlurmdLogFile=/srv/%n/slurmd.log

# No systemd, no control groups, more cores than this machine has.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
SlurmdParameters=config_overrides
MpiDefault=none
MailProg=/bin/true
ReturnToService=2

AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={address}
AccountingStoragePort={database_port}
AccountingStoragePass={socket}
AccountingStorageEnforce=associations,limits,qos
PriorityType=priority/multifactor
PriorityWeightFairshare=100000
PriorityWeightQOS=10000
PriorityCalcPeriod=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU={memory_per_cpu}

# A cluster of a few minutes.
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=0
MinJobAge=300
KillWait=5
SlurmdTimeout=60
PrologFlags=Alloc,Contain
PrologEpilogTimeout=60
PartitionName={partition} Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=1:00:00 State=UP
"""
# What only one of the versions takes.
_ONLY = {"bookworm": "SwitchType=switch/none\n"}

_SLURMDBD = """\
AuthInfo=socket={socket}
DbdHost={central}
DbdAddr={address}
DbdPort={database_port}
SlurmUser=slurm
PidFile=/srv/{central}/slurmdbd.pid
LogFile=/srv/{central}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
"""


@dataclass(frozen=True)
class Account:
    """A bank account: its fair share (a weight among its siblings) and its users."""

    name: str
    share: int
    users: tuple[str, ...]


@dataclass(frozen=True)
class Qos:
    """A quality of service that every user may ask for (`normal`, the default one, is always there).

    `options` are words of sacctmgr, e.g. `("Priority=10", "Preempt=normal")`.
    """

    name: str
    options: tuple[str, ...] = ()


ACCOUNTS = (Account("atlas", 2, ("alice",)), Account("cms", 1, ("bob",)))


def node_names(count: int) -> tuple[str, ...]:
    """Return the compute nodes' names: node1, node2 and so on."""
    if not 1 <= count <= 64:
        raise DaemonsError(f"a test cluster has 1 to 64 nodes, not {count}")
    return tuple(f"node{number}" for number in range(1, count + 1))


def hosts_file(nodes: Sequence[str]) -> str:
    """Text of /etc/hosts."""
    return f"127.0.0.1 localhost\n{ADDRESS} {CENTRAL}\n" + "".join(f"{_address(node)} {node}\n" for node in nodes)


def slurm_conf(release: str, nodes: Sequence[str], cpus: int) -> str:
    """Text of slurm.conf, before what a test adds to it."""
    text = _SLURM.format(
        cluster=CLUSTER,
        central=CENTRAL,
        address=ADDRESS,
        port=CONTROLLER_PORT,
        database_port=DATABASE_PORT,
        socket=MUNGE_SOCKET,
        partition=PARTITION,
        memory_per_cpu=MEMORY_PER_CPU,
    )
    text += "".join(node_line(node, cpus, cpus * MEMORY_PER_CPU, "TmpDisk=1000") for node in nodes)
    return text + _ONLY.get(release, "")


def node_line(node: str, cpus: int, memory: int, more: str = "") -> str:
    """Text of slurm.conf for one node with `memory` in MB; `more`: what else it has."""
    place = f"NodeAddr={_address(node)} Port={slurmd_port(node)}"
    return f"NodeName={node} {place} CPUs={cpus} RealMemory={memory} State=UNKNOWN {more}\n"


def slurmdbd_conf() -> str:
    """Text of slurmdbd.conf."""
    return _SLURMDBD.format(central=CENTRAL, address=ADDRESS, database_port=DATABASE_PORT, socket=MUNGE_SOCKET)


def cgroup_conf(release: str) -> str:
    """Text of cgroup.conf: no control groups. 22.05 has no word for that, but v1 is not touched unless it is used."""
    return "CgroupPlugin=cgroup/v1\n" if release == "bookworm" else "CgroupPlugin=disabled\n"


def accounting_script(accounts: Sequence[Account], qos: Sequence[Qos]) -> tuple[str, str]:
    """What two runs of sacctmgr shall read, one after the other: one that is running does not see its own new QOS."""
    first = [f"add cluster {CLUSTER}", *(" ".join(["add qos", one.name, *one.options]) for one in qos)]
    allowed = ",".join(["normal", *(one.name for one in qos)])
    second = []
    for account in accounts:
        second.append(f"add account {account.name} Fairshare={account.share}")
        if account.users:
            second.append(f"add user {','.join(account.users)} Account={account.name} QOS={allowed}")
    return "\n".join(first) + "\n", "\n".join(second) + "\n"


def private_place(node: str, path: str) -> str:
    """Where in the cluster's tree the node's own `path` (one of PRIVATE or below) is kept; others are shared."""
    for directory in PRIVATE:
        if node != CENTRAL and (path == directory or path.startswith(f"{directory}/")):
            return f"/srv/{node}{path}"
    return path


def _number(node: str) -> int:
    return int(node[len("node") :])


def slurmd_port(node: str) -> int:
    """Where a node's slurmd listens: on all addresses, so that no two can share a port."""
    return 6820 + _number(node)


def _address(node: str) -> str:
    return f"127.0.0.{10 + _number(node)}"
