"""Whom the texts of jobs are asked for: pyslurm where it is installed and matches, else squeue's JSON.

What else is known of jobs stands in the lines of plain squeue.

The pyslurm here is broken in as many ways as a real one may fail; a sound one is in `test_pyslurm_objects`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.facts.errors import PoolUnreachable
from drainwise.pool.finding import MISSING, OK
from drainwise.siteconfig import SiteConfig, SlurmSection
from drainwise.slurm.pool.pool import SlurmPool
from drainwise.slurm.pool.transport import TransportChoice, mismatch
from drainwise.slurm.setup.check import judge
from drainwise.slurm.setup.check_facts import ClusterFacts

from .recorded_pyslurm import DIES, FAILED_LOAD, FOLDER, Machine
from .test_pyslurm_record import NOW

real = pytest.mark.daemons
"""The reader of pyslurm's jobs itself is run, or what never answers is waited for."""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Without any pyslurm but what a test installs."""
    made = Machine(tmp_path)
    monkeypatch.setattr(sys, "path", [str(made.packages), *sys.path])
    return made


@pytest.mark.parametrize(
    ("pyslurm", "slurm", "why"),
    [
        ("24.11.0", "slurm-wlm 24.11.5\n", ""),
        ("22.5.3", "slurm-wlm 22.05.8", ""),
        ("25.11.2", "slurm 25.11.0rc1", ""),
        ("25.11.2", "slurm-wlm 24.11.5", "pyslurm 25.11.2 does not match Slurm 24.11.5"),
        ("24.5.1", "slurm-wlm 24.11.5", "pyslurm 24.5.1 does not match Slurm 24.11.5"),
        ("", "slurm-wlm 24.11.5", "pyslurm of no version does not match Slurm 24.11.5"),
        ("24.11.0", "", "pyslurm 24.11.0 does not match Slurm ?"),
        ("", "", "pyslurm of no version does not match Slurm ?"),
    ],
)
def test_pyslurm_must_be_of_slurms_release(pyslurm: str, slurm: str, why: str) -> None:
    assert mismatch(pyslurm, slurm) == why


@real
def test_a_pyslurm_that_matches_is_asked_instead_of_the_json(machine: Machine) -> None:
    machine.install()
    answers = machine.transport().answers()
    assert machine.asked() == {"imported"}
    assert (len(answers.jobs), len(answers.nodes)) == (27, 4)
    assert machine.choice() == TransportChoice("pyslurm 24.11.0", "")


@real
def test_the_pools_snapshot_is_the_same_by_either(machine: Machine) -> None:
    machine.install()
    settings = replace(SlurmSection(), bin_dir=str(machine.bin_dir))
    pools = [SlurmPool(replace(settings, transport=name)) for name in ("pyslurm", "commands")]
    ours, theirs = (pool.snapshot(NOW["24.11"]) for pool in pools)
    assert machine.asked() == {"imported", "squeue"}
    assert ours.accounts == theirs.accounts
    assert {(one.name, one.report, one.deadline) for one in ours.pilots} == {
        (one.name, one.report, one.deadline) for one in theirs.pilots
    }


def interpreter(machine: Machine, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    """A pyslurm that matches, and a Python that answers for its reader."""
    machine.install()
    machine.program("python", f"echo imported >> {machine.marker}; {answer}")
    monkeypatch.setattr(sys, "executable", str(machine.bin_dir / "python"))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (f"echo there; cat {FOLDER}/24.11/squeue.json", ""),
        ("exit 3", "pyslurm cannot be imported: its process ended with code 3"),
        ("kill -9 $$", "pyslurm cannot be imported: its process was ended by signal 9"),
    ],
)
def test_the_texts_are_pyslurms_once_it_is_imported(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, answer: str, why: str
) -> None:
    """Else they are squeue's, or there is no answer, as the site says; and it is not tried again."""
    interpreter(machine, monkeypatch, answer)
    transport = machine.transport()
    for _ in range(2):
        jobs = transport.answers().jobs
        assert len(jobs) == 27 and any(job.admin_comment for job in jobs)
    assert machine.marker.read_text().split() == (["imported", "squeue", "squeue"] if why else ["imported"] * 2)
    assert machine.choice("pyslurm") == TransportChoice("" if why else "pyslurm 24.11.0", why)
    if why:
        with pytest.raises(PoolUnreachable) as fault:
            machine.transport("pyslurm").answers()
        assert str(fault.value) == f"[slurm] transport = pyslurm, but {why}"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("echo there; exit 3", "pyslurm failed: its process ended with code 3"),
        ("echo there; echo broken >&2; exit 1", "pyslurm failed: broken"),
        ("echo there; echo '{'", "incomplete answer: pyslurm gave"),
    ],
)
def test_a_pyslurm_that_was_imported_and_fails_is_no_answer(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, answer: str, why: str
) -> None:
    interpreter(machine, monkeypatch, answer)
    with pytest.raises(PoolUnreachable, match=why):
        machine.transport().answers()
    assert machine.asked() == {"imported"}


def test_without_pyslurm_squeue_is_asked(machine: Machine) -> None:
    answers = machine.transport().answers()
    assert machine.asked() == {"squeue"}
    assert len(answers.jobs) == 27
    assert machine.choice() == TransportChoice("squeue --json", "pyslurm is not installed")


def test_a_pyslurm_of_another_release_is_never_imported(machine: Machine) -> None:
    """It could end the process, or read nonsense."""
    machine.install(DIES, version="25.11.2")
    assert len(machine.transport().answers().jobs) == 27
    assert machine.choice() == TransportChoice("squeue --json", "pyslurm 25.11.2 does not match Slurm 24.11.5")
    assert machine.asked() == {"squeue"}


def test_the_site_may_want_the_commands_alone(machine: Machine) -> None:
    machine.install()
    machine.transport("commands").answers()
    assert machine.asked() == {"squeue"}
    assert machine.choice("commands") == TransportChoice("squeue --json", "[slurm] transport = commands")


@real
@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("raise OSError('libslurmfull.so: cannot open')", "OSError: libslurmfull.so: cannot open"),
        ("import sys; print('fatal: no slurm.conf', file=sys.stderr, flush=True); os._exit(1)", "fatal: no slurm.conf"),
        ("raise SystemExit(3)", "its process ended with code 3"),
        (DIES, "its process was ended by signal 9"),
        ("slurm_api_version = lambda: (25, 5, 1)", "ImportError: pyslurm 24.11.0 has got libslurm 25.5.1"),
    ],
)
def test_a_pyslurm_that_cannot_be_imported_is_left_alone(machine: Machine, broken: str, why: str) -> None:
    """The jobs come from squeue, and the next time it is not tried again."""
    machine.install(broken)
    transport = machine.transport()
    for _ in range(2):
        assert len(transport.answers().jobs) == 27
    assert machine.marker.read_text().split().count("imported") == 1
    assert machine.choice() == TransportChoice("squeue --json", f"pyslurm cannot be imported: {why}")


@real
@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (FAILED_LOAD.format("raise RuntimeError('Unable to contact slurm controller')"), "RuntimeError: Unable to"),
        (FAILED_LOAD.format("os.kill(os.getpid(), 11)"), "its process was ended by signal 11"),
        (FAILED_LOAD.format("os._exit(0)"), "incomplete answer"),
        (FAILED_LOAD.format("return Jobs({1: object()})"), "incomplete answer"),
        (
            "Job.name = property(lambda job: 1 / 0 if job.id == 20 else '', lambda job, value: None)",
            "ZeroDivisionError",
        ),
    ],
)
def test_a_pyslurm_that_fails_midway_is_no_answer(machine: Machine, broken: str, why: str) -> None:
    """HOSTILE 54: neither half of its jobs nor, since Slurm may be what fails, another transport; no process stays."""
    before = machine.children()
    machine.install(broken)
    with pytest.raises(PoolUnreachable, match=why) as fault:
        machine.transport().answers()
    assert str(fault.value).isprintable()
    assert machine.asked() == {"imported"}
    assert machine.children() == before


@real
def test_a_pyslurm_that_hangs_is_ended_in_time(machine: Machine) -> None:
    machine.install(FAILED_LOAD.format("import signal; signal.pause()"))
    before = machine.children()
    with pytest.raises(PoolUnreachable, match=r"pyslurm: .* did not answer within 1 s"):
        machine.transport(seconds=1).answers()
    assert machine.children() == before


@real
@pytest.mark.parametrize("name", ["sinfo", "sshare", "scontrol"])
def test_one_answer_that_is_missing_is_none_at_all(machine: Machine, name: str) -> None:
    """HOSTILE 54; and no process is left behind."""
    before = machine.children()
    machine.install()
    machine.program(name, "exit 1")
    with pytest.raises(PoolUnreachable, match=f"{name} failed"):
        machine.transport().answers()
    assert machine.children() == before


@real
def test_who_wants_pyslurm_alone_is_told_why_there_is_no_answer(machine: Machine) -> None:
    transport = machine.transport("pyslurm")
    with pytest.raises(PoolUnreachable, match=r"\[slurm\] transport = pyslurm, but pyslurm is not installed"):
        transport.answers()
    machine.install("raise ValueError('no')")
    for _ in range(2):
        with pytest.raises(PoolUnreachable, match="but pyslurm cannot be imported: ValueError: no"):
            transport.answers()
    assert machine.asked() == {"imported"}
    assert machine.choice("pyslurm") == TransportChoice("", "pyslurm cannot be imported: ValueError: no")


@real
def test_what_lies_beside_pyslurm_hides_nothing_of_pythons_own(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HOSTILE 46: nor does the caller's environment."""
    machine.install()
    (machine.packages / "json.py").write_text("raise SystemExit('hidden')")
    monkeypatch.setenv("PYTHONPATH", str(machine.packages))
    machine.transport().answers()
    assert machine.asked() == {"imported"}


@real
def test_a_comment_that_is_no_text_is_still_somebodys(machine: Machine) -> None:
    """pyslurm itself fails on it; an AdminComment that is not ours must not become an empty one."""
    machine.install("Job.admin_comment = property(lambda job: b'\\xff'.decode(), lambda job, value: None)")
    assert {job.admin_comment for job in machine.transport().answers().jobs} == {"\ufffd"}


@pytest.mark.parametrize(
    ("choice", "severity", "words", "line"),
    [
        (TransportChoice("pyslurm 24.11.0", ""), OK, "installed", ""),
        (TransportChoice("squeue --json", "pyslurm is not installed"), OK, "pyslurm is not installed", ""),
        (TransportChoice("", "pyslurm is not installed"), MISSING, "pyslurm is not installed", "transport = auto"),
    ],
)
def test_check_says_what_is_used_and_why(choice: TransportChoice, severity: str, words: str, line: str) -> None:
    facts = ClusterFacts({}, {}, (), (), choice)
    (found,) = (one for one in judge(facts, SiteConfig(), 0) if one.what == "transport")
    assert (found.severity, found.value, found.line) == (severity, choice.by, line)
    assert words in found.why
