"""Whole machines of a site, by the distribution's own packages and units, and somebody who types lines on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from built_packages import built
from clean_machine import wheels_for
from real_daemons.site import CENTRAL
from typed_page import unpack_wheels
from whole_machine import WholeMachines

SECONDS = 60.0
PLACE = "/srv/packages"
APT = """\
APT::Get::Assume-Yes "true";
APT::Get::allow-downgrades "true";
Dpkg::Options { "--force-confold"; };
"""
DATABASE_PACKAGES = ("slurmdbd", "slurm-wlm-mysql-plugin", "mariadb-server")
SLURM = ("munge", "slurmctld", "slurmd", *DATABASE_PACKAGES, "python3-numpy", "python3-jinja2")
SLURM_CONF = """\
ClusterName=test
SlurmctldHost=central
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
MpiDefault=none
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=central
AccountingStorageEnforce=associations,limits,qos
PriorityType=priority/multifactor
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
NodeName=node1 CPUs=8 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=1:00:00
"""
SLURMDBD_CONF = """\
DbdHost=central
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
"""
DATABASE = """\
CREATE DATABASE slurm_acct_db;
CREATE USER slurm@localhost IDENTIFIED VIA unix_socket;
GRANT ALL ON slurm_acct_db.* TO slurm@localhost;
"""
ACCOUNTS = """\
add account atlas Fairshare=2
add user alice Account=atlas
add account cms Fairshare=1
add user bob Account=cms
"""
SITE_FILE = "[slurm]\nagent_period = 2s\n[agent]\nact = yes\nperiod = 5s\n[reclaim]\nmin_age = 0s\nmin_grace = 50m\n"
PILOT = """\
#!/bin/sh
cd "$(mktemp -d)"
mkdir queue && echo '{"command": "sleep 3000", "maximum": 4000}' >queue/one.json
exec drainwise pilot run --queue "$PWD/queue"
"""
Lease = tuple[str, ...]
"""State, begin and end of a job, as its batch system shows them."""


@dataclass
class Admin:
    """Somebody who types lines on machines, and looks after the jobs that ran before."""

    site: WholeMachines
    factory: pytest.TempPathFactory
    lasting: dict[str, Lease] = field(default_factory=dict)

    def types(self, line: str, machine: str = CENTRAL, check: bool = True) -> str:
        """What a line prints in the directory with the packages."""
        words = ["sh", "-ec", f"cd {PLACE}\n{line}"]
        ran = self.site.run(words, node=machine, timeout=300, check=check)
        print(f"{machine}# {line}\n{ran.stdout}{ran.stderr}")
        return ran.stdout + ran.stderr

    def has(self, version: str) -> None:
        """From now on the packages of this version are at hand on all machines."""
        for machine in self.site.machines:
            self.types("rm -f *.deb", machine)
            for file in built("deb", version, self.factory).values():
                self.site.copy_in(str(file), f"{PLACE}/{file.name}", node=machine)


def furnish(site: WholeMachines) -> None:
    """All machines have a place for packages, and an apt that asks nobody."""
    for machine in site.machines:
        site.write("/etc/apt/apt.conf.d/90answers", APT, machine)
        site.run(["mkdir", PLACE], node=machine)


@contextmanager
def slurm_machines(release: str) -> Iterator[WholeMachines]:
    """A controller with its database and a node, by Debian's units, on which nobody thought of drainwise."""
    with WholeMachines(release, SLURM, nodes=1) as site:
        furnish(site)
        for machine in site.machines:
            site.write("/etc/slurm/slurm.conf", SLURM_CONF, machine)
            site.write("/etc/slurm/cgroup.conf", "CgroupPlugin=disabled\n", machine)
            site.systemctl("start", "munge", node=machine)
        site.write("/etc/slurm/slurmdbd.conf", SLURMDBD_CONF, mode=0o600, owner="slurm")
        site.systemctl("start", "mariadb")
        site.run(["mariadb"], stdin=DATABASE)
        site.systemctl("start", "slurmdbd")
        site.wait_for(lambda: not site.run(["sacctmgr", "show", "qos"], check=False).returncode, SECONDS, "slurmdbd")
        site.run(["sacctmgr", "--immediate", "add", "cluster", "test"], check=False)
        site.run(["sacctmgr", "--immediate"], stdin=ACCOUNTS)
        site.systemctl("enable", "--now", "slurmctld")
        site.systemctl("enable", "--now", "slurmd", node="node1")
        idle = ["sinfo", "--noheader", "--format=%T"]
        site.wait_for(lambda: site.run(idle, check=False).stdout == "idle\n", SECONDS, "the node")
        yield site


def leases(site: WholeMachines) -> dict[str, Lease]:
    """Of each running job state, begin and end of the lease."""
    shown = site.run(["squeue", "--noheader", "--format=%A %T %S %e"]).stdout
    return {number: tuple(rest) for number, *rest in map(str.split, shown.splitlines())}


def runs(admin: Admin, script: str, *options: str) -> str:
    """Start a job of alice's that is to run all the time."""
    words = ["sbatch", "--parsable", "--output=/dev/null", *options]
    number = admin.site.run(words, user="alice", stdin=script).stdout.strip()
    running = lambda: leases(admin.site).get(number, ("",))[0] == "RUNNING"  # noqa: E731
    admin.site.wait_for(running, SECONDS, f"job {number}")
    admin.lasting[number] = leases(admin.site)[number]
    return number


# ---- HTCondor ----

CONDOR = ("condor", "python3-numpy", "python3-jinja2")
SOON = """\
CONDOR_HOST = central.site.test
ENABLE_IPV6 = False
RUNBENCHMARKS = 0
SCHEDD_INTERVAL = 5
NEGOTIATOR_INTERVAL = 5
NEGOTIATOR_CYCLE_DELAY = 2
UPDATE_INTERVAL = 3
POLLING_INTERVAL = 1
NUM_CPUS = 4
"""
"""Of a pool in which jobs start within seconds."""
CONDOR_CONF = f"""\
{SOON}UID_DOMAIN = site.test
SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_DEFAULT_AUTHENTICATION_METHODS = FS, IDTOKENS
ALLOW_READ = *
ALLOW_WRITE = *@site.test
ALLOW_ADMINISTRATOR = root@site.test, condor@site.test
ALLOW_DAEMON = root@site.test, condor@site.test
ALLOW_NEGOTIATOR = root@site.test, condor@site.test
"""
ROLES = {CENTRAL: "use ROLE : CentralManager\nuse ROLE : Submit\n"}
KEY = """\
umask 077
mkdir -p /etc/condor/passwords.d /etc/condor/tokens.d
echo of-this-test-alone >/etc/condor/passwords.d/POOL
condor_token_create -identity condor@site.test >/etc/condor/tokens.d/condor
"""
JOB = """\
executable = /bin/sleep
arguments = {seconds}
transfer_executable = False
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
requirements = Machine == "{node}.site.test"
request_memory = 64
request_disk = 1MB
log = log
queue
"""
NODES = ("node1", "node2")
CONDOR_SITE_FILE = "[agent]\nact = yes\nperiod = 5s\n[reclaim]\nmin_age = 0s\nmin_grace = 50m\n"


@contextmanager
def condor_machines(release: str) -> Iterator[WholeMachines]:
    """A central manager, from which users submit, and two nodes, by Debian's unit."""
    with WholeMachines(release, CONDOR, nodes=len(NODES)) as site:
        furnish(site)
        for machine in site.machines:
            site.write(
                "/etc/condor/config.d/10-pool", CONDOR_CONF + ROLES.get(machine, "use ROLE : Execute\n"), machine
            )
            site.write("/etc/condor/config.d/90-soon", "UPDATE_INTERVAL = 3\n", machine)
            site.run(["sh", "-ec", KEY], node=machine)
            site.systemctl("enable", "--now", "condor", node=machine)
        slots = ["condor_status", "-constraint", "PartitionableSlot", "-af", "Machine"]
        wanted = [f"{name}.site.test" for name in NODES]
        site.wait_for(lambda: site.run(slots, check=False).stdout.split() == wanted, SECONDS, "both nodes")
        yield site


def pip_installs(site: WholeMachines, line: str) -> None:
    """What pip would, which has no network here; sid's own bindings are new enough."""
    if site.release != "sid":
        version = site.run(["python3", "-c", "import sys; print(*sys.version_info[:2], sep='.')"]).stdout.strip()
        words = line.split()
        unpack_wheels(wheels_for(version), (words[-1],), site.path(words[words.index("--target") + 1]))
