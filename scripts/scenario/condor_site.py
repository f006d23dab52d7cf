"""Set up a real pool with drainwise installed as a site would, two groups with quotas, and their jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from condor_pool import CondorPool

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.path.join(REPOSITORY, "plugins", "drainwise")
PILOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pilot_job.py")

NODES, CPUS, PILOT_CORES = 3, 24, 8
SITE_FILE = """\
[features]
hs06 = 240.5
wall_limit = 2d
grace_job = 10s
[pilot]
heartbeat_limit = 1h
[htcondor]
cron_period = 5s
slot_update_interval = 5s
update_interval = 5s
initial_update_interval = 2s
max_vacate_time = 10s
negotiator_policy = {negotiator_policy}
{more}[agent]
state_dir = {state_dir}
"""
RECLAIM = """\
[reclaim]
policy = least-waste
grace = 2m
margin = 1m
min_age = 5s
"""
QUOTAS = """\
GROUP_NAMES = group_alice, group_bob
GROUP_QUOTA_group_alice = {0}
GROUP_QUOTA_group_bob = {1}
GROUP_ACCEPT_SURPLUS = True
SUBMIT_REQUIREMENT_NAMES = Group
SUBMIT_REQUIREMENT_Group = AcctGroup is undefined || AcctGroup is strcat("group_", Owner)
"""
# What alice runs: payloads (cores x seconds) of each of nine pilots. Those that end soon cost least when drained; the
# longer a payload has still to run, the more is lost at the deadline. The last one looks as cheap as they do.
MIXES = {
    "short-1": "4x20 4x25",
    "short-2": "8x22",
    "ignores-orders": "--ignore-orders 4x21 4x24",
    "long-1": "8x1500",
    "long-2": "8x1800",
    "long-3": "7x1200",
    "long-4": "4x900 4x2700",
    "long-5": "6x3000",
    "long-6": "2x600 6x3600",
}
CHEAPEST = frozenset({"short-1", "short-2", "ignores-orders"})

# The same for the negotiator, which kills: those whose running payloads are few or young lose least.
MIXES_BY_KILL = {
    "idle-1": "1x900",
    "idle-2": "2x900",
    "young": "8x9",
    "busy-1": "6x1500",
    "busy-2": "7x1500",
    "busy-3": "8x1500",
    "busy-4": "8x1800",
    "busy-5": "8x2400",
    "busy-6": "8x3000",
}
CHEAPEST_TO_KILL = frozenset({"idle-1", "idle-2", "young"})
MIXES_BY_DRAIN = {
    **{f"soon-{number}": f"8x{140 + 10 * number}" for number in (1, 2, 3)},
    **{f"idle-{number}": f"{number}x{900 + 300 * number}" for number in range(1, 7)},
}
CHEAPEST_TO_DRAIN = frozenset({"soon-1", "soon-2", "soon-3"})

SUBMIT_PILOT = """\
executable = /usr/share/drainwise/pilot_job.py
transfer_executable = False
arguments = "{arguments}"
accounting_group = group_alice
request_cpus = {cores}
request_memory = 64
request_disk = 1MB
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
transfer_output_files = .site.ad, .machinefeatures/shutdowntime, .jobfeatures/shutdowntime_job, pilot-report.json
transfer_output_remaps = "{remaps}"
+PilotMix = "{name}"
error = {name}.err
queue
"""
NOTICES = (".site.ad", "shutdowntime", "shutdowntime_job")
"""What comes back with a pilot that left by itself, each under its own name: its site notice and shutdown files."""
REPORT = "pilot-report.json"

SUBMIT_DEMAND = """\
executable = /bin/sleep
transfer_executable = False
arguments = {seconds}
accounting_group = group_bob
request_cpus = {cores}
request_memory = 64
request_disk = 1MB
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
queue {count}
"""


def install(
    pool: CondorPool,
    negotiator_policy: str = "none",
    reclaim: str = RECLAIM,
    quotas: tuple[int, int] = (48, 24),
    more: str = "",
) -> str:
    """Install the package and the rendered configuration in the pool, and restart its daemons.

    reclaim: the site file's section. quotas: cores that alice's and bob's groups are owed. more: lines of the site
    file's section [htcondor]. Returns the path of the site file, as this machine sees it. Nodes get what an execute
    node gets, the central machine what an access point and a central manager get.
    """
    pool.copy_in(PACKAGE, "/usr/share/drainwise/drainwise")
    pool.copy_in(PILOT, "/usr/share/drainwise/pilot_job.py")
    os.makedirs(f"{pool.root}/var/lib/drainwise", exist_ok=True)
    site_file = f"{pool.root}/etc/drainwise/site.ini"
    os.makedirs(os.path.dirname(site_file), exist_ok=True)
    with open(site_file, "w", encoding="ascii") as stream:
        state_dir = f"{pool.root}/var/lib/drainwise"  # of the pool, though its agent runs on this machine
        text = SITE_FILE.format(negotiator_policy=negotiator_policy, state_dir=state_dir, more=more)
        stream.write(text + reclaim)
    for role, machines in (("execute", pool.node_names), ("access", ("central",)), ("central", ("central",))):
        with tempfile.TemporaryDirectory() as tree:
            command(["config", "htcondor", "--role", role, "--site", site_file, "--out", tree])
            place_tree(pool, tree, machines)
    pool.configure("central", "40-groups.conf", QUOTAS.format(*quotas))
    for name in ("central", *pool.node_names):
        pool.restart(name)
    return site_file


def place_tree(pool: CondorPool, tree: str, machines: tuple[str, ...]) -> None:
    """Put a rendered tree into the pool: its drop-ins to the config.d of each machine, the rest where it belongs."""
    for folder, _, names in os.walk(tree):
        for name in names:
            source = os.path.join(folder, name)
            target = source[len(tree) :]
            if target.startswith("/etc/condor/config.d/"):
                with open(source, encoding="ascii") as stream:
                    text = stream.read()
                for machine in machines:
                    pool.configure(machine, name, text)
            else:
                pool.copy_in(source, target)


def command(arguments: list[str]) -> str:
    """Run `drainwise` on this machine and return what it printed; raises CalledProcessError."""
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(PACKAGE)}
    ran = subprocess.run(
        [sys.executable, "-m", "drainwise", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise RuntimeError(f"drainwise {' '.join(arguments)} ended with {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def in_pool(
    pool: CondorPool, arguments: list[str], identity: str | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run `drainwise` in the pool's network, as its administrator or with another identity's token."""
    environment = {"PYTHONPATH": os.path.dirname(PACKAGE), "COLUMNS": "160"}
    argv = [sys.executable, "-m", "drainwise", *arguments]
    if identity is None:
        return pool.run_outside(argv, check=check, environment=environment)
    return pool.run_outside(argv, identity=identity, check=check, environment=environment)


def in_pool_json(pool: CondorPool, arguments: list[str]) -> Any:
    """Run as `in_pool` does, with --json, and return the parsed output."""
    return json.loads(in_pool(pool, [*arguments, "--json"]).stdout)


def submit_pilots(pool: CondorPool, mixes: Mapping[str, str] = MIXES) -> dict[str, int]:
    """Submit one pilot of alice's for each mix; return the cluster of each."""
    clusters = {}
    for name, mix in mixes.items():
        remaps = "; ".join(f"{file}={name}-{file.lstrip('.')}" for file in (*NOTICES, REPORT))
        text = SUBMIT_PILOT.format(arguments=mix, cores=PILOT_CORES, name=name, remaps=remaps)
        clusters[name] = pool.submit(text, user="alice")
    return clusters


def brought_back(pool: CondorPool, name: str, file: str) -> str:
    """Return a file that came back with a pilot that left by itself."""
    with open(f"{pool.root}/home/alice/{name}-{file.lstrip('.')}", encoding="ascii") as stream:
        return stream.read()


def submit_demand(pool: CondorPool, count: int = 3, seconds: int = 20) -> int:
    """Submit jobs of bob's, who is under his quota, as large as a pilot; return their cluster."""
    return pool.submit(SUBMIT_DEMAND.format(cores=PILOT_CORES, count=count, seconds=seconds), user="bob")


def all_pilots_report(pool: CondorPool, count: int) -> bool:
    """Return whether that many claimed slots show a fresh report."""
    return len(pool.slots('PilotReportStanding == "fresh"', ["Name"])) == count


def mix_in_slot(pool: CondorPool, clusters: Mapping[str, int]) -> dict[str, str]:
    """Return which mix runs in which slot now."""
    names = {cluster: name for name, cluster in clusters.items()}
    running = pool.queue('JobStatus == 2 && Owner == "alice"', ["ClusterId", "RemoteHost"])
    return {ad.text("RemoteHost"): names[ad.integer("ClusterId")] for ad in running if "RemoteHost" in ad}


def planned(pool: CondorPool, site: list[str]) -> dict[str, int]:
    """Return the slots that a plan would order to end now, with the deadline of each."""
    return orders(in_pool_json(pool, ["plan", *site]))


def orders(plan: Any) -> dict[str, int]:
    """Return the slots that a plan (as JSON) orders to end, with the deadline of each."""
    return {order["name"]: order["deadline"] for user in plan["users"] for order in user["orders"]}


def under_order(pool: CondorPool) -> list[str]:
    """Return the slots whose run was ordered to end and is still there."""
    return [ad.text("Name") for ad in pool.slots("PilotReclaimDeadline isnt undefined", ["Name"])]


def finished(pool: CondorPool, cluster: int) -> int:
    """Return how many jobs of a cluster have ended by themselves with code 0."""
    return len(pool.history(f"ClusterId == {cluster} && JobStatus == 4 && ExitCode == 0", ["ProcId"]))


def what_became(pool: CondorPool, clusters: Mapping[str, int]) -> dict[str, str]:
    """Return a line for each of alice's pilots: left by itself with its site notice, vacated, or untouched."""
    lines = {}
    for name, cluster in clusters.items():
        gone = pool.history(f"ClusterId == {cluster}", ["CompletionDate", "JobCurrentStartExecutingDate"])
        here = pool.queue(f"ClusterId == {cluster}", ["LastVacateTime", "JobStatus"])
        if gone:
            site_ad = brought_back(pool, name, ".site.ad").strip().replace("\n", ", ")
            account = json.loads(brought_back(pool, name, REPORT))["core_seconds"]
            lost = f"{account['lost']:.0f} core-seconds lost"
            lines[name] = f"drained and left by itself, {lost}; its .site.ad said: {site_ad}"
        elif here and here[0].get("LastVacateTime"):
            lines[name] = "took no notice; vacated by its deadline, back in the queue or running anew"
        else:
            lines[name] = "untouched, still running"
    return lines
