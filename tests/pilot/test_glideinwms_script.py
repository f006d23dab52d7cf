"""The periodic script for glideinWMS: run by a shell as a startd does, it states what a node derives from the files."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from drainwise.node.glidein import glidein_report, payload_of, settings_in
from drainwise.pilotad.node_reader import read_report
from drainwise.pilotad.report import FRESH, PilotReport, standing
from drainwise.pilotad.safe_open import open_dir

SCRIPT = Path(__file__).parents[2] / "share" / "pilots" / "glideinwms" / "drainwise_report.sh"
CORES = 8
Wanted = tuple[int, int, int]


def reported(place: Path, config: str, *payloads: Wanted, layout: str = "") -> tuple[PilotReport, PilotReport]:
    """Run it in a glidein with payloads (cores, seconds ago, minutes); what a node reads then, and what it derives."""
    now, local, start = int(time.time()), place / "glide_x", place / "start"
    for directory in (local / "execute", start):
        directory.mkdir(parents=True)
    (local / "condor_config").write_text(f"# a comment\nGLIDEIN_CPUS={CORES}\n{config}")
    (local / "glidein_config").write_text(f"X y\nGLIDEIN_START_DIR_ORIG {start}\n")
    found = []
    for number, (cores, ago, minutes) in enumerate(payloads):
        directory = local / "execute" / f"dir_{number}" / layout
        directory.mkdir(parents=True)
        machine, job = f"Cpus = {cores}\n", f"JobCurrentStartDate = {now - ago}\nMaxWallTimeMins = {minutes}\n"
        (directory / ".machine.ad").write_text(machine)
        (directory / ".job.ad").write_text(job)
        found.append(payload_of(machine.encode(), job.encode(), now))
    environment = {"PATH": os.environ["PATH"], "CONDOR_CONFIG": f"{local}/condor_config"}
    ran = subprocess.run(
        ["sh", str(SCRIPT), str(local / "glidein_config")], env=environment, capture_output=True, text=True, check=True
    )
    assert (ran.stdout, ran.stderr) == ("", "")
    directory_fd = open_dir(str(start))
    try:
        said, refused = read_report(directory_fd, os.geteuid(), CORES)
    finally:
        os.close(directory_fd)
    assert said is not None and refused == ()
    settings = settings_in((local / "condor_config").read_bytes())
    wanted = glidein_report([one for one in found if one], settings, CORES, now - 10_000, now, said.heartbeat)
    return said, wanted


@pytest.mark.parametrize("layout", ["", "scratch"])
@pytest.mark.parametrize("config", ["", "GLIDEIN_Max_Tail=100\n", "GLIDEIN_TORETIRE = 1\nGLIDEIN_ToDie = {dies}\n"])
def test_it_states_what_a_node_derives(tmp_path: Path, config: str, layout: str) -> None:
    """To a 1024th of the lease, which is what `.pilot.ad` can state."""
    config = f"GLIDEIN_ToDie = {int(time.time()) + 90_000}\n" + config.format(dies=int(time.time()) + 400)
    said, wanted = reported(tmp_path, config, (2, 100, 15), (4, 20, 12), (1, 50, 12), layout=layout)
    for field in ("last_job_start", "first_exp_job_end", "last_exp_job_end", "last_max_job_end", "used_cpu"):
        assert getattr(said, field) == getattr(wanted, field)
    assert said.add_uncom_time == pytest.approx(wanted.add_uncom_time, abs=0.1)
    assert said.add_final_exp_waste == pytest.approx(wanted.add_final_exp_waste, abs=0.1)
    assert (said.priority_factor, said.can_postpone_last_job) == (0, "TORETIRE" not in config)
    assert standing(said, said.heartbeat, 3600, None, CORES) == FRESH


def test_an_idle_glidein_says_that_nothing_runs(tmp_path: Path) -> None:
    """All its cores idle until it leaves."""
    said, _ = reported(tmp_path, "GLIDEIN_Max_Tail=400\n")
    assert (said.used_cpu, said.add_uncom_time) == (0, 0)
    assert said.add_final_exp_waste == CORES * 560
    assert standing(said, said.heartbeat, 3600, None, CORES) == FRESH


def test_more_payload_cores_than_the_lease_has(tmp_path: Path) -> None:
    """Each core counts as one part of it."""
    said, wanted = reported(tmp_path, "GLIDEIN_Max_Tail=0\n", (8, 100, 15), (8, 20, 12))
    assert said.used_cpu == CORES
    assert said.add_uncom_time == pytest.approx(wanted.add_uncom_time, abs=0.1)
    assert said.add_final_exp_waste == pytest.approx(wanted.add_final_exp_waste, abs=0.1)


def test_outside_a_glidein_it_does_nothing(tmp_path: Path) -> None:
    """Nor does it fail: a periodic script that fails would be the factory's trouble."""
    ran = subprocess.run(
        ["sh", str(SCRIPT), "/nonexistent"],
        env={"PATH": os.environ["PATH"], "CONDOR_CONFIG": f"{tmp_path}/condor_config"},
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
