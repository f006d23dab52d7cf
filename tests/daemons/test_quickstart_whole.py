"""The quick starts, typed as they stand on whole machines with systemd and apt, with jobs that ran before.

Orders are given and withdrawn on the way, the packages upgraded, downgraded and taken out again. After each step every
job runs that ran, since when it did, and to the end that it had.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest

import drainwise
from built_packages import OLDER
from real_daemons.site import CENTRAL
from typed_page import blocks_of
from whole_machine import WholeMachines
from whole_sites import (
    CONDOR_SITE_FILE,
    JOB,
    NODES,
    PILOT,
    PLACE,
    SECONDS,
    SITE_FILE,
    Admin,
    Lease,
    condor_machines,
    leases,
    pip_installs,
    runs,
    slurm_machines,
)

pytestmark = pytest.mark.play
TURN = "quick start on whole machines"
SLURM_PAGE = "quickstart-slurm.md"


@pytest.fixture
def cluster(release: str) -> Iterator[WholeMachines]:
    """A controller with its database and a node, by Debian's units, on which nobody thought of drainwise."""
    with slurm_machines(release) as site:
        yield site


@pytest.fixture
def pool(release: str) -> Iterator[WholeMachines]:
    """A central manager, from which users submit, and two nodes, by Debian's unit."""
    with condor_machines(release) as site:
        yield site


# ---- Slurm ----


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
    assert found(admin.types(check, check=False)) == ["agent"], "it is enabled next"

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


def found(said: str) -> list[str]:
    """What a check names that is to be mended."""
    return re.findall(r"^(?:dangerous|missing) +(\S+) on", said, re.MULTILINE)


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
STAYS = "/etc/condor/config.d/51-drainwise-after-removal.conf"
BEGINS = ("JobCurrentStartDate", "NumShadowStarts")
ORDERED = "condor_status -constraint 'PilotReclaimDeadline isnt undefined' -af Name"


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
