"""What is in each package, as a directory tree: the same for .deb and .rpm."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import replace

from drainwise.cli.config import example
from drainwise.cli.install import COMMAND_PLACE
from drainwise.htcondor.setup.render import ROLES, drop_in_path
from drainwise.htcondor.setup.render import render as render_htcondor
from drainwise.install.edited_files import signed
from drainwise.install.expected_files import LIBRARY
from drainwise.install.package import command_text
from drainwise.install.removal import AFTER_REMOVAL
from drainwise.install.rendered_tree import RENAMED, RenderedFile, write_tree
from drainwise.install.templates import FEATURES_UNIT, UNIT, agent_unit
from drainwise.siteconfig.schema import SiteConfig
from drainwise.slurm.setup.render import render as render_slurm
from package_build.clone import ROOT, beside_the_package
from package_build.pages import write_pages

PYTHON = "/usr/bin/python3"
UNITS = "/usr/lib/systemd/system"
POOL = "DRAINWISE_POOL"
"""By this variable the packaged unit of the agent knows its batch system, whose package sets it."""
FEATURES_URL = "https://%h:8443"
"""What a packaged server of features listens to, once it is enabled; for another URL a site renders its unit."""


def stage(out: str) -> None:
    """Write the tree of each package to `out`/NAME. Raises DrainwiseError for what cannot be written."""
    site = replace(SiteConfig(), agent=replace(SiteConfig().agent, command=COMMAND_PLACE))
    _node(os.path.join(out, "drainwise-node"), site)
    _central(os.path.join(out, "drainwise"), site)
    _condor(os.path.join(out, "drainwise-condor"), site)
    _slurm(os.path.join(out, "drainwise-slurm"), site)


def _node(root: str, site: SiteConfig) -> None:
    packages = f"{root}{LIBRARY}/package"
    shutil.copytree(f"{ROOT}/plugins", packages, ignore=shutil.ignore_patterns("__pycache__"))
    for folder, inside in beside_the_package().items():
        shutil.copytree(f"{ROOT}/{folder}", f"{packages}/{inside}")
    programs = [file for file in (*_htcondor_node(site), *_slurm_node(site)) if "/libexec/" in file.path]
    # Slurm's has all keys, so that it serves a machine with jobs of either batch system.
    [settings] = [file for file in _slurm_node(site) if file.path == site.slurm.node_file]
    _write(f"{root}{LIBRARY}/defaults/node", [*programs, settings])
    _write(root, [RenderedFile(COMMAND_PLACE, command_text(LIBRARY, PYTHON), 0o755)], sign=False)
    _copy(root, "package-step", f"{LIBRARY}/package-step", 0o755)
    _copy(root, "tmpfiles.conf", "/usr/lib/tmpfiles.d/drainwise.conf")
    write_pages(root)


def _central(root: str, site: SiteConfig) -> None:
    _write(root, [RenderedFile("/etc/drainwise/site.ini", example())], sign=False)
    unit = agent_unit(site, f"${{{POOL}}}", "condor.service slurmctld.service")
    _write(root, [replace(unit, path=f"{UNITS}/{os.path.basename(UNIT)}")], sign=False)
    for pool in ("htcondor", "slurm"):
        os.symlink(os.path.basename(UNIT), f"{root}{UNITS}/drainwise-agent-{pool}.service")
    _copy(root, "sysusers.conf", "/usr/lib/sysusers.d/drainwise.conf")
    shutil.copytree(f"{ROOT}/monitoring", f"{root}{LIBRARY}/monitoring")


def _condor(root: str, site: SiteConfig) -> None:
    files = {file.path: file for file in render_htcondor(site, "all")}
    parts = {f"{role}.conf": files[drop_in_path(role)] for role in ROLES}
    parts |= {os.path.basename(path): file for path, file in files.items() if path.endswith(".cpf")}
    [stays] = [file for file in files.values() if file.path.endswith(AFTER_REMOVAL)]
    _write(f"{root}{LIBRARY}/defaults/condor", [stays])
    _write(root, [replace(file, path=f"{LIBRARY}/condor/{name}") for name, file in parts.items()], sign=False)
    _copy(root, "50-drainwise.conf", "/etc/condor/config.d/50-drainwise.conf")
    _services(root, "htcondor", render_htcondor(_with_features_url(site), "execute"))


def _slurm(root: str, site: SiteConfig) -> None:
    files = _slurm_node(site)
    units = [file for file in files if file.path.endswith(("drainwise-node-agent.service", ".mount"))]
    _write(root, [replace(unit, path=f"{UNITS}/{os.path.basename(unit.path)}") for unit in units], sign=False)
    for old, new in RENAMED.items():
        os.symlink(os.path.basename(new), f"{root}{UNITS}/{os.path.basename(old)}")
    [lines] = [file for file in files if file.path.endswith("/drainwise.conf")]
    _write(root, [replace(lines, path=f"{LIBRARY}/slurm/new-cluster.conf")], sign=False)
    hooks = [file for file in files if file.path.startswith("/etc/slurm/") and file.mode & 0o111]
    _write(f"{root}{LIBRARY}/defaults/slurm", hooks)
    _services(root, "slurm", render_slurm(_with_features_url(site), "node"))


def _with_features_url(site: SiteConfig) -> SiteConfig:
    return replace(site, features=replace(site.features, url=FEATURES_URL))


def _services(root: str, pool: str, files: Iterable[RenderedFile]) -> None:
    [unit] = [file for file in files if file.path == FEATURES_UNIT]
    names = RenderedFile(f"{UNITS}/drainwise-agent.service.d/10-{pool}.conf", f"[Service]\nEnvironment={POOL}={pool}\n")
    _write(root, [replace(unit, path=f"{UNITS}/drainwise-features-{pool}.service"), names], sign=False)


def _htcondor_node(site: SiteConfig) -> tuple[RenderedFile, ...]:
    return render_htcondor(site, "execute")


def _slurm_node(site: SiteConfig) -> tuple[RenderedFile, ...]:
    return render_slurm(site, "node")


def _write(root: str, files: Iterable[RenderedFile], sign: bool = True) -> None:
    """Write the files; those that the installer puts in place later are signed, by which an edit is seen."""
    write_tree(map(signed, files) if sign else files, root)


def _copy(root: str, name: str, path: str, mode: int = 0o644) -> None:
    with open(f"{ROOT}/packaging/{name}", encoding="ascii") as stream:
        _write(root, [RenderedFile(path, stream.read(), mode)], sign=False)
