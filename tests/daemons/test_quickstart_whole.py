"""The quick starts, typed as they stand on whole machines with systemd and apt, with jobs that ran before.

Orders are given and withdrawn on the way, the packages upgraded, downgraded and taken out again. After each step every
job runs that ran, since when it did, and to the end that it had.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

import drainwise
from built_packages import OLDER, built
from clean_machine import wheels_for
from real_daemons.site import CENTRAL
from typed_page import blocks_of, unpack_wheels
from whole_machine import WholeMachines

pytestmark = pytest.mark.play
TURN = "quick start on whole machines"
SECONDS = 60.0
PLACE = "/srv/packages"
APT = """\
APT::Get::Assume-Yes "true";
APT::Get::allow-downgrades "true";
Dpkg::Options { "--force-confold"; };
"""
SLURM_PAGE = "quickstart-slurm.md"
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


# ---- Slurm ----


@pytest.fixture
def cluster(release: str) -> Iterator[WholeMachines]:
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


def nobody_is_harmed(admin: Admin, ordered: Mapping[str, str] | None = None) -> None:
    """A new job ends well, those that ran have the leases that they had, no node is drained."""
    words = ["sbatch", "--wait", "--parsable", "--output=/dev/null"]
    admin.site.run(words, user="bob", stdin="#!/bin/sh\nexit 0\n", timeout=SECONDS)
    now = leases(admin.site)
    for number, (state, begin, end) in admin.lasting.items():
        assert now[number] == (state, begin, (ordered or {}).get(number, end))
    state = admin.types("sinfo --noheader --Node --format=%T")
    assert not re.search("drain|down|fail", state), state


@pytest.mark.in_turn(TURN, "Slurm")
def test_slurm(cluster: WholeMachines, tmp_path_factory: pytest.TempPathFactory) -> None:
    """From no package to none; the order that stands in upgrade and downgrade is withdrawn before the packages go."""
    admin = Admin(cluster, tmp_path_factory)
    admin.has(OLDER)
    runs(admin, "#!/bin/sh\nexec sleep 3000\n")
    runs(admin, "#!/bin/sh\nexec sleep 3000\n", "--time=1-0")

    [installs] = blocks_of(SLURM_PAGE, "1.")
    assert [admin.types(line, "node1") for line in installs][-1] == f"drainwise {OLDER}\n"
    [[central, renders, shows]] = blocks_of(SLURM_PAGE, "2.")
    admin.types(central)
    cluster.write("/etc/drainwise/site.ini", SITE_FILE)
    for line in (renders, shows):
        admin.types(line)
    nobody_is_harmed(admin)

    cluster.copy_in(cluster.path(f"{PLACE}/node-tree"), f"{PLACE}/node-tree", node="node1")
    [[tree], agent] = blocks_of(SLURM_PAGE, "3.")
    for machine in cluster.machines:
        admin.types(tree, machine)
    for line in agent:
        admin.types(line, "node1")
    assert "looks after" in admin.types("journalctl --sync; journalctl -u drainwise-node-agent", "node1")
    nobody_is_harmed(admin)

    [[include, controller], restart] = blocks_of(SLURM_PAGE, "4.")
    for line in (include, controller):
        admin.types(line)
    for line in (include, *restart):
        admin.types(line, "node1")
    nobody_is_harmed(admin)

    pilot = runs(admin, PILOT, "--cpus-per-task=2", "--time=1-0")
    [[figures, status]] = blocks_of(SLURM_PAGE, "5.")
    reported = re.compile(rf"^{pilot} +alice +{{\"drainwise\":1,", re.MULTILINE)
    cluster.wait_for(lambda: reported.search(admin.types(figures)), SECONDS, "the first figures")
    assert re.search(rf"^{pilot} .*\bfresh\b", admin.types(status), re.MULTILINE)
    [[check]] = blocks_of(SLURM_PAGE, "6.")
    admin.types(check)

    request, _ = ordered(admin, pilot)
    admin.types("systemctl enable --now drainwise-agent")
    withdrawn(admin, request, pilot)
    nobody_is_harmed(admin)
    request, end = ordered(admin, pilot)
    [[again], out, away] = blocks_of(SLURM_PAGE, "Upgrade")
    for version in (drainwise.__version__, OLDER):
        admin.has(version)
        before = {machine: process_of(admin, machine) for machine in cluster.machines}
        admin.types(again, "node1")
        admin.types(central)
        for machine in cluster.machines:
            assert admin.types("drainwise --version", machine) == f"drainwise {version}\n"
            assert process_of(admin, machine) != before[machine], "started again"
        nobody_is_harmed(admin, {pilot: end})
    withdrawn(admin, request, pilot)

    admin.types("systemctl disable --now drainwise-agent")
    admin.types(out[0], "node1")
    for line in out:
        admin.types(line)
    for machine in cluster.machines:
        for line in away:
            admin.types(line, machine)
        left = admin.types("find /usr /etc /var -xdev -name '*drainwise*'", machine)
        assert left == ""
    nobody_is_harmed(admin)


def process_of(admin: Admin, machine: str) -> str:
    """The agent that runs on a machine."""
    unit = "drainwise-agent" if machine == CENTRAL else "drainwise-node-agent"
    number = admin.types(f"systemctl show --property=MainPID --value {unit}", machine).strip()
    assert number != "0", f"{unit} does not run on {machine}"
    return number


def ordered(admin: Admin, pilot: str) -> tuple[str, str]:
    """Type what gives an order: the request, and when the pilot's lease ends by it."""
    [[trial, dry_run, act, shows]] = blocks_of(SLURM_PAGE, "7.")
    admin.types(trial)
    assert re.search(rf"\b{pilot}\b", admin.types(dry_run)) and leases(admin.site) == admin.lasting
    said = admin.types(act)
    admin.types(shows)
    old = admin.lasting[pilot]
    admin.site.wait_for(lambda: leases(admin.site)[pilot] != old, SECONDS, "a shorter lease")
    return re.findall(r"^request ([-\w]+):", said, re.MULTILINE)[0], leases(admin.site)[pilot][2]


def withdrawn(admin: Admin, request: str, pilot: str) -> None:
    """Type what takes it back, after which the agent's next cycle gives the lease its end."""
    admin.types(f"drainwise reclaim --cancel {request}")
    old = admin.lasting[pilot]
    admin.site.wait_for(lambda: leases(admin.site)[pilot] == old, SECONDS, "the lease as it was")


# ---- HTCondor ----

CONDOR_PAGE = "quickstart-htcondor.md"
CONDOR = ("condor", "python3-numpy", "python3-jinja2")
CONDOR_CONF = """\
CONDOR_HOST = central.site.test
UID_DOMAIN = site.test
ENABLE_IPV6 = False
RUNBENCHMARKS = 0
SCHEDD_INTERVAL = 5
NEGOTIATOR_INTERVAL = 5
NEGOTIATOR_CYCLE_DELAY = 2
UPDATE_INTERVAL = 3
POLLING_INTERVAL = 1
NUM_CPUS = 4
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
STAYS = "/etc/condor/config.d/51-drainwise-after-removal.conf"
NODES = ("node1", "node2")
BEGINS = ("JobCurrentStartDate", "NumShadowStarts")
ORDERED = "condor_status -constraint 'PilotReclaimDeadline isnt undefined' -af Name"
CONDOR_SITE_FILE = "[agent]\nact = yes\nperiod = 5s\n[reclaim]\nmin_age = 0s\nmin_grace = 50m\n"


@pytest.fixture
def pool(release: str) -> Iterator[WholeMachines]:
    """A central manager, from which users submit, and two nodes, by Debian's unit."""
    with WholeMachines(release, CONDOR, nodes=len(NODES)) as site:
        furnish(site)
        for machine in site.machines:
            site.write(
                "/etc/condor/config.d/10-pool", CONDOR_CONF + ROLES.get(machine, "use ROLE : Execute\n"), machine
            )
            site.run(["sh", "-ec", KEY], node=machine)
            site.systemctl("enable", "--now", "condor", node=machine)
        slots = ["condor_status", "-constraint", "PartitionableSlot", "-af", "Machine"]
        wanted = [f"{name}.site.test" for name in NODES]
        site.wait_for(lambda: site.run(slots, check=False).stdout.split() == wanted, SECONDS, "both nodes")
        yield site


def submitted(admin: Admin, user: str, node: str, seconds: int) -> str:
    """The number of a new job on a node."""
    said = admin.site.run(["condor_submit", "-terse", "-"], user=user, stdin=JOB.format(node=node, seconds=seconds))
    return said.stdout.partition(".")[0]


def starts(admin: Admin) -> dict[str, Lease]:
    """Of each running job since when it runs, and how often it has begun."""
    shown = admin.site.run(["condor_q", "-all", "-constraint", "JobStatus == 2", "-af", "ClusterId", *BEGINS]).stdout
    return {number: tuple(rest) for number, *rest in map(str.split, shown.splitlines())}


def stays(admin: Admin, node: str) -> str:
    """Start a job of alice's that is to run all the time."""
    number = submitted(admin, "alice", node, 3000)
    admin.site.wait_for(lambda: number in starts(admin), SECONDS, f"job {number}")
    admin.lasting[number] = starts(admin)[number]
    return number


def all_go_on(admin: Admin) -> None:
    """A new job ends well, and those that ran run since when they did."""
    number = submitted(admin, "bob", "node1", 0)
    ended = ["condor_history", number, "-af", "ExitCode"]
    admin.site.wait_for(lambda: admin.site.run(ended).stdout == "0\n", SECONDS, f"the end of {number}")
    assert starts(admin) == admin.lasting


@pytest.mark.in_turn(TURN, "HTCondor")
def test_htcondor(pool: WholeMachines, tmp_path_factory: pytest.TempPathFactory) -> None:
    """From no package to none; one order is withdrawn, another one stands until the packages go."""
    admin = Admin(pool, tmp_path_factory)
    admin.has(OLDER)
    stays(admin, "node1")
    [installs] = blocks_of(CONDOR_PAGE, "1.")
    enables, [heartbeats] = blocks_of(CONDOR_PAGE, "2.")
    for node in NODES:
        assert [admin.types(line, node) for line in installs][-1] == f"drainwise {OLDER}\n"
        for line in enables:
            admin.types(line, node)
    pool.wait_for(lambda: re.search(r"slot1_1@\S+ \d{10}", admin.types(heartbeats)), SECONDS, "a heartbeat")
    [[figures]] = blocks_of(CONDOR_PAGE, "3.")
    assert len(admin.types(figures).splitlines()) == 1
    [[central, pip, *looks]] = blocks_of(CONDOR_PAGE, "4.")
    admin.types(central)
    pip_installs(pool, pip)
    for line in looks:
        pool.wait_for(lambda line=line: "cannot be given an order" in admin.types(line), SECONDS, line)  # type: ignore[misc]
    pool.write("/etc/drainwise/site.ini", CONDOR_SITE_FILE)
    [[check]] = blocks_of(CONDOR_PAGE, "5.")
    assert "DRAINWISE_ENABLED" not in admin.types(check, check=False)
    all_go_on(admin)

    [[restart], token, _] = blocks_of(CONDOR_PAGE, "6.")
    admin.types(restart, "node2")
    since = "condor_status -constraint 'Machine == \"node2.site.test\"' -af PilotOrdersSince DaemonStartTime"
    pool.wait_for(lambda: takes_orders(admin.types(since)), SECONDS, "a startd that takes orders")
    for line in token:
        admin.types(line)
    stays(admin, "node2")
    request = deadline_of(admin)
    admin.types(f"drainwise reclaim --cancel {request}")
    admin.types("systemctl enable --now drainwise-agent")
    pool.wait_for(lambda: not admin.types(ORDERED), SECONDS, "a slot without its deadline")
    all_go_on(admin)

    deadline_of(admin)
    again, away = blocks_of(CONDOR_PAGE, "Upgrade")
    for version in (drainwise.__version__, OLDER):
        admin.has(version)
        before = process_of(admin, CENTRAL)
        for node in NODES:
            for line in again:
                admin.types(line, node)
        admin.types(central)
        for machine in pool.machines:
            assert admin.types("drainwise --version", machine) == f"drainwise {version}\n"
        assert process_of(admin, CENTRAL) != before, "started again"
        all_go_on(admin)
        assert admin.types(ORDERED), "the order stands"

    admin.types("systemctl disable --now drainwise-agent")
    admin.types(away[-1])
    for node in NODES:
        for line in away:
            admin.types(line, node)
        admin.types("condor_reconfig", node)
        left = admin.types("find /usr /etc /var -xdev -name '*drainwise*' -not -path '*/log/*'", node).split()
        assert left == ([STAYS] if node == "node2" else [])
    endless = "condor_status -constraint 'Activity == \"Retiring\" && RetirementTimeRemaining > 300000000' -af Name"
    pool.wait_for(lambda: admin.types(endless), SECONDS, "the slot that goes on")
    all_go_on(admin)


def pip_installs(site: WholeMachines, line: str) -> None:
    """What pip would, which has no network here; sid's own bindings are new enough."""
    if site.release != "sid":
        version = site.run(["python3", "-c", "import sys; print(*sys.version_info[:2], sep='.')"]).stdout.strip()
        words = line.split()
        unpack_wheels(wheels_for(version), (words[-1],), site.path(words[words.index("--target") + 1]))


def takes_orders(shown: str) -> bool:
    """Whether all slots of a startd do, by what the page has one look at."""
    rows = [line.split() for line in shown.splitlines()]
    return bool(rows) and all(since.isdigit() and 0 < int(since) <= int(start) for since, start in rows)


def deadline_of(admin: Admin) -> str:
    """Type what gives an order, until the slot has its deadline; the request."""
    trial, dry_run, act, shows = blocks_of(CONDOR_PAGE, "6.")[-1]
    admin.types(trial)
    admin.site.wait_for(lambda: "slot1_1@node2" in admin.types(dry_run), SECONDS, "a pilot in the dry run")
    said = admin.types(act)
    admin.types(shows)
    admin.site.wait_for(lambda: admin.types(ORDERED), SECONDS, "the slot's deadline")
    return str(re.findall(r"^request ([-\w]+):", said, re.MULTILINE)[0])
