"""The Python of one Debian release in the tree of another: an old one beside daemons that the old release lacks."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess

from clean_machine.recipe import RELEASES, recipe_of
from real_daemons.roots import obtain


def give_python(release: str, root: str) -> str:
    """Make `/usr/bin/python3` of the tree at `root` that of a release; its version, such as `3.9`.

    Raises RootUnavailableError if the archive does not give the release.
    """
    source, version = obtain(recipe_of(release)).path, RELEASES[release][0]
    program, library = f"/usr/bin/python{version}", f"/usr/lib/python{version}"
    shutil.copy2(source + program, root + program)
    shutil.copytree(source + library, root + library, symlinks=True, dirs_exist_ok=True)
    modules = [path[len(root) :] for path in glob.glob(f"{root}{library}/lib-dynload/*.so")]
    # Shared libraries of which the other release has newer ones; theirs have other names.
    asked = subprocess.run(["chroot", root, "ldd", program, *modules], capture_output=True, text=True, check=True)
    for name in sorted(set(re.findall(r"^\s*(\S+) => not found", asked.stdout, re.MULTILINE))):
        found = next(iter(glob.glob(f"{source}/usr/lib/*/{name}") + glob.glob(f"{source}/lib/*/{name}")), "")
        if found:
            place = os.path.basename(os.path.dirname(found))
            shutil.copy(os.path.realpath(found), f"{root}/usr/lib/{place}/{name}")
    os.unlink(f"{root}/usr/bin/python3")
    os.symlink(f"python{version}", f"{root}/usr/bin/python3")
    return version
