"""Run the distributions' own build tools on a copy of the working tree."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence

from drainwise import __version__
from drainwise.facts.errors import DrainwiseError
from package_build.clone import PACKAGES, ROOT, copy_clone
from package_build.stage import stage

_CHANGELOG = """\
drainwise ({version}) unstable; urgency=medium

  * See CHANGELOG.md.

 -- drainwise developers <drainwise@localhost>  {date}
"""


def deb(out: str) -> list[str]:
    """Build the .deb files into the directory `out`; their paths.

    Raises DrainwiseError with the last words of the tool.
    """
    with tempfile.TemporaryDirectory() as work:
        tree = f"{work}/drainwise-{__version__}"
        copy_clone(tree)
        shutil.copytree(f"{ROOT}/packaging/debian", f"{tree}/debian")
        date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime())
        with open(f"{tree}/debian/changelog", "w", encoding="ascii") as stream:
            stream.write(_CHANGELOG.format(version=__version__, date=date))
        _write_postrm(f"{tree}/debian/drainwise-node", "purge", "purge")
        for name in ("drainwise", "drainwise-slurm"):
            _write_postrm(f"{tree}/debian/{name}", "upgrade", "back")
        _run(["dpkg-buildpackage", "--build=binary", "--unsigned-changes", "--unsigned-buildinfo"], tree)
        return _taken(glob.glob(f"{work}/*.deb"), out)


def rpm(out: str) -> list[str]:
    """Build the .rpm files into the directory `out`; their paths.

    Raises DrainwiseError with the last words of the tool.
    """
    with tempfile.TemporaryDirectory() as work:
        stage(f"{work}/staged")
        shutil.copy(f"{ROOT}/LICENSE", f"{work}/staged")
        for name in ("purge", "back"):
            with open(f"{work}/staged/{name}", "w", encoding="ascii") as stream:
                stream.write(_script(name).replace("%", "%%"))
        definitions = {"_topdir": work, "staged": f"{work}/staged", "version_here": __version__}
        definitions["date_here"] = time.strftime("%a %b %d %Y", time.gmtime())
        words = [word for name, value in definitions.items() for word in ("--define", f"{name} {value}")]
        _run(["rpmbuild", "-bb", "--quiet", *words, f"{ROOT}/packaging/rpm/drainwise.spec"], work)
        return _taken(glob.glob(f"{work}/RPMS/noarch/*.rpm"), out)


FORMATS: dict[str, Callable[[str], list[str]]] = {"deb": deb, "rpm": rpm}


def _write_postrm(package: str, action: str, name: str) -> None:
    """Give a package the script of what follows it: Debian's has no file beside it that could be called."""
    with open(f"{package}.postrm", "w", encoding="ascii") as stream:
        stream.write(f'#!/bin/sh\nset -e\nif [ "$1" = {action} ]; then\n{_script(name)}fi\n#DEBHELPER#\n')


def _script(name: str) -> str:
    """Return what that script does."""
    with open(f"{ROOT}/packaging/package-{name}", encoding="ascii") as stream:
        return stream.read().partition("\n")[2]


def _taken(found: Sequence[str], out: str) -> list[str]:
    if len(found) != len(PACKAGES):
        raise DrainwiseError(f"expected {len(PACKAGES)} packages, found {', '.join(map(os.path.basename, found))}")
    os.makedirs(out, exist_ok=True)
    return sorted(shutil.copy(path, out) for path in found)


def _run(command: Sequence[str], directory: str) -> None:
    try:
        ran = subprocess.run(command, cwd=directory, check=False, capture_output=True, text=True)
    except OSError as fault:
        raise DrainwiseError(f"{command[0]} cannot be run: {fault.strerror}; install what builds packages") from None
    if ran.returncode != 0:
        last = "\n".join((ran.stdout + ran.stderr).splitlines()[-20:])
        raise DrainwiseError(f"{command[0]} failed with {ran.returncode}:\n{last}")
