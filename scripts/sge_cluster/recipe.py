"""The recipe of a root file system with Grid Engine in it. Trees are named after the text of this file and of the
common part: change it, and they are built anew.

What the packages' own scripts would do on a machine is done here, once: the administrator, the cell, the database of
the configuration. A cluster starts from a private copy of it.
"""

from __future__ import annotations

import os
import shutil

from real_daemons.errors import DaemonsError
from real_daemons.furnish import make_directory, write_file
from real_daemons.roots import CACHE_DIR, Recipe, Root, obtain
from real_daemons.site import CENTRAL
from real_daemons.unpack import add_user, output_of, unpack

RELEASES = ("bookworm",)
"""Debian releases with Grid Engine: bookworm has 8.1.9."""
PACKAGES = ("gridengine-master", "gridengine-exec", "gridengine-client")
SGE_ROOT = "/var/lib/gridengine"
SGE_CELL = "default"
ADMINISTRATOR = "sgeadmin"
COMMON_DIR = f"{SGE_ROOT}/{SGE_CELL}/common"
SPOOL_DIR = "/var/spool/gridengine"

_SHARED = "/usr/share/gridengine"


def recipe_of(release: str) -> Recipe:
    """The recipe of a release's tree; raises DaemonsError if there is none."""
    if release not in RELEASES:
        raise DaemonsError(f"unknown release {release!r}; known: {', '.join(RELEASES)}")
    return Recipe(f"sge-{release}", release, (__file__,), lambda root, archive: build_root(release, root, archive))


def obtain_root(release: str = RELEASES[0], cache_dir: str = CACHE_DIR) -> Root:
    """The tree of a release, built if it is not there yet (some 20 s, 300 MB on disk).

    Raises MissingToolError if this machine lacks a tool, RootUnavailableError if the archive does not give it.
    """
    return obtain(recipe_of(release), cache_dir)


def build_root(release: str, root: str, archive: str) -> None:
    """Make the tree of a release in the empty directory `root`, from the Debian archive at an address.

    Raises RootUnavailableError with the last words of the program that failed.
    """
    unpack(release, PACKAGES, root, archive)
    administrator = add_user(root, ADMINISTRATOR, range(100, 1000), SGE_ROOT, "/bin/false")
    os.chown(root + SGE_ROOT, administrator, administrator)
    for path in (f"{SGE_ROOT}/{SGE_CELL}", COMMON_DIR):
        os.mkdir(root + path, 0o755)
        os.chown(root + path, administrator, administrator)
    for name in ("qmaster", "qmaster/job_scripts", "spooldb", "execd"):
        make_directory(f"{root}{SPOOL_DIR}/{name}", administrator, 0o755)
    shutil.copyfile(f"{root}{_SHARED}/default-bootstrap", f"{root}{COMMON_DIR}/bootstrap")
    shutil.copyfile(f"{root}{_SHARED}/templates/gridengine.default", f"{root}/etc/default/gridengine")
    write_file(root, f"{COMMON_DIR}/act_qmaster", f"{CENTRAL}\n", 0o644, administrator)
    # Every program of Grid Engine wants to know who it is, and by the same name from both ends of a connection.
    write_file(root, "/etc/hosts", f"127.0.0.1 {CENTRAL} localhost\n")
    named = ["unshare", "--uts", "sh", "-ec", 'hostname "$0"; exec "$@"', CENTRAL]
    become = ["setpriv", f"--reuid={ADMINISTRATOR}", f"--regid={ADMINISTRATOR}", "--clear-groups", "--"]
    clean = ["chroot", root, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
    lay_out = [f"{_SHARED}/scripts/init_cluster", SGE_ROOT, SGE_CELL, f"{SPOOL_DIR}/spooldb", ADMINISTRATOR]
    output_of("laying out the cell", [*named, *clean, *become, *lay_out])
