"""Judging a live pool: what is in force, what is missing and what is dangerous, each with the line that mends it.

Pure: facts and the site's settings in, findings out. `collect_facts` gets the facts.
"""

from __future__ import annotations

from collections.abc import Sequence

from drainwise.finding import OK, Finding
from drainwise.htcondor.check_accounts import judge_accounts
from drainwise.htcondor.check_facts import PoolFacts
from drainwise.htcondor.check_knobs import expected_knobs, judge_daemon
from drainwise.htcondor.check_node import judge_closed, judge_files, judge_slots
from drainwise.htcondor.render import ROLES
from drainwise.siteconfig import SiteConfig


def judge(facts: PoolFacts, site: SiteConfig, roles: Sequence[str] = ROLES) -> tuple[Finding, ...]:
    """Every finding about the daemons, slots and files in `facts`, measured by what `site` asks for."""
    findings: list[Finding] = []
    for role in roles:
        wanted = expected_knobs(site, role)
        for daemon in facts.daemons:
            if daemon.role == role:
                findings += judge_daemon(daemon, site, wanted)
    findings += judge_accounts(facts)
    if "execute" in roles:
        refuse = {one.machine for one in findings if one.what == "orders" and one.severity != OK}
        findings += judge_closed(facts.slots, refuse)
        findings += judge_slots(facts.slots, site)
        findings += judge_files(facts, site)
    return tuple(findings)
