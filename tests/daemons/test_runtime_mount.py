"""On a whole machine with systemd: the jobs' trees have a file system of their own, but it never covers trees."""

from __future__ import annotations

import pytest

from drainwise.siteconfig import SiteConfig
from drainwise.slurm.setup.render import render
from whole_machine import WholeMachines

pytestmark = pytest.mark.play
STUB = "[Service]\nType=simple\nWatchdogSec=0\nExecStart=\nExecStart=/bin/sleep 1000\n"
AGENT = "drainwise-node-agent"


@pytest.mark.parametrize("release", ["trixie", "sid"])
def test_the_agents_unit_brings_the_mount(release: str) -> None:
    """It is seen by all of the machine. With the tree of a running job in place the agent starts without it."""
    with WholeMachines(release, ("slurmd",)) as site:
        for file in render(SiteConfig(), "node"):
            if file.path.endswith((".service", ".mount")):
                site.write(file.path, file.text)
        site.write(f"/etc/systemd/system/{AGENT}.service.d/stub.conf", STUB)
        site.systemctl("daemon-reload")
        site.run(["mkdir", "-p", "/run/drainwise/jobs/17/tree"])
        site.systemctl("start", AGENT)
        assert site.systemctl("is-active", AGENT).stdout.strip() == "active"
        assert site.run(["mountpoint", "-q", "/run/drainwise"], check=False).returncode != 0
        site.systemctl("stop", AGENT)
        site.run(["rm", "-r", "/run/drainwise"])
        site.systemctl("start", AGENT)
        [shown] = [line for line in site.run(["cat", "/proc/mounts"]).stdout.splitlines() if " /run/drainwise " in line]
        assert shown.startswith("drainwise /run/drainwise tmpfs ")
        assert {"nosuid", "nodev", "noexec", "size=262144k"} <= set(shown.split()[3].split(","))
