"""DIRAC from PyPI and what it imports, as one directory for a pool of Debian trixie; made once and kept.

What is written in C comes from Debian's packages: M2Crypto, for one, is on PyPI as source alone.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from real_daemons.errors import RootUnavailableError
from real_daemons.roots import Recipe, obtain
from real_daemons.unpack import unpack

WITHOUT_TIME_LEFT, WITH_TIME_LEFT = "9.1.22", "8.0.86"
"""Versions of DIRAC: one whose JobAgent counts down from its start, and one that asks the batch system each time."""
_PYPI = {
    WITH_TIME_LEFT: ("diraccfg==1.0.1",),
    WITHOUT_TIME_LEFT: (
        *("diraccfg==1.0.1", f"DIRACCommon=={WITHOUT_TIME_LEFT}", "diracx-core==0.7.0", "diracx-client==0.7.0"),
        *("httpx2==2.16.2", "httpcore2==2.16.2", "azure-core==1.41.0", "opensearch-py==3.2.0", "Events==0.5"),
    ),
}
_DEBIAN = (
    *("m2crypto", "cachetools", "certifi", "dateutil", "importlib-metadata", "importlib-resources", "isodate", "jwt"),
    *("mysqldb", "packaging", "psutil", "pyasn1", "pyasn1-modules", "pydantic", "pydantic-settings", "pyparsing"),
    *("requests", "setuptools", "typing-extensions", "zstandard"),
)
_RELEASE, _MODULES = "trixie", "usr/lib/python3/dist-packages"
_LIBRARY = "usr/lib/x86_64-linux-gnu/libmariadb.so.3"


def dirac_modules(version: str) -> Path:
    """Return the directory of a DIRAC in the virtual environment; skips where it cannot be had."""
    place = Path(sys.prefix) / "pilot-clients" / f"DIRAC-{version}"
    if not place.is_dir():
        try:
            debian = Path(obtain(Recipe(f"dirac-{_RELEASE}", _RELEASE, (__file__,), _unpacked)).path)
        except RootUnavailableError as error:
            pytest.skip(f"what DIRAC imports cannot be had: {error}")
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as directory:
            made = f"{directory}/made"
            shutil.copytree(debian / _MODULES, made, symlinks=True)
            shutil.copy(debian / _LIBRARY, made)
            wanted = [f"DIRAC=={version}", *_PYPI[version]]
            install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--ignore-requires-python"]
            # In two steps: pip replaces a directory that is there.
            command = [sys.executable, *install, "--only-binary=:all:", "--target", f"{directory}/pypi", *wanted]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode:
                pytest.skip(f"DIRAC {version} cannot be had: {ran.stderr.strip()[-200:]}")
            shutil.copytree(f"{directory}/pypi", made, dirs_exist_ok=True)
            agent = Path(made, "bin", "dirac-agent")
            agent.write_text(f"#!/usr/bin/python3\n{agent.read_text().partition(chr(10))[2]}")
            shutil.move(made, place)
    return place


def _unpacked(root: str, archive: str) -> None:
    unpack(_RELEASE, [f"python3-{name}" for name in _DEBIAN], root, archive)
