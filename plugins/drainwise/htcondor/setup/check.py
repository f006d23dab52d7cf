"""Judge a live pool, and the node on which the check runs: what is in force, missing or dangerous, and what mends it.

Pure: facts and the site's settings in, findings out. `collect_facts` gets the facts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from drainwise.htcondor.node import CRON_HEARTBEAT
from drainwise.htcondor.setup.check_facts import DaemonFacts, PoolFacts, SlotFacts
from drainwise.htcondor.setup.check_knobs import expected_knobs, judge_daemon, restart_line
from drainwise.htcondor.setup.knobs import words
from drainwise.htcondor.setup.node_files import judge_files
from drainwise.htcondor.setup.render import ROLES
from drainwise.pool.finding import MISSING, OK, Finding, judged
from drainwise.siteconfig import SiteConfig

_GROUP = re.compile(r"\b(AccountingGroup|AcctGroup)\b", re.IGNORECASE)
_RULES = {"submit_requirement_names": "submit_requirement_", "job_transform_names": "job_transform_"}

LINES = """\
SCHEDD_CLASSAD_USER_MAP_NAMES = $(SCHEDD_CLASSAD_USER_MAP_NAMES) AccountingGroups
# A line for each user: * alice group_a,group_b
CLASSAD_USER_MAPFILE_AccountingGroups = /etc/condor/accounting_groups
SUBMIT_REQUIREMENT_NAMES = $(SUBMIT_REQUIREMENT_NAMES) AccountingGroup
SUBMIT_REQUIREMENT_AccountingGroup = (AccountingGroup is undefined && AcctGroup is undefined) || \
(AccountingGroup is strcat(AcctGroup, ".", Owner) && stringListIMember(AcctGroup, userMap("AccountingGroups", Owner)))
SUBMIT_REQUIREMENT_AccountingGroup_REASON = strcat(Owner, " may not use this accounting group")
IMMUTABLE_JOB_ATTRS = $(IMMUTABLE_JOB_ATTRS) AccountingGroup AcctGroup AcctGroupUser"""
"""One way to bind the group to the user, at the submission and afterwards (condor_qedit)."""


def judge(facts: PoolFacts, site: SiteConfig, roles: Sequence[str] = ROLES) -> tuple[Finding, ...]:
    """Judge the daemons, slots and files in `facts`, measured by what `site` asks for."""
    findings: list[Finding] = []
    for role in roles:
        wanted = expected_knobs(site, role)
        for daemon in facts.daemons:
            if daemon.role == role:
                findings += judged(daemon.machine, (judge_daemon,), daemon, site, wanted)
    findings += judge_accounts(facts)
    if "execute" in roles:
        refuse = {one.machine for one in findings if one.what == "orders" and one.severity != OK}
        findings += judge_closed(facts.slots, refuse)
        findings += judge_slots(facts.slots, site)
        findings += judged(facts.local_machine, (judge_files,), facts, site)
    return tuple(findings)


def judge_accounts(facts: PoolFacts) -> Iterator[Finding]:
    """Judge each access point of a pool with accounting groups; none where the negotiator was not queried."""
    groups = " ".join(one.knobs.get("group_names", "") for one in facts.daemons if one.role == "central").strip()
    if not groups:
        return
    what = "AccountingGroup"
    for daemon in facts.daemons:
        if daemon.role != "access" or daemon.fault:
            continue
        bound = next(_rules_on_groups(daemon), "")
        if bound:
            yield Finding(OK, what, "the access point looks at it", value=bound, machine=daemon.machine)
        else:
            why = (
                "a job may name any accounting group and user, and is then served by the quota of that one. No submit"
                " requirement and no job transform looks at it; one way to bind it:"
            )
            yield Finding(MISSING, what, why, LINES, f"GROUP_NAMES = {groups}", daemon.machine)


def _rules_on_groups(daemon: DaemonFacts) -> Iterator[str]:
    """Yield the submit requirements and job transforms in force there that name the group."""
    for names, prefix in _RULES.items():
        for name in words(daemon.knobs.get(names, "")):
            rule = f"{prefix}{name}".casefold()
            if _GROUP.search(daemon.knobs.get(rule, "")):
                yield rule.upper()


_LATE = 3  # periods of the cron: its silence is then no chance any more


def judge_slots(slots: Sequence[SlotFacts], site: SiteConfig) -> Iterator[Finding]:
    """Judge whether each node's cron publishes and finds its files, and whether its slots show their orders."""
    lines = {knob.name: knob.line for knob in expected_knobs(site, "execute")}
    period = site.htcondor.cron_period
    by_machine: dict[str, list[SlotFacts]] = {}
    for slot in slots:
        by_machine.setdefault(slot.machine, []).append(slot)
    for machine, own in sorted(by_machine.items()):
        ages = [slot.clock - slot.cron_heartbeat for slot in own if slot.cron_heartbeat is not None]
        what, line = CRON_HEARTBEAT, lines["STARTD_CRON_JOBLIST"]
        if not ages:
            why = (
                "the cron has never published here, so every pilot counts as silent: its program or the package is"
                " missing there, or cannot be run; see STARTD_CRON in the StartLog"
            )
            yield Finding(MISSING, what, why, line, machine=machine)
        elif min(ages) > _LATE * period:
            why = (
                f"the cron does not run any more (its period is {period} s): its program or the package has gone from"
                " there; see STARTD_CRON in the StartLog"
            )
            yield Finding(MISSING, what, why, line, f"{min(ages)} s old", machine)
        else:
            yield Finding(OK, what, "the cron publishes", line, f"{min(ages)} s old", machine)
        unusable = sorted({path for slot in own for path in slot.unusable})
        if unusable:
            why = "gone, or of no use to the jobs' users: jobs there start without features, or not at all"
            line = "drainwise config htcondor --role execute --out /   (there, with the package)"
            yield Finding(MISSING, "files of the node", why, line, " ".join(unusable), machine)
        hidden = [slot.name for slot in own if not slot.orders_visible]
        why = "the reclaim agent reads its orders back from the slots"
        severity = MISSING if hidden else OK
        yield Finding(severity, "PilotReclaimDeadline", why, lines["STARTD_ATTRS"], " ".join(hidden), machine)


def judge_closed(slots: Sequence[SlotFacts], named: Collection[str]) -> Iterator[Finding]:
    """Judge the nodes that publish that they take no orders: the agent gives none there.

    named: machines of which another finding says so.
    """
    what, closed = "PilotOrdersSince", {}
    for slot in slots:
        if slot.machine not in named and slot.orders_since is not None:
            if slot.orders_since == 0:
                closed[slot.machine] = (
                    "the agent asks nobody here: ENABLE_RUNTIME_CONFIG is not true, or a site's own job hooks go first"
                    " (STARTER_JOB_HOOK_KEYWORD), so that no pilot would receive an order",
                    "hook_keyword, site_prepare_hook and site_update_hook in [htcondor] of the site file; render again",
                )
            elif slot.startd_started < slot.orders_since:
                closed[slot.machine] = (
                    "the agent asks nobody here: the startd has not been started since orders were configured",
                    restart_line("NODE"),
                )
    for machine, (why, line) in sorted(closed.items()):
        yield Finding(MISSING, what, why, line, machine=machine)
