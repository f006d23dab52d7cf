"""On whole machines with systemd: units that have another name since go on when packages are upgraded and downgraded.

What is enabled stays so and runs once, by the name that the packages of the time give it; the old names, and drop-ins
by them, go on. One machine has the packages' unit of the node's agent, the other one that the site has rendered.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import drainwise
from built_packages import OLD_NAMES, built
from package_build.clone import PACKAGES
from real_daemons.site import CENTRAL
from whole_machine import WholeMachines

pytestmark = [pytest.mark.play, pytest.mark.in_turn("quick start on whole machines", "names")]
OLD, NEW = "drainwise-slurm-agent", "drainwise-node-agent"
OLD_POOL, POOL = "drainwise-agent-htcondor", "drainwise-agent"
STUB = "[Service]\nType=simple\nWatchdogSec=0\nExecStart=\nExecStart=/bin/sleep {}\n"
SLEEPS = {NEW: "10001", POOL: "10002"}


@pytest.fixture
def site(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeMachines]:
    """Two machines with the packages of both versions at hand."""
    with WholeMachines(release, ("condor", "python3-numpy", "python3-jinja2"), nodes=1) as running:
        for version in (OLD_NAMES, drainwise.__version__):
            for name, path in built("deb", version, tmp_path_factory).items():
                for machine in running.machines:
                    running.copy_in(str(path), f"/srv/{version}/{name}.deb", node=machine)
        yield running


def test_names_go_on_in_upgrades_and_downgrades(site: WholeMachines) -> None:
    """Also when the machine starts again in between; what is taken out then leaves nothing of them."""
    for machine in site.machines:
        apt(site, machine, "install", OLD_NAMES)
        for name, seconds in ((OLD, SLEEPS[NEW]), (OLD_POOL, SLEEPS[POOL])):
            site.write(f"/etc/systemd/system/{name}.service.d/own.conf", STUB.format(seconds), machine)
    words = ["drainwise", "config", "slurm", "--live", "none", "--role", "node", "--out", "/srv/tree"]
    site.run(words, node="node1")
    site.run(["drainwise", "install", "--files-only", "--tree", "/srv/tree"], node="node1")
    assert Path(site.path(f"/etc/systemd/system/{OLD}.service", "node1")).exists()
    for machine in site.machines:
        site.systemctl("daemon-reload", node=machine)
        site.systemctl("enable", "--now", OLD, OLD_POOL, node=machine)
        goes_on_by(site, machine, OLD, OLD_POOL)
    before = {machine: processes(site, machine) for machine in site.machines}

    for machine in site.machines:
        print(apt(site, machine, "install", drainwise.__version__))
        goes_on_by(site, machine, NEW, POOL)
        again(site, machine, before[machine])
        assert "DRAINWISE_POOL=htcondor" in shown(site, machine, POOL, "Environment")
        here = processes(site, machine)
        site.systemctl("restart", OLD, OLD_POOL, node=machine)
        again(site, machine, here)
        site.cut_power(machine)
        site.boot(machine)
        goes_on_by(site, machine, NEW, POOL)

        print(apt(site, machine, "install", OLD_NAMES))
        goes_on_by(site, machine, OLD, OLD_POOL)
        site.cut_power(machine)
        site.boot(machine)
        goes_on_by(site, machine, OLD, OLD_POOL)

        apt(site, machine, "install", drainwise.__version__)
        goes_on_by(site, machine, NEW, POOL)
        site.systemctl("disable", "--now", NEW, POOL, node=machine)
        assert set(processes(site, machine).values()) == {""}
        if machine != CENTRAL:
            words = ["drainwise", "install", "--remove", "--files-only", "--tree", "/srv/tree"]
            site.run(words, node=machine)
        apt(site, machine, "purge", "")
        for name in (OLD, OLD_POOL):
            site.run(["rm", "-r", f"/etc/systemd/system/{name}.service.d"], node=machine)
        left = site.run(["find", "/etc/systemd", "/usr/lib/systemd", "-name", "*drainwise*"], node=machine).stdout
        assert left == ""


def test_a_rendered_unit_that_was_enabled_by_the_new_name_survives_a_downgrade(site: WholeMachines) -> None:
    """As does the packages' own."""
    for machine in site.machines:
        apt(site, machine, "install", drainwise.__version__)
        for name, seconds in SLEEPS.items():
            site.write(f"/etc/systemd/system/{name}.service.d/own.conf", STUB.format(seconds), machine)
            site.write(f"/etc/systemd/system/{OLD_POOL}.service.d/own.conf", STUB.format(SLEEPS[POOL]), machine)
            site.write(f"/etc/systemd/system/{OLD}.service.d/own.conf", STUB.format(SLEEPS[NEW]), machine)
    words = ["drainwise", "config", "slurm", "--live", "none", "--role", "node", "--out", "/srv/tree"]
    site.run(words, node="node1")
    site.run(["drainwise", "install", "--files-only", "--tree", "/srv/tree"], node="node1")
    for machine, names in ((CENTRAL, (OLD, "drainwise-agent-slurm")), ("node1", (NEW, "drainwise-agent-slurm"))):
        site.write("/etc/systemd/system/drainwise-agent-slurm.service.d/own.conf", STUB.format(SLEEPS[POOL]), machine)
        site.systemctl("daemon-reload", node=machine)
        site.systemctl("enable", "--now", NEW, POOL, node=machine)
        assert "DRAINWISE_POOL=slurm" in shown(site, machine, POOL, "Environment"), "both packages are here"
        apt(site, machine, "install", OLD_NAMES)
        goes_on_by(site, machine, *names)
        site.systemctl("restart", OLD, node=machine)


def apt(site: WholeMachines, machine: str, action: str, version: str) -> str:
    """What apt prints for all packages."""
    words = [f"/srv/{version}/{name}.deb" for name in PACKAGES] if version else list(PACKAGES)
    ran = site.run(["apt-get", "-y", "--allow-downgrades", action, *words], node=machine, timeout=300)
    return ran.stdout + ran.stderr


def processes(site: WholeMachines, machine: str) -> dict[str, str]:
    """By its new name what runs for each service."""
    words = ["pgrep", "--full", "--exact"]
    return {
        name: site.run([*words, f"/bin/sleep {seconds}"], node=machine, check=False).stdout.strip()
        for name, seconds in SLEEPS.items()
    }


def again(site: WholeMachines, machine: str, before: dict[str, str]) -> None:
    """Each service has started again."""
    site.wait_for(lambda: all(processes(site, machine).values()), 30, "what the services start")
    assert all(process != before[name] for name, process in processes(site, machine).items())


def goes_on_by(site: WholeMachines, machine: str, *names: str) -> None:
    """Each service runs once, is enabled, and is known by this name."""
    site.wait_for(lambda: all(processes(site, machine).values()), 30, "what the services start")
    for name, process in zip(names, processes(site, machine).values(), strict=True):
        state = shown(site, machine, name, "ActiveState", "Id", "MainPID").split()
        assert set(state) == {process, f"{name}.service", "active"}
        assert site.systemctl("is-enabled", name, node=machine).stdout == "enabled\n"


def shown(site: WholeMachines, machine: str, name: str, *properties: str) -> str:
    """What systemd knows of a unit, a line for each property."""
    words = [f"--property={','.join(properties)}", "--value"]
    return site.systemctl("show", *words, name, node=machine).stdout.strip()
