"""`apt purge` on a whole machine of HTCondor with systemd, while pilots run there that have had orders: they go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import drainwise
from built_packages import built
from drainwise.install.removal import AFTER_REMOVAL
from whole_machine import WholeMachines
from whole_sites import SOON

pytestmark = [pytest.mark.play, pytest.mark.in_turn("faults on whole machines", "purge")]
CONDOR_CONF = f"""\
use ROLE : CentralManager
use ROLE : Submit
use ROLE : Execute
{SOON}"""
JOB = """\
executable = /bin/sleep
arguments = 3000
transfer_executable = False
queue 2
"""
NAMES = ("drainwise-node", "drainwise-condor")
STAYS = f"/etc/condor/config.d/{AFTER_REMOVAL}"
ENABLED = "/etc/condor/config.d/40-drainwise-enabled.conf"
RUNS = ["condor_status", "-constraint", "JobStart isnt undefined", "-af", "Name", "GlobalJobId", "JobStart"]
RETIRES = ["condor_status", "-constraint", 'Activity == "Retiring"', "-af", "RetirementTimeRemaining"]


@pytest.fixture
def site(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeMachines]:
    """A pool of one machine by HTCondor's own package, with ours."""
    with WholeMachines(release, ("condor",)) as running:
        for name, path in built("deb", drainwise.__version__, tmp_path_factory).items():
            Path(running.path(f"/srv/{name}.deb")).write_bytes(path.read_bytes())
        running.write("/etc/condor/config.d/10-pool", CONDOR_CONF)
        running.systemctl("start", "condor")
        yield running


def apt(site: WholeMachines, *words: str) -> str:
    """What apt prints."""
    ran = site.run(["apt-get", "-y", *words], timeout=300)
    return ran.stdout + ran.stderr


def test_a_purge_evicts_nobody_and_leaves_what_says_so(site: WholeMachines) -> None:
    """Nor does a later reconfig; where the startd has had no order, as after its next start, a purge leaves nothing."""
    files = [f"/srv/{name}.deb" for name in NAMES]
    ready = ["condor_status", "-constraint", "PartitionableSlot", "-af", "Name"]
    site.wait_for(lambda: site.run(ready, check=False).stdout, 60, "the slot")
    apt(site, "install", *files)
    assert Path(site.path(STAYS)).exists()
    assert AFTER_REMOVAL not in apt(site, "purge", *NAMES) and not Path(site.path(STAYS)).exists()

    apt(site, "install", *files)
    site.write(ENABLED, "DRAINWISE_ENABLED = True\n")
    site.systemctl("restart", "condor")
    site.wait_for(lambda: known(site, "ENABLE_RUNTIME_CONFIG") == "True", 60, "the startd")
    site.run(["condor_submit", "-"], user="alice", stdin=JOB)
    site.wait_for(lambda: len(runs(site)) == 2, 90, "both pilots")
    before = runs(site)
    ordered, withdrawn = before.values()
    give(site, f"{ordered}=1999999999 {withdrawn}=1999999999")
    site.wait_for(lambda: len(left(site)) == 2, 60, "slots that retire")
    give(site, f"{withdrawn}=0 {ordered}=1999999999")

    said = apt(site, "purge", *NAMES)
    assert f"{STAYS}: stays" in said and "next reboot" in said
    left_behind = site.run(["sh", "-c", "find /usr /etc /var/lib /run -xdev -name '*drainwise*'"]).stdout.split()
    assert sorted(left_behind) == [ENABLED, STAYS]
    for number in ("1", "2"):
        site.write("/etc/condor/config.d/99-again", f"AGAIN = {number}\n")
        site.run(["condor_reconfig"])
        site.wait_for(lambda number=number: known(site, "AGAIN") == number, 60, "a reconfig")  # type: ignore[misc]
    site.wait_for(lambda: len(left(site)) == 2 and min(left(site)) > 300_000_000, 60, "slots that go on")
    assert runs(site) == before

    site.systemctl("restart", "condor")
    site.wait_for(lambda: known(site, "PILOT_RECLAIM") == "Not defined", 60, "the startd's next start")
    apt(site, "install", *files)
    apt(site, "purge", *NAMES)
    assert not Path(site.path(STAYS)).exists()


def runs(site: WholeMachines) -> dict[str, str]:
    """Slot -> the run in it."""
    rows = [line.split() for line in site.run(RUNS, check=False).stdout.splitlines()]
    return {name: f"{job}@{start}" for name, job, start in sorted(rows)}


def left(site: WholeMachines) -> list[int]:
    """What the slots that retire have left, in s."""
    return [int(word) for word in site.run(RETIRES, check=False).stdout.split()]


def give(site: WholeMachines, orders: str) -> None:
    """As the agent gives them."""
    site.run(["condor_config_val", "-startd", "-rset", f"PILOT_RECLAIM = {orders}"])
    site.run(["condor_reconfig", "-startd"])
    site.wait_for(lambda: known(site, "PILOT_RECLAIM") == orders, 30, "the knob")


def known(site: WholeMachines, knob: str) -> str:
    """A knob as the startd has it; "" while there is none."""
    return site.run(["condor_config_val", "-startd", knob], check=False).stdout.strip()
