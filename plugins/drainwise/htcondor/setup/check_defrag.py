"""Judge the knobs of condor_defrag where `[htcondor] defrag = yes`: what the site has set of its own besides ours."""

from __future__ import annotations

from collections.abc import Iterator

from drainwise.htcondor.setup.check_facts import DaemonFacts
from drainwise.htcondor.setup.knobs import Knob, plain
from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding
from drainwise.siteconfig import SiteConfig

RANK = "DEFRAG_RANK"
SCHEDULE = "DEFRAG_DRAINING_SCHEDULE"
_PRICE = "$(DRAINWISE_NODE_PRICE)"
_BEFORE = "$(DEFRAG_RANK:0)"
_PUBLISHED = "childpilotdrainprice"
_NOT_THE_SITES = {"-expectedmachinegracefuldrainingbadput", "0", ""}
"""What stands before ours where the site has set nothing: HTCondor's default."""


def judge_defrag(daemon: DaemonFacts, site: SiteConfig, wanted: tuple[Knob, ...]) -> Iterator[Finding]:
    """Judge the ranks and schedules in force on the central manager, also of a condor_defrag with a name of its own.

    wanted: the knobs of the central manager's drop-in. A rank that the site merged with the price is in order.
    """
    if site.htcondor.defrag != "yes":
        return
    for name, value in daemon.knobs.items():
        prefix, found, rest = name.rpartition(RANK.casefold())
        if found and not rest and (not prefix or prefix.endswith(".")) and plain(value) not in _NOT_THE_SITES:
            yield _rank(name.upper(), value, wanted)
        prefix, found, rest = name.rpartition(SCHEDULE.casefold())
        if found and not rest and prefix.endswith(".") and value.strip().casefold() not in {"graceful", ""}:
            why = "it gives no retirement: each pilot on the node gets SIGTERM at once"
            yield Finding(DANGEROUS, name.upper(), why, f"{name.upper()} = graceful", value)


def _rank(name: str, value: str, wanted: tuple[Knob, ...]) -> Finding:
    """Judge one rank: ours, the site's merged with the price, or one that leaves either out."""
    before = _before(value, wanted)
    if before is None and _PUBLISHED in value.casefold():
        return Finding(OK, name, "the site's own rank, merged with what draining a node loses", value=value)
    if before is None:
        why = "this rank takes the place of ours: condor_defrag does not drain where that costs least"
        return Finding(MISSING, name, why, _merged(name, value), value)
    if before not in _NOT_THE_SITES:
        why = "a rank of the site's own is set in an earlier file and counts no more; in a later file both count"
        return Finding(MISSING, name, why, _merged(name, before), before)
    return Finding(OK, name, "the node whose draining costs least first", value=value)


def _before(value: str, wanted: tuple[Knob, ...]) -> str | None:
    """Return what stood in the knob's place before ours; None where ours is not in force.

    A configuration that HTCondor reads twice has ours in ours.
    """
    texts = {knob.name: knob.text for knob in wanted}
    ours = texts[RANK].replace(_PRICE, texts[_PRICE[2:-1]])
    start, _, end = map(plain, ours.partition(_BEFORE))
    live, before = plain(value), None
    while live.startswith(start) and live.endswith(end):
        live = before = live[len(start) : len(live) - len(end)].strip()
    return before


def _merged(name: str, rank: str) -> str:
    return f"{name} = 1000000000 * ({rank}) - {_PRICE}"
