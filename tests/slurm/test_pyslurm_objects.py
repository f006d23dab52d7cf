"""What tests/daemons/test_slurm_pyslurm.py promises of real pyslurms, on the objects that real ones once gave."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.written import with_written, written_in
from drainwise.slurm.pool import pyslurm_reader
from drainwise.slurm.pool.rules import ClusterRules
from drainwise.slurm.pool.snapshot import SiteRules, snapshot_of
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


def test_the_snapshot_by_pyslurm_is_that_by_commands(machine: Machine, version: str) -> None:
    """Through the reader's own process; both of all jobs that squeue shows."""
    machine.install()
    answers, texts = machine.transport("pyslurm").answers(), written_in(recorded(version, "squeue.json"), "squeue gave")
    one, other = (
        snapshot_of(replace(answers, jobs=jobs, rules=ClusterRules()), SiteRules(7200, (1,)), NOW[version])
        for jobs in (answers.jobs, with_written([replace(job, comments=()) for job in answers.jobs], texts))
    )
    assert {pilot.name: pilot for pilot in one.pilots} == {pilot.name: pilot for pilot in other.pilots}
    assert replace(one, pilots=()) == replace(other, pilots=())
    assert len(one.pilots) >= 10
    assert {pilot.name for pilot in one.pilots if pilot.deadline} == {"2"}
    assert {pilot.name for pilot in one.pilots if pilot.leaving} == {"4_0", "6", "7"}
    assert {pilot.name for pilot in one.pilots if pilot.report} == {"1"}


@pytest.mark.parametrize("recording", ROOM)
def test_room_by_pyslurm_is_that_by_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recording: str) -> None:
    """Kinds, places, closures and what runs hold, on unlike nodes: GPUs however they were asked for, lists of nodes."""
    machine = Machine(tmp_path, recording.partition("-")[2], recording)
    machine.install()
    monkeypatch.setattr(sys, "path", [str(machine.packages), *sys.path])
    ours, theirs = (
        snapshot_of(machine.transport(setting).answers(), SiteRules(7200), ROOM[recording])
        for setting in ("pyslurm", "commands")
    )
    assert ours == theirs
    assert len(ours.kinds or ()) >= 7 and len(ours.places or ()) == 5
    assert [closure.name for closure in ours.closures] == ["repair"]


def test_all_that_is_read_of_a_job_is_there(version: str) -> None:
    """The reader takes what is not there for nothing: a misspelt name would be a fact that is lost."""
    there = set((FOLDER / version / "attributes.txt").read_text().split())
    assert set(pyslurm_reader._FIELDS.values()) - there == set()


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
