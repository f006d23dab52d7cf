"""What of the working tree the packages are built from."""

from __future__ import annotations

import os
import shutil
from typing import Any

from drainwise.common.typed_table import from_toml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGES = ("drainwise-node", "drainwise", "drainwise-condor", "drainwise-slurm")
_PARTS = ("plugins", "scripts", "packaging", "monitoring", "pyproject.toml", "LICENSE")


def beside_the_package() -> dict[str, str]:
    """Return the folders that the wheel takes into the package, each with its place there: `drainwise/…`."""
    path = f"{ROOT}/pyproject.toml"
    with open(path, encoding="utf-8") as file:
        project: Any = from_toml(path, file.read())
    found: dict[str, str] = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    return found


def copy_clone(tree: str) -> None:
    """Copy it into the directory `tree`, which it makes."""
    os.mkdir(tree)
    for name in (*_PARTS, *beside_the_package()):
        if os.path.isdir(f"{ROOT}/{name}"):
            shutil.copytree(f"{ROOT}/{name}", f"{tree}/{name}", ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(f"{ROOT}/{name}", tree)
