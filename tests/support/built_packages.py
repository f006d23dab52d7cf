"""The packages of a version, built from the working tree once for all workers of a run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import drainwise
from package_build.clone import PACKAGES, ROOT, copy_clone
from real_daemons.roots import lock

OLDER = "0.0.9"
"""The version before; what it has differs in its number alone."""


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
    command = [ROOT + "/scripts/package" if version == drainwise.__version__ else clone / "scripts" / "package", kind]
    subprocess.run([*command, "--out", work / "out"], check=True, timeout=900)
    os.rename(work / "out", place)
