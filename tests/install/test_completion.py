"""Completion of the shell, as bash does it with what the packages have."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from package_build.clone import ROOT

PYTHON = "/usr/bin/python3"
"""The packages are built by the distribution's, with its own shtab."""
WRITE = """\
import argparse, sys
from package_build.pages import bash_completion
parser = argparse.ArgumentParser(prog="drainwise")
commands = parser.add_subparsers()
for name in ("status", "features", "fence"):
    commands.add_parser(name, help="x").add_argument("--pool", choices=("htcondor", "slurm"))
commands.choices["features"].add_subparsers().add_parser("serve", help="x")
sys.stdout.write(bash_completion(parser))
"""
COMPLETE = """\
. "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_shtab_drainwise
echo "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if subprocess.run([PYTHON, "-c", "import shtab, build_manpages"], capture_output=True, check=False).returncode:
        pytest.skip(f"{PYTHON} has nothing that writes completion")
    paths = {"PYTHONPATH": f"{ROOT}/scripts:{ROOT}/plugins", "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run([PYTHON, "-c", WRITE], capture_output=True, text=True, check=True, env=paths)
    path: Path = tmp_path_factory.mktemp("completion") / "drainwise"
    path.write_text(ran.stdout)
    return path


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["drainwise", ""], ["status", "features", "fence"]),
        (["drainwise", "fe"], ["features", "fence"]),
        (["drainwise", "features", "s"], ["serve"]),
        (["drainwise", "status", "--pool", "s"], ["slurm"]),
        (["drainwise", "status", "--po"], ["--pool"]),
        (["drainwise", "fx"], []),
    ],
)
def test_every_choice_is_completed(script: Path, words: list[str], found: list[str]) -> None:
    ran = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", str(script), *words], capture_output=True, text=True, check=True
    )
    assert (ran.stdout.split(), ran.stderr) == (found, "")
