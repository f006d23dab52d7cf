"""Find what is installed on this machine: the package that runs, the one that hooks use, packages, libraries."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec

import drainwise
from drainwise.common.bounded_command import run_bounded
from drainwise.doctor.facts import CLONE, PIP, RELEASE, Installation
from drainwise.facts.errors import PoolUnreachable

LIBRARY = "/usr/share/drainwise"
_LIBRARIES = {"numpy": "numpy", "jinja2": "jinja2", "prometheus_client": "prometheus-client", "htcondor2": "htcondor"}
"""What some commands import, and the name under which it is installed."""
_QUERIES = (
    ("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n", "drainwise*"),
    ("rpm", "-qa", "--queryformat", "installed %{NAME} %{VERSION}-%{RELEASE}\n", "drainwise*"),
)
_SECONDS = 10.0
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


def installation(library: str = LIBRARY) -> Installation:
    """Look at what is installed; library: the directory that holds the package of the hooks."""
    place = os.path.realpath(drainwise.__path__[0])
    return Installation(
        drainwise.__version__,
        _kind(place, library),
        place,
        tuple(_packages()),
        release_version(library),
        _unreadable(library),
        {name: _version_of(name, title) for name, title in _LIBRARIES.items()},
        ".".join(map(str, sys.version_info[:3])),
    )


def release_version(library: str) -> str:
    """Return the version of the package that hooks find below `library`; "" where there is none, or none to read."""
    try:
        with open(f"{library}/drainwise/__init__.py", encoding="utf-8") as stream:
            lines = [line for line in stream if line.startswith("__version__ = ")]
    except (OSError, UnicodeDecodeError):
        return ""
    return lines[0].partition(" = ")[2].strip().strip('"') if lines else ""


def _kind(place: str, library: str) -> str:
    if place.startswith(f"{os.path.realpath(library)}/"):
        return RELEASE
    return CLONE if os.path.exists(os.path.join(place, "..", "..", "pyproject.toml")) else PIP


def _unreadable(library: str) -> str:
    """Return what others than root cannot pass through or read on the way to the package; "" when all can."""
    file = os.path.realpath(f"{library}/drainwise/__init__.py")
    if not os.path.exists(f"{library}/drainwise"):
        return ""
    path, wanted = file, 0o004
    while path != "/":
        try:
            if not os.stat(path).st_mode & wanted:
                return path
        except OSError as fault:
            return f"{path}: {fault.strerror}"
        path, wanted = os.path.dirname(path), 0o001
    return ""


def _packages() -> Iterator[tuple[str, str]]:
    for query in _QUERIES:
        program = shutil.which(query[0], path=_ENVIRONMENT["PATH"])
        if program is None:
            continue
        try:
            answer = run_bounded((program, *query[1:]), _ENVIRONMENT, _SECONDS)
        except PoolUnreachable:
            continue
        for row in map(str.split, answer.text.splitlines()):
            if len(row) == 3 and row[0] == "installed":
                yield row[1], row[2]


def _version_of(module: str, title: str) -> str:
    """Return the version of a library without importing it: a broken one could end this process."""
    try:
        if find_spec(module) is None:
            return ""
        return metadata.version(title)
    except (ImportError, ValueError):  # the distribution's package has no metadata, or another name there
        return "of no version"
