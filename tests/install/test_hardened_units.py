"""What each unit may do to the machine, by systemd's own measure, and how it is written for systemd of any age."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.htcondor.setup.render import render as render_htcondor
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.setup.render import render as render_slurm

SITE = replace(SiteConfig(), features=replace(SiteConfig().features, url="https://%h:443"))
UNITS = {
    (pool, file.path.rpartition("/")[2]): file.text
    for pool, files in (("htcondor", render_htcondor(SITE, "all")), ("slurm", render_slurm(SITE, "all")))
    for file in files
    if file.path.endswith(".service")
}
MOST = 3.0
"""Of 10, which is a service without any limit."""


def test_all_units_are_measured() -> None:
    agent, features = "drainwise-agent.service", "drainwise-features.service"
    pools = {("htcondor", agent), ("htcondor", features), ("slurm", agent), ("slurm", features)}
    assert set(UNITS) == {*pools, ("slurm", "drainwise-node-agent.service")}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("unit", UNITS)
def test_it_may_do_little(unit: tuple[str, str], tmp_path: Path) -> None:
    """systemd-analyze says a level of exposure, without a running systemd."""
    place = tmp_path / unit[1]
    place.write_text(UNITS[unit])
    ran = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(place)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = re.search(r"exposure level for \S+: ([0-9.]+)", ran.stdout)
    if said is None and "--offline" in ran.stderr:
        pytest.skip("systemd before 250 measures only what it runs")
    assert said is not None and float(said[1]) <= MOST, ran.stdout + ran.stderr


def test_a_reload_is_awaited_where_systemd_can() -> None:
    """systemd before 253 passes over the second line, and takes the first."""
    lines = [line for line in UNITS["slurm", "drainwise-agent.service"].splitlines() if line.startswith("Type=")]
    assert lines == ["Type=notify", "Type=notify-reload"]


def test_htcondors_library_may_look_at_the_machines_addresses() -> None:
    """Or it ends each process that asks the collector: seen on a whole machine alone."""
    [families] = re.findall("^RestrictAddressFamilies=(.*)", UNITS["htcondor", "drainwise-agent.service"], re.MULTILINE)
    assert families.split() == ["AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"]


def test_slurmd_starts_once_the_agent_of_the_node_listens() -> None:
    """It is never reloaded: notify-reload would send it a signal that it does not know."""
    lines = UNITS["slurm", "drainwise-node-agent.service"].splitlines()
    assert "Type=notify" in lines and "Before=slurmd.service" in lines
    assert not any(line.startswith(("Type=notify-reload", "ExecReload=")) for line in lines)
