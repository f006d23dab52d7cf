"""A machine with Debian's Prometheus: to check and play the rules that the project gives to sites."""

from __future__ import annotations

from clean_machine.machine import CleanMachine
from real_daemons.roots import Recipe
from real_daemons.site import Site
from real_daemons.unpack import unpack

RELEASE = "bookworm"
"""With the oldest Prometheus for which the rules are made."""


class MonitoringMachine(CleanMachine):
    """A machine with Prometheus and its `promtool`."""

    def __init__(self) -> None:
        Site.__init__(self, Recipe(f"monitoring-{RELEASE}", RELEASE, (__file__,), _build))


def _build(root: str, archive: str) -> None:
    unpack(RELEASE, ["prometheus"], root, archive)
