"""Judge what an execute node lacks for `[htcondor] partial_return = yes`, and name what its release cannot do."""

from __future__ import annotations

from collections.abc import Iterator

from drainwise.facts.written_units import format_duration
from drainwise.htcondor.setup.check_facts import DaemonFacts
from drainwise.pool.finding import MISSING, OK, Finding
from drainwise.siteconfig import SiteConfig

FOLLOWS_WEIGHTS = (25, 0)
"""From here on a slot is charged by its present weight, and is sent to the collector when the cron asks for it.

Seen on 25.14.1, and not on 23.9.6; between them it was never tried.
"""
_SOON = 30  # seconds; with 300, returned cores were handed out after 295 s on 23.9.6, with 30 after 55 s


def judge_partial_return(daemon: DaemonFacts, site: SiteConfig) -> Iterator[Finding]:
    """Judge one execute node's startd; nothing where pilots cannot return parts, or where it does not say its release.

    What cannot be mended there is named and not called missing.
    """
    if site.htcondor.partial_return != "yes" or not daemon.version or daemon.version >= FOLLOWS_WEIGHTS:
        return
    shown = ".".join(map(str, daemon.version))
    why = "this release keeps a slot's weight of its match: who returns cores is charged for all of them to the end"
    yield Finding(OK, daemon.machine, "HTCondor", why, value=shown)
    interval = daemon.knobs.get("update_interval", "").strip()
    if interval.isdigit() and int(interval) > _SOON:
        why = "this release sends returned cores to the collector no sooner than that: others wait as long for them"
        line = f"UPDATE_INTERVAL = {_SOON}   ([htcondor] slot_update_interval = {format_duration(_SOON)})"
        yield Finding(MISSING, daemon.machine, "UPDATE_INTERVAL", why, line, interval)
