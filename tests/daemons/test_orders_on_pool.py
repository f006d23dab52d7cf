"""Orders on a real pool: exactly the run that was ordered goes, by its deadline, and only an administrator can ask."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import drainwise
from condor_jobs import described, node_config
from condor_pool import CondorPool
from drainwise.siteconfig import load

PLUGINS = str(Path(drainwise.__file__).parents[1])
ENVIRONMENT = {"PYTHONPATH": PLUGINS, "PYTHONDONTWRITEBYTECODE": "1"}
VACATE_SECONDS = 3
GRACE = 40

QUOTAS = """\
GROUP_NAMES = group_alice, group_bob
GROUP_QUOTA_group_alice = 16
GROUP_QUOTA_group_bob = 16
GROUP_ACCEPT_SURPLUS = True
"""
SITE = f"""\
[htcondor]
max_vacate_time = {VACATE_SECONDS}s
retirement = 0s
update_interval = 10s
slot_update_interval = 3s
[reclaim]
grace = 1m
margin = {VACATE_SECONDS}s
min_age = 0s
"""
# Asks the pilot in a slot to leave; prints what came of it.
# Arguments: slot, deadline, run ("" = the one that is there), seconds for the order.
ASK = """
import dataclasses, json, sys, time
from drainwise.facts.errors import PoolError
from drainwise.htcondor.pool.pool import HTCondorPool
pool = HTCondorPool(order_seconds=float(sys.argv[4]))
[pilot] = [one for one in pool.snapshot(int(time.time())).pilots if one.name == sys.argv[1]]
pilot = dataclasses.replace(pilot, run=sys.argv[3] or pilot.run)
try:
    pool.give_order(pilot, int(sys.argv[2]), "test")
except PoolError as fault:
    print(json.dumps([type(fault).__name__, str(fault)]))
else:
    print(json.dumps(["ordered", pilot.run]))
"""


@pytest.fixture(scope="module")
def site_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("site") / "site.ini"
    path.write_text(f"{SITE}[agent]\nstate_dir = {path.parent}\n")
    return str(path)


@pytest.fixture(scope="module")
def full_pool(release: str, site_file: str) -> Iterator[CondorPool]:
    """Two nodes of 16 cores that take orders."""
    # 25.14 leaves the claim of a run that left by itself idle until it is so old: by default 20 minutes.
    own = "\nCLAIM_WORKLIFETIME = 0\n"
    config = {"execute": node_config(load(site_file)) + own, "central": QUOTAS}
    with CondorPool(nodes=2, cpus=16, release=release, config=config) as pool:
        yield pool


@pytest.fixture
def pool(full_pool: CondorPool) -> CondorPool:
    """The same, with four pilots of alice's that never end, none ordered: those of the last test, or new ones."""
    if deadlines(full_pool) or len(runs(full_pool)) != 4 or len(full_pool.queue()) != 4:
        full_pool.run(["condor_rm", "-all"], check=False)  # it fails when there is no job
        full_pool.wait_for(lambda: not full_pool.queue() and not runs(full_pool), 60, "an empty pool")
        submit(full_pool, "alice", 3000, count=4)
        full_pool.wait_for(lambda: len(runs(full_pool)) == 4, 90, "four running pilots")
    return full_pool


def submit(pool: CondorPool, user: str, seconds: int, *more: str, count: int = 1) -> None:
    pool.submit(described(seconds, f"accounting_group = group_{user}", *more, count=count), user=user)


def runs(pool: CondorPool) -> dict[str, str]:
    """Slot → the run in it, of busy and retiring slots."""
    names = ["Name", "GlobalJobId", "JobStart"]
    ads = pool.slots('Activity == "Busy" || Activity == "Retiring"', names)
    return {ad.text("Name"): f"{ad['GlobalJobId']}@{ad['JobStart']}" for ad in ads if "JobStart" in ad}


def retiring(pool: CondorPool) -> list[str]:
    return [ad.text("Name") for ad in pool.slots('Activity == "Retiring"', ["Name"])]


def deadlines(pool: CondorPool) -> dict[str, int]:
    """Slot → deadline, of slots with an order, as any user's condor_status evaluates it."""
    rows = pool.run(["condor_status", "-af", "Name", "PilotReclaimDeadline"]).stdout.split()
    return {name: int(deadline) for name, deadline in zip(rows[::2], rows[1::2]) if deadline != "undefined"}


def orders(pool: CondorPool) -> list[str]:
    """Each node's list of orders, as the node has it."""
    asked = ["condor_config_val", "-startd", "PILOT_RECLAIM", "-name"]
    return [pool.run([*asked, pool.node(name).host], check=False).stdout.strip() for name in pool.node_names]


def asking(slot: str, deadline: int, run: str = "", seconds: float = 20) -> list[str]:
    return [sys.executable, "-c", ASK, slot, str(deadline), run, str(seconds)]


def ask(pool: CondorPool, slot: str, deadline: int, run: str = "", **options: str) -> tuple[str, str]:
    answer = pool.run_outside(asking(slot, deadline, run), environment=ENVIRONMENT, **options)  # type: ignore[arg-type]
    outcome, detail = json.loads(answer.stdout)
    return outcome, detail


def drainwise_command(pool: CondorPool, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "drainwise", *words]
    return pool.run_outside(argv, environment=ENVIRONMENT, check=False)


def daemon(pool: CondorPool, name: str, node: str) -> str:
    """The number, inside the pool, of a daemon of one machine."""
    rows = pool.run(["ps", "-eo", "pid=,args="]).stdout.splitlines()
    for pid, _, args in (row.strip().partition(" ") for row in rows):
        if args.split()[0].endswith(name) and host_name(pool, pid) == node:
            return pid
    raise AssertionError(f"no {name} on {node}:\n" + "\n".join(rows))


def host_name(pool: CondorPool, pid: str) -> str:
    """The name of the machine that a process of the pool runs on."""
    return pool.run(["nsenter", f"--uts=/proc/{pid}/ns/uts", "hostname"]).stdout.strip().partition(".")[0]


def test_a_plain_user_is_refused_and_nothing_changes(pool: CondorPool) -> None:
    """alice may read the pool, and run jobs in it, but with her own token she asks nobody to go."""
    before, slot = orders(pool), min(runs(pool))
    outcome, detail = ask(pool, slot, int(time.time()) + GRACE, identity="alice@pool.test")
    assert outcome == "RightsRefused"
    assert "ALLOW_ADMINISTRATOR" in detail
    assert orders(pool) == before
    assert (deadlines(pool), retiring(pool)) == ({}, [])


def test_a_run_that_is_not_there_any_more_is_not_ordered(pool: CondorPool) -> None:
    """HOSTILE 48, 50: the slot has another run by now, or the same job another start."""
    before, (slot, run) = orders(pool), min(runs(pool).items())
    ended = run[:-1] + str((int(run[-1]) + 1) % 10)
    outcome, detail = ask(pool, slot, int(time.time()) + GRACE, ended)
    assert (outcome, "does not run on" in detail) == ("RunEnded", True)
    assert orders(pool) == before


def test_a_node_that_does_not_answer_holds_nobody(pool: CondorPool) -> None:
    """Its startd is stopped: the order fails in the time that it was given."""
    slot = next(slot for slot in sorted(runs(pool)) if slot.endswith("@node1.pool.test"))
    startd = daemon(pool, "condor_startd", "node1")
    pool.run(["kill", "-STOP", startd])
    try:
        answer = pool.run_outside(asking(slot, int(time.time()) + 60, seconds=2), environment=ENVIRONMENT)
        assert json.loads(answer.stdout) == ["PoolUnreachable", "node node1.pool.test did not answer within 2 s"]
    finally:
        pool.run(["kill", "-CONT", startd])


def test_a_collector_that_does_not_answer_is_one_line_and_no_act(pool: CondorPool, site_file: str) -> None:
    """HOSTILE 54: exit code 1."""
    before, collector = orders(pool), daemon(pool, "condor_collector", "central")
    pool.run(["kill", "-STOP", collector])
    try:
        ended = drainwise_command(pool, "reclaim", "--once", "--act", "--site", site_file)
        assert (ended.returncode, ended.stdout) == (1, "")
        assert ended.stderr == "drainwise: the collector did not answer within 8 s\n"
    finally:
        pool.run(["kill", "-CONT", collector])
    assert pool.wait_for(lambda: orders(pool), 30, "an answer") == before


def test_a_collector_that_is_not_there_is_one_line(pool: CondorPool) -> None:
    ended = pool.run_outside(
        [sys.executable, "-m", "drainwise", "status"],
        environment={**ENVIRONMENT, "_CONDOR_COLLECTOR_HOST": "127.0.0.10:9"},
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("drainwise: the collector (COLLECTOR_HOST of HTCondor's configuration)")
    assert ended.stderr.count("\n") == 1


@pytest.mark.play
def test_exactly_the_run_that_was_ordered_goes_by_its_deadline(pool: CondorPool) -> None:
    """It retires without a signal, is gone by the deadline, its next run stays, and nobody else notices."""
    before = runs(pool)
    slot = min(before)
    deadline = int(time.time()) + GRACE
    assert ask(pool, slot, deadline) == ("ordered", before[slot])
    pool.wait_for(lambda: retiring(pool) == [slot], GRACE - VACATE_SECONDS, "one slot that retires")
    assert deadlines(pool) == {slot: deadline}
    assert runs(pool) == before, "nobody was ended yet"

    pool.wait_for(lambda: before[slot] not in runs(pool).values(), GRACE + 10, "the end of the run")
    ended, *_ = pool.wait_for(lambda: endings(pool, before[slot]), 20, "the record of it")[before[slot]]
    assert isinstance(ended, int) and ended <= deadline + 15
    again = pool.wait_for(lambda: set(runs(pool).values()) - set(before.values()), 60, "the next run of the same job")
    [next_run] = again
    assert next_run.partition("@")[0] == before[slot].partition("@")[0], "the same job, another start"

    later = time.time() + 10
    pool.wait_for(lambda: time.time() > later, 15, "ten seconds of the next run")
    assert deadlines(pool) == {}
    assert set(runs(pool).values()) == {next_run} | {run for name, run in before.items() if name != slot}


def test_an_order_reaches_pilots_of_an_access_point_with_other_signs_in_its_name(release: str, site_file: str) -> None:
    """HTCondor lets it be called so; in a pattern a plus sign would mean something else."""
    config = {"execute": node_config(load(site_file)), "central": QUOTAS, "access": "SCHEDD_NAME = ce+1~a\n"}
    with CondorPool(nodes=1, cpus=16, release=release, config=config) as other:
        submit(other, "alice", 3000, count=2)
        other.wait_for(lambda: len(runs(other)) == 2, 90, "two running pilots")
        slot, run = min(runs(other).items())
        assert run.startswith("ce+1~a")
        deadline = int(time.time()) + GRACE
        assert ask(other, slot, deadline) == ("ordered", run)
        other.wait_for(lambda: retiring(other) == [slot], GRACE - VACATE_SECONDS, "one slot that retires")
        assert deadlines(other) == {slot: deadline}


def test_a_deadline_is_shortened_and_never_put_off(pool: CondorPool) -> None:
    slot, run = min(runs(pool).items())
    now = int(time.time())
    assert ask(pool, slot, now + 600) == ("ordered", run)
    assert ask(pool, slot, now + 600) == ("ordered", run), "the same once more is no fault"
    assert ask(pool, slot, now + 700)[0] == "ActionRefused"
    assert ask(pool, slot, now + 500) == ("ordered", run)
    pool.wait_for(lambda: deadlines(pool) == {slot: now + 500}, 20, "the shorter deadline")


def test_two_agents_at_once_lose_no_order(pool: CondorPool) -> None:
    """Both read, change and write the same node's list; each reads back what became of it."""
    here = sorted(slot for slot in runs(pool) if slot.endswith("@node1.pool.test"))
    deadline = int(time.time()) + 600
    environment = {**pool.outside_env(), **ENVIRONMENT}
    agents = [
        subprocess.Popen(
            ["nsenter", f"--target={pool.pid}", "--net", "--", *asking(slot, deadline, seconds=40)],
            env=environment,
            stdout=subprocess.PIPE,
        )
        for slot in here
    ]
    outcomes = [json.loads(agent.communicate(timeout=60)[0])[0] for agent in agents]
    assert outcomes == ["ordered", "ordered"]
    pool.wait_for(lambda: deadlines(pool) == dict.fromkeys(here, deadline), 20, "both deadlines")


# Stands still between reading a node's list and writing it, as on a busy machine, until the file in DONE is there.
STALLED = """
import os, time
from drainwise.htcondor.pool import knobs
with_order, stalls = knobs.with_order, iter([True])
def late(*words):
    if next(stalls, False):
        open(os.environ["DONE"] + ".begun", "w").close()
        while not os.path.exists(os.environ["DONE"]):
            time.sleep(0.05)
    return with_order(*words)
knobs.with_order = late
"""


def test_an_agent_that_stands_still_undoes_no_order_of_another(pool: CondorPool, tmp_path: Path) -> None:
    """It has read the node's list before the other wrote, and reads it again before it writes."""
    one, other = sorted(slot for slot in runs(pool) if slot.endswith("@node1.pool.test"))
    deadline, done = int(time.time()) + 600, tmp_path / "done"
    environment = {**pool.outside_env(), **ENVIRONMENT, "DONE": str(done)}
    python, option, code, *words = asking(one, deadline, seconds=40)
    argv = ["nsenter", f"--target={pool.pid}", "--net", "--", python, option, STALLED + code, *words]
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE) as stalled:
        pool.wait_for(lambda: done.with_suffix(".begun").exists(), 30, "the first to have read the list")
        assert ask(pool, other, deadline)[0] == "ordered"
        done.touch()
        assert json.loads(stalled.communicate(timeout=60)[0])[0] == "ordered"
    pool.wait_for(lambda: deadlines(pool) == {one: deadline, other: deadline}, 20, "both deadlines")


def test_one_cycle_asks_what_is_owed_and_the_next_one_nothing(pool: CondorPool, site_file: str, tmp_path: Path) -> None:
    """bob is owed 8 of his 16 cores: one pilot of alice's retires; a second cycle at once adds none."""
    submit(pool, "bob", 1)

    def planned() -> list[str]:
        shown = json.loads(drainwise_command(pool, "plan", "--json", "--site", site_file).stdout)
        return [order["name"] for user in shown["users"] for order in user["orders"]]

    [slot] = pool.wait_for(planned, 60, "a plan")
    journal = tmp_path / "journal"
    cycle = ("reclaim", "--once", "--act", "--site", site_file, "--journal", str(journal))
    first = drainwise_command(pool, *cycle)
    assert first.returncode == 0, first.stderr
    happened = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [one["event"] for one in happened] == ["pilots", "need", "decision", "demand", "order"]
    assert happened[-1]["outcome"] == "done"
    second = drainwise_command(pool, *cycle)
    assert (second.returncode, second.stderr) == (0, "")
    pool.wait_for(lambda: list(deadlines(pool)) == [slot], 20, "one deadline")
    assert planned() == []


# ---- withdrawn, and how runs end ----

# Takes the order to the pilot in a slot back; prints what came of it.
TAKE_BACK = """
import json, sys, time
from drainwise.facts.errors import PoolError
from drainwise.htcondor.pool.pool import HTCondorPool
pool = HTCondorPool()
[pilot] = [one for one in pool.snapshot(int(time.time())).pilots if one.name == sys.argv[1]]
try:
    pool.withdraw_order(pilot, "bob has left")
except PoolError as fault:
    print(json.dumps([type(fault).__name__, str(fault)]))
else:
    [after] = [one for one in pool.snapshot(int(time.time())).pilots if one.name == sys.argv[1]]
    print(json.dumps(["withdrawn", [after.run, after.deadline, after.leaving, after.lease_end]]))
"""
# Prints the endings of the runs in its arguments.
ENDINGS = """
import dataclasses, json, sys, time
from drainwise.htcondor.pool.pool import HTCondorPool
found = HTCondorPool().endings(sys.argv[1:], int(time.time()))
print(json.dumps({run: dataclasses.astuple(ending)[1:] for run, ending in found.items()}))
"""


# Prints the cores of an account's jobs that began on a node since a time and ended.
ENDED = """
import sys, time
from drainwise.htcondor.pool.pool import HTCondorPool
account, node, since = sys.argv[1:]
print(HTCondorPool().cores_of_ended(account, [node], int(since), int(time.time())))
"""


def cores_of_ended(pool: CondorPool, account: str, node: str, since: int) -> float:
    command = [sys.executable, "-c", ENDED, account, node, str(since)]
    return float(pool.run_outside(command, environment=ENVIRONMENT).stdout)


def withdraw_order(pool: CondorPool, slot: str, **options: str) -> tuple[str, object]:
    command = [sys.executable, "-c", TAKE_BACK, slot]
    outcome, detail = json.loads(pool.run_outside(command, environment=ENVIRONMENT, **options).stdout)  # type: ignore[arg-type]
    return outcome, detail


def endings(pool: CondorPool, *names: str) -> dict[str, list[object]]:
    answer = pool.run_outside([sys.executable, "-c", ENDINGS, *names], environment=ENVIRONMENT)
    found: dict[str, list[object]] = json.loads(answer.stdout)
    return found


@pytest.mark.play
def test_an_order_that_is_withdrawn_leaves_the_run_alone(pool: CondorPool) -> None:
    """It retires already and goes on over its deadline; ordered anew it goes, and the node's records say so."""
    before = runs(pool)
    slot, other = sorted(before)[:2]
    deadline = int(time.time()) + 40
    assert ask(pool, slot, deadline) == ("ordered", before[slot])
    assert deadlines(pool) == {slot: deadline}, "the collector knows it when the order was given"
    pool.wait_for(lambda: retiring(pool) == [slot], 20, "one slot that retires")
    assert withdraw_order(pool, slot) == ("withdrawn", [before[slot], None, False, None])
    assert withdraw_order(pool, slot) == ("withdrawn", [before[slot], None, False, None]), "once more is no fault"
    assert withdraw_order(pool, other) == ("withdrawn", [before[other], None, False, None]), "nor for one never ordered"
    pool.wait_for(lambda: time.time() > deadline + 5, 60, "a while after the deadline")
    assert (runs(pool), deadlines(pool)) == (before, {})
    assert endings(pool, *before.values()) == {}

    again = int(time.time()) + 40
    assert ask(pool, slot, again) == ("ordered", before[slot])
    pool.wait_for(lambda: time.time() > again - VACATE_SECONDS - 15, 60, "the last seconds, when it is too late")
    outcome, detail = withdraw_order(pool, slot)
    assert (outcome, "too late" in str(detail)) == ("ActionRefused", True)
    pool.wait_for(lambda: before[slot] not in runs(pool).values(), 40, "the end of the run")
    found = pool.wait_for(lambda: endings(pool, *before.values()), 20, "its ending")
    assert list(found) == [before[slot]]
    ended, vacated, *_ = found[before[slot]]
    assert isinstance(ended, int)
    assert again - VACATE_SECONDS - 8 <= ended <= again + 15
    assert vacated is True
    began, node = int(before[slot].rpartition("@")[2]), slot.partition("@")[2]
    asked = ("group_alice", began), ("group_bob", began), ("group_alice", ended)
    told = [cores_of_ended(pool, account, node, since) for account, since in asked]
    assert told[0] > 0 == told[1] == told[2]


def test_a_run_that_allows_no_longer_retirement_keeps_its_order(pool: CondorPool) -> None:
    """HTCondor would end it when its own MaxJobRetirementTime is over: that is not as before, so it is refused."""
    pool.run(["condor_rm", "-all"])
    pool.wait_for(lambda: not pool.queue() and not runs(pool), 60, "an empty pool")
    submit(pool, "alice", 3000, "max_job_retirement_time = 300")
    [(slot, run)] = pool.wait_for(lambda: runs(pool), 90, "a pilot").items()
    deadline = int(time.time()) + 120
    assert ask(pool, slot, deadline) == ("ordered", run)
    pool.wait_for(lambda: retiring(pool) == [slot], 20, "one slot that retires")

    def answers() -> list[tuple[str, object]]:  # a machine under load may leave one unanswered
        return [one for one in [withdraw_order(pool, slot)] if one[0] != "OrderUnanswered"]

    [(outcome, detail)] = pool.wait_for(answers, 60, "an answer to the withdrawal")
    assert (outcome, "MaxJobRetirementTime" in str(detail)) == ("ActionRefused", True)
    assert deadlines(pool) == {slot: deadline}


@pytest.mark.play
def test_a_run_that_left_by_itself_was_not_vacated(pool: CondorPool) -> None:
    """It is ordered, and ends before its deadline; alice's token gives no order back, and reads the records."""
    pool.run(["condor_rm", "-all"])
    pool.wait_for(lambda: not pool.queue() and not runs(pool), 60, "an empty pool")
    submit(pool, "alice", 30)
    [(slot, run)] = pool.wait_for(lambda: runs(pool), 90, "a pilot").items()
    deadline = int(time.time()) + 600
    assert ask(pool, slot, deadline) == ("ordered", run)
    outcome, _ = withdraw_order(pool, slot, identity="alice@pool.test")
    assert outcome == "RightsRefused"
    assert deadlines(pool) == {slot: deadline}
    pool.wait_for(lambda: run not in runs(pool).values(), 90, "its end")
    found = pool.wait_for(lambda: endings(pool, run), 20, "the record of it")  # a program of a fifth of a second
    ended, vacated, *_ = found[run]
    assert isinstance(ended, int)
    assert 25 <= ended - int(run.rpartition("@")[2]) <= 60
    assert vacated is False


def test_a_drain_still_empties_a_node_whose_order_was_withdrawn(pool: CondorPool) -> None:
    slot, run = next(item for item in sorted(runs(pool).items()) if item[0].endswith("@node1.pool.test"))
    assert ask(pool, slot, int(time.time()) + 600) == ("ordered", run)
    pool.wait_for(lambda: retiring(pool) == [slot], 20, "one slot that retires")
    assert withdraw_order(pool, slot)[0] == "withdrawn"
    host = pool.node("node1").host
    pool.run(["condor_drain", "-graceful", host])
    try:
        pool.wait_for(lambda: run not in runs(pool).values(), 30, "the run to be gone")
    finally:
        pool.run(["condor_drain", "-cancel", host])
        pool.restart("node1")  # after a drain that was cancelled, a startd may give nobody any retirement


def test_a_node_that_would_not_wait_for_the_deadline_gets_no_order(pool: CondorPool) -> None:
    """A later file sets its MAXJOBRETIREMENTTIME: the pilot would be gone in seconds although it has ten minutes."""
    slot, run = next(item for item in sorted(runs(pool).items()) if item[0].endswith("@node1.pool.test"))
    pool.configure("node1", "99-local", "MAXJOBRETIREMENTTIME = 0\n")
    pool.reconfigure("node1")
    try:
        before = orders(pool)
        outcome, detail = ask(pool, slot, int(time.time()) + 600)
        assert outcome == "ActionRefused"
        assert "would end" in detail
        assert "its MaxJobRetirementTime is 0 and names no deadline: restart its startd" in detail
        assert (orders(pool), run in runs(pool).values()) == (before, True)
    finally:
        pool.configure("node1", "99-local", "")
        pool.reconfigure("node1")
    deadline = int(time.time()) + 600
    assert ask(pool, slot, deadline) == ("ordered", run), "and when the file is mended it is"


# ---- orders of which it is not known what became of them, and refusals that are no pilot's fault ----

# As ASK, and the startd (its number on this machine is the last argument) stops right after it took the order.
ASK_AND_STOP = f"""
import os, signal, sys
from drainwise.htcondor.pool import order_channel
startd, taken = int(sys.argv.pop()), order_channel._set
def stopping(*arguments):
    taken(*arguments)
    os.kill(startd, signal.SIGSTOP)
order_channel._set = stopping
{ASK}"""


def outside(pool: CondorPool, pid: str) -> int:
    """The number on this machine of a process of the pool."""
    namespace = os.readlink(f"/proc/{pool.pid}/ns/pid")
    for path in Path("/proc").glob("[0-9]*"):
        try:
            numbers = re.search(r"^NSpid:(.*)$", (path / "status").read_text(), re.MULTILINE)
            if numbers and numbers[1].split()[-1] == pid and os.readlink(path / "ns" / "pid") == namespace:
                return int(path.name)
        except OSError:
            continue  # it has just ended
    raise AssertionError(f"no process {pid} in the pool")


def test_a_node_that_takes_an_order_and_does_not_answer_leaves_it_in_doubt(pool: CondorPool) -> None:
    """Stopped right after it took the order: it stands when the node goes on."""
    slot, run = next(item for item in sorted(runs(pool).items()) if item[0].endswith("@node1.pool.test"))
    startd, deadline = outside(pool, daemon(pool, "condor_startd", "node1")), int(time.time()) + 600
    command = [sys.executable, "-c", ASK_AND_STOP, slot, str(deadline), run, "4", str(startd)]
    try:
        answer = pool.run_outside(command, environment=ENVIRONMENT)
        assert json.loads(answer.stdout) == ["OrderUnanswered", "node node1.pool.test did not answer within 4 s"]
    finally:
        os.kill(startd, signal.SIGCONT)
    pool.wait_for(lambda: deadlines(pool) == {slot: deadline}, 30, "the deadline")


def cycle(pool: CondorPool, site_file: str, journal: Path, **options: str) -> list[tuple[str, str]]:
    """The nodes that were asked in one cycle and what became of it."""
    argv = [sys.executable, "-m", "drainwise", "reclaim", "--once", "--act", "--json", "--site", site_file]
    argv += ["--journal", str(journal)]
    shown = json.loads(pool.run_outside(argv, environment=ENVIRONMENT, check=False, **options).stdout)  # type: ignore[arg-type]
    nodes = {order["run"]: order["node"] for user in shown["users"] for order in user["orders"]}
    return [(nodes[act["run"]], act["outcome"]) for act in shown["acts"]]


def test_a_node_that_refuses_the_agent_is_left_alone_and_named(
    pool: CondorPool, site_file: str, tmp_path: Path
) -> None:
    """bob is owed 8 cores. A pilot of the other node goes in its place; plan names the node that refuses."""
    submit(pool, "bob", 1)
    planned = ("plan", "--json", "--site", site_file)
    shown = pool.wait_for(
        lambda: [
            order["node"]
            for user in json.loads(drainwise_command(pool, *planned).stdout)["users"]
            for order in user["orders"]
        ],
        60,
        "a plan",
    )
    [first], [other] = shown, [node.host for node in map(pool.node, ("node1", "node2")) if node.host not in shown]
    name, refused = first.partition(".")[0], tmp_path / "refused.journal"
    # The agent's token comes as condor@password there; tools of the node itself stay allowed.
    pool.configure(name, "rights", "ALLOW_ADMINISTRATOR = condor@pool.test, root@pool.test\n")
    pool.reconfigure(name)
    try:
        pool.wait_for(lambda: cycle(pool, site_file, refused) == [(first, "denied")], 60, "a refusal")
        site = tmp_path / "site.ini"
        site.write_text(f"{SITE}[journal]\nfile = {refused}\n")
        explained = drainwise_command(pool, "plan", "--site", str(site))
        assert f"1 node refuses the agent's orders: {first}" in explained.stdout.replace("\n", "")
        assert cycle(pool, site_file, refused) == [(other, "done")]
    finally:
        pool.configure(name, "rights", "")
        pool.reconfigure(name)
    outcomes = [json.loads(line) for line in refused.read_text().splitlines()]
    assert [(one["outcome"], one.get("only")) for one in outcomes if one["event"] == "order"] == [
        ("denied", first),
        ("done", None),
    ]


def test_whom_an_administrator_removed_or_held_is_told_by_the_access_point(pool: CondorPool) -> None:
    """A pilot that its owner removed was ended by its own user; a drain is an administrator's."""
    before, deadline = sorted(runs(pool).items()), int(time.time()) + 600
    for slot, run in before:
        assert ask(pool, slot, deadline) == ("ordered", run)
    jobs = [run.split("#")[1] for _, run in before]
    pool.run(["condor_rm", jobs[0]], user="alice")
    pool.run(["condor_rm", jobs[1]])
    pool.run(["condor_hold", jobs[2]], user="alice")
    pool.run(["condor_hold", jobs[3]])
    names = [run for _, run in before]
    pool.wait_for(lambda: len(endings(pool, *names)) == 4, 60, "all endings")
    found = endings(pool, *names)
    assert [(found[run][1], found[run][3]) for run in names] == [(True, False), (True, True)] * 2


# Takes a snapshot on a machine whose clock is so many seconds ahead; prints the number of pilots, or why there is none.
WRONG_CLOCK = """
import sys, time
from drainwise.facts.errors import PoolError
from drainwise.htcondor.pool.pool import HTCondorPool
right, ahead = time.time, int(sys.argv[1])
time.time = lambda: right() + ahead
try:
    print(len(HTCondorPool().snapshot(int(time.time())).pilots))
except PoolError as fault:
    print(fault)
"""


def test_with_another_time_than_the_collectors_nothing_is_decided(pool: CondorPool) -> None:
    """Deadlines are times of day: a minute ahead or behind is refused, some seconds are not."""
    words = {60: "this machine's clock is more than 30 s ahead of the collector's: deadlines would be wrong"}
    words |= {-60: "this machine's clock is more than 30 s behind the collector's", 20: "4\n", -20: "4\n", 0: "4\n"}
    for ahead, said in words.items():
        command = [sys.executable, "-c", WRONG_CLOCK, str(ahead)]
        assert pool.run_outside(command, environment=ENVIRONMENT).stdout.startswith(said)
