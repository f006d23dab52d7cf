"""The local batch system as the commands know it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from drainwise.systems.system import System, Timings

if TYPE_CHECKING:
    from drainwise.pool.facts import Pool
    from drainwise.siteconfig import SiteConfig

VARIABLE = "DRAINWISE_LOCAL"
"""Names the directory of the state where no option does."""

_PERIOD = 1
"""Seconds between two looks of its daemon, rounded up."""


def default_directory() -> str:
    """Return where the state lies when no option says so."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "drainwise")


DIRECTORY_HELP = f"the local batch system's state (default: ${VARIABLE}, else ~/.local/state/drainwise)"
"""The help of the option --directory."""


class Local(System):
    """Leases are processes on this machine; the state of all of them lies in one directory."""

    name = "local"
    takes_directory = True

    def missing(self, site: SiteConfig) -> str:  # noqa: ARG002
        """See `System`: there is nothing that it could miss."""
        return ""

    def open_pool(self, site: SiteConfig, directory: str | None) -> Pool:
        """See `System`."""
        from drainwise.local.pool import LocalPool

        return LocalPool(
            directory or default_directory(),
            clients=site.clients.rules,
            is_for_parts=site.local.partial_return == "yes",
        )

    def describe(self, directory: str | None) -> str:
        """See `System`."""
        return f"the local batch system in {directory or default_directory()}"

    def timings(self, site: SiteConfig) -> Timings:  # noqa: ARG002
        """See `System`: it begins at the deadline itself."""
        return Timings(0, _PERIOD)

    def agent_label(self, site: SiteConfig, directory: str | None) -> str:  # noqa: ARG002
        """See `System`."""
        return f"{self.name} {os.path.realpath(directory or default_directory())}"

    def agent_directory(self, directory: str | None) -> str | None:
        """See `System`: a user's own pool, so lock and journal lie with it."""
        return directory or default_directory()


SYSTEM = Local()
