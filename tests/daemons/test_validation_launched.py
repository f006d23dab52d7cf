"""Validations in a real Slurm and a real Grid Engine, by a user of them: each run is one job, whoever is killed."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from made_up_request import EVENT, made_up_request
from real_daemons import Site
from sge_cluster import SgeCluster
from slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.play, pytest.mark.in_turn("validation", "validation launched")]
ROOT = Path(__file__).parents[2]
PACKAGES = "/srv/validation"
USER = "alice"
PATIENCE = 60.0
FULL_NAME = re.compile(r"validation.made-up-([0-9a-f]{12}-[0-9a-z-]+)\.v-[0-9a-f]{16}")
ONE_RELEASE = pytest.mark.parametrize("slurm_release", ["trixie"], indirect=True)


class Validations:
    """alice's request where the batch system `backend` is, with its table, and the command on it.

    running: the command that lists her jobs that run, a line each. ended: the names of all her jobs that have ended.
    """

    def __init__(
        self, site: Site, backend: str, table: dict[str, object], running: str, ended: Callable[[], list[str]]
    ) -> None:
        self.site, self.backend, self.running, self._ended = site, backend, running, ended
        self._table = table
        place = site.run(["mktemp", "-d", "-p", "."], user=USER).stdout.strip()
        self.place = f"/home/{USER}/{place.rpartition('/')[2]}"
        self.file = f"{self.place}/request.json"
        site.copy_in(str(ROOT / "plugins"), PACKAGES)
        site.copy_in(str(ROOT / "scripts" / "validation_program.py"), f"{self.place}/validation_program.py", owner=USER)

    def write(self, *options: str, **values: object) -> None:
        """A request of 5 events of 0.2 s and 20 kB in 200 MB on 1 and 2 cores, when nothing else is said."""
        values = {"events": 5, "cores": [2], "backends": {self.backend: self._table}, **values}
        program = ["python3", "{here}/validation_program.py"]
        self.site.run(["tee", self.file], user=USER, stdin=made_up_request(program, options, **values))

    def command(self, *options: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        words = [*before, "python3", "-B", "-m", "drainwise", "validate", self.file, *options]
        return self.site.run(words, user=USER, check=False, timeout=PATIENCE, environment={"PYTHONPATH": PACKAGES})

    def begin_and_kill(self) -> None:
        """Begin, and SIGKILL the command once a job of alice's runs."""
        script = (
            f'"$@" & n=0; until {self.running} | grep -q .'
            "; do n=$((n+1)); [ $n -gt 150 ] && break; sleep 0.2; done; kill -9 $!; wait $!"
        )
        killed = self.command("--backend", self.backend, before=("sh", "-c", script, "sh"))
        assert killed.returncode == 137, killed.stderr
        [step] = self.report("--show")["steps"]
        assert step["state"] == "started"

    def report(self, *options: str, code: int = 0) -> dict[str, Any]:
        """Validate to the end, or do as told; the report."""
        ran = self.command("--json", *options)
        assert ran.returncode == code, ran.stdout + ran.stderr
        return dict(json.loads(ran.stdout))

    def forget_the_start(self) -> None:
        """The state as it is between a start and writing it down."""
        state = json.loads(self.site.run(["cat", f"{self.file}.state"]).stdout)
        [step] = state["steps"]
        step.update(state="planned", handle="")
        self.site.run(["tee", f"{self.file}.state"], user=USER, stdin=json.dumps(state))

    def ended(self, identifier: str) -> list[str]:
        """The steps of a validation that have ended as jobs, each as often as it did."""
        names = (FULL_NAME.fullmatch(name) for name in self._ended())
        mine = f"{identifier.rpartition('-')[2]}-"
        return sorted(match[1].removeprefix(mine) for match in names if match and match[1].startswith(mine))


@contextmanager
def in_slurm(cluster: SlurmCluster) -> Iterator[Validations]:
    def ended() -> list[str]:
        command = ["sacct", "--noheader", "--parsable2", "--allocations", "--format=JobName%200,End", f"--user={USER}"]
        # Other tests' jobs have names with the sign of separation, and with line ends.
        lines = (line.rpartition("|") for line in cluster.run(command).stdout.splitlines())
        return [name for name, _, end in lines if end != "Unknown"]

    table: dict[str, object] = {"command_seconds": 10, "resources": {"qos": "normal"}}
    running = f"squeue --noheader --user={USER} --states=RUNNING"
    try:
        yield Validations(cluster, "slurm", table, running, ended)
    finally:
        cluster.cancel_all()


@contextmanager
def in_grid_engine(cell: SgeCluster) -> Iterator[Validations]:
    def ended() -> list[str]:
        return [one["name"] for one in cell.accounting()]

    table: dict[str, object] = {
        "bin": "/usr/lib/gridengine",
        "root": "/var/lib/gridengine",
        "cpu_resource": "cpu_r",
        "mem_resource": "mem_r",
        "resources": {"hard": "-q main -A made-up-{cores}"},
    }
    try:
        yield Validations(cell, "sge", table, "qstat -s r", ended)
    finally:
        cell.cancel_all()


def number_of(step: dict[str, Any]) -> str:
    """The batch system's number of a step's job."""
    return str(step["handle"]).partition(".")[0]


def killed_and_taken_up(validations: Validations) -> dict[str, Any]:
    """SIGKILL between the start of the first run and writing it down: it is found, and every run is one job."""
    validations.write(time_per_event=EVENT, size_per_event=20)
    validations.begin_and_kill()
    validations.forget_the_start()
    ran = validations.command("--json")  # and where it began is known
    assert ran.returncode == 0 and "1c-1: found again as" in ran.stderr, ran.stdout + ran.stderr
    report = dict(json.loads(ran.stdout))
    assert (report["state"], report["submission"]["cores"]) == ("passed", 1)
    made = [step["step"] for step in report["steps"]]
    assert made[-1] == "2c-1"
    for step in report["steps"]:
        measured = step["measured"]
        assert 0 < measured["cpu_seconds"] < measured["wall_seconds"] and measured["size_per_event"] == 20
        assert 20 * (1 + 0.1 * step["cores"]) <= measured["peak_rss"] < 200
    identifier = report["identifier"]
    validations.site.wait_for(lambda: len(validations.ended(identifier)) == len(made), 20, "all runs to be accounted")
    assert validations.report() == report and validations.ended(identifier) == sorted(made)
    return report


def ended_by_hand(validations: Validations, end: Callable[[str], object], why: str) -> None:
    """While nobody looks at it, its owner ends the run: the command tells why, and the validation has failed."""
    validations.write("--wall", "1000")
    validations.begin_and_kill()
    [step] = validations.report("--show")["steps"]
    end(number_of(step))
    report = validations.report(code=1)
    assert (report["state"], report["submission"]) == ("failed", None)
    assert why in report["reason"], report["reason"]


def cancelled(validations: Validations, running: Callable[[], object]) -> None:
    """--cancel by another process ends what the killed one has started."""
    validations.write("--wall", "1000")
    validations.begin_and_kill()
    report = validations.report("--cancel", code=1)
    assert (report["state"], report["reason"]) == ("failed", "cancelled")
    validations.site.wait_for(lambda: not running(), 20, "the end of the run")


def test_a_validation_in_slurm_is_killed_and_taken_up(slurm: SlurmCluster) -> None:
    with in_slurm(slurm) as validations:
        report = killed_and_taken_up(validations)
        fields = "--format=AllocCPUS,ReqMem,TimelimitRaw"
        for step in report["steps"]:
            command = ["sacct", "--noheader", "--parsable2", "--allocations", fields, f"--jobs={number_of(step)}"]
            cpus, memory, minutes = slurm.run(command).stdout.strip().split("|")
            assert (cpus, memory, minutes) == (str(step["cores"]), f"{-(-step['memory'] * 10**6 // 2**20)}M", "11")


@ONE_RELEASE
def test_a_run_that_is_cancelled_in_slurm_is_told(slurm: SlurmCluster) -> None:
    with in_slurm(slurm) as validations:
        ended_by_hand(
            validations, lambda number: slurm.run(["scancel", number], user=USER), "ended by slurm: CANCELLED"
        )


@ONE_RELEASE
def test_a_validation_in_slurm_is_cancelled(slurm: SlurmCluster) -> None:
    with in_slurm(slurm) as validations:
        cancelled(validations, lambda: slurm.run(validations.running.split()).stdout)


def test_a_validation_in_grid_engine_is_killed_and_taken_up(sge: SgeCluster) -> None:
    with in_grid_engine(sge) as validations:
        report = killed_and_taken_up(validations)
        accounted = sge.run(["qacct", "-A", "made-up-2", "-j", number_of(report["steps"][-1])]).stdout
        assert re.search(r"^category .*cpu_r=2,h_rt=660,mem_r=954", accounted, re.MULTILINE), accounted


def test_a_run_that_is_deleted_in_grid_engine_is_told(sge: SgeCluster) -> None:
    with in_grid_engine(sge) as validations:
        ended_by_hand(validations, lambda number: sge.run(["qdel", number], user=USER), "ended by sge: failed 100")


def test_a_validation_in_grid_engine_is_cancelled(sge: SgeCluster) -> None:
    with in_grid_engine(sge) as validations:
        cancelled(validations, sge.numbers)
