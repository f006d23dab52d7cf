"""The lines of docs/quickstart-htcondor.md, typed as they stand on a real pool while jobs run: none of them is harmed.

On one release by .deb, on the other by .rpm beside Python 3.9, as Enterprise Linux 9 has it. dpkg and rpm put the
packages in, and pip fetches from a directory, since the pool has no network. Its machines share one root file system
and keep their configuration apart, so the node includes what /etc/condor/config.d has of drainwise.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

import drainwise
from asked_doctor import assert_doctors, shows_version, versions_and_orders
from built_packages import OLDER, built
from clean_machine import give_python, wheels_for
from condor_jobs import scripted
from condor_pool import CondorPool
from typed_page import blocks_of, packages_named, unpack_wheels

pytestmark = [pytest.mark.play, pytest.mark.in_turn("quick start", "HTCondor")]
PAGE = "quickstart-htcondor.md"
KINDS = {"trixie": "deb", "sid": "rpm"}
READS = """\
include ifexist : /etc/condor/config.d/40-drainwise-enabled.conf
include ifexist : /etc/condor/config.d/50-drainwise.conf
include ifexist : /etc/condor/config.d/51-drainwise-after-removal.conf
UPDATE_INTERVAL = 3
"""
WAIT_SECS = 90.0


@dataclass
class Admin:
    """Somebody who types lines on machines of a pool, which has packages of a kind."""

    pool: CondorPool
    kind: str
    wheels: str
    packages: dict[str, Path] = field(default_factory=dict)

    def types(self, line: str, node: str) -> str:
        """What a line prints."""
        if line.startswith("apt "):
            return self._packages(line.split())
        if line.startswith("pip "):
            return self._pip(line.split())
        return self.pool.run(["sh", "-ec", line], node=node, timeout=120).stdout

    def _packages(self, words: list[str]) -> str:
        """By the dpkg or rpm of this machine: the pool's root has HTCondor, unpacked, and no database of packages."""
        if words[1] == "purge":
            named = ["drainwise", *words[2:]]  # apt takes what needs them
            argv = {"deb": ["--force-depends", "--purge"], "rpm": ["--erase", "--nodeps"]}[self.kind]
        else:
            named = [str(self.packages[name]) for name in packages_named(words[2:])]
            argv = {
                "deb": ["--force-depends", "--install", "--force-confold"],
                "rpm": ["--upgrade", "--nodeps", "--oldpackage", "--replacepkgs"],
            }[self.kind]
        program = {"deb": "dpkg", "rpm": "rpm"}[self.kind]
        command = [program, f"--root={self.pool.root}", *argv, *named]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr

    def _pip(self, words: list[str]) -> str:
        """With what the distribution's packages bring, too."""
        target = self.pool.root + words[words.index("--target") + 1]
        unpack_wheels(self.wheels, (words[-1], "numpy", "jinja2", "markupsafe"), target)
        return ""


@pytest.fixture(scope="module")
def plain_pool(release: str) -> Iterator[CondorPool]:
    """A pool on which nobody thought of drainwise."""
    with CondorPool(nodes=1, cpus=4, release=release, config={"execute": READS}) as running:
        yield running


@pytest.fixture(scope="module")
def admin(plain_pool: CondorPool) -> Admin:
    kind = KINDS[plain_pool.release]
    if kind == "rpm":
        return Admin(plain_pool, kind, wheels_for(give_python("bullseye", plain_pool.root)))
    Path(f"{plain_pool.root}/var/lib/dpkg").mkdir(parents=True, exist_ok=True)
    for name in ("info", "updates", "triggers"):
        Path(f"{plain_pool.root}/var/lib/dpkg/{name}").mkdir(exist_ok=True)
    Path(f"{plain_pool.root}/var/lib/dpkg/status").touch()
    asked = "import sys; print(*sys.version_info[:2], sep='.')"
    return Admin(plain_pool, kind, wheels_for(plain_pool.run(["python3", "-c", asked]).stdout.strip()))


def test_the_quick_start(admin: Admin, tmp_path_factory: pytest.TempPathFactory) -> None:
    """From no package to the first figure, an order, an upgrade and back to nothing; the job of before still runs."""
    pool = admin.pool
    admin.packages = built(admin.kind, OLDER, tmp_path_factory)
    before = pool.run(["sh", "-c", "condor_config_val STARTD_CRON_JOBLIST || true"], node="node1").stdout
    job = pool.submit(scripted("exec sleep 3000", "node1", cores=1), user="alice")
    pool.wait_for(lambda: pool.queue(f"ClusterId == {job} && JobStatus == 2", ["JobStatus"]), WAIT_SECS, "the job")
    [installs] = blocks_of(PAGE, "1.")
    assert "drainwise " in [admin.types(line, "node1") for line in installs][-1]
    assert pool.run(["sh", "-c", "condor_config_val STARTD_CRON_JOBLIST || true"], node="node1").stdout == before

    enables, sees = blocks_of(PAGE, "2.")
    for line in enables:
        admin.types(line, "node1")
    pool.wait_for(lambda: re.search(r"slot1_1@\S+ \d{10}", admin.types(sees[0], "central")), WAIT_SECS, "a heartbeat")

    [[figures]] = blocks_of(PAGE, "3.")
    pilot = pool.submit(scripted("exec sleep 3000", "node1", cores=1), user="bob")
    assert pilot
    pool.wait_for(lambda: len(admin.types(figures, "central").splitlines()) == 2, WAIT_SECS, "both slots in use")

    [central] = blocks_of(PAGE, "4.")
    seen = [admin.types(line, "central") for line in central]
    assert "alice" in seen[-2] and "cannot be given an order" in seen[-1]

    assert pool.queue(f"ClusterId == {job} && JobStatus == 2 && NumShadowStarts == 1", ["JobStatus"])
    pool.run(["condor_rm", "-all"])
    restart, token, order = blocks_of(PAGE, "6.")
    admin.types(restart[0], "node1")
    state = "condor_status -startd -af PilotOrdersSince DaemonStartTime"

    def takes_orders() -> bool:
        rows = [line.split() for line in admin.types(state, "central").splitlines()]
        return bool(rows) and all(row[0].isdigit() and 0 < int(row[0]) <= int(row[1]) for row in rows)

    pool.wait_for(takes_orders, WAIT_SECS, "a startd that takes orders")
    later = pool.submit(scripted("exec sleep 3000", "node1", cores=2), user="alice")
    pool.wait_for(lambda: pool.queue(f"ClusterId == {later} && JobStatus == 2", ["JobStatus"]), WAIT_SECS, "a pilot")
    trial, dry_run, act, _ = order
    for line in (*token, trial):
        admin.types(line, "central")
    pool.wait_for(lambda: "slot1_" in admin.types("drainwise status", "central"), WAIT_SECS, "the pilot's row")
    assert pool.wait_for(lambda: _names_a_pilot(admin, dry_run), 20.0, "a pilot in the dry run")
    print(admin.types(act, "central"))
    shown = "condor_status -constraint 'PilotReclaimDeadline isnt undefined' -af Name"
    pool.wait_for(lambda: admin.types(shown, "central"), 20.0, "the order in the slot")

    assert versions_and_orders(pool) == ({OLDER: 1}, 1), "this version reads nodes of the one before"
    again, away = blocks_of(PAGE, "Upgrade")
    for version in (drainwise.__version__, OLDER):
        admin.packages = built(admin.kind, version, tmp_path_factory)
        _upgrade(admin, again, version)
        # Ordered to go within the hour, it runs.
        assert pool.queue(f"ClusterId == {later} && JobStatus == 2 && NumShadowStarts == 1", ["JobStatus"])
        assert admin.types(shown, "central"), "the order stands"
    _take_away(admin, away, later)
    left = pool.run(["sh", "-c", "find /usr /etc /var /run -xdev -name '*drainwise*' -not -path '*/log/*'"]).stdout
    noted = {"deb": [], "rpm": ["/var/lib/drainwise"]}[admin.kind]
    sites = ["/etc/condor/tokens.d/drainwise", "/usr/local/lib/drainwise"]
    assert sorted(left.split()) == ["/etc/condor/config.d/51-drainwise-after-removal.conf", *sites, *noted]
    assert pool.run(["sh", "-c", "condor_config_val STARTD_CRON_JOBLIST || true"], node="node1").stdout == before
    last = pool.submit(scripted("echo done", "node1", cores=1), user="bob")
    pool.wait_for(lambda: pool.history(f"ClusterId == {last}", ["ExitCode"]), WAIT_SECS, "a job without drainwise")


def _take_away(admin: Admin, lines: list[str], ordered: int) -> None:
    """By another value and by the page's lines, of which neither one nor a later reconfig ends the ordered pilot."""
    admin.types("echo 'DRAINWISE_ENABLED = False' > /etc/condor/config.d/40-drainwise-enabled.conf", "node1")
    admin.pool.reconfigure("node1")
    for line in lines:
        print(admin.types(line, "node1"))
    admin.pool.reconfigure("node1")
    endless = 'Activity == "Retiring" && PilotReclaimOrders is undefined && RetirementTimeRemaining > 300000000'
    admin.pool.wait_for(lambda: admin.pool.slots(endless, ["Name"]), WAIT_SECS, "the slot that goes on")
    running = f"ClusterId == {ordered} && JobStatus == 2 && NumShadowStarts == 1"
    assert admin.pool.queue(running, ["JobStatus"])


def _upgrade(admin: Admin, lines: list[str], version: str) -> None:
    """Go over to the packages at hand; the node says its version, and `doctor` finds what it needs on both machines."""
    for line in lines:
        admin.types(line, "node1")
    assert admin.types("drainwise --version", "node1") == f"drainwise {version}\n"
    shows = partial(shows_version, admin.pool, version)
    admin.pool.wait_for(shows, WAIT_SECS, "the node's version")
    if version == drainwise.__version__:
        assert_doctors(admin.pool)


def _names_a_pilot(admin: Admin, line: str) -> str:
    """What it prints once it names one; what it prints before is in the test's output."""
    printed = admin.types(line, "central")
    print(printed)
    return printed if "slot1_" in printed else ""
