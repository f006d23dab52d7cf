"""The packages of a version, built from the working tree once for all workers of a run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import drainwise
from package_build.clone import PACKAGES, ROOT, copy_clone
from real_daemons.roots import lock

OLDER = "0.0.9"
"""The version before; what it has differs in its number alone."""
OLD_NAMES = "0.0.8"
"""A version before that, with the names that units had then."""


def built(kind: str, version: str, factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The packages `deb` or `rpm` of a version, by their names."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    place = base / f"{kind}-{version}"
    with lock(f"{place}.lock"):
        if not place.is_dir():
            _build(kind, version, base / f".{kind}-{version}", place)
    separator = {"deb": "_", "rpm": "-"}[kind]
    return {name: next(place.glob(f"{name}{separator}{version}*")) for name in PACKAGES}


def _build(kind: str, version: str, work: Path, place: Path) -> None:
    work.mkdir()
    clone = work / "clone"
    copy_clone(str(clone))
    begin = clone / "plugins" / "drainwise" / "__init__.py"
    begin.write_text(begin.read_text().replace(f'"{drainwise.__version__}"', f'"{version}"'))
    if version == OLD_NAMES:
        _give_old_names(clone)
    command = [ROOT + "/scripts/package" if version == drainwise.__version__ else clone / "scripts" / "package", kind]
    subprocess.run([*command, "--out", work / "out"], check=True, timeout=900)
    os.rename(work / "out", place)


def _give_old_names(clone: Path) -> None:
    """Undo the renaming of units in a clone."""
    for path in [path for path in clone.rglob("*") if path.is_file() and path.suffix != ".png"]:
        text = path.read_text().replace("drainwise-node-agent", "drainwise-slurm-agent")
        text = re.sub("^Alias=.*\n", "", text, flags=re.MULTILINE)
        path.write_text(re.sub(".*package-step rename .*", ":", text))
        path.rename(path.with_name(path.name.replace("drainwise-node-agent", "drainwise-slurm-agent")))
    renamed, stage = clone / "plugins/drainwise/install/rendered_tree.py", clone / "scripts/package_build/stage.py"
    renamed.write_text(re.sub("^RENAMED = .*", "RENAMED: dict[str, str] = {}", renamed.read_text(), flags=re.MULTILINE))
    text = stage.read_text()
    one = '    _write(root, [replace(unit, path=f"{UNITS}/{os.path.basename(UNIT)}")], sign=False)\n'
    link = 'os.symlink(os.path.basename(UNIT), f"{root}{UNITS}/drainwise-agent-{pool}.service")'
    unit = 'replace(agent_unit(site, pool, "network.target"), path=f"{UNITS}/drainwise-agent-{pool}.service")'
    assert one in text and link in text and ", names]" in text
    text = text.replace(one, "").replace(link, f"_write(root, [{unit}], sign=False)").replace(", names]", "]")
    stage.write_text(text)
    (clone / "packaging/package-back").write_text("#!/bin/sh\n")
