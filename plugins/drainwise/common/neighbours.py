"""The packages beside this one: each has commands of `drainwise`, and nothing here needs one before it is asked for.

They lie side by side in a wheel, in a Debian or rpm package and in a release of `drainwise install`, of which only the
first has metadata with entry points: so a table says which is whose.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType

import drainwise
from drainwise.facts.errors import DrainwiseError

PACKAGES = {
    "launch": "drainwise_launch",
    "validate": "drainwise_tasks",
    "estimate": "drainwise_tasks",
    "simulate": "drainwise_simulate",
}
"""The package of each command that is not of this one."""


def load(module: str) -> ModuleType:
    """Import a module such as `drainwise_tasks.cli.estimate`. Raises DrainwiseError where its package is missing."""
    beside = os.path.dirname(drainwise.__path__[0])
    if beside not in sys.path:  # in a release of `drainwise install`, to which only this package is linked
        sys.path.append(beside)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as fault:
        package = (fault.name or "").partition(".")[0]
        if package not in PACKAGES.values():
            raise
        whole = "install drainwise whole, from its wheel or by its package drainwise-node"
        raise DrainwiseError(f"this needs the Python package {package}, which is not in {beside}: {whole}") from None
