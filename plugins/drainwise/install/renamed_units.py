"""Rendered units that had another name in earlier releases: what stands by the old name goes on by the new one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from drainwise.install.rendered_tree import RenderedFile

_UNITS = "/etc/systemd/system"
RENAMED = {f"{_UNITS}/drainwise-slurm-agent.service": f"{_UNITS}/drainwise-node-agent.service"}


def with_new_names(files: Iterable[RenderedFile]) -> tuple[RenderedFile, ...]:
    """Return the files of a tree, which an earlier release may have rendered, by the names of this one."""
    return tuple(replace(file, path=RENAMED.get(file.path, file.path)) for file in files)


def rename_units(root: str) -> None:
    """Give units below `root` their new names, edits and all, and leave links at the old ones, by which they go on.

    The links are those that `systemctl enable` writes for an alias and `systemctl disable` removes.
    """
    for old, new in RENAMED.items():
        place = os.path.join(root, old.lstrip("/"))
        if os.path.isfile(place) and not os.path.islink(place):
            os.replace(place, os.path.join(root, new.lstrip("/")))
            os.symlink(new, place)
