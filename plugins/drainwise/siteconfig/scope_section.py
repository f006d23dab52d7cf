"""The sections `[scope NAME]` of the site file: what holds for some of the jobs that may be ordered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drainwise.siteconfig.feature_sections import Contradiction
from drainwise.siteconfig.kinds import choice, client_conditions, duration
from drainwise.siteconfig.table import key, optional

SCOPE = "scope "


@dataclass(frozen=True)
class ScopeSection:
    """Jobs of one kind, by conditions as in [clients]; the first scope that fits a job counts before [reclaim]."""

    jobs: str | None = optional(client_conditions(), "partition=scavenge", "which jobs these are")
    min_age: int | None = optional(duration("0s", "1d"), "10m", "a job younger than this gets no order")
    multi_node: str = key(
        choice("no", "yes"), "no", "yes: a job of several nodes that reports nothing may be ordered, as one"
    )

    def contradictions(self, site: object) -> Iterator[Contradiction]:  # noqa: ARG002
        """See `Contradiction`."""
        if self.jobs is None:
            yield "jobs", "conditions for the jobs of the scope"
