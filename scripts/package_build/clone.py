"""What of the working tree the packages are built from."""

from __future__ import annotations

import os
import shutil

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGES = ("drainwise-node", "drainwise", "drainwise-condor", "drainwise-slurm")
_PARTS = ("plugins", "condor_config.d", "slurm", "systemd", "prologs", "scripts", "packaging", "LICENSE")


def copy_clone(tree: str) -> None:
    """Copy it into the directory `tree`, which it makes."""
    os.mkdir(tree)
    for name in _PARTS:
        if os.path.isdir(f"{ROOT}/{name}"):
            shutil.copytree(f"{ROOT}/{name}", f"{tree}/{name}", ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(f"{ROOT}/{name}", tree)
