"""What tests/daemons/test_slurm_pyslurm.py promises of real pyslurms, on the objects that real ones once gave."""

from __future__ import annotations

import json
import pwd
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.squeue_json import jobs_in
from drainwise.slurm.pool import pyslurm_reader
from drainwise.slurm.pool.snapshot import snapshot_of
from drainwise.slurm.pool.transport import TransportChoice

from .recorded_cluster import VERSIONS
from .recorded_pyslurm import FAILED_LOAD, FOLDER, PYSLURM, Machine
from .test_pyslurm_record import NOW, recorded

PROJECT = (Path(__file__).parents[2] / "pyproject.toml").read_text()
ROOM = {"room-24.11": 1795786006}
EXITS = "import sys\nprint('fatal: no slurm.conf', file=sys.stderr, flush=True)\nos._exit(1)"


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def machine(tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Without any pyslurm but what a test installs."""
    made = Machine(tmp_path, version)
    monkeypatch.setattr(sys, "path", [str(made.packages), *sys.path])
    return made


def user_names(version: str) -> dict[str, str]:
    """By what the reader calls a user on this machine, the name on the cluster where the jobs were recorded."""
    here = {one.pw_uid: one.pw_name for one in pwd.getpwall()}
    records = json.loads(recorded(version, "pyslurm.json"))["jobs"]
    return {here.get(one["user_id"], str(one["user_id"])): str(one["user_name"]) for one in records}


def test_the_snapshot_by_pyslurm_is_that_by_commands(machine: Machine, version: str) -> None:
    """Through the reader's own process; both of all jobs that squeue shows."""
    machine.install()
    answers, names = machine.transport("pyslurm").answers(), user_names(version)
    ours = [replace(job, user=names[job.user]) for job in answers.jobs]
    one, other = (
        snapshot_of(jobs, answers.nodes, answers.shares, NOW[version], 7200, (1,))
        for jobs in (ours, jobs_in(recorded(version, "squeue.json")))
    )
    assert {pilot.name: pilot for pilot in one.pilots} == {pilot.name: pilot for pilot in other.pilots}
    assert replace(one, pilots=()) == replace(other, pilots=())
    assert len(one.pilots) >= 10


@pytest.mark.parametrize("recording", ROOM)
def test_room_by_pyslurm_is_that_by_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recording: str) -> None:
    """Kinds, places, closures and what runs hold, on unlike nodes: GPUs however they were asked for, lists of nodes."""
    machine = Machine(tmp_path, recording.partition("-")[2], recording)
    machine.install()
    monkeypatch.setattr(sys, "path", [str(machine.packages), *sys.path])
    names = user_names(recording)
    one, other = (machine.transport(setting).answers() for setting in ("pyslurm", "commands"))
    ours, theirs = (
        snapshot_of(jobs, answers.nodes, answers.shares, ROOM[recording], 7200, (), answers.rules)
        for jobs, answers in (([replace(job, user=names[job.user]) for job in one.jobs], one), (other.jobs, other))
    )
    assert ours == theirs
    assert len(ours.kinds or ()) >= 7 and len(ours.places or ()) == 5
    assert [closure.name for closure in ours.closures] == ["repair"]


def test_all_that_is_read_of_a_job_is_there(version: str) -> None:
    """The reader takes what is not there for nothing: a misspelt name would be a fact that is lost."""
    there = set((FOLDER / version / "attributes.txt").read_text().split())
    assert set(pyslurm_reader._FIELDS) - there == set()


def test_it_is_an_extra_that_no_other_includes() -> None:
    """Whoever has a Slurm for which PyPI has none could not install the other."""
    extras = PROJECT.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    found = dict(re.findall(r"(?m)^(\w+) = \[(.*)\]$", extras))
    assert len(found) >= 7
    assert [name for name, needed in found.items() if "pyslurm" in needed] == ["pyslurm"]


def test_check_sees_that_it_is_used(machine: Machine, version: str) -> None:
    machine.install()
    assert machine.choice() == TransportChoice(f"pyslurm {PYSLURM[version]}", "")


def test_without_slurmctld_there_is_no_answer_within_the_time_limit(machine: Machine) -> None:
    """HOSTILE 54: libslurm itself tries for nine seconds."""
    machine.install(FAILED_LOAD.format("import time; time.sleep(60)"))
    before, begin = machine.children(), time.monotonic()
    with pytest.raises(PoolUnreachable, match=r"pyslurm: .* did not answer within"):
        machine.transport("pyslurm", seconds=0.4).answers()
    assert time.monotonic() - begin < 30
    assert machine.children() == before


def test_libslurm_ends_a_process_of_its_own_and_not_the_agent(machine: Machine) -> None:
    """It calls exit() where slurm.conf cannot be read."""
    machine.install(EXITS)
    with pytest.raises(PoolUnreachable, match=r"pyslurm cannot be imported: fatal: no slurm\.conf"):
        machine.transport("pyslurm").answers()
