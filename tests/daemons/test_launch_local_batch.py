"""`drainwise launch` in the local batch system: its jobs outlive the launcher, and the next one finds them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from drainwise.local.job import ENDED
from drainwise.local.store import LocalStore
from local_batch import ENVIRONMENT, Batch
from real_daemons.waiting import wait_for


@pytest.fixture
def command(batch: Batch, tmp_path: Path) -> list[str]:
    """A launch of two jobs, one after the other, as alice's."""
    batch.start(cores=4)
    jobs = [
        {"name": "first", "command": 'sleep 2; echo "$WORD" >>said', "environment": {"WORD": "a 'b' $(c)"}},
        {"name": "second", "command": "cat said; exit 3", "after": ["first"], "resources": {"cpu": 2}},
    ]
    table = {"directory": batch.directory, "account": "alice"}
    (tmp_path / "f.json").write_text(json.dumps({"jobs": jobs, "backends": {"local-batch": table}}))
    return [sys.executable, "-m", "drainwise", "launch", str(tmp_path / "f.json"), "--backend", "local-batch", "--json"]


def jobs_there(batch: Batch) -> int:
    with LocalStore(batch.directory) as store:
        return len(store.jobs(ended=True))


def test_a_launcher_that_is_killed_finds_its_jobs_again(batch: Batch, command: list[str], tmp_path: Path) -> None:
    """No job is run twice; a job has its directory, its variables, its output file and its code."""
    first = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: jobs_there(batch), what="the first job is there")
    finally:
        first.kill()
        first.wait()
    ran = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=120)
    result = json.loads(ran.stdout)
    assert (ran.returncode, [job["code"] for job in result["jobs"]]) == (1, [0, 3]), ran.stderr
    assert (tmp_path / "said").read_text() == "a 'b' $(c)\n" == Path(result["jobs"][1]["output"]).read_text()
    assert jobs_there(batch) == 2 and [batch.job(number).cores for number in (1, 2)] == [1, 2]


def test_an_interrupted_launch_leaves_nothing_there(batch: Batch, command: list[str]) -> None:
    going = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    wait_for(lambda: jobs_there(batch), what="the first job is there")
    going.terminate()
    assert going.wait(60) == 143
    batch.await_state(ENDED, 1)
    assert batch.job(1).removed and jobs_there(batch) == 1
