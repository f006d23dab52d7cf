"""On a real pool: a job that checkpoints by itself costs what it did since, and goes after its next checkpoint."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import drainwise
from acting_agent import acting_agent, journal_events
from condor_jobs import TRANSFERRED, described, node_config
from condor_pool import CondorPool
from drainwise.siteconfig import load

pytestmark = [pytest.mark.play, pytest.mark.in_turn("who goes", "checkpoints")]
ENVIRONMENT = {"PYTHONPATH": str(Path(drainwise.__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
CORES, INTERVAL = 4, 12
MANY, HALF_MINUTE = 10, 30
LATE = 15
"""Seconds that a checkpoint may come later than it should, at least: `reclaim.figures`."""
SITE = """\
[htcondor]
max_vacate_time = 2s
retirement = 0s
slot_update_interval = 3s
[reclaim]
policy = least-waste
min_age = 0s
min_grace = 20s
margin = 20s
time_to_start = 20s
[agent]
state_dir = {state}
"""
TICKS = "/ticks/alices"
SAVES = (
    f"n=0; [ ! -e saved ] || read -r n < saved; echo start $n >> {TICKS}; i=0;"
    f" while [ $i -lt {INTERVAL} ]; do sleep 1; i=$((i+1)); echo tick >> {TICKS}; done;"
    f" echo $((n + i)) > saved; echo saved >> {TICKS}; exit 85"
)
CHECKPOINTS = (TRANSFERRED, "checkpoint_exit_code = 85", "transfer_checkpoint_files = saved")
LIFE = "\nCLAIM_WORKLIFETIME = 0\n"


@pytest.fixture(scope="module")
def site_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("site") / "site.ini"
    path.write_text(SITE.format(state=path.parent))
    return str(path)


@pytest.fixture(scope="module")
def pool(site_file: str, release: str) -> Iterator[CondorPool]:
    """A node full of alice's jobs: one checkpoints, the other, which has run as long, does not."""
    config = {"execute": node_config(load(site_file)) + LIFE}
    with CondorPool(nodes=1, cpus=2 * CORES, release=release, config=config) as made:
        made.run(["mkdir", "-m", "777", "/ticks"])
        yield made


def command(pool: CondorPool, site_file: str, *words: str) -> Any:
    argv = [sys.executable, "-m", "drainwise", *words, "--site", site_file, "--json"]
    answer = pool.run_outside(argv, environment=ENVIRONMENT, check=False)
    assert answer.returncode in {0, 1}, answer.stderr
    return json.loads(answer.stdout)


def ticks(pool: CondorPool) -> list[str]:
    return pool.run(["sh", "-c", f"cat {TICKS} 2>/dev/null || true"], node="node1").stdout.split("\n")[:-1]


def test_a_job_that_checkpoints_goes_and_loses_no_more_than_it_did_since(pool: CondorPool, site_file: str) -> None:
    """Its price is what it did since the last one, whatever earlier runs did or its owner edits; the order lets it
    save once more, where the release waits for that, and costs what it was expected to cost, within one interval.
    """
    job = pool.submit(described(f'''"-c '{SAVES}'"''', *CHECKPOINTS, cores=CORES, executable="/bin/sh"), user="alice")
    pool.submit(described(3000, cores=CORES), user="alice")

    def told(least_age: int) -> dict[str, Any]:
        """What is said of it once it has run for so long that its run time and its work since differ."""
        said = command(pool, site_file, "status")
        for one in said["pilots"]:
            if f"#{job}.0#" in one["run"] and said["taken"] - one["started"] >= least_age:
                return {**one, "age": said["taken"] - one["started"]}
        return {}

    first = pool.wait_for(lambda: told(3 * INTERVAL), 120, "a run with checkpoints")
    assert first["kill_waste"] <= CORES * (INTERVAL + 6) < CORES * first["age"]
    [before] = pool.queue(f"ClusterId == {job}", ["CommittedTime"])
    pool.run(["condor_qedit", str(job), "CommittedTime", "999999"], user="alice")
    forged = pool.wait_for(lambda: told(0), 20, "the edited job")
    assert 0 <= forged["kill_waste"] <= CORES * (INTERVAL + 6)
    pool.run(["condor_qedit", str(job), "CommittedTime", str(before.integer("CommittedTime"))], user="alice")
    pool.run(["condor_vacate_job", "-fast", str(job)])
    again = pool.wait_for(lambda: one if (one := told(0)) and one["run"] != first["run"] else {}, 60, "its next run")
    assert again["kill_waste"] <= CORES * (again["age"] + 1), "what earlier runs committed counts for this one"
    pool.wait_for(lambda: told(2 * INTERVAL + 4), 120, "a second run with checkpoints")
    pool.run(["rm", TICKS], node="node1")
    pool.submit(described(3000, cores=CORES), user="bob")

    def ordered() -> dict[str, Any]:
        """What a cycle decided that gave an order."""
        plan: dict[str, Any] = command(pool, site_file, "reclaim", "--once", "--act")
        return plan if any(act["outcome"] == "done" for act in plan["acts"]) else {}

    plan = pool.wait_for(ordered, 60, "an order")
    [order] = plan["acts"]
    assert f"#{job}.0#" in order["run"]
    pool.wait_for(lambda: ended(pool, job), 120, "its end")
    done = ticks(pool)
    assert "saved" in done, "it was ended before its next checkpoint"
    since = len(done) - 1 - max(number for number, line in enumerate(done) if line == "saved")
    orders = [one for user in plan["users"] for one in user["orders"]]
    [expected] = [one["expected_waste"] for one in orders if one["run"] == order["run"]]
    print(f"{pool.release}: {CORES * since} core-s lost, {expected} expected")
    assert since <= INTERVAL
    assert 0 <= expected - CORES * since <= CORES * (INTERVAL + LATE)


@pytest.mark.all_releases
def test_of_twenty_orders_none_loses_more_than_one_interval(release: str, tmp_path: Path) -> None:
    """Ten jobs that checkpoint each half minute, ordered twice beside ten that do not: what each did since its last
    checkpoint is lost, and its order was to waste as much, within one interval.
    """
    site = tmp_path / "site.ini"
    site.write_text(f"{SITE.format(state=tmp_path)}period = 5s\n")
    script = f"sleep {HALF_MINUTE}; echo . >> saved; date +%s >> /ticks/$(ProcId); exit 85"
    config = {"execute": node_config(load(str(site)))}
    with CondorPool(nodes=1, cpus=2 * MANY, release=release, config=config) as pool:
        pool.run(["mkdir", "-m", "777", "/ticks"])
        jobs = described(f'''"-c '{script}'"''', *CHECKPOINTS, cores=1, count=MANY, executable="/bin/sh")
        savers = f"#{pool.submit(jobs, user='alice')}."
        pool.submit(described(3000, cores=1, count=MANY), user="alice")

        def saved() -> int:
            """How many run and have saved their work since they began."""
            pilots = command(pool, str(site), "status")["pilots"]
            return sum(savers in one["run"] and one.get("saved", 0) > one["started"] for one in pilots)

        def served() -> bool:
            """Decide whether all of bob's jobs run, and what became of each order is known."""
            running = {one.text("Name") for one in pool.slots('RemoteOwner == "bob@pool.test"', ["Name"])}
            outcomes = [one["outcome"] for one in journal_events(tmp_path, "order")]
            return len(running) == MANY and len(journal_events(tmp_path, "ended")) == outcomes.count("done")

        with acting_agent(pool, "--site", str(site)):
            while len(journal_events(tmp_path, "ended")) < 2 * MANY:  # some go by themselves
                pool.wait_for(lambda: saved() == MANY, 400, "runs with checkpoints")
                waiting = pool.submit(described(3000, cores=1, count=MANY), user="bob")
                pool.wait_for(served, 400, "the ends of these")
                pool.run(["condor_rm", str(waiting)])
        ends = journal_events(tmp_path, "ended")
        lost = []
        for one in ends:
            assert savers in one["run"], "it had not saved its work"
            number = one["run"].partition(savers)[2].partition("#")[0]
            said = pool.run(["cat", f"/ticks/{number}"], node="node1").stdout.split()
            lost.append(one["ended"] - max(int(moment) for moment in said if int(moment) <= one["ended"]))
    print(f"{release}: lost {sorted(lost)} s; expected, realised {[(e['predicted'], e['realised']) for e in ends]}")
    assert max(lost) <= HALF_MINUTE + 1, "whole seconds"
    assert all(abs(one["predicted"] - one["realised"]) <= HALF_MINUTE for one in ends)


def ended(pool: CondorPool, job: int) -> bool:
    """Decide whether the job waits again."""
    [ad] = pool.queue(f"ClusterId == {job}", ["JobStatus"])
    return ad.integer("JobStatus") == 1
