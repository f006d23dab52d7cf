"""Batch systems as the commands see them, found by name: built in, or in an installed package."""

from __future__ import annotations

from drainwise.systems.system import System, Timings

__all__ = ["System", "Timings"]
