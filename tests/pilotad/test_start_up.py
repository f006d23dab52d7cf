"""What the node's hooks and cron pay for importing this room."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import drainwise.pilotad

PACKAGE = Path(drainwise.pilotad.__file__).parent
EXPENSIVE = {
    "re", "json", "dataclasses", "typing", "enum", "pathlib", "logging", "argparse", "subprocess", "collections",
    "tempfile", "functools", "configparser", "contextlib", "signal", "socket", "os", "ctypes", "operator",
}  # fmt: skip


@pytest.mark.parametrize("module", sorted(path.stem for path in PACKAGE.glob("*.py")))
def test_no_module_imports_an_expensive_one(module: str) -> None:
    """Under `python3 -I -S`, where nothing has been imported before; os too is left alone, posix is enough."""
    code = f"import sys; sys.path.append({str(PACKAGE.parent.parent)!r}); sys.dont_write_bytecode = True\n"
    code += f"import drainwise.pilotad.{module}; print(*sys.modules)"
    run = subprocess.run(["/usr/bin/python3", "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert not EXPENSIVE & set(run.stdout.split())
