"""Judge how often an execute node is heard of, and name what its release cannot do for `[htcondor] partial_return`."""

from __future__ import annotations

from collections.abc import Iterator

from drainwise.facts.written_units import format_duration
from drainwise.htcondor.node import USUAL_INTERVAL
from drainwise.htcondor.setup.check_facts import DaemonFacts
from drainwise.htcondor.setup.render import PUSHES, update_intervals
from drainwise.pool.finding import MISSING, OK, Finding
from drainwise.siteconfig import SiteConfig

FOLLOWS_WEIGHTS = (25, 0)
"""From here on a slot is charged by its present weight: seen on 25.14.1, and not on 23.9.6; never tried between."""


def judge_partial_return(daemon: DaemonFacts, site: SiteConfig) -> Iterator[Finding]:
    """Name the release of one execute node's startd that charges who returns cores for all of them.

    It cannot be mended there, and is not called missing.
    """
    if site.htcondor.partial_return == "yes" and daemon.version and daemon.version < FOLLOWS_WEIGHTS:
        shown = ".".join(map(str, daemon.version))
        why = "this release keeps a slot's weight of its match: who returns cores is charged for all of them to the end"
        yield Finding(OK, "HTCondor", why, value=shown)


def judge_updates(daemon: DaemonFacts, site: SiteConfig) -> Iterator[Finding]:
    """Judge whether an execute node is heard of as seldom as its release allows, or more often."""
    most = update_intervals(site)[bool(daemon.version) and daemon.version < PUSHES]
    interval = daemon.knobs.get("update_interval", str(USUAL_INTERVAL)).strip()
    if interval.isdigit() and int(interval) > most:
        why = "so old may be what the pool sees of its pilots"
        if site.htcondor.partial_return == "yes":
            why += "; others wait as long for returned cores"
        line = f"UPDATE_INTERVAL = {most}   ([htcondor] slot_update_interval = {format_duration(most)})"
        yield Finding(MISSING, "UPDATE_INTERVAL", why, line, interval)
