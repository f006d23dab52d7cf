"""The Pythons that nodes have: the system's own, and 3.9, the oldest that the package supports."""

from __future__ import annotations

import os

import pytest

from clean_machine.other_python import old_python
from made_up_node import PYTHON
from real_daemons.errors import MissingToolError, RootUnavailableError

OLD = "python3.9"
PYTHONS = (PYTHON, OLD)


def interpreter(name: str) -> str:
    """The path of one of them; the test is skipped where this machine has none and cannot get it."""
    if name != OLD:
        return name if os.path.exists(name) else pytest.skip(f"needs {name}")
    try:
        return old_python()
    except (MissingToolError, RootUnavailableError) as error:
        pytest.skip(f"no {OLD}: {error}")
