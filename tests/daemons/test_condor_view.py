"""What the agent sees of a real pool is so: no demand that cannot start, no node that has gone, no collector half full.

drainwise comes to a running pool: what runs already stays, and only what starts later has hooks. All tests share that
pool; each leaves it as it was, but for the last but one, which kills a node.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import drainwise
from condor_jobs import TRANSFERRED, described
from condor_pool import CondorPool
from drainwise.htcondor.pool.slots import NO_UPDATE_HOOK
from drainwise.pool.clocks import CLOCKS_DIFFER
from scenario import condor_site

pytestmark = [pytest.mark.play, pytest.mark.in_turn("beside HTCondor's own tools", "condor view")]
ENVIRONMENT = {"PYTHONPATH": str(Path(drainwise.__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
CORES, JOB_CORES = 8, 4
CENTRAL = """\
GROUP_NAMES = group_alice, group_bob
GROUP_QUOTA_group_alice = 16
GROUP_QUOTA_group_bob = 8
GROUP_ACCEPT_SURPLUS = True
"""
# Takes snapshots in one process, as a loop does: prints the first; when it is told to go on, why each following one is
# refused, and the next that is believed.
LOOP = """
import json, sys, time
from drainwise.facts.errors import PoolError
from drainwise.htcondor.pool.pool import HTCondorPool
pool, end = HTCondorPool(), time.time() + 90
def look():
    try:
        snapshot = pool.snapshot(int(time.time()))
    except PoolError as fault:
        return str(fault)
    return sum(one.cores for one in snapshot.pilots)
print(json.dumps(look()), flush=True)
sys.stdin.readline()
while time.time() < end:
    seen = look()
    print(json.dumps(seen), flush=True)
    if not isinstance(seen, str):
        break
    time.sleep(0.3)
"""


@pytest.fixture(scope="module")
def pool(release: str) -> Iterator[CondorPool]:
    """Three nodes of 8 cores; two pilots on node1 are older than drainwise, two on each other node are not."""
    with CondorPool(nodes=3, cpus=CORES, release=release, config={"central": CENTRAL}) as running:
        submit(running, 2, 'requirements = Machine == "node1.pool.test"\naccounting_group = group_alice')
        running.wait_for(lambda: len(busy(running)) == 2, 60, "two pilots")
        install(running)
        submit(running, 4, "accounting_group = group_alice")
        running.wait_for(lambda: len(busy(running)) == 6, 60, "six pilots")
        since = "PilotHooksSince isnt undefined && PilotUpdateInterval is 3"
        running.wait_for(lambda: len(running.slots(since, ["Name"])) == 9, 40, "since when the nodes have hooks")
        yield running


def install(pool: CondorPool) -> None:
    """As a site does that cannot restart its startds: the files, then a reconfig."""
    pool.copy_in(condor_site.PACKAGE, "/usr/share/drainwise/drainwise")
    with tempfile.TemporaryDirectory() as place:
        site = f"{place}/site.ini"
        Path(site).write_text(
            condor_site.SITE_FILE.format(negotiator_policy="none", state_dir="/var/lib/drainwise", more="")
        )
        tree = f"{place}/tree"
        condor_site.command(["config", "htcondor", "--role", "execute", "--site", site, "--out", tree])
        condor_site.place_tree(pool, tree, pool.node_names)
    pool.configure("execute", "90-interval.conf", "UPDATE_INTERVAL = 3\n")
    pool.reconfigure("execute")


def submit(pool: CondorPool, count: int, more: str, cores: int = JOB_CORES, user: str = "alice") -> int:
    return pool.submit(described(3000, TRANSFERRED, more, cores=cores, count=count), user=user)


def busy(pool: CondorPool) -> list[str]:
    return sorted(ad.text("Name") for ad in pool.slots('Activity == "Busy"', ["Name"]))


def snapshot(pool: CondorPool) -> dict[str, object]:
    """What `drainwise snapshot` prints; {} when it refused."""
    argv = [sys.executable, "-m", "drainwise", "snapshot", "--pool", "htcondor"]
    ran = pool.run_outside(argv, environment=ENVIRONMENT, check=False)
    found: dict[str, object] = json.loads(ran.stdout) if ran.returncode == 0 else {}
    return found


def account(seen: dict[str, object], name: str) -> dict[str, object]:
    accounts: list[dict[str, object]] = seen.get("accounts", [])  # type: ignore[assignment]
    return next((one for one in accounts if one["name"] == name), {})


def notices(seen: dict[str, object]) -> str:
    return "\n".join(seen.get("notices", ()))  # type: ignore[arg-type]


def processes(pool: CondorPool, node: str) -> list[str]:
    """The numbers, inside the pool, of all processes of one machine."""
    spaces = f"{pool.root}/run/uts/{node}"
    same = os.stat(spaces).st_ino
    rows = pool.run(["ps", "-eo", "pid="]).stdout.split()
    found = []
    for pid in rows:
        try:
            if os.stat(f"{pool.root}/proc/{pid}/ns/uts").st_ino == same:
                found.append(pid)
        except OSError:
            continue
    return found


def test_what_is_older_than_the_hooks_is_named_and_what_is_silent_is_not(pool: CondorPool) -> None:
    """None of the six says anything; the two of before the installation cannot be told, the four others can."""
    pilots: list[dict[str, object]] = snapshot(pool)["pilots"]  # type: ignore[assignment]
    assert [one["node"] for one in pilots if one["cannot"] == NO_UPDATE_HOOK] == ["node1.pool.test"] * 2
    assert len(pilots) == 6


def test_demand_that_cannot_start_is_none(pool: CondorPool) -> None:
    """Of all these jobs of bob's one could start if cores were free; alice may use no more than she does."""
    pool.run(["condor_userprio", "-setceil", "group_alice.alice@pool.test", "24"])
    submitted = [
        submit(pool, 3, "accounting_group = group_bob\nhold = True", 1, "bob"),
        submit(pool, 3, "accounting_group = group_bob\naccounting_group_user = large", 64, "bob"),
        pool.submit("universe = local\nexecutable = /bin/sleep\narguments = 60\nqueue 2\n", user="bob"),
        submit(pool, 9, "accounting_group = group_bob\naccounting_group_user = factory\nmax_idle = 1", 1, "bob"),
        submit(pool, 2, "accounting_group = group_alice"),
    ]
    try:

        def told() -> dict[str, object]:
            found = snapshot(pool)
            kinds: list[dict[str, Any]] = found.get("kinds") or []  # type: ignore[assignment]
            nowhere = [one["needs"]["cores"] for one in kinds if not one["classes"]]
            return found if nowhere == [64] and "-setceil" in notices(found) else {}

        found = pool.wait_for(told, 40, "what is not counted")
        assert account(found, "group_alice")["cores_wanted"] == 0
        assert account(found, "group_bob")["cores_wanted"] == 1
    finally:
        pool.run(["condor_rm", *map(str, submitted)])
        pool.run(["condor_userprio", "-setceil", "group_alice.alice@pool.test", "-1"])
        pool.wait_for(lambda: len(pool.queue()) == 6, 30, "the end of these jobs")


def test_a_schedd_at_its_limit_wants_no_cores(pool: CondorPool) -> None:
    """MAX_JOBS_RUNNING = 6, and six of alice's run: nothing else of that access point can start."""
    waiting = submit(pool, 2, "accounting_group = group_bob", JOB_CORES, "bob")
    pool.configure("central", "60-limit.conf", "MAX_JOBS_RUNNING = 6\n")
    pool.reconfigure("central")
    try:

        def throttled() -> dict[str, object]:
            seen = snapshot(pool)
            return seen if "may run no more jobs (MAX_JOBS_RUNNING)" in notices(seen) else {}

        found = pool.wait_for(throttled, 40, "a demand that is throttled")
        assert account(found, "group_bob")["cores_wanted"] == 0
    finally:
        pool.configure("central", "60-limit.conf", "")
        pool.reconfigure("central")
    try:
        pool.wait_for(lambda: account(snapshot(pool), "group_bob").get("cores_wanted") == 8, 40, "a demand again")
    finally:
        pool.run(["condor_rm", str(waiting)])
        pool.wait_for(lambda: len(pool.queue()) == 6, 30, "the end of bob's jobs")


def test_one_odd_ad_ends_no_cycle(pool: CondorPool) -> None:
    """A slot of 2^31 cores, a submitter with 1e308 jobs, and weights and sleep pushed over all slots of a node."""

    def calm() -> dict[str, object]:
        found = snapshot(pool)
        return found if account(found, "group_bob").get("cores_wanted") == 0 else {}

    before = pool.wait_for(calm, 60, "that bob wants nothing any more")
    odd = pool.run(["condor_status", "-long", busy(pool)[-1]]).stdout
    changes = {"Name": '"slot1_9@odd.pool.test"', "Machine": '"odd.pool.test"', "Cpus": "2147483648"}
    lines = [line for line in odd.splitlines() if line.partition(" = ")[0] not in {*changes, "SlotWeight"}]
    text = "\n".join([*lines, *(f"{name} = {value}" for name, value in changes.items())]) + "\n"
    pool.run(["sh", "-c", "cat > /tmp/odd.ad && condor_advertise UPDATE_STARTD_AD /tmp/odd.ad"], stdin=text)
    submitter = 'MyType = "Submitter"\nName = "eve@pool.test"\nScheddName = "odd"\nScheddIpAddr = "<127.0.0.10:9>"\n'
    submitter += "IdleJobs = 1e308\nRunningJobs = 0\n"
    pool.run(["sh", "-c", "cat > /tmp/odd.ad && condor_advertise UPDATE_SUBMITTOR_AD /tmp/odd.ad"], stdin=submitter)
    pushed = "SlotWeight = 1e308\nOffline = true\n"
    push = ["condor_update_machine_ad", "-name", "node3.pool.test"]
    pool.run(["sh", "-c", f"cat > /tmp/odd.ad && {' '.join(push)} /tmp/odd.ad"], stdin=pushed, node="node3")

    def told() -> dict[str, object]:
        found = snapshot(pool)
        said = notices(found) if found else ""
        return found if all(word in said for word in ("Cpus = 2147483648", "IdleJobs", "Offline")) else {}

    found = pool.wait_for(told, 30, "notices of what is odd")
    for name in ("group_alice", "group_bob"):
        shares = [{**account(one, name), "priority": 0} for one in (before, found)]
        assert shares[0] == shares[1]
    # Their nodes may have looked at their processes meanwhile.
    pilots = [[{**pilot, "seen": None} for pilot in one["pilots"]] for one in (before, found)]  # type: ignore[attr-defined]
    assert pilots[0] == pilots[1]


def test_a_node_without_power_is_not_there(pool: CondorPool) -> None:
    """Its pilots stand in the collector for a quarter of an hour; also when it is back, beside its new slots."""
    there = processes(pool, "node3")
    pool.run(["kill", "-STOP", *there])
    began = time.monotonic()
    try:
        pool.wait_for(lambda: account(snapshot(pool), "group_alice").get("cores_in_use") == 16, 60, "16 cores in use")
        assert time.monotonic() - began > 20  # three updates, and a startd may be late
        dead = [name for name in busy(pool) if name.endswith("node3.pool.test")]
        assert len(dead) == 2
    finally:
        pool.run(["kill", "-KILL", *there])
    pool.configure("node3", "70-start.conf", "START = False\n")
    pool.start("node3")
    fresh = 'Machine == "node3.pool.test" && PartitionableSlot && NumDynamicSlots == 0'
    pool.wait_for(lambda: pool.slots(fresh, ["Name"]), 30, "the node again")
    assert [name for name in busy(pool) if name.endswith("node3.pool.test")] == dead
    seen = snapshot(pool)
    assert account(seen, "group_alice")["cores_in_use"] == 16
    assert "2 slots (8 cores) on node3.pool.test are not counted" in notices(seen)


def test_a_half_filled_collector_is_not_believed(pool: CondorPool) -> None:
    """Killed and started anew, it hears of the nodes one after the other: nothing is decided before all are back.

    The startd of node2 is late.
    """
    held = account(snapshot(pool), "group_alice")["cores_in_use"]
    startds = [ad.integer("DaemonStartTime") for ad in pool.slots("PartitionableSlot", ["DaemonStartTime"])]
    pool.wait_for(lambda: time.time() > min(startds) + CLOCKS_DIFFER + 1, 90, "a startd that is not new")
    late = sorted({*processes(pool, "node2")} & {*pool.run(["pgrep", "-x", "condor_startd"]).stdout.split()})
    loop = pool.outside_command([sys.executable, "-c", LOOP])
    environment = {**pool.outside_env(), **ENVIRONMENT}
    with subprocess.Popen(loop, env=environment, stdin=-1, stdout=-1, text=True) as looking:
        assert looking.stdin is not None
        assert looking.stdout is not None
        whole = json.loads(looking.stdout.readline())
        pool.run(["kill", "-STOP", *late])
        try:
            pool.run(["pkill", "-KILL", "-x", "condor_collecto"])
            at_node1 = 'Machine == "node1.pool.test" && Activity == "Busy"'
            there = ["condor_status", "-constraint", at_node1, "-af", "Name"]
            pool.wait_for(lambda: len(pool.run(there, check=False).stdout.split()) == 2, 40, "the slots of node1")
            looking.stdin.write("\n")
            looking.stdin.flush()
            half = json.loads(looking.stdout.readline())
            while isinstance(half, str) and "the collector started" not in half:  # the negotiator is late, too
                half = json.loads(looking.stdout.readline())
        finally:
            pool.run(["kill", "-CONT", *late])
        seen = [half, *map(json.loads, looking.stdout)]
    assert whole == held and whole in {4 * JOB_CORES, 6 * JOB_CORES}, "without node3, or with it"
    assert isinstance(half, str), f"{half} cores of pilots are believed, and there are {whole}"
    assert "nodes are missing (node2.pool.test" in half
    assert seen[-1] == whole


SLOW = {"central": CENTRAL, "execute": "UPDATE_INTERVAL = 300\n"}


def test_startds_that_tell_a_new_collector_nothing_for_minutes_are_asked(release: str) -> None:
    """As it is at a site: each tells of itself all five minutes, and loses its first word."""
    with CondorPool(nodes=2, cpus=CORES, release=release, config=SLOW) as slow:
        submit(slow, 2, "accounting_group = group_alice")
        slow.wait_for(lambda: len(busy(slow)) == 2, 90, "two pilots")
        startds = [ad.integer("DaemonStartTime") for ad in slow.slots("PartitionableSlot", ["DaemonStartTime"])]
        slow.wait_for(lambda: time.time() > max(startds) + CLOCKS_DIFFER + 5, 90, "startds that are not new")
        loop = slow.outside_command([sys.executable, "-c", LOOP])
        with subprocess.Popen(
            loop, env={**slow.outside_env(), **ENVIRONMENT}, stdin=-1, stdout=-1, text=True
        ) as looking:
            assert looking.stdin is not None
            assert looking.stdout is not None
            whole = json.loads(looking.stdout.readline())
            slow.run(["pkill", "-KILL", "-x", "condor_collecto"])
            looking.stdin.write("\n")
            looking.stdin.flush()
            seen = [json.loads(line) for line in looking.stdout]
    assert whole == 2 * JOB_CORES
    assert seen[-1] == whole, seen[-3:]
