"""Find a backend by its name: the launcher's own, and those of installed batch systems (`System.open_backend`)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial

from drainwise.facts.errors import UsageError
from drainwise.systems.find import offering
from drainwise.systems.system import System
from drainwise_launch.backend import Backend, LaunchPlace
from drainwise_launch.files.job_reader import LOCAL

OpenBackend = Callable[[Mapping[str, object], str, LaunchPlace], Backend]
"""Opens a backend: takes its table of the launch file, the options of the command line, and the place of the launch.

Raises PoolUnreachable where it cannot be used here, UsageError for wrong settings.
"""

OWN = {
    "htcondor": "htcondor.backend",
    "slurm": "slurm.backend",
    "sge": "sge.backend",
    "local-batch": "local_batch",
    LOCAL: "this_machine.backend",
}
"""The modules of the launcher's own, each with an `open_backend`."""


def _open_own(name: str, settings: Mapping[str, object], options: str, place: LaunchPlace) -> Backend:
    module = importlib.import_module(f"drainwise_launch.{OWN[name]}")
    opened: Backend = module.open_backend(settings, options, place)
    return opened


def openers() -> dict[str, OpenBackend]:
    """Return what opens each backend, by name; LOCAL is the last."""
    own: dict[str, OpenBackend] = {name: partial(_open_own, name) for name in OWN}
    local = own.pop(LOCAL)
    return {**own, **{one.name: one.open_backend for one in offering(System.open_backend)}, LOCAL: local}


def opener(name: str) -> OpenBackend:
    """Return what opens the backend of that name. Raises UsageError that lists the names there are."""
    if name in OWN:
        return partial(_open_own, name)
    found = openers()
    if name not in found:
        raise UsageError(f"--backend {name[:80]}: expected one of {', '.join(found)}")
    return found[name]
