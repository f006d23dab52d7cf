"""HTCondor's programs on a machine of another release, as a glidein brings its own: with their libraries and loader.

A program names its loader, and the loader the directories in which it looks. Both names are replaced in the copies by
one of the same length, so that no program of the machine itself finds a library that was brought.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from slurm_cluster import SlurmCluster

_DIRECTORY, _OLD_DIRECTORY = b"/opt/glidein-programs/", b"/lib/x86_64-linux-gnu/"
_LOADER, _OLD_LOADER = b"/opt/glidein-programs/ld.so", b"/lib64/ld-linux-x86-64.so.2"
_CACHE, _NO_CACHE = b"/etc/ld.so.cache\0", b"/nonexist/cache_\0"
PROGRAMS = ("usr/sbin/condor_*", "usr/bin/condor_submit", "usr/bin/condor_q", "usr/bin/condor_history")
LIBEXEC = "usr/libexec/condor"


def bring_condor(source: Path, target: Path) -> None:
    """Copy HTCondor's programs, from the root file system of a pool to that of another machine.

    source, target: the directories of both. Raises CalledProcessError where the libraries cannot be listed.
    """
    programs = [path for pattern in PROGRAMS for path in source.glob(pattern) if path.is_file()]
    programs += [path for path in (source / LIBEXEC).rglob("*") if path.is_file()]
    binaries = [path for path in programs if not path.is_symlink() and _names_loader(path)]
    place = target / _DIRECTORY.decode().strip("/")
    place.mkdir(parents=True)
    for library in _libraries(source, binaries):
        shutil.copyfile(source / library.lstrip("/"), place / os.path.basename(library))
    loader = (source / _OLD_LOADER.decode().lstrip("/")).read_bytes()
    loader = loader.replace(b"\0" + _OLD_DIRECTORY, b"\0" + _DIRECTORY).replace(_CACHE, _NO_CACHE)
    (place / "ld.so").write_bytes(loader)
    (place / "ld.so").chmod(0o755)
    for path in programs:
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            if not os.path.lexists(copy):
                copy.symlink_to(os.readlink(path))
            continue
        copy.write_bytes(path.read_bytes().replace(_OLD_LOADER + b"\0", _LOADER + b"\0", 1))
        copy.chmod(0o755)


def copy_condor(source: Path, cluster: SlurmCluster) -> None:
    """Copy HTCondor's programs, and the libraries that the cluster has not, from the tree of a pool of its release."""
    wanted = [path for pattern in PROGRAMS for path in source.glob(pattern)]
    wanted += [*source.glob("usr/lib/lib*.so*"), *source.glob("usr/lib/x86_64-linux-gnu/libgomp.so*"), source / LIBEXEC]
    for path in wanted:
        target = "/" + str(path.relative_to(source))
        if not os.path.lexists(cluster.root + target):
            cluster.copy_in(str(path), target)


def _names_loader(path: Path) -> bool:
    """Whether a program names the loader."""
    return _OLD_LOADER + b"\0" in path.read_bytes()[:4096]


def _libraries(source: Path, binaries: list[Path]) -> set[str]:
    """The paths of all libraries that the programs load, below `source`."""
    names = [f"/{path.relative_to(source)}" for path in binaries]
    said = subprocess.run(["chroot", str(source), "/usr/bin/ldd", *names], capture_output=True, text=True, check=True)
    return set(re.findall(r"=> (/\S+)", said.stdout))
