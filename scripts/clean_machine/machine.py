"""One machine in namespaces of its own: Python, two users, loopback, and no other network."""

from __future__ import annotations

from clean_machine.recipe import recipe_of
from real_daemons.namespaces import Enclosure
from real_daemons.site import CENTRAL, Site


class CleanMachine(Site):
    """A machine of a release, used as `with CleanMachine(release) as machine:`; nothing of drainwise is on it."""

    def __init__(self, release: str) -> None:
        super().__init__(recipe_of(release))

    def log_tails(self) -> str:
        """No daemon runs here."""
        return ""

    def _bring_up(self, enclosure: Enclosure) -> None:
        enclosure.add_machine(CENTRAL, CENTRAL)
