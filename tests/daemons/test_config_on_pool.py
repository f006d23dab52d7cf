"""The rendered configuration on real daemons: accepted, precise in its orders, readable by plain tools, and checked."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from condor_jobs import described
from condor_pool import Ad, CommandError, CondorPool
from drainwise.htcondor.setup.check import file_facts, judge_files, on_node, paths_on_node
from drainwise.htcondor.setup.check_facts import PoolFacts, SlotFacts
from drainwise.htcondor.setup.render import ROLES, render, template_dir
from drainwise.install.rendered_tree import RenderedFile, write_tree
from drainwise.pool.finding import OK
from drainwise.siteconfig import SiteConfig, load

PLUGINS = Path(__file__).parents[2] / "plugins"

SITE_FILE = """\
[features]
wall_limit = 10h
[htcondor]
cron_period = 2s
slot_update_interval = 2s
update_interval = 2s
initial_update_interval = 1s
negotiator_policy = least-waste
max_vacate_time = 5s
defrag = yes
[reclaim]
grace = 1m
margin = 10s
"""

# Quotas that nobody can exceed here: the negotiator's policy is on, and leaves the other tests' jobs alone.
GROUPS = """\
GROUP_NAMES = group_a, group_b
GROUP_QUOTA_group_a = 100
GROUP_QUOTA_group_b = 100
SUBMIT_REQUIREMENT_NAMES = Group
SUBMIT_REQUIREMENT_Group = AcctGroup is undefined || AcctGroup is "group_a"
"""

# Node 2 has static slots, two of eight cores; everything there must work, too.
STATIC = "SLOT_TYPE_1_PARTITIONABLE = False\nNUM_SLOTS_TYPE_1 = 2\nSLOT_TYPE_1 = cpus=8, mem=50%, swap=50%, disk=50%\n"

# Says that its payload on `$1` 1024ths of the cores started when it started, and ends an hour later.
PILOT = """\
#!/bin/sh
cd "$_CONDOR_SCRATCH_DIR"
now=$(date +%s)
cat > .pilot.ad.new <<END
LAST_JOB_START = $now
FIRST_EXP_JOB_END = $((now + 3600))
LAST_EXP_JOB_END = $((now + 3600))
LAST_MAX_JOB_END = $((now + 3600))
USED_FRACTION1k = $1
ADD_UNCOM_TIME1k = 20480
ADD_FINAL_EXP_WASTE1k = 0
PRIORITY_FACTOR = 3
CAN_POSTPONE_LAST_JOB = True
END
mv .pilot.ad.new .pilot.ad
exec sleep ${2:-600}
"""


@pytest.fixture(scope="module")
def pool(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CondorPool]:
    """Two nodes of 16 cores with everything installed from one site file; tests remove their jobs."""
    file = tmp_path_factory.mktemp("site") / "site.ini"
    file.write_text(SITE_FILE)
    site = load(str(file))
    drop_ins = {role: render(site, role)[-1].text for role in ROLES}
    config = {**drop_ins, "central": drop_ins["central"] + GROUPS, "node2": STATIC}
    with CondorPool(nodes=2, cpus=16, release=release, config=config) as running:
        install(running, site)
        yield running


@pytest.fixture(autouse=True)
def no_jobs_left(pool: CondorPool) -> Iterator[None]:
    """Each test starts and ends with empty slots."""
    yield
    pool.run(["condor_rm", "-all"], check=False)
    pool.wait_for(lambda: not pool.queue() and not pool.slots('State == "Claimed"', ["Name"]), 60, "an empty pool")


def site_file(pool: CondorPool) -> str:
    """The site file in the pool, as this machine sees it."""
    return f"{pool.root}/etc/drainwise/site.ini"


def install(pool: CondorPool, site: SiteConfig) -> None:
    """The rest of what an admin does: the package, and all rendered files but the drop-ins, which the pool has."""
    pool.copy_in(str(PLUGINS / "drainwise"), "/usr/share/drainwise/drainwise")
    files = [file for role in ROLES for file in render(site, role)[:-1]]  # access and central share some
    write_tree([*files, RenderedFile("/etc/drainwise/site.ini", SITE_FILE)], pool.root)
    write_tree([RenderedFile("/usr/share/drainwise/pilot", PILOT, 0o755)], pool.root)
    pool.reconfigure("execute")  # the startds started before the hooks were there
    pool.wait_for(lambda: len(pool.slots("PilotCronHeartbeat isnt undefined", ["Name"])) == 3, 30, "crons on 2 nodes")


def described_for(node: str, *more: str, arguments: str = "1", **how: Any) -> str:
    lines = (
        "should_transfer_files = YES",
        "accounting_group = group_a",
        f'requirements = Machine == "{node}.pool.test"',
    )
    return described(arguments, *lines, *more, **how)


def submit(pool: CondorPool, node: str, arguments: str = "600", **how: Any) -> int:
    """Alice submits jobs of eight cores for one node."""
    return pool.submit(described_for(node, arguments=arguments, **how), user="alice")


def running(pool: CondorPool, node: str, count: int) -> list[Ad]:
    """The claimed slots of a node, once that many jobs run there."""

    def found() -> list[Ad]:
        where = f'Machine == "{node}.pool.test" && JobStart isnt undefined'
        ads = pool.slots(where, ["Name", "GlobalJobId", "JobStart"])
        return ads if len(ads) == count else []

    return pool.wait_for(found, 60, f"{count} jobs on {node}")


def run_of(slot: Ad) -> str:
    """How an order names what runs in a slot."""
    return f"{slot.text('GlobalJobId')}@{slot.integer('JobStart')}"


def order(pool: CondorPool, node: str, orders: str, user: str = "root") -> None:
    """Give a node its list of orders."""
    pool.run(["condor_config_val", "-name", node, "-startd", "-rset", f"PILOT_RECLAIM = {orders}"], user=user)
    pool.run(["condor_reconfig", "-startd", node], user=user)


def times(pool: CondorPool, attribute: str) -> dict[str, int]:
    """What a live expression gives on the slots where it gives something, as any user's condor_status shows it."""
    known = ["-constraint", f"{attribute} isnt undefined"]
    ran = pool.run(["condor_status", *known, "-af", "Name", attribute], user="bob")
    return {name: int(value) for name, value in (line.split() for line in ran.stdout.splitlines())}


def deadlines(pool: CondorPool) -> dict[str, int]:
    """The slots that show a deadline."""
    return times(pool, "PilotReclaimDeadline")


def check(pool: CondorPool, *words: str) -> tuple[int, list[dict[str, str]]]:
    """Exit code of `drainwise check htcondor`, and what it finds to mend."""
    argv = [sys.executable, "-B", "-m", "drainwise", "check", "htcondor", "--json", "--site", site_file(pool), *words]
    ran = pool.run_outside(argv, check=False, environment={"PYTHONPATH": str(PLUGINS)})
    assert ran.stdout, ran.stderr
    return ran.returncode, [one for one in json.loads(ran.stdout)["findings"] if one["severity"] != OK]


# ---- accepted ----


def test_a_pool_installed_from_the_site_file_has_nothing_to_mend(pool: CondorPool) -> None:
    """Every line is in force in the running daemons, the crons publish, the slots show their orders."""
    pool.wait_for(lambda: check(pool) == (0, []), 20, "a startd's first ad with what its cron published")
    assert check(pool) == (0, [])


def test_the_installed_files_are_in_order(pool: CondorPool) -> None:
    """Looked at as the check looks at the node on which it runs."""
    site = load(site_file(pool))
    started = pool.slots('Machine == "node1.pool.test"', ["DaemonStartTime"])[0].integer("DaemonStartTime")
    slot = SlotFacts("slot1@node1.pool.test", "node1.pool.test", started, started, started, True)
    paths = [
        path for path in paths_on_node(site, on_node(site)) if not path.startswith("/etc/condor/")
    ]  # the pool's own layout
    facts = PoolFacts((), (slot,), "node1.pool.test", tuple(file_facts(paths, pool.root)))
    assert {one.what: one.severity for one in judge_files(facts, site)} == dict.fromkeys(paths, OK)


# ---- orders ----


@pytest.mark.play
@pytest.mark.parametrize("node", ["node1", "node2"])
def test_an_order_reaches_its_run_and_no_other(pool: CondorPool, node: str) -> None:
    """On dynamic and on static slots: one slot retires until its deadline, its neighbour and its next run do not."""
    submit(pool, node, count=2)
    first, second = running(pool, node, 2)
    deadline = int(time.time()) + 40
    order(pool, node, f"other.pool.test#1.0#1@5=6 {run_of(first)}={deadline}")
    asked = pool.wait_for(lambda: deadlines(pool), 20, "a slot with a deadline")
    assert asked == {first.text("Name"): deadline}
    pool.wait_for(lambda: pool.slots('Activity == "Retiring"', ["Name"]), 10, "a slot that retires")
    assert [ad.text("Name") for ad in pool.slots('Activity == "Retiring"', ["Name"])] == [first.text("Name")]
    assert times(pool, "PilotLeaseEnd") == {
        first.text("Name"): deadline,
        second.text("Name"): second.integer("JobStart") + 36000,
    }

    def gone() -> bool:
        return run_of(first) not in {run_of(ad) for ad in running(pool, node, 2)}

    # The vacated job runs again at once, in the same slot: the order names its first run and dies with it.
    pool.wait_for(gone, 60, "the end of the first run")
    assert time.time() <= deadline + 30
    again = {run_of(ad) for ad in running(pool, node, 2)}
    assert run_of(second) in again
    assert deadlines(pool) == {}
    assert not pool.slots('Activity == "Retiring"', ["Name"])


def test_a_user_cannot_give_orders(pool: CondorPool) -> None:
    """alice is refused by the node itself, and nothing changes."""
    submit(pool, "node1")
    (slot,) = running(pool, "node1", 1)
    with pytest.raises(CommandError):
        order(pool, "node1", f"{run_of(slot)}={int(time.time())}", user="alice")
    assert deadlines(pool) == {}


def test_a_slot_whose_job_has_ended_shows_no_run(pool: CondorPool) -> None:
    """A static slot falls back to "no job": an order for the run that was there finds nothing."""
    submit(pool, "node2", arguments="1")
    pool.wait_for(lambda: not pool.queue(), 60, "the job's end")
    pool.wait_for(lambda: not pool.slots('State == "Claimed"', ["Name"]), 60, "unclaimed slots")
    runs = "GlobalJobId isnt undefined || JobStart isnt undefined"
    pool.wait_for(lambda: not pool.slots(runs, ["Name"]), 60, "slots that show no run")
    assert len(pool.slots("PilotReclaimDeadline is undefined", ["Name"])) == 3


def test_jobs_of_one_kind_stay_one_kind(pool: CondorPool) -> None:
    """The published expressions make no attribute of a job significant that tells every job from every other."""
    cluster = submit(pool, "node1", "1", cores=64, count=3)
    attributes = ["AutoClusterId", "AutoClusterAttrs"]

    def sorted_jobs() -> list[Ad]:
        jobs = pool.queue(f"ClusterId == {cluster} && AutoClusterAttrs isnt undefined", attributes)
        return jobs if len(jobs) == 3 else []

    jobs = pool.wait_for(sorted_jobs, 60, "three jobs that were negotiated for")
    assert len({job.integer("AutoClusterId") for job in jobs}) == 1
    assert "GlobalJobId" not in jobs[0].text("AutoClusterAttrs").split(",")


def test_a_user_cannot_take_anothers_job_id(pool: CondorPool) -> None:
    """An order names a run by GlobalJobId, so a user must not choose it: neither at submit nor afterwards."""
    forged = described_for("node1", "hold = True", '+GlobalJobId = "forged#1.0#1"', cores=1)
    cluster = pool.submit(forged, user="alice")
    ran = pool.run(["condor_qedit", str(cluster), "GlobalJobId", '"forged#1.0#1"'], user="alice", check=False)
    assert "not allowed" in ran.stdout + ran.stderr
    (job,) = pool.queue(f"ClusterId == {cluster}", ["GlobalJobId"])
    assert job.text("GlobalJobId").startswith(f"central.pool.test#{cluster}.0#")


# ---- plain tools ----

COLUMNS = [
    "Pilot",
    "Account",
    "Cores",
    "Used",
    "ReportAge",
    "Remaining",
    "AtMost",
    "DrainWaste",
    "KillWaste",
    "Priority",
    "LeavesIn",
]


def test_the_print_formats_work_with_plain_condor_status(pool: CondorPool) -> None:
    """pilots.cpf: a row per pilot with live figures, nothing cut. users.cpf and the line it documents: their sums."""
    for share in ("1024", "512"):
        submit(pool, "node1", arguments=share, executable="/usr/share/drainwise/pilot")
    submit(pool, "node2")
    fresh = 'PilotReportStanding == "fresh"'
    pool.wait_for(lambda: len(pool.slots(fresh, ["Name"])) == 2, 60, "two pilots that report")
    running(pool, "node2", 1)

    ran = documented(pool, "pilots.cpf")
    heading, *rows = [line.split() for line in ran.splitlines() if line.strip()]
    assert heading == COLUMNS
    table = [dict(zip(heading, row)) for row in rows]
    by_used = {row["Used"]: row for row in table}
    assert set(by_used) == {"4.0", "8.0", "?"}, ran
    assert {row["Account"] for row in table} == {"group_a.alice@pool.test"}
    assert {row["Cores"] for row in table} == {"8"}
    half, silent = by_used["4.0"], by_used["?"]
    assert 3000 < int(half["Remaining"]) <= 3600
    assert abs(int(half["DrainWaste"]) - 4 * int(half["Remaining"])) <= 8
    assert 0 <= int(half["KillWaste"]) < 8 * 600  # its 160 core-seconds are bounded by cores x elapsed
    assert (half["Priority"], half["LeavesIn"]) == ("3", "?")
    assert (silent["Remaining"], silent["DrainWaste"], silent["ReportAge"]) == ("?", "?", "?")
    assert int(silent["KillWaste"]) >= 0

    wastes = [int(row["KillWaste"]) for row in table]
    assert wastes == sorted(wastes)

    totals = documented(pool, "users.cpf").split()
    assert totals[0] == "group_a.alice@pool.test"
    figures = dict(zip(totals[1::2], totals[2::2]))
    assert (figures["pilots"], figures["cores"], figures["used"], figures["unknown"]) == ("3", "24", "12.0", "1")
    drained = sum(int(row["DrainWaste"]) for row in table if row["DrainWaste"] != "?")
    assert abs(int(figures["draining_waste"]) - drained) <= 60


def documented(pool: CondorPool, print_format: str) -> str:
    """What the command line gives that a print format's own comment names, for a plain user."""
    lines = Path(template_dir(), print_format).read_text().splitlines()
    (command,) = [line[2:] for line in lines if line.startswith("# condor_status -print-format")]
    return pool.run(["sh", "-c", f"cd /etc/drainwise && {command}"], user="bob").stdout


# ---- the check ----

BROKEN_NODE = """\
OTHER_HOOK_JOB_EXIT = /bin/true
JOB_EXECDIR_PERMISSIONS = world
SETTABLE_ATTRS_WRITE = Other, Pilot_*
ALLOW_ADMINISTRATOR = $(ALLOW_ADMINISTRATOR), *
STARTER_UPDATE_INTERVAL = 60
MachineMaxVacateTime = 10 * 60
STARTD_JOB_ATTRS = $(STARTD_JOB_ATTRS) PilotKillWaste
PILOT_RECLAIM = nonsense
PREEMPT = False
STARTD_ATTRS =
STARTD_PARTITIONABLE_SLOT_ATTRS = CPUsUsage
STARTD_CRON_JOBLIST =
ENABLE_RUNTIME_CONFIG = False
"""

BROKEN_NEGOTIATOR = """\
NEGOTIATOR_PRE_JOB_RANK = (10000000 * My.Rank) + (1000000 * (RemoteOwner =?= UNDEFINED)) - (100000 * Cpus) - Memory
GROUP_NAMES =
DEFRAG_RANK = -Cpus
"""


def test_the_check_finds_the_faults_of_a_broken_pool(pool: CondorPool) -> None:
    """Each fault on its machine with the line to add; after adding them there is nothing left to mend."""
    pool.configure("node1", "90-broken.conf", BROKEN_NODE)
    pool.configure("central", "90-broken.conf", BROKEN_NEGOTIATOR + "IMMUTABLE_JOB_ATTRS =\n")
    pool.restart("node1")
    pool.reconfigure("central")
    try:
        central = {"NEGOTIATOR_PRE_JOB_RANK": "dangerous", "GROUP_NAMES": "missing", "IMMUTABLE_JOB_ATTRS": "missing"}
        central["DEFRAG_RANK"] = "missing"
        found = pool.wait_for(lambda: faults(pool, "central", central), 30, "the central manager's faults")
        assert found == central
        assert faults(pool, "node1") == {
            "OTHER_HOOK_JOB_EXIT": "dangerous",
            "JOB_EXECDIR_PERMISSIONS": "dangerous",
            "SETTABLE_ATTRS_WRITE": "dangerous",
            "ALLOW_ADMINISTRATOR": "dangerous",
            "STARTER_UPDATE_INTERVAL": "dangerous",
            "MachineMaxVacateTime": "dangerous",
            "STARTD_JOB_ATTRS": "dangerous",
            "PILOT_RECLAIM": "dangerous",
            "PREEMPT": "missing",
            "STARTD_ATTRS": "missing",
            "STARTD_PARTITIONABLE_SLOT_ATTRS": "missing",
            "STARTD_CRON_JOBLIST": "missing",
            "ENABLE_RUNTIME_CONFIG": "missing",
            "PilotCronHeartbeat": "missing",
            "PilotReclaimDeadline": "missing",
        }
        assert faults(pool, "node2") == {}
        code, findings = check(pool, "--node", "node2", "--role", "execute")
        assert (code, findings) == (0, [])
    finally:
        for machine in ("node1", "central"):
            pool.configure(machine, "90-broken.conf", "")
        pool.restart("node1")
        pool.reconfigure("central")
    pool.wait_for(lambda: check(pool)[0] == 0, 60, "a pool with nothing to mend")


def faults(pool: CondorPool, machine: str, wanted: dict[str, str] | None = None) -> dict[str, str]:
    """Severity by subject on one machine; nothing unless it has all that is wanted."""
    code, findings = check(pool)
    found = {one["what"]: one["severity"] for one in findings if one["machine"] == f"{machine}.pool.test"}
    assert code == (1 if findings else 0)
    return found if wanted is None or set(wanted) <= set(found) else {}


def test_the_check_tells_a_daemon_that_does_not_answer(pool: CondorPool) -> None:
    """A stopped startd costs ten seconds and one finding; the rest of the pool is judged."""
    startd = process_of(pool, "node2", "condor_startd")
    pool.run(["kill", "-STOP", str(startd)])
    try:
        code, findings = check(pool, "--role", "execute")
    finally:
        pool.run(["kill", "-CONT", str(startd)])
    assert code == 1
    assert [(one["machine"], one["what"]) for one in findings if one["machine"] == "node2.pool.test"][:1] == [
        ("node2.pool.test", "execute daemon")
    ]
    assert "did not answer within" in findings[0]["why"]
    assert all(one["machine"] == "node2.pool.test" for one in findings)


def process_of(pool: CondorPool, node: str, program: str) -> int:
    """The number, inside the pool, of a daemon of one machine: the child of that machine's master."""
    master = Path(f"{pool.root}/srv/{node}/run/condor/master.pid").read_text().strip()
    for status in Path(f"{pool.root}/proc").glob("[0-9]*/status"):
        fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        if fields["PPid"].strip() == master and fields["Name"].strip() == program[:15]:
            return int(status.parent.name)
    raise AssertionError(f"no {program} on {node}")
