"""Verdicts on a pool's knobs: facts as real daemons answered them, drop-ins resolved by HTCondor's own library."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from drainwise.htcondor.setup.check import judge
from drainwise.htcondor.setup.check_facts import DaemonFacts, PoolFacts, SlotFacts
from drainwise.htcondor.setup.check_knobs import expected_knobs
from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding
from drainwise.siteconfig import HTCondorSection, ReclaimSection, SiteConfig

SITE = SiteConfig(htcondor=HTCondorSection(negotiator_policy="least-waste"), reclaim=ReclaimSection(grace=7200))
RECORDED = Path(__file__).parent / "recorded" / "unconfigured_pool.json"


@pytest.fixture(scope="module")
def unconfigured() -> PoolFacts:
    """What a pool of 25.14.1 answered that had never heard of drainwise (23.9.6 answered the same)."""
    recorded = json.loads(RECORDED.read_text())
    daemons = tuple(
        DaemonFacts(one["role"], one["machine"], tuple(one["version"]), one["knobs"]) for one in recorded["daemons"]
    )
    return PoolFacts(daemons, tuple(SlotFacts(**one) for one in recorded["slots"]))


@pytest.fixture(scope="module")
def configured(unconfigured: PoolFacts, answers: Callable[[str, Iterable[str]], dict[str, str]]) -> PoolFacts:
    """The same pool with the drop-ins installed, group quotas set and the crons running."""
    daemons = []
    for daemon in unconfigured.daemons:
        wanted = expected_knobs(SITE, daemon.role)
        live = answers("\n".join(knob.line for knob in wanted), [knob.name for knob in wanted])
        site = {"submit_requirement_names": "G", "submit_requirement_g": "AcctGroup is undefined"}
        daemons.append(dataclasses.replace(daemon, knobs={**daemon.knobs, **live, **site, "group_names": "group_a"}))
    slots = [
        dataclasses.replace(slot, cron_heartbeat=slot.clock - 30, orders_visible=True) for slot in unconfigured.slots
    ]
    return PoolFacts(tuple(daemons), tuple(slots))


def with_knobs(facts: PoolFacts, machine: str, role: str, **knobs: str) -> PoolFacts:
    """The pool in which one daemon answers otherwise; names in lower case, `__` for a dot."""
    changed = {name.replace("__", "."): value for name, value in knobs.items()}
    return dataclasses.replace(
        facts,
        daemons=tuple(
            dataclasses.replace(one, knobs={**one.knobs, **changed})
            if (one.machine, one.role) == (machine, role)
            else one
            for one in facts.daemons
        ),
    )


def bad(findings: Iterable[Finding]) -> list[Finding]:
    """What is not in order."""
    return [finding for finding in findings if finding.severity != OK]


def test_a_configured_pool_has_nothing_to_mend(configured: PoolFacts) -> None:
    """Every knob and slot is in order, and is said to be."""
    findings = judge(configured, SITE)
    assert bad(findings) == []
    assert {finding.machine for finding in findings} == {"node1.pool.test", "node2.pool.test", "central.pool.test"}


ON_SLOTS = {"PilotCronHeartbeat", "PilotReclaimDeadline"}


def test_an_unconfigured_pool_is_one_finding_a_node_and_has_no_danger(unconfigured: PoolFacts) -> None:
    """What puts all of it in force; of other daemons each missing line is given as it must be added."""
    findings = bad(judge(unconfigured, SITE))
    assert {finding.severity for finding in findings} == {MISSING}
    assert all(finding.why for finding in findings)
    [node] = [one for one in findings if one.machine == "node1.pool.test" and one.what not in ON_SLOTS]
    assert (node.what, "DRAINWISE_ENABLED = True" in node.line) == ("drop-in", True)


def test_a_node_whose_drop_in_counts_in_part_misses_each_line(unconfigured: PoolFacts) -> None:
    """Each is given as it must be added, with its reason."""
    some = {"drainwise_run": "x"}
    daemons = tuple(dataclasses.replace(one, knobs={**one.knobs, **some}) for one in unconfigured.daemons)
    findings = bad(judge(dataclasses.replace(unconfigured, daemons=daemons), SITE))
    lines = {finding.line for finding in findings if finding.machine == "node1.pool.test"}
    wanted = {knob.line for knob in expected_knobs(SITE, "execute") if knob.name != "DRAINWISE_RUN"}
    assert wanted <= lines
    assert all(finding.why for finding in findings)


DANGERS = [
    ({"drainwise_hook_job_exit": "/x"}, "DRAINWISE_HOOK_JOB_EXIT", "DRAINWISE_HOOK_JOB_EXIT ="),
    ({"other_hook_job_exit": "/x"}, "OTHER_HOOK_JOB_EXIT", "OTHER_HOOK_JOB_EXIT ="),
    ({"job_execdir_permissions": "world"}, "JOB_EXECDIR_PERMISSIONS", "JOB_EXECDIR_PERMISSIONS = user"),
    ({"job_execdir_permissions": "Group"}, "JOB_EXECDIR_PERMISSIONS", "JOB_EXECDIR_PERMISSIONS = user"),
    ({"settable_attrs_write": "PILOT_RECLAIM"}, "SETTABLE_ATTRS_WRITE", "SETTABLE_ATTRS_WRITE ="),
    ({"settable_attrs_write": "PILOT_RECLAIM_ROOM"}, "SETTABLE_ATTRS_WRITE", "SETTABLE_ATTRS_WRITE ="),
    ({"settable_attrs_owner": "a, Pilot_*, b"}, "SETTABLE_ATTRS_OWNER", "SETTABLE_ATTRS_OWNER = a b"),
    ({"settable_attrs_config": "*"}, "SETTABLE_ATTRS_CONFIG", "SETTABLE_ATTRS_CONFIG ="),
    ({"startd__settable_attrs_write": "*"}, "STARTD.SETTABLE_ATTRS_WRITE", "STARTD.SETTABLE_ATTRS_WRITE ="),
    (
        {"settable_attrs_administrator": "* PILOT_RECLAIM"},
        "SETTABLE_ATTRS_ADMINISTRATOR",
        "SETTABLE_ATTRS_ADMINISTRATOR = PILOT_RECLAIM PILOT_RECLAIM_ROOM",
    ),
    (
        {"startd_cron_drainwise_mode": "WaitForExit", "startd_cron_drainwise_period": "0s"},
        "STARTD_CRON_DRAINWISE_MODE",
        "STARTD_CRON_DRAINWISE_MODE = Periodic",
    ),
    ({"starter_update_interval": "7200"}, "STARTER_UPDATE_INTERVAL", "STARTER_UPDATE_INTERVAL = 60"),
    ({"machinemaxvacatetime": "2 * 60 * 60"}, "MachineMaxVacateTime", "MachineMaxVacateTime = 600"),
    ({"startd_job_attrs": "ImageSize, PilotKillWaste"}, "STARTD_JOB_ATTRS", "STARTD_JOB_ATTRS = ImageSize"),
    ({"startd_job_exprs": "PilotHeartbeat"}, "STARTD_JOB_EXPRS", "STARTD_JOB_EXPRS ="),
    (
        {"pilot_reclaim": 'a#1.0#1@1=5 x"y'},
        "PILOT_RECLAIM",
        'condor_config_val -name node1.pool.test -startd -rset "PILOT_RECLAIM ="',
    ),
]


@pytest.mark.parametrize(("knobs", "what", "line"), DANGERS)
def test_a_dangerous_knob_is_found_with_its_remedy(
    configured: PoolFacts, knobs: dict[str, str], what: str, line: str
) -> None:
    """Exactly that knob of that node is called dangerous, with the line to add, and nothing is said of the others."""
    findings = bad(judge(with_knobs(configured, "node1.pool.test", "execute", **knobs), SITE))
    dangerous = [finding for finding in findings if finding.severity == DANGEROUS]
    assert [(one.machine, one.what, one.line) for one in dangerous] == [("node1.pool.test", what, line)]
    assert {one.what.casefold() for one in findings} <= set(knobs) | {what.casefold()}


@pytest.mark.parametrize(
    "who", ["*", "*/*", "*@pool.test", "root@pool.test, *@pool.test/node1.pool.test", "*@*", "condor@x *"]
)
def test_an_administrator_whom_anyone_can_be_is_dangerous(configured: PoolFacts, who: str) -> None:
    """Any user could end any pilot."""
    for name in ("allow_administrator", "allow_administrator_startd", "startd__allow_administrator"):
        findings = bad(judge(with_knobs(configured, "node2.pool.test", "execute", **{name: who}), SITE))
        assert [(one.severity, one.what) for one in findings] == [(DANGEROUS, name.replace("__", ".").upper())]
        # The line to add keeps whom the site has named.
        assert ("root@pool.test" in who) == findings[0].line.endswith("= root@pool.test")


@pytest.mark.parametrize("who", ["root@pool.test", "central.pool.test", "10.0.0.*", "condor@pool.test/*.pool.test"])
def test_a_named_administrator_is_in_order(configured: PoolFacts, who: str) -> None:
    """Hosts and named identities are the site's own choice."""
    assert bad(judge(with_knobs(configured, "node1.pool.test", "execute", allow_administrator=who), SITE)) == []


def test_a_node_without_administrator_takes_no_orders(configured: PoolFacts) -> None:
    """Nobody can ask its pilots: missing, not dangerous."""
    findings = bad(judge(with_knobs(configured, "node1.pool.test", "execute", allow_administrator=""), SITE))
    assert [(one.severity, one.what) for one in findings] == [(MISSING, "ALLOW_ADMINISTRATOR")]


def test_a_list_of_orders_is_in_order(configured: PoolFacts) -> None:
    """What the reclaim agent writes is not called broken; nor is an empty list."""
    for orders in ("", "central.pool.test#28.0#1795258311@1795258515=1795258608 a-b_c@d#1.12#1@1=5 "):
        assert bad(judge(with_knobs(configured, "node1.pool.test", "execute", pilot_reclaim=orders), SITE)) == []


@pytest.mark.parametrize(("after", "missing"), [("{} && TARGET.Owner != 'x'", []), ("True", ["START"])])
def test_a_start_of_the_sites_own_must_build_upon_ours(configured: PoolFacts, after: str, missing: list[str]) -> None:
    """One that replaces it keeps no room."""
    ours = next(one for one in configured.daemons if one.role == "execute").knobs["start"]
    findings = bad(judge(with_knobs(configured, "node1.pool.test", "execute", start=after.format(ours)), SITE))
    assert [one.what for one in findings] == missing


def test_a_vacate_time_that_is_an_expression_is_left_to_the_site(configured: PoolFacts) -> None:
    """What cannot be judged is not judged."""
    knobs = {"machinemaxvacatetime": "ifThenElse(Cpus > 8, 99999, 60)"}
    assert bad(judge(with_knobs(configured, "node1.pool.test", "execute", **knobs), SITE)) == []


def test_a_policy_without_its_rank_is_dangerous(configured: PoolFacts, unconfigured: PoolFacts) -> None:
    """With the default NEGOTIATOR_PRE_JOB_RANK the policy would take the most wasteful slot first."""
    default = next(one for one in unconfigured.daemons if one.role == "central").knobs["negotiator_pre_job_rank"]
    facts = with_knobs(configured, "central.pool.test", "central", negotiator_pre_job_rank=default)
    (finding,) = bad(judge(facts, SITE))
    assert (finding.severity, finding.what) == (DANGEROUS, "NEGOTIATOR_PRE_JOB_RANK")
    assert finding.line.splitlines()[1].startswith("NEGOTIATOR_PRE_JOB_RANK = ")
    by_claims = "ifThenElse(MY.RemoteOwner =?= undefined, 1, -1 * MY.PilotKillWaste)"
    (claims,) = bad(judge(with_knobs(facts, "central.pool.test", "central", negotiator_pre_job_rank=by_claims), SITE))
    assert claims.why.endswith("what one user's pilots claim moves kills to other users")
    # It is as dangerous where the site file knows nothing of the policy that somebody has switched on.
    none = dataclasses.replace(SITE, htcondor=HTCondorSection())
    assert [(one.severity, one.what) for one in bad(judge(facts, none))] == [(DANGEROUS, "NEGOTIATOR_PRE_JOB_RANK")]


def test_a_negotiator_without_policy_keeps_its_rank(unconfigured: PoolFacts) -> None:
    """The default rank is right where the negotiator preempts nothing by waste."""
    none = dataclasses.replace(SITE, htcondor=HTCondorSection())
    assert bad(judge(unconfigured, none, ["central"])) == []


def test_a_policy_without_groups_is_not_in_force(configured: PoolFacts) -> None:
    """It moves cores between groups; without quotas it never acts."""
    findings = bad(judge(with_knobs(configured, "central.pool.test", "central", group_names=""), SITE))
    assert [(one.severity, one.what) for one in findings] == [(MISSING, "GROUP_NAMES")]


def test_a_daemon_that_does_not_answer_and_an_old_one_are_told(configured: PoolFacts) -> None:
    """Incomplete answer is no clean bill."""
    first, second, *rest = configured.daemons
    silent = dataclasses.replace(first, knobs={}, fault="the daemon did not answer within 10 s")
    old = dataclasses.replace(second, version=(10, 0, 9))
    findings = bad(judge(dataclasses.replace(configured, daemons=(silent, old, *rest)), SITE))
    assert [(one.severity, one.machine, one.what) for one in findings] == [
        (MISSING, "node1.pool.test", "execute daemon"),
        (MISSING, "node2.pool.test", "HTCondor"),
        (MISSING, "node2.pool.test", "UPDATE_INTERVAL"),
    ]
    assert "did not answer within 10 s" in findings[0].why


def test_only_the_roles_asked_for_are_judged(unconfigured: PoolFacts) -> None:
    """`--role access` speaks of access points alone."""
    assert {one.machine for one in judge(unconfigured, SITE, ["access"])} == {"central.pool.test"}
    assert [one.what for one in judge(unconfigured, SITE, ["access"])] == ["IMMUTABLE_JOB_ATTRS"]
