"""The packages, on clean machines: installed, upgraded while jobs run, removed; whatever they leave harms no job."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import drainwise
from built_packages import OLDER, built
from clean_machine import InstalledMachine
from drainwise.cli.command_line.commands import COMMANDS
from drainwise.common.neighbours import PACKAGES as PACKAGES_BESIDE
from package_build.clone import PACKAGES, ROOT

pytestmark = [pytest.mark.daemons, pytest.mark.in_turn("installed", "packages")]

LIBRARY = "/usr/share/drainwise"
SLURM = ("drainwise-node", "drainwise", "drainwise-slurm")
PROLOG = "/etc/slurm/prolog.d/50-drainwise"
SITES = "# Checksum 0000000000000000: x\n# rendered from /etc/drainwise/site.ini.\nheartbeat_limit_secs = 77\n"
# Begins with the release in use, and imports the rest when it is told to.
SLOW = (
    f"import sys; sys.path.append('{LIBRARY}'); import drainwise; print('begun', flush=True); sys.stdin.read();"
    " import drainwise.node.hook; print(drainwise.node.hook.__file__)"
)


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Path]]:
    return {one: built("deb", one, tmp_path_factory) for one in (OLDER, drainwise.__version__)}


@pytest.fixture(scope="module")
def rpms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Path]]:
    return {one: built("rpm", one, tmp_path_factory) for one in (OLDER, drainwise.__version__)}


@pytest.fixture(params=["bookworm", "trixie"])
def machine(request: pytest.FixtureRequest) -> Iterator[InstalledMachine]:
    with InstalledMachine(request.param) as one:
        yield one


def text(machine: InstalledMachine, path: str) -> str:
    return Path(machine.root + path).read_text()


def installed(machine: InstalledMachine, files: dict[str, Path], names: tuple[str, ...]) -> str:
    """What dpkg says, which asks nobody anything."""
    for name in names:
        machine.copy_in(str(files[name]), f"/srv/{name}.deb")
    paths = [f"/srv/{name}.deb" for name in names]
    done = machine.run(["dpkg", "--force-confold", "-i", *paths], timeout=300)
    return done.stdout + done.stderr


def test_lintian_finds_nothing(debs: dict[str, dict[str, Path]]) -> None:
    ran = subprocess.run(
        ["lintian", "--allow-root", *debs[drainwise.__version__].values()], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "")


def test_rpmlint_finds_nothing(rpms: dict[str, dict[str, Path]]) -> None:
    config = f"{ROOT}/packaging/rpm/rpmlint.toml"
    command = ["rpmlint", "-c", str(config), *map(str, rpms[drainwise.__version__].values())]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0 and "0 errors, 0 warnings" in ran.stdout, ran.stdout


def test_a_node_works_without_rendering_and_nothing_is_in_force(
    machine: InstalledMachine, debs: dict[str, dict[str, Path]]
) -> None:
    """alice's hooks can read all of it; the drop-in is inactive, the services are not enabled; then it goes.

    On a machine of both batch systems, whose hooks read the same settings.
    """
    installed(machine, debs[drainwise.__version__], PACKAGES)
    reads = f"import sys; sys.path.append('{LIBRARY}'); import drainwise.node.hook"
    can = f"{reads}, drainwise.pilotad.node_reader as r; print(r.__cached__)"
    compiled = machine.run(["/usr/bin/python3", "-I", "-S", "-c", can], user="alice").stdout.strip()
    assert os.path.exists(machine.root + compiled)
    assert machine.run(["drainwise", "--version"], user="alice").stdout == f"drainwise {drainwise.__version__}\n"
    for name in ("prepare-hook", "update-hook", "pilot-cron", "slurm-agent"):
        assert "rendered from the defaults" in text(machine, f"/usr/libexec/drainwise/{name}")
    read = "from drainwise.node.settings import load; print(load('/etc/drainwise/node.conf').runtime_dir)"
    shown = machine.run(["/usr/bin/python3", "-I", "-S", "-c", f"{reads}; {read}"], user="alice").stdout
    assert shown == "/run/drainwise\n"
    for pool, root in (("htcondor", "condor_config_val EXECUTE"), ("slurm", "/run/drainwise")):
        server = text(machine, f"/usr/lib/systemd/system/drainwise-features-{pool}.service")
        assert f"/usr/bin/drainwise features serve {root}" in server.replace('"$$(', "") and "--port 8443" in server
    assert "if $(DRAINWISE_ENABLED:False)" in text(machine, "/etc/condor/config.d/50-drainwise.conf")
    assert not list(Path(f"{machine.root}/etc/systemd/system").rglob("*drainwise*"))
    pages = {path.name for path in Path(f"{machine.root}/usr/share/man/man1").glob("drainwise*")}
    assert pages == {"drainwise.1.gz", *(f"drainwise-{name}.1.gz" for name in COMMANDS)}
    for name in PACKAGES_BESIDE:  # the simulator imports numpy of the distribution
        assert f"usage: drainwise {name} " in machine.run(["drainwise", name, "--help"], user="alice").stdout
    machine.run(["dpkg", "-P", *PACKAGES[::-1]], timeout=120)
    left = machine.run(["sh", "-c", "find / -xdev -name '*drainwise*' -not -path '/srv/*' -not -path '/proc/*'"])
    assert left.stdout == ""


def test_an_upgrade_keeps_what_the_site_has_and_what_runs(
    machine: InstalledMachine, debs: dict[str, dict[str, Path]]
) -> None:
    """A hook that began with the older version ends with it; a downgrade is the same."""
    installed(machine, debs[OLDER], SLURM)
    hook = f"{machine.root}{PROLOG}"
    Path(f"{machine.root}/etc/drainwise/site.ini").write_text("[reclaim]\ngrace = 3h\n")
    Path(f"{machine.root}/etc/drainwise/node.conf").write_text(SITES)
    command = ["/usr/bin/python3", "-I", "-S", "-c", SLOW]
    inside = machine._inside.command(command, "central", "alice", "/home/alice", {}, 300.0)
    with subprocess.Popen(inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as slow:
        assert slow.stdout is not None and slow.stdout.readline() == "begun\n"
        installed(machine, debs[drainwise.__version__], SLURM)
        out, _ = slow.communicate("", timeout=60)
    assert f"/releases/{OLDER}." in out
    assert machine.run(["drainwise", "--version"]).stdout == f"drainwise {drainwise.__version__}\n"
    assert text(machine, "/etc/drainwise/site.ini") == "[reclaim]\ngrace = 3h\n"
    assert text(machine, "/etc/drainwise/node.conf") == SITES
    assert "rendered from the defaults" in Path(hook).read_text()
    for name in ("prometheus/drainwise.rules.yml", "grafana/overview.json", "grafana/why.json"):
        assert text(machine, f"{LIBRARY}/monitoring/{name}") == Path(ROOT, "monitoring", name).read_text()
    installed(machine, debs[OLDER], SLURM)
    assert machine.run(["drainwise", "--version"]).stdout == f"drainwise {OLDER}\n"


def test_a_prolog_that_slurm_still_names_becomes_a_stub(
    machine: InstalledMachine, debs: dict[str, dict[str, Path]]
) -> None:
    """It says so; the stub ends with 0; purge leaves it, too; the next installation has it work again.

    Where Slurm names the directory before, nothing is put there until drainwise is in force.
    """
    live = Path(f"{machine.root}/etc/slurm/slurm.conf")
    live.parent.mkdir(parents=True, exist_ok=True)
    live.write_text("Prolog=/etc/slurm/prolog.d/*\n")
    assert f"{PROLOG}: the batch system would run it at once" in installed(machine, debs[drainwise.__version__], SLURM)
    assert not os.path.lexists(machine.root + PROLOG)
    live.write_text("Prolog=/etc/slurm/prolog.d/*\nTaskProlog=/usr/libexec/drainwise/slurm-task-prolog\n")
    machine.run([f"{LIBRARY}/package-step", "place", "slurm"])
    assert "rendered from the defaults" in text(machine, PROLOG)
    said = machine.run(["dpkg", "-r", *SLURM[::-1]], timeout=120)
    assert f"{PROLOG}: the batch system's configuration names it" in said.stderr
    assert machine.run([PROLOG], check=False).returncode == 0
    assert not os.path.exists(f"{machine.root}/usr/libexec/drainwise/slurm-agent")
    said = machine.run(["dpkg", "-P", *SLURM[::-1]], timeout=120)
    assert f"{PROLOG} stays" in said.stderr
    assert machine.run([PROLOG], check=False).returncode == 0
    installed(machine, debs[drainwise.__version__], SLURM)
    assert "rendered from the defaults" in text(machine, PROLOG)


@pytest.fixture
def old_python() -> Iterator[InstalledMachine]:
    """Python 3.9, as on Enterprise Linux 9."""
    with InstalledMachine("bullseye") as one:
        yield one


def test_rpm_on_a_machine_with_python_3_9(old_python: InstalledMachine, rpms: dict[str, dict[str, Path]]) -> None:
    """Installed, upgraded over what the site has, a Slurm prolog that is named kept as a stub, all else erased."""
    names = ("drainwise-node", "drainwise", "drainwise-slurm")

    def rpm(*words: str | Path) -> subprocess.CompletedProcess[str]:
        command = ["rpm", "--root", old_python.root, *map(str, words)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran

    rpm("-i", "--nodeps", *(rpms[OLDER][name] for name in names))
    assert old_python.run(["drainwise", "--version"]).stdout == f"drainwise {OLDER}\n"
    Path(f"{old_python.root}/etc/drainwise/site.ini").write_text("[reclaim]\ngrace = 3h\n")
    rpm("-U", "--nodeps", *(rpms[drainwise.__version__][name] for name in names))
    assert old_python.run(["drainwise", "--version"], user="alice").stdout == f"drainwise {drainwise.__version__}\n"
    for name in PACKAGES_BESIDE.keys() - {"simulate"}:  # numpy is not there
        assert f"usage: drainwise {name} " in old_python.run(["drainwise", name, "--help"], user="alice").stdout
    assert text(old_python, "/etc/drainwise/site.ini") == "[reclaim]\ngrace = 3h\n"
    assert "prometheus" in text(old_python, f"{LIBRARY}/monitoring/grafana/overview.json")
    Path(f"{old_python.root}/etc/slurm/slurm.conf").write_text(f"Prolog={PROLOG}\n")
    said = rpm("-e", "--nodeps", *names[::-1])
    assert f"{PROLOG}: the batch system's configuration names it" in said.stderr + said.stdout
    assert old_python.run([PROLOG], check=False).returncode == 0
    left = old_python.run(["sh", "-c", "find / -xdev -name '*drainwise*' -not -path '/proc/*'"]).stdout.split()
    assert sorted(left) == ["/etc/drainwise", PROLOG], "the edited site file, and the stub"
    assert os.listdir(f"{old_python.root}/etc/drainwise") == ["site.ini.rpmsave"]
