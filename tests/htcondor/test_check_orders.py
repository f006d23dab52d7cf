"""Verdicts on whether a startd takes orders, and on who may change what it publishes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from drainwise.htcondor.setup.check_facts import DaemonFacts, OrderTrial
from drainwise.htcondor.setup.check_knobs import expected_knobs, judge_orders, judge_writers
from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding
from drainwise.siteconfig import SiteConfig

SITE = SiteConfig()
READY = {"enable_runtime_config": "True"}
KEY = "condor@password"
LINE = "ALLOW_WRITE_STARTD = root@$(UID_DOMAIN), condor@$(UID_DOMAIN)"


def startd(trial: OrderTrial | None, knobs: Mapping[str, str] = READY) -> DaemonFacts:
    return DaemonFacts("execute", "n1", (23, 9, 6), knobs, trial=trial)


def verdict(trial: OrderTrial, knobs: Mapping[str, str] = READY) -> Finding:
    [found] = judge_orders(startd(trial, knobs), SITE)
    return found


def test_a_startd_that_took_a_value_is_in_order() -> None:
    found = verdict(OrderTrial("condor@pool", True, True, True))
    assert (found.severity, found.value) == (OK, "condor@pool")


def test_what_its_own_machine_may_says_little_of_the_agent() -> None:
    """There root is known by the file system, and elsewhere by a token."""
    found = verdict(OrderTrial("root@n1", True, True, True, beside=True))
    assert found.severity == OK and "run the check there" in found.why


def test_rights_alone_are_in_order_where_nothing_could_be_tried() -> None:
    """The drop-in of an older drainwise: its missing knob is a finding of its own."""
    assert verdict(OrderTrial("condor@pool", True, None, True)).severity == OK


@pytest.mark.parametrize(
    ("knobs", "name"),
    [
        ({}, "ALLOW_ADMINISTRATOR"),
        ({"startd.allow_administrator": "root@*", "allow_administrator": "x@y"}, "STARTD.ALLOW_ADMINISTRATOR"),
        ({"allow_administrator_startd": "root@*", "startd.allow_administrator": "x@y"}, "ALLOW_ADMINISTRATOR_STARTD"),
    ],
)
def test_the_line_names_the_agent_in_the_list_that_counts(knobs: dict[str, str], name: str) -> None:
    found = verdict(OrderTrial(KEY, False, None, True), knobs)
    assert (found.severity, found.value, found.line) == (MISSING, KEY, f"{name} = $({name}), {KEY}")


def test_a_plain_user_gets_no_line_that_would_make_an_administrator_of_it() -> None:
    found = verdict(OrderTrial("alice@pool", False, None, False))
    assert found.severity == MISSING
    assert "ALLOW_ADMINISTRATOR" not in found.line and "nothing is said of the agent" in found.why


def test_nobody_is_known() -> None:
    found = verdict(OrderTrial("", False, None, True))
    assert found.severity == MISSING and "SEC_DEFAULT_AUTHENTICATION_METHODS" in found.line


def test_a_startd_that_has_not_been_started_since() -> None:
    """Peacefully: the plain restart kills every job of the node within the second. The same line for all nodes.

    On all of them at once it drains the site: so one after the other.
    """
    found = verdict(OrderTrial("condor@pool", True, False, True))
    line = "condor_restart -startd -peaceful NODE   (one node after the other, or each node's next reboot)"
    assert (found.severity, found.line) == (MISSING, line)
    assert "takes none meanwhile" in found.why and "next reboot" in found.why


@pytest.mark.parametrize("knobs", [{}, {"enable_runtime_config": "False"}])
def test_a_knob_that_is_missing_is_said_once(knobs: dict[str, str]) -> None:
    """The line of the drop-in says it; a restart would not help."""
    assert not list(judge_orders(startd(OrderTrial("condor@pool", True, False, True), knobs), SITE))


def test_a_daemon_that_was_not_tried_gives_no_verdict() -> None:
    assert not list(judge_orders(startd(None), SITE))


@pytest.mark.parametrize(
    ("knobs", "wide"),
    [
        ({"allow_write": "*"}, "ALLOW_WRITE = *"),
        ({"allow_write": "condor@a, *@b"}, "ALLOW_WRITE = condor@a, *@b"),
        ({"allow_write": "*", "startd.allow_write": "*/*"}, "STARTD.ALLOW_WRITE = */*"),
        ({"allow_write": "*", "allow_write_startd": "condor@a"}, ""),
        ({"allow_write": "*", "startd.allow_write": "condor@a"}, ""),
        ({"allow_write": "condor@*, root@a"}, ""),
        ({}, ""),
    ],
)
def test_who_may_submit_must_not_write_to_a_startd(knobs: dict[str, str], wide: str) -> None:
    """A list that names users or hosts is the site's own choice; `*` is everybody who can submit."""
    found = list(judge_writers(startd(None, knobs), SITE))
    assert [one.severity for one in found] == ([DANGEROUS] if wide else [OK] if knobs else [])
    assert all((one.value, one.line) == (wide, LINE) for one in found if one.severity == DANGEROUS)


def test_with_the_old_meaning_of_the_lists_the_schedds_must_stay_in_them() -> None:
    """There ALLOW_WRITE is by what schedds claim slots; the drop-in leaves it alone."""
    [found] = judge_writers(startd(None, {"allow_write": "*", "legacy_allow_semantics": "True"}), SITE)
    assert found.severity == DANGEROUS and "each schedd" in found.line


def test_the_line_for_writers_is_the_drop_ins() -> None:
    assert LINE in {knob.line for knob in expected_knobs(SITE, "execute")}
