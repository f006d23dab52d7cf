"""Validations on a real HTCondor pool, by a user of it: each run is one job, also when the command is killed."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from condor_pool import CondorPool
from made_up_request import EVENT, made_up_request

pytestmark = [pytest.mark.play, pytest.mark.in_turn("validation", "validation condor")]
ROOT = Path(__file__).parents[2]
PACKAGES = "/opt/validation"
TAG = "DrainwiseLaunchTag"
PATIENCE = 120.0


class Validations:
    """alice's request on the pool's access point, and the command on it."""

    def __init__(self, pool: CondorPool, place: str) -> None:
        self.pool, self.place = pool, place
        self.file = f"{place}/request.json"

    def write(self, *options: str, **values: object) -> None:
        """A request of 10 events of 0.2 s and 20 kB in 200 MB, when nothing else is said."""
        text = made_up_request(["python3", "{here}/validation_program.py"], options, **values)
        self.pool.run(["tee", self.file], user="alice", stdin=text)

    def command(
        self, *options: str, before: tuple[str, ...] = (), environment: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        words = [*before, "python3", "-m", "drainwise", "validate", self.file, *options]
        variables = {"PYTHONPATH": PACKAGES, "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
        return self.pool.run(words, user="alice", check=False, timeout=PATIENCE, environment=variables)

    def run(self, *options: str, code: int = 0) -> dict[str, Any]:
        """Validate to the end; the report."""
        ran = self.command("--json", *options)
        assert ran.returncode == code, ran.stdout + ran.stderr
        return dict(json.loads(ran.stdout))

    def until(self, condition: str, seconds: int = 60) -> tuple[str, ...]:
        """Words before a command, that kill it with SIGKILL once a job of ours is as ClassAds say in `condition`."""
        script = (
            f'"$@" & n=0; until condor_q -af ClusterId -constraint "$0" | grep -q .'
            f"; do n=$((n+1)); [ $n -gt {seconds * 5} ] && break; sleep 0.2; done; kill -9 $!; wait $!"
        )
        return ("sh", "-c", script, condition)

    def jobs(self, identifier: str) -> dict[str, dict[str, object]]:
        """The jobs of a validation, in the queue or gone, by their steps. No step has two."""
        mine = f"validation:{identifier}-"
        begun = f'isString({TAG}) && substr(JobDescription, 0, {len(mine)}) == "{mine}"'
        found = [dict(ad) for ad in (*self.pool.queue(begun), *self.pool.history(begun))]
        named = {str(job["JobDescription"]).removeprefix(mine): job for job in found}
        assert len(named) == len(found)
        return named


@contextmanager
def validations_on(pool: CondorPool) -> Iterator[Validations]:
    """What is needed is there; in the end no job is left in the queue."""
    pool.copy_in(str(ROOT / "plugins"), PACKAGES)
    place = pool.run(["mktemp", "-d", "-p", "."], user="alice").stdout.strip()
    place = f"/home/alice/{place.rpartition('/')[2]}"
    pool.copy_in(str(ROOT / "scripts" / "validation_program.py"), f"{place}/validation_program.py", owner="alice")
    try:
        yield Validations(pool, place)
    finally:
        pool.run(["condor_rm", "-constraint", f"isString({TAG})"], check=False)
        pool.wait_for(lambda: not pool.queue(f"isString({TAG})"), 60, "the end of all runs")
        pool.run(["rm", "-rf", place])


@pytest.fixture
def validations(pool: CondorPool) -> Iterator[Validations]:
    with validations_on(pool) as made:
        yield made


def test_killed_in_its_first_run_it_comes_to_its_end_on_the_pool(validations: Validations) -> None:
    """SIGKILL while the first job runs: the second command finds that job, corrects the claims, and ends with 8 cores.

    Every run is one job, with its cores and memory; those of more cores are all there before the first of them ends.
    """
    validations.write("--memory", "40", time_per_event=EVENT / 4, size_per_event=30)
    begun = f"isString({TAG}) && JobStatus == 2"
    killed = validations.command("--backend", "htcondor", before=validations.until(begun))
    assert killed.returncode == 137, killed.stderr
    assert [one["state"] for one in validations.run("--show")["steps"]] == ["started"]
    ran = validations.command("--json")  # and where it began is known
    assert ran.returncode == 0 and "found again" not in ran.stderr and "started as" in ran.stderr, ran.stderr
    report = json.loads(ran.stdout)
    made = [step["step"] for step in report["steps"]]
    tries = [label for label in made if label.startswith("1c")]
    assert 2 <= len(tries) <= 3 and made[len(tries) :] == ["2c-1", "4c-1", "8c-1"]
    jobs = validations.jobs(report["identifier"])
    assert sorted(jobs) == sorted(made)
    for step in report["steps"]:
        job, measured = jobs[step["step"]], step["measured"]
        assert f"{job['ClusterId']}.{job['ProcId']}" == step["handle"]
        assert (job["RequestCpus"], job["Owner"]) == (step["cores"], "alice")
        assert job["RequestMemory"] == -(-step["memory"] * 10**6 // 2**20)
        wall = float(str(job["RemoteWallClockTime"]))
        assert 0 < measured["wall_seconds"] <= wall + 1 and measured["cpu_seconds"] < measured["wall_seconds"]
        assert measured["size_per_event"] == 20 and 40 * (1 + 0.1 * step["cores"]) <= measured["peak_rss"] < 200
    assert report["steps"][0]["adjusted"]["size_per_event"] == (3 * 20 + 30) / 4
    words = ["condor_history", "-af", "ClusterId", "JobDescription", "JobStatus"]
    shown = validations.pool.run(words, user="alice").stdout
    assert len(re.findall(rf" validation:{report['identifier']}-[0-9]c-[0-9] 4$", shown, re.MULTILINE)) == len(jobs)
    more = [jobs[label] for label in ("2c-1", "4c-1", "8c-1")]
    # None waited for another's end; on a busy machine a short one may be over before the last is submitted.
    assert max(int(str(job["QDate"])) for job in more) <= min(int(str(job["CompletionDate"])) for job in more) + 3
    assert report["submission"]["cores"] == 1
    assert validations.run() == report and len(validations.jobs(report["identifier"])) == len(jobs)


def test_killed_between_submitting_and_writing_it_down(validations: Validations) -> None:
    """The state as it is before a start: the job of that name is found in the queue, and no second one is made."""
    validations.write(can_thread=False)
    validations.command("--backend", "htcondor", before=validations.until(f"isString({TAG})"))
    state = json.loads(validations.pool.run(["cat", f"{validations.file}.state"]).stdout)
    [step] = state["steps"]
    step.update(state="planned", handle="")
    validations.pool.run(["tee", f"{validations.file}.state"], user="alice", stdin=json.dumps(state))
    ran = validations.command("--json")
    assert ran.returncode == 0 and "1c-1: found again as" in ran.stderr, ran.stderr
    assert list(validations.jobs(state["identifier"])) == ["1c-1"]


def test_a_run_that_the_pool_holds_or_removes_is_told_and_does_not_stay(validations: Validations) -> None:
    """A hold ends the validation with HTCondor's own reason, and so does a removal; no job stays in the queue."""
    for act, reason, why in (
        ("condor_hold", ["-reason", "no such license"], "on hold: no such license"),
        ("condor_rm", ["-reason", "quota"], "removed: quota"),
    ):
        validations.write("--wall", "1000")
        going = f"isString({TAG}) && JobStatus == 2"
        validations.command("--backend", "htcondor", "--again", before=validations.until(going))
        validations.pool.run([act, *reason, "-constraint", going], user="alice")
        report = validations.run(code=1)
        assert (report["state"], report["submission"]) == ("failed", None)
        assert why in report["reason"], report["reason"]
        validations.pool.wait_for(lambda: not validations.pool.queue(f"isString({TAG})"), 30, "an empty queue")


def test_the_wall_limit_and_a_program_that_is_not_there(validations: Validations) -> None:
    """The limit is kept to the second, on the node; what is not installed there is named."""
    validations.write("--wall", "1000", wall_limit=2)
    report = validations.run("--backend", "htcondor", code=1)
    assert "its wall limit is over" in report["reason"]
    job = validations.jobs(report["identifier"])["1c-1"]
    assert float(str(job["RemoteWallClockTime"])) < 60
    validations.write(command=["/no/such/program"])
    report = validations.run("--again", code=1)
    assert "/no/such/program: No such file" in report["reason"]


def test_cancelled_it_leaves_nothing_in_the_queue(validations: Validations) -> None:
    """--cancel removes what runs; --again on another batch system needs a word."""
    validations.write("--wall", "1000")
    validations.command("--backend", "htcondor", before=validations.until(f"isString({TAG}) && JobStatus == 2"))
    refused = validations.command("--backend", "local")
    assert refused.returncode == 2 and "its runs are in htcondor, not in local" in refused.stderr
    report = validations.run("--cancel", code=1)
    assert (report["state"], report["reason"]) == ("failed", "cancelled")
    validations.pool.wait_for(lambda: not validations.pool.queue(f"isString({TAG})"), 30, "an empty queue")


def test_what_the_pool_cannot_do_is_told_before_anything_runs(validations: Validations) -> None:
    """More cores than any slot, a group that is none, a job that is refused, a schedd that is not there: and no job."""
    validations.write(cores=[2, 400])
    ran = validations.command("--backend", "htcondor")
    assert ran.returncode == 2 and "the run on 400 cores can never start: no slot has 400 cores" in ran.stderr
    ran = validations.command("--backend", "htcondor", "--account", "no such group")
    assert ran.returncode == 2 and "expected an accounting group" in ran.stderr
    validations.write()
    ran = validations.command("--backend", "htcondor", environment={"_CONDOR_APPEND_REQUIREMENTS": "(("})
    assert ran.returncode == 1 and "it cannot be started: the schedd refused: " in ran.stdout, ran.stderr
    validations.pool.run(["rm", f"{validations.file}.state"])
    nowhere = {"_CONDOR_SCHEDD_HOST": "nobody@nowhere.test", "_CONDOR_SCHEDD_ADDRESS_FILE": "/none"}
    ran = validations.command("--backend", "htcondor", environment=nowhere)
    assert ran.returncode == 1 and ran.stderr.count("\n") == 1 and "the schedd" in ran.stderr, ran.stderr
    assert not validations.pool.queue(f"isString({TAG})")


def test_a_schedd_that_is_restarted_meanwhile_loses_nothing(release: str) -> None:
    """The command waits for it, the job goes on, and no run is made twice. In a pool of its own."""
    with CondorPool(nodes=1, release=release) as own, validations_on(own) as validations, ThreadPoolExecutor(1) as side:
        validations.write("--wall", "2", time_per_event=2, can_thread=False)
        said = f"{validations.place}/said"
        log_to = ("sh", "-c", 'exec "$@" 2>"$0"', said)
        going = side.submit(validations.command, "--backend", "htcondor", "--json", before=log_to)
        try:
            own.wait_for(lambda: own.queue("JobStatus == 2", ["ClusterId"]), 60, "the first run")
            own.run(["condor_off", "-fast", "-daemon", "schedd"])
            own.wait_for(lambda: "it is waited for" in Path(own.root + said).read_text(), 60, "a look in vain")
        finally:
            own.run(["condor_on", "-daemon", "schedd"])
        ran = going.result()
        assert ran.returncode == 0, Path(own.root + said).read_text()
        report = json.loads(ran.stdout)
        assert report["state"] == "passed" and list(validations.jobs(report["identifier"])) == ["1c-1"]
