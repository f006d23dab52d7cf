"""What was seen of pilots that ended without an order: the facts from which the rate of such ends is learned."""

from __future__ import annotations

from dataclasses import dataclass

WINDOW = 3 * 86_400
"""Seconds for which what was seen counts."""


@dataclass(frozen=True)
class EndsSeen:
    """What was seen of one user's pilots without an order within `WINDOW`.

    cores: those of pilots that ended by themselves before their lease did. core_seconds: for which pilots were seen.
    """

    cores: float = 0.0
    core_seconds: float = 0.0

    def __add__(self, other: EndsSeen) -> EndsSeen:
        """Return what was seen of both."""
        return EndsSeen(self.cores + other.cores, self.core_seconds + other.core_seconds)
