"""Machines of Debian releases whose packages are installed, dpkg's database included: for packages of our own."""

from __future__ import annotations

from clean_machine.machine import CleanMachine
from clean_machine.recipe import RELEASES
from real_daemons.errors import DaemonsError
from real_daemons.roots import Recipe
from real_daemons.site import Site
from real_daemons.unpack import unpack

CENTRAL_NEEDS = ("python3-numpy", "python3-jinja2", "python3-prometheus-client")
"""What the package of the central machine depends on."""


class InstalledMachine(CleanMachine):
    """A machine of a release with Python, dpkg and what our packages depend on; nothing of drainwise is on it."""

    def __init__(self, release: str) -> None:
        if release not in RELEASES:
            raise DaemonsError(f"unknown release {release!r}; known: {', '.join(RELEASES)}")
        Site.__init__(
            self, Recipe(f"installed-{release}", release, (__file__,), lambda *where: _build(release, *where))
        )


def _build(release: str, root: str, archive: str) -> None:
    options = RELEASES[release][1]
    unpack(release, ["python3", *CENTRAL_NEEDS], root, archive, ("--variant=minbase", *options))
