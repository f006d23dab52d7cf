"""Grid Engine as the commands know it: its jobs can be launched, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from drainwise.systems.system import System

if TYPE_CHECKING:
    from drainwise.launch.backend import Backend, LaunchPlace


class GridEngine(System):
    """The cell that SGE_ROOT and SGE_CELL name."""

    name = "sge"

    def open_backend(self, settings: Mapping[str, object], options: str, place: LaunchPlace) -> Backend:
        """See `System`."""
        from drainwise.sge.launch_backend import open_backend

        return open_backend(settings, options, place)


SYSTEM = GridEngine()
