"""The unit of the reclaim agent: right for systemd, and what the agent's process is tested with."""

from __future__ import annotations

import argparse
import configparser
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.cli import reclaim
from drainwise.cli.command_line.options import build
from drainwise.htcondor.setup.render import render as render_htcondor
from drainwise.install.templates import UNIT, agent_unit
from drainwise.siteconfig import SiteConfig, SlurmSection
from drainwise.siteconfig.schema import AgentSection
from drainwise.slurm.setup.render import render as render_slurm

SITE = SiteConfig(file="/etc/drainwise/site.ini")


def service(site: SiteConfig, pool: str) -> configparser.SectionProxy:
    """The section of the service in the unit."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)  # as systemd: the last line counts
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(agent_unit(site, pool, f"{pool}.service").text)
    return parser["Service"]


@pytest.mark.parametrize("pool", ["htcondor", "slurm"])
def test_systemd_takes_it(pool: str, tmp_path: Path) -> None:
    """Every line is one that systemd knows, but for the type that came with 253."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    unit = tmp_path / "drainwise-agent.service"
    unit.write_text(agent_unit(replace(SITE, agent=AgentSection(command="/bin/true")), pool, "condor.service").text)
    ran = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False, timeout=60
    )
    known = ("condor.service", "ignoring: notify-reload")
    said = [line for line in ran.stderr.splitlines() if "drainwise-agent" in line]
    assert [line for line in said if not any(one in line for one in known)] == []


@pytest.mark.parametrize("pool", ["htcondor", "slurm"])
def test_what_it_starts_is_a_command_that_there_is(pool: str) -> None:
    """The words after the program are understood, and it acts only where the site file says so."""
    program, command, *words = service(SITE, pool)["ExecStart"].split()
    parser = argparse.ArgumentParser()
    build(parser.add_subparsers(), "reclaim", reclaim.COMMAND)
    args = parser.parse_args([command, *words])
    assert (program, args.loop, args.act, args.pool) == ("/usr/bin/drainwise", True, False, pool)


def test_it_is_ended_between_two_acts_and_never_within_one() -> None:
    """SIGTERM to the agent alone, and more time than an order may take; a watchdog longer than any act."""
    unit = service(SITE, "htcondor")
    assert (unit["Type"], unit["KillMode"]) == ("notify-reload", "mixed")
    assert int(unit["TimeoutStopSec"]) > 60 and int(unit["WatchdogSec"]) == 300
    slow = replace(SITE, slurm=SlurmSection(command_timeout=60))
    assert int(service(slow, "slurm")["WatchdogSec"]) == 600
    assert "StateDirectory" in unit
    elsewhere = replace(SITE, agent=AgentSection(state_dir="/srv/dw"))
    assert "StateDirectory" not in service(elsewhere, "slurm")


def test_it_goes_to_the_central_machine_of_each_batch_system() -> None:
    """And nowhere else; where condor_master keeps the agent there is no unit besides."""
    condor = {role for role in ("execute", "access", "central", "all") if has_unit(SITE, role)}
    assert condor == {"central", "all"}
    slurm = {role for role in ("node", "controller", "all") if UNIT in [one.path for one in render_slurm(SITE, role)]}
    assert slurm == {"controller", "all"}
    assert not has_unit(replace(SITE, agent=AgentSection(condor_master="yes")), "all")


def has_unit(site: SiteConfig, role: str) -> bool:
    """Whether the HTCondor machine of this role gets the unit."""
    return UNIT in [file.path for file in render_htcondor(site, role)]
