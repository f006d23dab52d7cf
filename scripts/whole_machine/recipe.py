"""The recipe of a root file system of a whole machine: packages are installed, by their own scripts.

Trees are named after their packages and the text of this file and of the common part: change it, and they are built
anew.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Sequence

from real_daemons.errors import DaemonsError
from real_daemons.roots import Recipe
from real_daemons.unpack import EXPIRED, fetch

# Release → further options of mmdebstrap.
RELEASES: dict[str, tuple[str, ...]] = {"trixie": (), "sid": EXPIRED}
BASICS = ("systemd", "systemd-sysv", "dbus", "iproute2", "procps", "python3")


def recipe_of(release: str, packages: Sequence[str]) -> Recipe:
    """The recipe of a release's tree with these packages; raises DaemonsError if there is none."""
    if release not in RELEASES:
        raise DaemonsError(f"unknown release {release!r}; known: {', '.join(RELEASES)}")
    name = "-".join(["whole", release, *packages])
    return Recipe(name, release, (__file__,), lambda root, archive: build_root(release, packages, root, archive))


def build_root(release: str, packages: Sequence[str], root: str, archive: str) -> None:
    """Make the tree of a release in the empty directory `root`, from the Debian archive at an address.

    Raises RootUnavailableError with the last words of the program that failed.
    """
    options = ("--variant=minbase", "--dpkgopt=force-unsafe-io", *RELEASES[release])
    fetch(release, [*BASICS, *packages], root, archive, options)
    for unwanted in ("resolv.conf", "hostname", "machine-id"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{root}/etc/{unwanted}")
    # What packages enable would start without its configuration, for which slurmd, for one, waits 90 seconds.
    for link in glob.glob(f"{root}/etc/systemd/system/*.wants/*"):
        os.unlink(link)
    # Or else each boot would be the first one after an update.
    for directory in ("etc", "var"):
        with open(f"{root}/{directory}/.updated", "x", encoding="utf-8"):
            pass
