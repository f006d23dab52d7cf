"""What runs on an HTCondor node, in a real pool: hooks, variables, features, and the cron's word in exactly its slot.

node1 has a partitionable slot, node2 three static ones, both installed as a site would; node3 has an installation of
its own that the tests break.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from condor_jobs import scripted
from condor_pool import Ad, CondorPool
from drainwise.features import planned_shutdown
from drainwise.features.check import ERROR, check
from drainwise.features.read import open_features
from drainwise.htcondor.setup.render import render
from drainwise.install.rendered_tree import write_tree
from drainwise.pilotad.attributes import ATTRIBUTES
from drainwise.siteconfig import HTCondorSection, SiteConfig, load
from made_up_node import contents
from scenario.condor_site import PACKAGE, place_tree

SITE = """\
[features]
hs06 = 240.5
cpufactor_lrms = 1.25
wall_limit = 1d
max_swap = 4GiB
scratch_limit = 20GB
grace_job = 1m
[htcondor]
cron_period = 2s
slot_update_interval = 2s
update_interval = 2s
initial_update_interval = 1s
"""
STATIC_SLOTS = """\
NUM_SLOTS_TYPE_1 = 3
SLOT_TYPE_1 = cpus=8, mem=30%, swap=30%, disk=30%
SLOT_TYPE_1_PARTITIONABLE = False
"""
REPORT = """\
LAST_JOB_START = {now}
FIRST_EXP_JOB_END = {first}
LAST_EXP_JOB_END = {last}
LAST_MAX_JOB_END = {last}
USED_FRACTION1k = 768
ADD_UNCOM_TIME1k = 0
ADD_FINAL_EXP_WASTE1k = 5120000
PRIORITY_FACTOR = {priority}
CAN_POSTPONE_LAST_JOB = True
EXP_WASTE_CURVE = {first}:5400:60000,{last}:7200:41000
"""
WAIT_SECS = 40.0
METRICS = ("PilotRemaining", "PilotRemainingMax", "PilotDrainingWaste", "PilotKillWaste")
SICK = HTCondorSection(
    cron_period=2,
    slot_update_interval=2,
    update_interval=2,
    initial_update_interval=1,
    library_dir="/usr/share/sick",
    libexec_dir="/usr/libexec/sick",
    node_file="/etc/sick/node.conf",
    state_dir="/var/lib/sick",
)


def install(pool: CondorPool) -> None:
    """Install node1 and node2 from a site file, node3 from another with all paths of its own."""
    with tempfile.TemporaryDirectory() as place:
        with open(f"{place}/site.ini", "w", encoding="ascii") as stream:
            stream.write(SITE)
        sites = ((load(f"{place}/site.ini"), ("node1", "node2")), (SiteConfig(htcondor=SICK), ("node3",)))
        for site, machines in sites:
            pool.copy_in(PACKAGE, f"{site.htcondor.library_dir}/drainwise")
            os.makedirs(pool.root + site.htcondor.state_dir)
            write_tree(render(site, "execute"), f"{place}/{machines[0]}")
            place_tree(pool, f"{place}/{machines[0]}", machines)
    for name in pool.node_names:
        pool.restart(name)


@pytest.fixture(scope="module")
def pool(release: str) -> Iterator[CondorPool]:
    """The pool of this module, one for each release."""
    config = {"node2": STATIC_SLOTS, "execute": "STARTD_DEBUG = D_CATEGORY\n"}
    with CondorPool(nodes=3, cpus=24, release=release, config=config) as running:
        install(running)
        yield running


@pytest.fixture(autouse=True)
def nothing_left(pool: CondorPool) -> Iterator[None]:
    """No job of one test is there in the next, and none was ever held."""
    yield
    held = pool.queue("JobStatus == 5", ["ClusterId", "HoldReason"])
    pool.run(["condor_rm", "-all"], check=False)
    pool.wait_for(lambda: not pool.queue() and not pool.slots('State != "Unclaimed"'), WAIT_SECS, "an empty pool")
    assert held == []


# ---- helpers ----


def submit(pool: CondorPool, script: str, node: str, cores: int = 8, count: int = 1, more: str = "") -> int:
    """Submit as alice a shell script (without single quotes) to one node; returns the cluster."""
    return pool.submit(scripted(script, node, more, cores=cores, count=count), user="alice")


def home(pool: CondorPool, name: str) -> str:
    """A file in alice's home, as this machine sees it."""
    return f"{pool.root}/home/alice/{name}"


def submit_pilot(pool: CondorPool, node: str, priority: int) -> int:
    """A job of eight cores that reports once and then sleeps."""
    now = int(time.time())
    with open(home(pool, f"report{priority}"), "w", encoding="ascii") as stream:
        stream.write(REPORT.format(now=now, first=now + 7000, last=now + 13000, priority=priority))
    script = f"cat report{priority} > .new; mv .new .pilot.ad; exec sleep 900"
    return submit(pool, script, node, more=f"transfer_input_files = report{priority}")


def slot_of(pool: CondorPool, cluster: int) -> Ad | None:
    """The slot in which a job runs, as the collector has it."""
    names = ["Name", "PilotHeartbeat", "PilotReportStanding", "PilotCronHeartbeat"]
    names += [row.published for row in ATTRIBUTES]
    return next(iter(pool.slots(running_in(cluster), names)), None)


def running_in(cluster: int) -> str:
    """The constraint that finds the slot of a job."""
    return f'regexp("#{cluster}[.]0#", GlobalJobId ?: "")'


def reporting_slot(pool: CondorPool, cluster: int) -> Ad:
    """The slot of a pilot, as soon as its report is there."""

    def found() -> Ad | None:
        slot = slot_of(pool, cluster)
        return slot if slot is not None and "PilotHeartbeat" in slot else None

    return pool.wait_for(found, WAIT_SECS, f"the report of {cluster} in its slot") or Ad()


def running(pool: CondorPool, cluster: int) -> Ad:
    """A job, as soon as it runs."""

    def found() -> Ad | None:
        return next(iter(pool.queue(f"ClusterId == {cluster} && JobStatus == 2")), None)

    return pool.wait_for(found, WAIT_SECS, f"the start of {cluster}") or Ad()


def ended(pool: CondorPool, cluster: int, count: int = 1) -> list[Ad]:
    """The ads of jobs that have all completed."""

    def found() -> list[Ad] | None:
        gone = pool.history(f"ClusterId == {cluster} && JobStatus == 4")
        return gone if len(gone) == count else None

    return pool.wait_for(found, WAIT_SECS + count, f"the end of {cluster}") or []


class Sandbox(NamedTuple):
    """A job's own directory, in the pool and as this machine's root sees it."""

    inside: str
    outside: str


def sandbox(pool: CondorPool, node: str, cluster: int) -> Sandbox:
    """The directory of a running job whose features are made."""
    execute = pool.node(node).execute_dir

    def found() -> Sandbox | None:
        for name in os.listdir(pool.root + execute):
            for inside in (f"{execute}/{name}", f"{execute}/{name}/scratch"):
                try:
                    with open(f"{pool.root}{inside}/.jobfeatures/job_id", encoding="ascii") as stream:
                        if f"#{cluster}.0#" in stream.read():
                            return Sandbox(inside, pool.root + inside)
                except OSError:
                    continue
        return None

    return pool.wait_for(found, WAIT_SECS, f"the directory of {cluster}") or Sandbox("", "")


def variables(path: str) -> dict[str, str]:
    """The output of `env -0`."""
    with open(path, "rb") as stream:
        text = stream.read().decode("utf-8", "surrogateescape")
    return {name: value for name, _, value in (line.partition("=") for line in text.split("\0") if line)}


# ---- the environment ----

NEW_SYNTAX = (
    "\"A=1 'B=two  words' C=it''''s Q=\"\"q\"\" 'D=\"\"a b\"\"' E= F=\\back\\slash\\ G=$HOME;`id`|&() 'T=a\tb'"
    ' MACHINEFEATURES=/evil JOBFEATURES=/evil APPTAINERENV_JOBSTATUS=/evil LD_LIBRARY_PATH=/evil"'
)
NEW_VARIABLES = {
    "A": "1",
    "B": "two  words",
    "C": "it's",
    "Q": '"q"',
    "D": '"a b"',
    "E": "",
    "F": "\\back\\slash\\",
    "G": "$HOME;`id`|&()",
    "T": "a\tb",
    "LD_LIBRARY_PATH": "/evil",
}
OLD_SYNTAX = "A=1;B=two  words;C=it's;F=\\back\\slash\\;E=;JOBFEATURES=/evil"
OLD_VARIABLES = {"A": "1", "B": "two  words", "C": "it's", "F": "\\back\\slash\\", "E": ""}


@pytest.mark.parametrize(
    ("syntax", "expected"), [(NEW_SYNTAX, NEW_VARIABLES), (OLD_SYNTAX, OLD_VARIABLES)], ids=["new", "old"]
)
@pytest.mark.parametrize("node", ["node1", "node2"])
def test_the_users_environment_survives(pool: CondorPool, syntax: str, expected: dict[str, str], node: str) -> None:
    """Odd quoting included, letter by letter; of the names that are ours, ours win."""
    more = f"environment = {syntax}\noutput = env.out"
    ended(pool, submit(pool, "exec /usr/bin/env -0", node, cores=1, more=more))
    found = variables(home(pool, "env.out"))
    assert {name: found.get(name) for name in expected} == expected
    scratch = found["_CONDOR_SCRATCH_DIR"]
    for name in ("MACHINEFEATURES", "JOBFEATURES", "JOBSTATUS"):
        for prefix in ("", "APPTAINERENV_", "SINGULARITYENV_"):
            assert found[prefix + name] == f"{scratch}/.{name.lower()}"


def test_a_large_environment_survives(pool: CondorPool) -> None:
    """100 kB, as `getenv = True` may give: HTCondor must keep all that the hook prints."""
    more = f"environment = BIG={'x' * 100_000}\noutput = env.out"
    ended(pool, submit(pool, "exec /usr/bin/env -0", "node1", cores=1, more=more))
    found = variables(home(pool, "env.out"))
    assert found["BIG"] == "x" * 100_000
    assert found["JOBFEATURES"].endswith("/.jobfeatures")


def test_the_users_environment_does_not_reach_the_hooks(pool: CondorPool) -> None:
    """HOSTILE 46: LD_PRELOAD, PYTHONPATH, PATH and the rest are the job's alone."""
    hook, seen = f"{pool.root}{SICK.libexec_dir}/prepare-hook", f"{pool.root}/var/tmp/seen"
    os.rename(hook, f"{hook}.real")
    try:
        with open(hook, "w", encoding="ascii") as stream:
            stream.write(f"#!/bin/sh\nenv > /var/tmp/seen\nexec {SICK.libexec_dir}/prepare-hook.real\n")
        os.chmod(hook, 0o755)
        evil = "LD_PRELOAD=/evil PYTHONPATH=/evil PYTHONHOME=/evil PATH=/evil IFS=/evil BASH_ENV=/evil"
        ended(pool, submit(pool, "exec /bin/true", "node3", cores=1, more=f'environment = "{evil}"'))
        with open(seen, encoding="ascii") as stream:
            text = stream.read()
    finally:
        os.rename(f"{hook}.real", hook)
    assert "_CONDOR_SCRATCH_DIR=" in text
    assert "/evil" not in text


# ---- the features ----


@pytest.mark.parametrize("node", ["node1", "node2"])
def test_every_key_of_an_eight_core_job(pool: CondorPool, node: str) -> None:
    """Of a dynamic and of a static slot, and the check finds no fault."""
    cluster = submit(pool, "exec sleep 900", node)
    place, job, now = sandbox(pool, node, cluster).outside, running(pool, cluster), int(time.time())
    machine, own = f"{place}/.machinefeatures", f"{place}/.jobfeatures"
    assert {"total_cpu": "24\n", "jobslots": "24\n", "hs06": "240.5\n"}.items() <= contents(machine).items()
    slot = pool.slots(running_in(cluster), ["Memory", "Disk"])[0]
    scratch = min(20 * 10**9, slot.integer("Disk") << 10)
    expected = {
        "allocated_cpu": "8\n",
        "allocated_CPU": "8\n",
        "hs06_job": "80.166667\n",
        "jobstart_secs": f"{job.integer('JobCurrentStartDate')}\n",
        "job_id": f"{job.text('GlobalJobId')}\n",
        "wall_limit_secs": "86400\n",
        "wall_limit_secs_lrms": "108000\n",
        "cpu_limit_secs": "691200\n",
        "cpu_limit_secs_lrms": "864000\n",
        "cpufactor_lrms": "1.25\n",
        "max_rss_bytes": f"{slot.integer('Memory') << 20}\n",
        "mem_limit_MB": f"{(slot.integer('Memory') << 20) // 10**6}\n",
        "max_swap_bytes": f"{4 << 30}\n",
        "scratch_limit_bytes": f"{scratch}\n",
        "grace_secs_job": "60\n",
    }
    if scratch >= 10**9:  # less than one of the draft's units is left out
        expected["disk_limit_GB"] = f"{scratch // 10**9}\n"
    assert contents(own) == expected
    assert [
        verdict for verdict in check(open_features(machine), open_features(own), now) if verdict.level == ERROR
    ] == []


def test_a_node_of_a_kind_tells_its_own_values(pool: CondorPool) -> None:
    """By the name and by an attribute that HTCondor gives the slot; a running job's slots follow."""
    file = Path(f"{pool.root}/etc/drainwise/node.conf")
    text = file.read_text()
    kind = "kind = one\nhost = node1.*\nfeature = Arch=x86_64\nhs06 = 999\njobslots = {}\n"
    file.write_text(text + kind.format(3))
    try:
        found = {}
        for node in ("node1", "node2"):
            place = sandbox(pool, node, submit(pool, "exec sleep 900", node, cores=1)).outside
            found[node] = contents(f"{place}/.machinefeatures")
            if node == "node1":
                slots = Path(f"{place}/.machinefeatures/jobslots")
        assert (found["node1"]["hs06"], found["node1"]["jobslots"]) == ("999\n", "3\n")
        assert (found["node2"]["hs06"], found["node2"]["jobslots"]) == ("240.5\n", "24\n")
        file.write_text(text + kind.format(2))
        pool.wait_for(lambda: slots.read_text() == "2\n", WAIT_SECS, "the slots that the site says by now")
    finally:
        file.write_text(text)


def test_a_planned_shutdown_reaches_running_jobs_and_goes(pool: CondorPool) -> None:
    """Both shutdown files, and a shorter lease without an order to drain; all gone when it is withdrawn."""
    cluster = submit(pool, "exec sleep 900", "node1", cores=1)
    place = sandbox(pool, "node1", cluster).outside
    when, file = int(time.time()) + 3600, f"{pool.root}/var/lib/drainwise/shutdowntime"

    def told() -> dict[str, str]:
        names = (".machinefeatures/shutdowntime", ".jobfeatures/shutdowntime_job", ".site.ad")
        found = {}
        for name in names:
            if os.path.exists(f"{place}/{name}"):
                with open(f"{place}/{name}", encoding="ascii") as stream:
                    found[name] = stream.read()
        return found

    assert told() == {}
    planned_shutdown.plan(file, when, int(time.time()), 0)
    try:
        pool.wait_for(lambda: len(told()) == 3, WAIT_SECS, "the planned shutdown in the job")
        assert told() == {
            ".machinefeatures/shutdowntime": f"{when}\n",
            ".jobfeatures/shutdowntime_job": f"{when}\n",
            ".site.ad": f"VACATE_DESIRED = False\nPAYLOAD_DEADLINE = {when}\n",
        }
    finally:
        planned_shutdown.cancel(file)
    pool.wait_for(lambda: not told(), WAIT_SECS, "the end of the planned shutdown")


# ---- the cron ----


def test_each_report_reaches_its_slot_alone(pool: CondorPool) -> None:
    """Two pilots of one user on a node, dynamic and static: each slot has its own pilot's word, no other has one."""
    clusters = {
        (node, n): submit_pilot(pool, node, 10 * i + n) for i, node in enumerate(("node1", "node2")) for n in (1, 2)
    }
    quiet = submit(pool, "exec sleep 900", "node2")
    for i, node in enumerate(("node1", "node2")):
        for n in (1, 2):
            slot = reporting_slot(pool, clusters[node, n])
            assert slot.integer("PilotPriorityFactor") == 10 * i + n
            assert slot.real("PilotUsedCpu") == 6.0
            assert slot.text("PilotReportStanding") == "fresh"
            assert slot["PilotCanPostponeLastJob"] is True
            first, last = (slot.integer(f"Pilot{name}ExpJobEnd") for name in ("First", "Last"))
            assert slot.text("PilotExpWasteCurve") == f"{first}:5400:60000,{last}:7200:41000"
            assert f"@{node}." in slot.text("Name")
    others = pool.slots("PilotHeartbeat =?= undefined", ["Name", "PilotCronHeartbeat", "PilotUsedCpu", "GlobalJobId"])
    names = {ad.text("Name") for ad in others}
    assert names == {"slot1@node1.pool.test", silent_slot(pool, quiet), "slot1@node3.pool.test"}
    assert [ad for ad in others if "PilotUsedCpu" in ad] == []
    assert len(pool.slots("PilotHeartbeat =!= undefined", ["Name"])) == 4


def silent_slot(pool: CondorPool, cluster: int) -> str:
    """The name of the slot of a running job that says nothing."""
    running(pool, cluster)
    slot = pool.wait_for(lambda: slot_of(pool, cluster), WAIT_SECS, f"the slot of {cluster}")
    return slot.text("Name") if slot else ""


def test_every_slot_has_the_nodes_heartbeat(pool: CondorPool) -> None:
    """Without a job, too: so a reader knows that silence is silence."""

    def beating() -> bool:
        now = time.time()
        slots = pool.slots(attributes=["Name", "PilotCronHeartbeat"])
        return len(slots) == 5 and all(now - float(str(ad.get("PilotCronHeartbeat", 0))) < 15 for ad in slots)

    pool.wait_for(beating, WAIT_SECS, "the heartbeat of all five slots")


def test_the_metrics_are_live(pool: CondorPool) -> None:
    """Between two queries the kill waste grows by the cores in use and the rest shrinks, without any new report.

    Soon after the start it grows by all cores: no more is lost than these times the run time.
    """
    cluster = submit_pilot(pool, "node1", 1)
    reporting_slot(pool, cluster)

    def metrics() -> tuple[float, float, list[float]]:
        asked = time.time()
        text = pool.run(["condor_status", "-constraint", "PilotHeartbeat > 0", "-af", *METRICS]).stdout
        return asked, time.time(), [float(word) for word in text.split()]

    asked, answered, first = metrics()
    pool.wait_for(lambda: time.time() > answered + 3, 10, "three seconds")
    asked_again, answered_again, second = metrics()
    least, most = asked_again - answered, answered_again - asked
    assert first[1] == pytest.approx(first[0], abs=1.5), "its two last ends are the same"
    for before, after, slow, fast in zip(first, second, (-1, -1, -2, 6), (-1, -1, -2, 8)):
        assert least - 1.5 <= (after - before) / slow and (after - before) / fast <= most + 1.5


def test_a_report_that_is_taken_away_is_withdrawn(pool: CondorPool) -> None:
    """While the job goes on: no attribute of the pilot is left on its slot."""
    cluster = submit_pilot(pool, "node2", 5)
    reporting_slot(pool, cluster)
    os.unlink(f"{sandbox(pool, 'node2', cluster).outside}/.pilot.ad")

    def silent() -> bool:
        slot = slot_of(pool, cluster)
        return slot is not None and not {name for name in slot if name.startswith("Pilot")} - {"PilotCronHeartbeat"}

    pool.wait_for(silent, WAIT_SECS, "the retraction")
    assert running(pool, cluster)


def test_the_next_job_in_a_slot_inherits_nothing(pool: CondorPool) -> None:
    """A static slot whose pilot reported is given to a job that says nothing."""
    clusters = [submit_pilot(pool, "node2", n) for n in (1, 2, 3)]
    slots = {cluster: reporting_slot(pool, cluster).text("Name") for cluster in clusters}
    pool.run(["condor_rm", str(clusters[0])])
    following = submit(pool, "exec sleep 900", "node2")
    running(pool, following)
    seen = []

    def watched() -> bool:
        slot = slot_of(pool, following)
        if slot is not None:
            seen.append(slot)
        return len(seen) >= 12

    pool.wait_for(watched, WAIT_SECS, "the slot of the following job")
    assert {slot.text("Name") for slot in seen} == {slots[clusters[0]]}
    assert [slot for slot in seen if "PilotHeartbeat" in slot or "PilotUsedCpu" in slot] == []
    assert reporting_slot(pool, clusters[1]).integer("PilotPriorityFactor") == 2


@pytest.mark.parametrize("node", ["node1", "node2"])
def test_a_jobs_directory_stays_closed(pool: CondorPool, node: str) -> None:
    """HTCondor's own user reads the report by its name and cannot list; bob can do neither."""
    cluster = submit_pilot(pool, node, 1)
    reporting_slot(pool, cluster)
    place = sandbox(pool, node, cluster).inside

    def works(user: str, *command: str) -> bool:
        return pool.run(command, user=user, node=node, check=False).returncode == 0

    assert works("condor", "cat", f"{place}/.pilot.ad")
    assert not works("condor", "ls", place)
    assert not works("condor", "touch", f"{place}/new")
    for path in (place, f"{place}/.jobfeatures", f"{place}/.pilot.ad"):
        assert not works("bob", "ls", path)
    assert not works("bob", "cat", f"{place}/.pilot.ad")
    assert works("alice", "ls", place)


# ---- what is broken on a node ----


def _no_settings(root: str) -> None:
    os.unlink(f"{root}{SICK.node_file}")


def _wrong_settings(root: str) -> None:
    with open(f"{root}{SICK.node_file}", "w", encoding="ascii") as stream:
        stream.write("hs06 = fast\n")


def _no_package(root: str) -> None:
    shutil.rmtree(f"{root}{SICK.library_dir}/drainwise")


def _half_a_package(root: str) -> None:
    for name in ("errors.py", "features/facts.py", "node/hook.py"):
        with open(f"{root}{SICK.library_dir}/drainwise/{name}", "w", encoding="ascii") as stream:
            stream.write("def broken(:\n")


@pytest.fixture
def mended(pool: CondorPool) -> Iterator[None]:
    """node3 is whole again afterwards."""
    yield
    shutil.rmtree(f"{pool.root}{SICK.library_dir}/drainwise", ignore_errors=True)
    pool.copy_in(PACKAGE, f"{SICK.library_dir}/drainwise")
    with tempfile.TemporaryDirectory() as tree:
        write_tree([file for file in render(SiteConfig(htcondor=SICK), "execute") if file.path == SICK.node_file], tree)
        pool.copy_in(f"{tree}{SICK.node_file}", SICK.node_file)


@pytest.mark.parametrize("fault", [_no_settings, _wrong_settings, _no_package, _half_a_package])
def test_jobs_run_on_a_broken_node(pool: CondorPool, mended: None, fault: Callable[[str], None]) -> None:
    """Settings or package missing or wrong: the job runs once, with its own environment."""
    fault(pool.root)
    more = 'environment = "A=1"\noutput = env.out'
    [job] = ended(pool, submit(pool, "/usr/bin/env -0; sleep 4", "node3", cores=1, more=more))
    assert job.integer("NumJobStarts") == 1
    found = variables(home(pool, "env.out"))
    assert found["A"] == "1"
    assert ("JOBFEATURES" in found) == (fault in (_no_settings, _wrong_settings))


# ---- many jobs ----


def test_short_jobs_are_neither_lost_nor_run_again(pool: CondorPool) -> None:
    """Sixty jobs of a second or two, that end while update hooks run: each starts once and completes."""
    script = "sleep 1.$((RANDOM % 10)); echo done >> out"
    cluster = submit(pool, script, "node1", cores=1, count=60, more="request_disk = 1MB")
    jobs = ended(pool, cluster, 60)
    assert {job.integer("NumJobStarts") for job in jobs} == {1}
    assert {job.integer("JobRunCount") for job in jobs} == {1}
    assert {job.integer("ExitCode") for job in jobs} == {0}
