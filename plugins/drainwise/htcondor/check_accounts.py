"""Verdicts on whether a job's accounting group is more than its user's word, where groups have quotas."""

from __future__ import annotations

import re
from collections.abc import Iterator

from drainwise.finding import MISSING, OK, Finding
from drainwise.htcondor.check_facts import DaemonFacts, PoolFacts
from drainwise.htcondor.knobs import words

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


def judge_accounts(facts: PoolFacts) -> Iterator[Finding]:
    """For each access point of a pool with accounting groups; nothing where the negotiator was not asked."""
    groups = " ".join(one.knobs.get("group_names", "") for one in facts.daemons if one.role == "central").strip()
    if not groups:
        return
    what = "AccountingGroup"
    for daemon in facts.daemons:
        if daemon.role != "access" or daemon.fault:
            continue
        bound = next(_rules_on_groups(daemon), "")
        if bound:
            yield Finding(OK, daemon.machine, what, "the access point looks at it", value=bound)
        else:
            why = (
                "a job may name any accounting group and user, and is then served by the quota of that one. No submit"
                " requirement and no job transform looks at it; one way to bind it:"
            )
            yield Finding(MISSING, daemon.machine, what, why, LINES, f"GROUP_NAMES = {groups}")


def _rules_on_groups(daemon: DaemonFacts) -> Iterator[str]:
    """The submit requirements and job transforms in force there that name the group."""
    for names, prefix in _RULES.items():
        for name in words(daemon.knobs.get(names, "")):
            rule = f"{prefix}{name}".casefold()
            if _GROUP.search(daemon.knobs.get(rule, "")):
                yield rule.upper()
