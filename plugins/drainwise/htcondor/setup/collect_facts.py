"""Get the facts that a check judges: from the collector, from each daemon itself, and from the node's own files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from drainwise.common.bounded_call import each_within, within
from drainwise.facts.errors import PoolError, PoolUnreachable
from drainwise.htcondor.ads.query import classad2, htcondor2
from drainwise.htcondor.ads.values import text, whole
from drainwise.htcondor.node import CRON_HEARTBEAT, ORDERS_SINCE, UNUSABLE
from drainwise.htcondor.pool.collector import is_order_taken, rights_at
from drainwise.htcondor.pool.knobs import TRIAL_KNOB
from drainwise.htcondor.setup.check import file_facts, on_node, paths_on_node
from drainwise.htcondor.setup.check_facts import DaemonFacts, OrderTrial, PoolFacts, SlotFacts
from drainwise.htcondor.setup.check_knobs import expected_knobs
from drainwise.htcondor.setup.render import ROLES
from drainwise.htcondor.setup.surroundings import surroundings
from drainwise.install.expected_files import ExpectedFiles
from drainwise.siteconfig import SiteConfig

Ad = Mapping[str, object]

_DEADLINE = "PilotReclaimDeadline"
_ADDRESS = ["Name", "Machine", "MyAddress", "AddressV1", "CondorVersion", "CondorPlatform"]
_PUBLISHED = ["MyCurrentTime", "LastHeardFrom", "DaemonStartTime", CRON_HEARTBEAT, UNUSABLE, ORDERS_SINCE, _DEADLINE]
_AD_TYPES = {
    "execute": htcondor2.AdType.Startd,
    "access": htcondor2.AdType.Schedd,
    "central": htcondor2.AdType.Negotiator,
}
# What the rules ask beyond the drop-ins' own knobs; the patterns are for knobs whose names the site chose.
_ASKED = re.compile(
    r".*_hook_job_exit|(.*\.)?settable_attrs_.*|(.*\.)?allow_(administrator|write)(_startd)?|job_execdir_permissions"
    r"|pilot_reclaim|local_config_dir|legacy_allow_semantics|(submit_requirement|job_transform)_.*"
    r"|(starter_)?update_interval|machinemaxvacatetime|startd_job_(attrs|exprs)|startd_cron_\w+_(mode|period)"
    r"|preemption_requirements|negotiator_pre_job_rank|group_names|(.*\.)?defrag_(rank|draining_schedule)"
)
_COLLECTOR_SECONDS, _DAEMON_SECONDS = 30.0, 10.0
_UNSET = "Not defined"  # what a daemon answers for a knob that has just gone


def collect(
    site: SiteConfig,
    roles: Sequence[str] = ROLES,
    node: str | None = None,
    progress: Callable[[int, int], None] = lambda _asked, _all: None,
) -> PoolFacts:
    """Ask the pool of this machine's HTCondor configuration; READ suffices, but for the orders that are tried.

    `node` restricts the execute nodes to one, by its full or short name. progress: called with how many
    daemons of how many have answered. Raises PoolUnreachable when the collector does not answer or knows no such
    daemon; a single daemon that does not answer is a fact of its own.
    """
    slots: list[SlotFacts] = []
    found: list[DaemonFacts] = []
    calls: list[Callable[[], DaemonFacts]] = []
    for role in roles:
        ads = _advertised(role, node if role == "execute" else None)
        if role == "execute":
            slots = [_slot(ad) for ad in ads]
        wanted = frozenset(knob.name.casefold() for knob in expected_knobs(site, role))
        for machine, ad in sorted({str(ad["Machine"]): ad for ad in ads}.items()):
            match = re.search(r"(\d+)\.(\d+)\.(\d+)", str(ad.get("CondorVersion")))
            version = tuple(int(number) for number in match.groups()) if match else ()
            found.append(DaemonFacts(role, machine, version, {}))
            calls.append(partial(_answers, found[-1], ad, wanted))
    progress(0, len(calls))
    for done, (place, answer) in enumerate(each_within(_DAEMON_SECONDS, calls, "the daemon"), 1):
        found[place] = replace(found[place], fault=str(answer)) if isinstance(answer, PoolError) else answer
        progress(done, len(calls))
    here = str(htcondor2.param.get("FULL_HOSTNAME", ""))
    local = here if any(slot.machine == here for slot in slots) else ""
    expected = on_node(site) if local else ExpectedFiles()
    files = tuple(file_facts(paths_on_node(site, expected))) if local else ()
    around = surroundings(str(htcondor2.param.get("EXECUTE", "/"))) if local else None
    return PoolFacts(tuple(found), tuple(slots), local, files, here, expected.command, around)


def _advertised(role: str, node: str | None) -> list[Ad]:
    """Query the ads of a role's daemons, of one machine if it is named; raises PoolUnreachable if there are none."""

    def query() -> list[Ad]:
        projection = _ADDRESS + (_PUBLISHED if role == "execute" else [])
        found = htcondor2.Collector().query(_AD_TYPES[role], projection=projection)
        # Without the text of expressions: which attributes are there, and the values of plain ones.
        return [{name: value if type(value) in {int, str} else None for name, value in ad.items()} for ad in found]

    ads = [ad for ad in within(_COLLECTOR_SECONDS, query, "the collector") if isinstance(ad.get("Machine"), str)]
    if node is not None:
        called = [(ad, str(ad["Machine"]).casefold()) for ad in ads]
        ads = [ad for ad, name in called if node.casefold() in {name, name.partition(".")[0]}]
    if not ads:
        what = f"no execute node {node!r}" if node else f"no daemon of the role {role}"
        raise PoolUnreachable(f"the collector knows {what}; is it up, and may this identity READ?")
    return ads


def _answers(daemon: DaemonFacts, ad: Ad, wanted: frozenset[str]) -> DaemonFacts:
    """Query a daemon's knobs, and of a startd whether it takes orders; in a process of its own."""
    knobs = _knobs({name: ad[name] for name in _ADDRESS if ad.get(name) is not None}, wanted)
    address = ad.get("MyAddress")
    if daemon.role != "execute" or not isinstance(address, str):
        return replace(daemon, knobs=knobs)
    rights = rights_at(address)
    settable = knobs.get("settable_attrs_administrator", "").replace(",", " ").casefold().split()
    taken = is_order_taken(address) if rights.allowed and TRIAL_KNOB.casefold() in settable else None
    beside = ad["Machine"] == htcondor2.param.get("FULL_HOSTNAME")
    trial = OrderTrial(rights.identity, rights.allowed, taken, os.geteuid() == 0, beside)
    return replace(daemon, knobs=knobs, trial=trial)


def _knobs(location: Ad, wanted: frozenset[str]) -> dict[str, str]:
    """Query the knobs that the check needs of one daemon, by lower-case name."""
    remote = htcondor2.RemoteParam(classad2.ClassAd(dict(location)))
    asked = [name for name in remote if name.casefold() in wanted or _ASKED.fullmatch(name.casefold())]
    values = {name.casefold(): str(remote[name]) for name in asked}
    return {name: value for name, value in values.items() if value != _UNSET}


def _slot(ad: Ad) -> SlotFacts:
    return SlotFacts(
        name=str(ad.get("Name")),
        machine=str(ad["Machine"]),
        clock=whole(ad, "MyCurrentTime") or 0,
        startd_started=whole(ad, "DaemonStartTime") or 0,
        cron_heartbeat=whole(ad, CRON_HEARTBEAT),
        orders_visible=_DEADLINE in ad,
        unusable=tuple((text(ad, UNUSABLE) or "").split()),
        orders_since=whole(ad, ORDERS_SINCE),
        heard=whole(ad, "LastHeardFrom") or 0,
    )
