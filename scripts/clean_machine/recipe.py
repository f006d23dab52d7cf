"""The recipe of a root file system with Python. Trees are named after the text of this file and of the common part:
change it, and they are built anew.

Debian 11 is there for its Python 3.9, the one of Enterprise Linux 9.
"""

from __future__ import annotations

import glob

from real_daemons.errors import DaemonsError
from real_daemons.roots import Recipe
from real_daemons.unpack import unpack

# Release → its Python, and further options of mmdebstrap. An archive may hold an old release past its date.
RELEASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "bullseye": ("3.9", ("--aptopt=Acquire::Check-Valid-Until false",)),
    "bookworm": ("3.11", ()),
    "trixie": ("3.13", ()),
}


def recipe_of(release: str) -> Recipe:
    """The recipe of a release's tree; raises DaemonsError if there is none."""
    if release not in RELEASES:
        raise DaemonsError(f"unknown release {release!r}; known: {', '.join(RELEASES)}")
    return Recipe(
        *(f"python-{release}", release, (__file__,)), lambda root, archive: build_root(release, root, archive)
    )


def build_root(release: str, root: str, archive: str) -> None:
    """Make the tree of a release in the empty directory `root`, from the Debian archive at an address.

    Raises RootUnavailableError with the last words of the program that failed.
    """
    unpack(release, ["python3-venv"], root, archive, RELEASES[release][1])
    # Debian's pip does not start without it, and the package that has the parts makes it when it is configured.
    with open(f"{root}/etc/ssl/certs/ca-certificates.crt", "wb") as bundle:
        for part in sorted(glob.glob(f"{root}/usr/share/ca-certificates/mozilla/*.crt")):
            with open(part, "rb") as certificate:
                bundle.write(certificate.read())
