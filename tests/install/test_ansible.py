"""The Ansible role on clean machines, by Ansible itself: each role of both batch systems; a second run changes nothing.

Ansible runs on the machine itself, as the machines have no network. There is no systemd, so no service is started.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import drainwise
from built_packages import built
from clean_machine import InstalledMachine
from drainwise.install.edited_files import signed
from drainwise.install.rendered_tree import RenderedFile
from package_build.clone import ROOT

pytestmark = [pytest.mark.daemons, pytest.mark.in_turn("installed", "Ansible")]

REQUIREMENTS = ("ansible-core>=2.16,<2.20",)
PYTHON = (3, 11)
"""Of the machine, for which Ansible's libraries are fetched."""
ENABLED = "/etc/condor/config.d/40-drainwise-enabled.conf"
SITE = "[reclaim]\ngrace = 3h\n"


@pytest.fixture(scope="module")
def ansible(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ansible in a directory, as pip installs it."""
    place = tmp_path_factory.mktemp("ansible")
    version = ".".join(map(str, PYTHON))
    options = ["--quiet", "--no-compile", "--only-binary=:all:", f"--python-version={version}", f"--target={place}"]
    command = [sys.executable, "-m", "pip", "install", *options, *REQUIREMENTS]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if ran.returncode != 0:
        pytest.skip(f"Ansible is not to be had: {ran.stderr[-300:]}")
    return place


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return built("deb", drainwise.__version__, tmp_path_factory)


@pytest.fixture
def machine(ansible: Path, debs: dict[str, Path]) -> Iterator[InstalledMachine]:
    with InstalledMachine("bookworm") as one:
        srv = Path(one.root, "srv")
        shutil.copytree(ansible, srv / "ansible")
        (srv / "debs").mkdir()
        for package in debs.values():
            shutil.copy(package, srv / "debs")
        shutil.copytree(Path(ROOT, "packaging", "ansible", "roles"), srv / "roles")
        for name in ("condor_reconfig", "scontrol"):
            program = Path(one.root, "usr", "sbin", name)
            program.write_text(f'#!/bin/sh\necho "{name} $*" >> /srv/called\n')
            program.chmod(0o755)
        yield one


def called(machine: InstalledMachine) -> list[str]:
    """What was asked of the batch system since the last look."""
    log = Path(machine.root, "srv", "called")
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return [line.strip() for line in lines]


def played(machine: InstalledMachine, **values: object) -> int:
    """Run the role; how many of its tasks changed something."""
    role = {"role": "drainwise", "drainwise_package_dir": "/srv/debs", **values}
    play = [{"hosts": "all", "connection": "local", "roles": [role]}]
    Path(machine.root, "srv", "play.yml").write_text(json.dumps(play))  # which is YAML
    environment = {
        "PYTHONPATH": "/srv/ansible",
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3",
        "ANSIBLE_ROLES_PATH": "/srv/roles",
    }
    words = ["/usr/bin/env", *(f"{name}={value}" for name, value in environment.items())]
    words += ["/usr/bin/python3", "-m", "ansible", "playbook", "-i", "here,", "/srv/play.yml"]
    ran = machine.run(words, check=False, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = re.search(r"ok=\d+\s+changed=(\d+)\s+unreachable=0\s+failed=0", ran.stdout)
    assert found is not None, ran.stdout
    return int(found[1])


def test_machines_of_htcondor(machine: InstalledMachine) -> None:
    tree = Path(machine.root, "srv", "tree", "etc", "drainwise")
    tree.mkdir(parents=True)
    (tree / "node.conf").write_text(signed(RenderedFile("", "heartbeat_limit_secs = 77\n")).text)
    node = {"drainwise_batch": "htcondor", "drainwise_role": "node", "drainwise_tree": "/srv/tree"}
    assert played(machine, **node) > 0
    assert Path(machine.root + ENABLED).read_text() == "DRAINWISE_ENABLED = True\n"
    assert "heartbeat_limit_secs = 77\n" in Path(f"{machine.root}/etc/drainwise/node.conf").read_text()
    assert called(machine) == ["condor_reconfig"]
    assert machine.run(["drainwise", "--version"], user="alice").stdout.startswith("drainwise ")
    assert (played(machine, **node), called(machine)) == (0, [])
    Path(machine.root, "srv", "site.ini").write_text(SITE)
    central = {**node, "drainwise_role": "central", "drainwise_site_file": "/srv/site.ini"}
    assert played(machine, **central) > 0
    assert Path(f"{machine.root}/etc/drainwise/site.ini").read_text() == SITE
    assert (played(machine, **central), called(machine)) == (0, [])
    assert (played(machine, **central, drainwise_enabled=False), called(machine)) == (2, ["condor_reconfig"])
    assert not Path(machine.root + ENABLED).exists()


def test_machines_of_slurm(machine: InstalledMachine) -> None:
    slurm_conf = Path(f"{machine.root}/etc/slurm/slurm.conf")
    slurm_conf.parent.mkdir(parents=True, exist_ok=True)
    slurm_conf.write_text("ClusterName=test\n")
    node: dict[str, object] = {"drainwise_batch": "slurm", "drainwise_role": "node"}
    assert played(machine, **node) > 0
    assert Path(f"{machine.root}/etc/slurm/prolog.d/50-drainwise").exists()
    assert (played(machine, **node), called(machine)) == (0, [])
    assert slurm_conf.read_text() == "ClusterName=test\n"
    central = {**node, "drainwise_role": "central", "drainwise_slurm_conf": "/etc/slurm/slurm.conf"}
    assert played(machine, **central) > 0
    assert slurm_conf.read_text() == "ClusterName=test\nInclude drainwise.conf\n"
    assert called(machine) == ["scontrol reconfigure"]
    assert (played(machine, **central), called(machine)) == (0, [])
