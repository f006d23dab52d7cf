"""Installing on HTCondor nodes with a history: jobs run, hooks of the site's own are there, users have level WRITE.

Nothing is restarted that has jobs on it: features and view begin with a reconfig, orders with the next start of the
startd. node1 is a plain node; node2 has job hooks of its own.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from condor_jobs import scripted
from condor_pool import Ad, CondorPool
from drainwise.htcondor.setup.render import render
from drainwise.install.rendered_tree import RenderedFile, write_tree
from drainwise.siteconfig import HTCondorSection, SiteConfig
from scenario.condor_site import PACKAGE, place_tree

pytestmark = [pytest.mark.play, pytest.mark.in_turn("installing", "installing on pool")]
SITE = SiteConfig(
    htcondor=HTCondorSection(cron_period=1, slot_update_interval=1, update_interval=2, initial_update_interval=1)
)
SOON_VACATED = replace(SITE, htcondor=replace(SITE.htcondor, max_vacate_time=3))
HOOKS = "/usr/local/libexec/site"
CHAINED = replace(
    SITE,
    htcondor=replace(
        SITE.htcondor,
        hook_keyword="SITE",
        site_prepare_hook=f"{HOOKS}/prepare",
        site_update_hook=f"{HOOKS}/update",
        libexec_dir="/usr/libexec/chained",
    ),
)
OWN_HOOKS = f"""\
STARTER_JOB_HOOK_KEYWORD = SITE
SITE_HOOK_PREPARE_JOB = {HOOKS}/prepare
SITE_HOOK_PREPARE_JOB_BEFORE_TRANSFER = {HOOKS}/before
SITE_HOOK_UPDATE_JOB_INFO = {HOOKS}/update
"""
QUICK = "MASTER_BACKOFF_CONSTANT = 1\nPOLLING_INTERVAL = 1\n"
# As sites have them: one adds a variable to the environment and holds jobs, the others leave a trace.
PREPARE = """\
#!/bin/sh
ad=$(cat)
case "$ad" in *"HoldMe = true"*) echo 'HookStatusMessage = "the site says no"'; exit 3;; esac
pwd > $_CONDOR_SCRATCH_DIR/.site-prepare
old=$(printf '%s\\n' "$ad" | sed -n 's/^Environment = "\\(.*\\)"$/\\1/p')
printf 'Environment = "%s SITE_VARIABLE=1"\\n' "$old"
"""
BEFORE = "#!/bin/sh\ncat >/dev/null; touch $_CONDOR_SCRATCH_DIR/.site-before\n"
UPDATE = "#!/bin/sh\ngrep GlobalJobId > $_CONDOR_SCRATCH_DIR/.new && cd $_CONDOR_SCRATCH_DIR && mv .new .site-update\n"
# Prints the pilots and notices of a snapshot; arguments: a slot whose pilot is asked, the seconds of its deadline;
# 0: its order is withdrawn.
LOOK = """
import json, sys, time
from drainwise.facts.errors import PoolError
from drainwise.htcondor.pool.pool import HTCondorPool
pool, answer = HTCondorPool(), ""
seen = pool.snapshot(int(time.time()))
for pilot in seen.pilots:
    if pilot.name in sys.argv[1:]:
        try:
            if sys.argv[2] == "0":
                pool.withdraw_order(pilot, "test")
            else:
                pool.give_order(pilot, int(time.time()) + int(sys.argv[2]), "test")
            answer = "asked"
        except PoolError as fault:
            answer = str(fault)
pilots = {one.name: [one.run, one.cannot, one.deadline, one.vacate] for one in seen.pilots}
print(json.dumps([pilots, seen.notices, answer]))
"""
HAS_ORDERS = """
import sys
sys.path.append("/usr/share/drainwise")
from drainwise.install.removal import may_have_orders
print(may_have_orders())
"""
Look = tuple[dict[str, list[object]], list[str], str]
WAIT_SECS = 60.0


@pytest.fixture(scope="module")
def pool(release: str) -> Iterator[CondorPool]:
    """Two nodes as they were before anybody thought of drainwise."""
    with CondorPool(nodes=2, cpus=8, release=release, config={"execute": QUICK}) as running:
        texts = {"prepare": PREPARE, "before": BEFORE, "update": UPDATE}
        write_tree([RenderedFile(f"{HOOKS}/{name}", text, 0o755) for name, text in texts.items()], running.root)
        running.configure("node2", "40-site.conf", OWN_HOOKS)
        yield running


@pytest.fixture(scope="module")
def old_run(pool: CondorPool) -> str:
    """The run of a job on node1 that was there before; drainwise is then installed on both nodes by a reconfig."""
    cluster = submit(pool, "exec sleep 3000", "node1")
    running(pool, cluster)
    run = run_in(pool, "slot1_1@node1.pool.test")
    pool.copy_in(PACKAGE, "/usr/share/drainwise/drainwise")
    os.makedirs(f"{pool.root}/var/lib/drainwise")
    install(pool, SITE, "node1")
    install(pool, SITE, "node2")
    pool.wait_for(lambda: len(pool.slots("PilotOrdersSince isnt undefined", ["Name"])) >= 3, WAIT_SECS, "both crons")
    return run


def install(pool: CondorPool, site: SiteConfig, node: str) -> None:
    """Put the rendered files on a node, and have it read its configuration again."""
    with tempfile.TemporaryDirectory() as place:
        write_tree(render(site, "execute"), place)
        place_tree(pool, place, (node,))
    pool.reconfigure(node)


def submit(pool: CondorPool, script: str, node: str, more: str = "", user: str = "alice") -> int:
    """Submit a shell script (without single quotes) to one node; returns the cluster."""
    own = ('environment = "MINE=1"', "output = out.$(Cluster)", more)
    return pool.submit(scripted(script, node, *own, cores=2), user=user)


def running(pool: CondorPool, cluster: int) -> None:
    """Wait until the collector shows that a job runs."""
    here = f'regexp("#{cluster}[.]0#", GlobalJobId ?: "") && Activity == "Busy"'
    pool.wait_for(lambda: pool.slots(here, ["Name"]), WAIT_SECS, f"the start of {cluster}")


def ended(pool: CondorPool, cluster: int) -> tuple[str, int]:
    """The output of a job when it has ended, and how often it was started."""

    def found() -> list[Ad]:
        return pool.history(f"ClusterId == {cluster} && JobStatus == 4", ["NumJobStarts"])

    [job] = pool.wait_for(found, WAIT_SECS, f"the end of {cluster}") or []
    with open(f"{pool.root}/home/alice/out.{cluster}", encoding="ascii") as stream:
        return stream.read(), job.integer("NumJobStarts")


def run_in(pool: CondorPool, slot: str) -> str:
    """The run in a slot that is busy or retires, "" when there is none."""
    ads = pool.slots(f'Name == "{slot}" && State == "Claimed"', ["GlobalJobId", "JobStart"])
    return f"{ads[0]['GlobalJobId']}@{ads[0]['JobStart']}" if ads and "JobStart" in ads[0] else ""


def look(pool: CondorPool, *words: str) -> Look:
    """What the agent sees; it asks a slot's pilot when `words` say so."""
    plugins = os.path.dirname(PACKAGE)
    ran = pool.run_outside([sys.executable, "-B", "-c", LOOK, *words], environment={"PYTHONPATH": plugins})
    pilots, notices, answer = json.loads(ran.stdout)
    return pilots, notices, answer


def push(pool: CondorPool, text: str, node: str) -> str:
    """alice sets attributes of a node's slots; what she is told."""
    write_tree([RenderedFile("/tmp/pushed", text)], pool.root)
    ran = pool.run(["condor_update_machine_ad", "-name", f"{node}.pool.test", "/tmp/pushed"], user="alice", check=False)
    return ran.stdout + ran.stderr


# ---- what an installation does to the jobs that run ----


def test_a_reconfig_installs_features_and_view_and_no_orders(pool: CondorPool, old_run: str) -> None:
    """The job goes on, the next one has its features, and the agent knows which nodes take no orders yet."""
    text, starts = ended(pool, submit(pool, "cat $JOBFEATURES/allocated_cpu", "node1"))
    assert (text, starts) == ("2\n", 1)
    assert run_in(pool, "slot1_1@node1.pool.test") == old_run
    pilots, notices, _ = look(pool)
    run, cannot, _, _ = pilots["slot1_1@node1.pool.test"]
    assert (run, cannot) == (old_run, "it started before its node had the hooks by which an order reaches it")
    [restart] = [one for one in notices if "condor_restart -peaceful -startd" in one]
    assert restart.startswith("1 node takes no orders until the startd is restarted")
    assert "node1.pool.test" in restart


def test_a_node_that_gets_an_order_too_early_says_why_it_refuses(pool: CondorPool, old_run: str) -> None:
    """Nothing happens to the pilot."""
    _, _, answer = look(pool, "slot1_1@node1.pool.test", "600")
    assert "ENABLE_RUNTIME_CONFIG was not yet true when its startd started" in answer
    assert run_in(pool, "slot1_1@node1.pool.test") == old_run


def test_a_user_cannot_set_attributes_of_the_slots(pool: CondorPool, old_run: str) -> None:
    """Although the pool gives WRITE to all users: the drop-in keeps it from the startds."""
    assert "DENIED" in push(pool, "PilotReclaimDeadline = 12345\n", "node1")
    assert run_in(pool, "slot1_1@node1.pool.test") == old_run


def test_a_claim_keeps_its_vacate_time_and_says_so(pool: CondorPool, old_run: str) -> None:
    """The node's MachineMaxVacateTime is lowered; the job that runs would still get SIGTERM ten minutes early."""
    assert old_run
    running(pool, submit(pool, "exec sleep 3000", "node1"))
    install(pool, SOON_VACATED, "node1")
    shown = 'Name == "slot1_2@node1.pool.test" && PilotVacateTime == 600'
    pool.wait_for(lambda: pool.slots(shown, ["Name"]), WAIT_SECS, "the claim's vacate time")
    pilots, _, _ = look(pool)
    assert pilots["slot1_2@node1.pool.test"][3] == 600


def test_a_peaceful_restart_ends_no_job_and_orders_begin(pool: CondorPool, old_run: str) -> None:
    """The startd waits for its last job, starts again, and takes orders from then on."""
    take_orders(pool, old_run)
    pilots, notices, _ = look(pool)
    assert pilots["slot1_1@node1.pool.test"][1] == ""
    assert pilots["slot1_1@node1.pool.test"][3] is None
    assert not [one for one in notices if "until the startd is restarted" in one]


def take_orders(pool: CondorPool, old_run: str) -> None:
    """Restart the startd of node1 peacefully and start a pilot there, unless that was done: no job ends by it."""
    if run_in(pool, "slot1_1@node1.pool.test") not in {"", old_run}:
        return
    install(pool, SOON_VACATED, "node1")
    pool.run(["condor_rm", "-all"], check=False)  # it fails when a job ends at the same time
    pool.wait_for(lambda: not run_in(pool, "slot1_1@node1.pool.test"), WAIT_SECS, "the end of the old run")
    Path(f"{pool.root}/home/alice/end").unlink(missing_ok=True)
    told = "$JOBFEATURES/shutdowntime_job $MACHINEFEATURES/shutdowntime .site.ad"
    last = submit(
        pool, f"until [ -e /home/alice/end ]; do sleep 0.2; done; ls -d {told} 2>/dev/null; echo done", "node1"
    )
    running(pool, last)
    before = started(pool, "node1")
    pool.run(["condor_restart", "-peaceful", "-startd"], node="node1")
    endless = 'Activity == "Retiring" && RetirementTimeRemaining > 2000000000'
    pool.wait_for(lambda: pool.slots(endless, ["Name"]), WAIT_SECS, "a slot that waits for its job")
    hooks = hooks_run(pool)
    pool.wait_for(lambda: hooks_run(pool) >= hooks + 3, WAIT_SECS, "update hooks that have seen that")
    write_tree([RenderedFile("/home/alice/end", "")], pool.root)
    assert ended(pool, last) == ("done\n", 1), "nobody told the pilot to leave"
    pool.wait_for(lambda: started(pool, "node1") > before, WAIT_SECS, "the startd's next start")
    running(pool, submit(pool, "exec sleep 3000", "node1"))
    ready = 'Name == "slot1_1@node1.pool.test" && PilotOrdersSince isnt undefined'
    pool.wait_for(lambda: pool.slots(ready, ["Name"]), WAIT_SECS, "the cron")


def hooks_run(pool: CondorPool) -> int:
    """How many update hooks have begun on node1."""
    logs = Path(f"{pool.root}{pool.node('node1').log_dir}").glob("StarterLog.slot1_*")
    return sum(log.read_text().count("HOOK_UPDATE_JOB_INFO (") for log in logs)


def started(pool: CondorPool, node: str) -> int:
    """When the startd of a node started, 0 while the collector does not know it."""
    ads = pool.slots(f'Name == "slot1@{node}.pool.test"', ["DaemonStartTime"])
    return ads[0].integer("DaemonStartTime") if ads else 0


# ---- whose word counts ----


def test_attributes_that_a_user_sets_neither_give_nor_hide_an_order(pool: CondorPool, old_run: str) -> None:
    """The site gives WRITE at its startds to all users; its own list is respected, and pushed orders are not obeyed."""
    take_orders(pool, old_run)
    slot = "slot1_1@node1.pool.test"
    mine = pool.wait_for(lambda: run_in(pool, slot), WAIT_SECS, "a pilot")
    assert mine not in {"", old_run}
    pool.configure("node1", "40-open.conf", "ALLOW_WRITE_STARTD = *@pool.test\n")
    pool.reconfigure("node1")
    try:
        soon = int(time.time()) + 3
        forged = f'PilotReclaimOrders = "{mine}={soon}"\nPilotReclaimDeadline = {soon}\nPilotReclaimWithdrawn = false\n'
        assert push(pool, forged, "node1") == ""
        shown = f'Name == "{slot}" && PilotReclaimDeadline == {soon}'
        pool.wait_for(lambda: pool.slots(shown, ["Name"]), WAIT_SECS, "the forged order")
        pool.wait_for(lambda: time.time() > soon + 3, WAIT_SECS, "the forged deadline, and a look of the startd's")
        assert run_in(pool, slot) == mine
        pilots, notices, _ = look(pool)
        assert pilots[slot][:3] == [mine, "", None], "what it shows is no order"
        assert any(one.startswith("node1.pool.test shows orders that were never given") for one in notices)

        job, _, start = mine.rpartition("@")
        other = f'GlobalJobId = "x{job}"\nJobStart = {int(start) - 9}\n'
        push(pool, f'PilotReclaimOrders = ""\nPilotReclaimDeadline = 0\nPilotReclaimWithdrawn = true\n{other}', "node1")
        assert look(pool, slot, "8")[2] == "asked"
        pool.wait_for(lambda: run_in(pool, slot) != mine, WAIT_SECS, "the end of the run")
    finally:
        pool.configure("node1", "40-open.conf", "")
        pool.run(["condor_rm", "-all"], check=False)
        pool.reconfigure("node1")


# ---- hooks ----


def test_hooks_that_have_gone_stop_no_job(pool: CondorPool, old_run: str) -> None:
    """With their directory gone, jobs start once and end, without features; back, they have them; no reconfig."""
    assert old_run
    directory, away = f"{pool.root}{SITE.htcondor.libexec_dir}", f"{pool.root}/usr/libexec/away"
    os.rename(directory, away)
    try:
        assert ended(pool, submit(pool, "echo $JOBFEATURES", "node1")) == ("\n", 1)
    finally:
        os.rename(away, directory)
    text, starts = ended(pool, submit(pool, "echo $JOBFEATURES", "node1"))
    assert (text.endswith("/.jobfeatures\n"), starts) == (True, 1)


def test_hooks_of_the_sites_own_stay_and_the_agent_knows(pool: CondorPool, old_run: str) -> None:
    """A drop-in that does not know of them does not switch them off: ours are not used there, and nobody is asked."""
    assert old_run
    script = "echo $SITE_VARIABLE-$JOBFEATURES; ls -d .site-*; sleep 3000"
    cluster = submit(pool, script, "node2")
    running(pool, cluster)
    pilots, notices, _ = look(pool)
    assert "job hooks of drainwise are not in force" in str(pilots["slot1_1@node2.pool.test"][1])
    assert any("node2.pool.test" in one and "not in force" in one for one in notices)
    pool.run(["condor_rm", str(cluster)])
    text, _ = ended(pool, submit(pool, "echo $SITE_VARIABLE-$JOBFEATURES; ls -d .site-b* .site-p*", "node2"))
    assert text == "1-\n.site-before\n.site-prepare\n"


def test_the_sites_own_hooks_are_called_by_ours(pool: CondorPool, old_run: str) -> None:
    """Both run, in the job's directory; the site's one sees the job's ad and our variables, and may hold the job."""
    assert old_run
    install(pool, CHAINED, "node2")
    wait = "until [ -e .site-update ]; do sleep 0.2; done"
    script = (
        f"{wait}; echo $MINE $SITE_VARIABLE $JOBFEATURES; cat .site-prepare; ls -d .site-b*; cut -c-13 .site-update"
    )
    text, starts = ended(pool, submit(pool, script, "node2"))
    variables, directory, *traces = text.splitlines()
    assert (variables, starts) == (f"1 1 {directory}/.jobfeatures", 1)
    assert traces == [".site-before", "GlobalJobId ="]

    cluster = submit(pool, "echo never", "node2", more="+HoldMe = true")
    held = f"ClusterId == {cluster} && JobStatus == 5"
    [job] = pool.wait_for(lambda: pool.queue(held, ["HoldReason", "HoldReasonSubCode"]), WAIT_SECS, "the held job")
    assert "the site says no" in job.text("HoldReason")
    assert job.integer("HoldReasonSubCode") == 3
    pool.run(["condor_rm", str(cluster)])


# ---- and out again ----


def test_taking_it_out_again_ends_no_job(pool: CondorPool, old_run: str) -> None:
    """The drop-in goes, then a reconfig: the jobs that run go on, the next one has no features.

    So do those that have an order, and whose order was withdrawn, through every later reconfig. A drain ends these two,
    since the node gives its jobs no retirement of its own.
    """
    take_orders(pool, old_run)
    pool.run(["condor_rm", "-all"], check=False)
    pool.wait_for(lambda: not pool.queue() and not retiring(pool), WAIT_SECS, "an empty node")
    waits = "echo $JOBFEATURES; until [ -e /home/alice/{} ]; do sleep 0.2; done"
    clusters = [submit(pool, waits.format(name), "node1") for name in ("go", "never", "never")]
    free, ordered, withdrawn = [pool.wait_for(partial(slot_of, pool, one), WAIT_SECS, "a job") for one in clusters]
    assert look(pool, ordered, "3000")[2] == look(pool, withdrawn, "3000")[2] == "asked"
    assert look(pool, withdrawn, "0")[2] == "asked"
    known = [pool.run(["/usr/bin/python3", "-I", "-c", HAS_ORDERS], node=name).stdout for name in ("node1", "node2")]
    assert known == ["True\n", "False\n"], "a removal takes the file of node2 away"
    runs = {slot: run_in(pool, slot) for slot in (free, ordered, withdrawn)}
    assert all(runs.values()) and retiring(pool) == {ordered, withdrawn}

    os.unlink(f"{pool.root}{pool.node('node1').config_dir}/config.d/50-drainwise-execute.conf")
    for _ in range(2):
        pool.reconfigure("node1")
        assert ended(pool, submit(pool, "echo $JOBFEATURES", "node1")) == ("\n", 1)
        assert {slot: run_in(pool, slot) for slot in runs} == runs
    endless = 'Activity == "Retiring" && PilotReclaimOrders is undefined && RetirementTimeRemaining > 300000000'
    pool.wait_for(lambda: len(pool.slots(endless, ["Name"])) == 2, WAIT_SECS, "slots that go on")
    write_tree([RenderedFile("/home/alice/go", "")], pool.root)
    text, starts = ended(pool, clusters[0])
    assert (text.endswith("/.jobfeatures\n"), starts) == (True, 1)
    pool.run(["condor_drain", pool.node("node1").host])
    pool.wait_for(lambda: not retiring(pool) and not run_in(pool, ordered), WAIT_SECS, "the end of both by the drain")


def slot_of(pool: CondorPool, cluster: int) -> str:
    """The slot in which a job runs."""
    ads = pool.slots(f'regexp("#{cluster}[.]0#", GlobalJobId ?: "") && Activity == "Busy"', ["Name"])
    return ads[0].text("Name") if ads else ""


def retiring(pool: CondorPool) -> set[str]:
    """The slots that retire."""
    return {ad.text("Name") for ad in pool.slots('Activity == "Retiring"', ["Name"])}
