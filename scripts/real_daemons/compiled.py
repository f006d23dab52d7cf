"""Packages of Python that sites compile, kept for the next site: each has a copy of its own, most of the same package.

Python takes a compiled file by the time and the size of its source, so what is kept goes by those too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable

_UNUSED_SECONDS = 86400
_KEPT = "__pycache__"


def compile_once(package: str, place: str, name: str, compile_it: Callable[[], object]) -> None:
    """Put compiled files into the tree `package`: those kept below `place`, or `compile_it`'s, which are kept then.

    name: what else they depend on, such as the Python and where it finds the tree.
    """
    kept = f"{place}/{_digest(package, name)}"
    if os.path.isdir(kept):
        os.utime(kept)
        shutil.copytree(kept, package, dirs_exist_ok=True)
        return
    compile_it()
    os.makedirs(place, exist_ok=True)
    _remove_unused(place)
    work = tempfile.mkdtemp(dir=place)
    for folder, _, _ in os.walk(package):
        if os.path.basename(folder) == _KEPT:
            shutil.copytree(folder, f"{work}/{os.path.relpath(folder, package)}")
    os.chmod(work, 0o755)  # noqa: S103 - as a package's folder is, which it is copied onto
    try:
        os.rename(work, kept)
    except OSError:  # another site was faster
        shutil.rmtree(work)


def _digest(package: str, name: str) -> str:
    """A checksum of the sources in a tree, and of `name`."""
    digest = hashlib.sha256(name.encode())
    for folder, folders, files in os.walk(package):
        folders.sort()
        for file in sorted(files):
            path = os.path.join(folder, file)
            if file.endswith(".py") and os.path.isfile(path):
                with open(path, "rb") as stream:
                    text = stream.read()
                digest.update(f"\0{os.path.relpath(path, package)}\0{os.stat(path).st_mtime_ns}\0".encode() + text)
    return digest.hexdigest()[:24]


def _remove_unused(place: str) -> None:
    """Remove what nobody has used for a day, and what a site that was killed left."""
    for entry in os.scandir(place):
        with contextlib.suppress(FileNotFoundError):
            if entry.stat().st_mtime < time.time() - _UNUSED_SECONDS:
                shutil.rmtree(entry.path, ignore_errors=True)
