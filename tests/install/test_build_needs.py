"""What the build of the packages imports is asked for wherever its needs are written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from package_build.clone import ROOT

NAMES = {"build_manpages": "argparse-manpage"}
"""Packages of Debian that are named otherwise than what they import."""
IMPORTED = (
    "import sys; from drainwise.cli.main import whole_parser; from jinja2 import Template; whole_parser();"
    " print(*sorted({name.partition('.')[0] for name, one in list(sys.modules.items())"
    " if 'site-packages' in (getattr(one, '__file__', None) or '')}))"
)
"""The command line's parsers and the templates: all that staging imports but what writes pages and completion."""
PARTS = {"markupsafe", "_distutils_hack"}
"""What comes along with the others."""


@pytest.fixture(scope="module")
def needed() -> set[str]:
    """The packages of Debian that staging imports."""
    ran = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    pages = Path(ROOT, "scripts", "package_build", "pages.py").read_text()
    written = {
        name for name in ("shtab", "build_manpages") if re.search(rf"^(import|from) {name}\b", pages, re.MULTILINE)
    }
    names = {one for one in ran.stdout.split() if not one.startswith("__editable__")} - PARTS - {"drainwise"} | written
    return {f"python3-{NAMES.get(name, name)}" for name in names}


@pytest.mark.parametrize("file", ["packaging/debian/control", "scripts/setup", "scripts/package"])
def test_what_staging_imports_is_asked_for(file: str, needed: set[str]) -> None:
    text = Path(ROOT, file).read_text()
    if file.endswith("control"):
        text = re.search(r"^Build-Depends: (.*)$", text, re.MULTILINE)[1]  # type: ignore[index]
    assert {"python3-jinja2", "python3-shtab", "python3-argparse-manpage"} <= needed
    assert needed - set(re.findall(r"python3-[a-z0-9-]+", text)) == set()


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-S", f"{ROOT}/scripts/package", "stage", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, len(ran.stderr.splitlines())) == (1, 1)
    assert "is missing; install python3-jinja2, python3-numpy" in ran.stderr
