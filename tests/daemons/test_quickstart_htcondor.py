"""The lines of docs/quickstart-htcondor.md, typed as they stand on a real pool while jobs run: none of them is harmed.

The packages go in by dpkg, and pip fetches from a directory, since the pool has no network. Its machines share one root
file system and keep their configuration apart, so the node includes what /etc/condor/config.d has of drainwise.

The packages of the first steps are of an earlier version, N-1, those of the upgrade are this one: between the two this
version's commands look at nodes of the earlier one.
"""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import drainwise
from asked_doctor import assert_doctors, versions_and_orders
from clean_machine import wheels_for
from condor_jobs import scripted
from condor_pool import CondorPool
from package_build.clone import ROOT, copy_clone

PAGE = Path(ROOT, "docs", "quickstart-htcondor.md").read_text()
READS = """\
include ifexist : /etc/condor/config.d/40-drainwise-enabled.conf
include ifexist : /etc/condor/config.d/50-drainwise.conf
UPDATE_INTERVAL = 3
"""
WAIT_SECS = 90.0
EARLIER = "0.0.9"


def lines_of(step: str) -> list[list[str]]:
    """The blocks of a step, each as its lines."""
    text = PAGE.partition(f"## {step}")[2].partition("\n## ")[0]
    assert text, f"no step {step!r}"
    return [block.splitlines() for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]


@dataclass(frozen=True)
class Admin:
    """Somebody who types lines on machines of a pool."""

    pool: CondorPool
    debs: dict[str, str]
    """Where the packages lie, by their version."""
    wheels: str
    version: list[str]
    """Of the packages that `apt install` takes now."""

    def types(self, line: str, node: str) -> str:
        """What a line prints."""
        if line.startswith("apt "):
            return self._apt(line.split())
        if line.startswith("pip "):
            return self._pip(line.split())
        return self.pool.run(["sh", "-ec", line], node=node, timeout=120).stdout

    def _apt(self, words: list[str]) -> str:
        """By the dpkg of this machine: the pool's root has HTCondor, unpacked, and no database of packages."""
        if words[1] == "purge":
            argv = ["--purge", *words[2:]]
        else:
            files = [next(Path(self.debs[self.version[-1]]).glob(word)) for word in words[2:]]
            argv = ["--install", "--force-confold", *map(str, files)]
        command = ["dpkg", f"--root={self.pool.root}", "--force-depends", *argv]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr

    def _pip(self, words: list[str]) -> str:
        """Unpack the wheels, also of what Debian's packages bring: pip looks at the Python it runs on."""
        target = self.pool.root + words[words.index("--target") + 1]
        for name in (words[-1], "numpy", "jinja2", "markupsafe"):
            with zipfile.ZipFile(next(Path(self.wheels).glob(f"{name}-*.whl"))) as wheel:
                wheel.extractall(target)
        return ""


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    found = {}
    for version in (EARLIER, drainwise.__version__):
        place = tmp_path_factory.mktemp("debs")
        copy_clone(str(place / "clone"))
        begin = place / "clone" / "plugins" / "drainwise" / "__init__.py"
        begin.write_text(begin.read_text().replace(f'"{drainwise.__version__}"', f'"{version}"'))
        build = [f"{place}/clone/scripts/package", "deb", "--out", f"{place}/out"]
        subprocess.run(build, check=True, timeout=300)
        found[version] = str(place / "out")
    return found


@pytest.fixture(scope="module")
def plain_pool(release: str) -> Iterator[CondorPool]:
    """A pool on which nobody thought of drainwise, with a job that runs for the whole test."""
    with CondorPool(nodes=1, cpus=4, release=release, config={"execute": READS}) as running:
        yield running


@pytest.fixture(scope="module")
def admin(plain_pool: CondorPool, debs: dict[str, str]) -> Admin:
    Path(f"{plain_pool.root}/var/lib/dpkg").mkdir(parents=True, exist_ok=True)
    for name in ("info", "updates", "triggers"):
        Path(f"{plain_pool.root}/var/lib/dpkg/{name}").mkdir(exist_ok=True)
    Path(f"{plain_pool.root}/var/lib/dpkg/status").touch()
    asked = "import sys; print(*sys.version_info[:2], sep='.')"
    return Admin(plain_pool, debs, wheels_for(plain_pool.run(["python3", "-c", asked]).stdout.strip()), [EARLIER])


def test_the_quick_start(admin: Admin) -> None:
    """From no package to the first figure, an order, an upgrade and back to nothing; the job of before still runs."""
    pool = admin.pool
    before = pool.run(["sh", "-c", "condor_config_val STARTD_CRON_JOBLIST || true"], node="node1").stdout
    job = pool.submit(scripted("exec sleep 3000", "node1", cores=1), user="alice")
    pool.wait_for(lambda: pool.queue(f"ClusterId == {job} && JobStatus == 2", ["JobStatus"]), WAIT_SECS, "the job")
    [installs] = lines_of("1.")
    assert "drainwise " in [admin.types(line, "node1") for line in installs][-1]
    assert pool.run(["sh", "-c", "condor_config_val STARTD_CRON_JOBLIST || true"], node="node1").stdout == before

    enables, sees = lines_of("2.")
    for line in enables:
        admin.types(line, "node1")
    pool.wait_for(lambda: re.search(r"slot1_1@\S+ \d{10}", admin.types(sees[0], "central")), WAIT_SECS, "a heartbeat")

    [[figures]] = lines_of("3.")
    pilot = pool.submit(scripted("exec sleep 3000", "node1", cores=1), user="bob")
    assert pilot
    pool.wait_for(lambda: len(admin.types(figures, "central").splitlines()) == 2, WAIT_SECS, "both slots in use")

    [central] = lines_of("4.")
    seen = [admin.types(line, "central") for line in central]
    assert "alice" in seen[-2] and "cannot be given an order" in seen[-1]

    assert pool.queue(f"ClusterId == {job} && JobStatus == 2 && NumShadowStarts == 1", ["JobStatus"])
    pool.run(["condor_rm", "-all"])
    restart, token, order = lines_of("6.")
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

    assert versions_and_orders(pool) == ({EARLIER: 1}, 1), "this version reads nodes of the earlier one"
    admin.version.append(drainwise.__version__)
    again, away = lines_of("Upgrade")
    for line in again:
        admin.types(line, "node1")
    pool.wait_for(lambda: versions_and_orders(pool)[0] == {drainwise.__version__: 1}, WAIT_SECS, "the node's version")
    assert versions_and_orders(pool)[1] == 1, "the order stands"
    # Ordered to go within the hour, it runs.
    assert pool.queue(f"ClusterId == {later} && JobStatus == 2 && NumShadowStarts == 1", ["JobStatus"])
    assert_doctors(pool)
    for line in away:
        admin.types(line, "node1")
    left = pool.run(["sh", "-c", "find /usr /etc /var /run -xdev -name '*drainwise*' -not -path '*/log/*'"]).stdout
    assert sorted(left.split()) == ["/etc/condor/tokens.d/drainwise", "/usr/local/lib/drainwise"], "the site's own"
    assert pool.run(["sh", "-c", "condor_config_val STARTD_CRON_JOBLIST || true"], node="node1").stdout == before
    last = pool.submit(scripted("echo done", "node1", cores=1), user="bob")
    pool.wait_for(lambda: pool.history(f"ClusterId == {last}", ["ExitCode"]), WAIT_SECS, "a job without drainwise")


def _names_a_pilot(admin: Admin, line: str) -> str:
    """What it prints once it names one; what it prints before is in the test's output."""
    printed = admin.types(line, "central")
    print(printed)
    return printed if "slot1_" in printed else ""
