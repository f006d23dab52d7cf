"""Whether a job's accounting group is bound to its user, where groups have quotas."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pytest

from drainwise.htcondor.setup.check import LINES, judge_accounts
from drainwise.htcondor.setup.check_facts import DaemonFacts, PoolFacts
from drainwise.pool.finding import MISSING, OK


def severities(access: dict[str, str], groups: str = "group_a", fault: str = "") -> list[str]:
    central = DaemonFacts("central", "cm", (), {"group_names": groups})
    daemons = (central, DaemonFacts("access", "ap", (), access, fault))
    return [one.severity for one in judge_accounts(PoolFacts(daemons, ()))]


@pytest.mark.parametrize(
    ("knobs", "severity"),
    [
        ({}, MISSING),
        ({"submit_requirement_names": "Size", "submit_requirement_size": "RequestCpus < 9"}, MISSING),
        ({"submit_requirement_group": "AcctGroup is undefined"}, MISSING),
        ({"submit_requirement_names": "Size,Group", "submit_requirement_group": "acctgroup is undefined"}, OK),
        ({"job_transform_names": "G", "job_transform_g": "EVALSET AccountingGroup userMap(x)"}, OK),
        ({"job_transform_names": "G", "job_transform_g": "SET MyAccountingGroupName 1"}, MISSING),
    ],
)
def test_a_rule_that_is_in_force_and_names_the_group_binds_it(knobs: dict[str, str], severity: str) -> None:
    """A rule that no list of names has is not in force."""
    assert severities(knobs) == [severity]


def test_without_groups_there_is_nothing_to_bind() -> None:
    assert severities({}, groups="") == []


def test_an_access_point_that_did_not_answer_is_no_second_finding() -> None:
    assert severities({}, fault="did not answer") == []


def test_the_lines_that_are_shown_satisfy_the_check(answers: Callable[[str, Iterable[str]], dict[str, str]]) -> None:
    """As HTCondor's own library reads them."""
    names = [line.partition(" = ")[0] for line in LINES.splitlines() if re.match(r"\w", line)]
    assert severities(answers(LINES, names)) == [OK]
