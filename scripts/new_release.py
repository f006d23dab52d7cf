"""The files of another Debian release in a running test site: what a package manager does while its daemons run on."""

from __future__ import annotations

import shutil
import subprocess
from glob import glob

from real_daemons.roots import Root
from real_daemons.site import Site


def bring(site: Site, root: Root, *plugins: str) -> None:
    """Put the files of `root` into the site in place of its own; a process that runs keeps those that it has open.

    plugins: directories of which nothing old may stay. What stands in /etc and /var is left as it is.
    """
    for directory in plugins:
        shutil.rmtree(site.root + directory)
    command = ["cp", "--archive", "--remove-destination", *glob(f"{root.path}/usr/*"), f"{site.root}/usr/"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    site.run(["ldconfig"])
