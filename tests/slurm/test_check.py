"""What `drainwise check slurm` finds in real configurations, and in ones that were spoilt."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding
from drainwise.siteconfig import SiteConfig, SlurmSection
from drainwise.siteconfig.schema import ReclaimSection
from drainwise.slurm.jobs.commands import settings_in
from drainwise.slurm.pool.qos_rules import Qos, qos_in
from drainwise.slurm.setup.check import judge
from drainwise.slurm.setup.check_facts import ClusterFacts
from drainwise.slurm.setup.own_settings import ClusterHistory, OwnSettings
from drainwise.slurm.setup.render import render

from .recorded_cluster import NOW, VERSIONS, jobs, recorded

SITE = SiteConfig()
NATIVE = SiteConfig(slurm=replace(SlurmSection(), native_preemption="yes"))
OURS = {
    "prolog": "/etc/slurm/prolog.d/*",
    "epilog": "/etc/slurm/epilog.d/*",
    "taskprolog": "/usr/libexec/drainwise/slurm-task-prolog",
}


def facts(version: str, **config: str) -> ClusterFacts:
    """The recorded cluster with our hooks, and with other settings."""
    live = settings_in(recorded(version, "config.txt").decode())
    return ClusterFacts(
        {**live, **OURS, **config},
        {"main": "NONE"},
        qos_in(recorded(version, "qos.txt").decode()),
        tuple(jobs(version)),
    )


def findings(cluster: ClusterFacts, site: SiteConfig = SITE, now: int = NOW["22.05"]) -> dict[str, Finding]:
    return {one.what: one for one in judge(cluster, site, now)}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_cluster_with_our_hooks_is_in_order_but_for_a_foreign_comment(version: str) -> None:
    found = findings(facts(version))
    assert {what for what, one in found.items() if one.severity != OK} == {"AdminComment"}
    assert found["AdminComment"].value == "10"
    assert found["reports"].value == "1 jobs"
    assert {one.machine for one in found.values()} == {"test"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("config", "what", "severity", "line"),
    [
        ({"prolog": "(null)"}, "Prolog", MISSING, "Prolog=/etc/slurm/prolog.d/*"),
        ({"epilog": "/opt/other"}, "Epilog", MISSING, "Epilog=/etc/slurm/epilog.d/*"),
        ({"taskprolog": "/opt/other"}, "TaskProlog", MISSING, "TaskProlog=/usr/libexec/drainwise/slurm-task-prolog"),
        ({"prologepilogtimeout": "65534"}, "PrologEpilogTimeout", DANGEROUS, "PrologEpilogTimeout=60"),
        ({"prologepilogtimeout": "10"}, "PrologEpilogTimeout", DANGEROUS, "PrologEpilogTimeout=60"),
        ({"prologtimeout": "10", "epilogtimeout": "60"}, "PrologTimeout", DANGEROUS, "PrologTimeout=60"),  # since 25.05
        ({"prologtimeout": "60", "epilogtimeout": "9"}, "EpilogTimeout", DANGEROUS, "EpilogTimeout=60"),
        ({"prologflags": "(null)"}, "PrologFlags", MISSING, "PrologFlags=Alloc"),
        (
            {"accountingstoragetype": "(null)"},
            "AccountingStorageType",
            MISSING,
            "AccountingStorageType=accounting_storage/slurmdbd",
        ),
        ({"prioritytype": "priority/basic"}, "PriorityType", MISSING, "PriorityType=priority/multifactor"),
        ({"overtimelimit": "5 min"}, "OverTimeLimit", DANGEROUS, "OverTimeLimit=0"),
        ({"overtimelimit": "UNLIMITED"}, "OverTimeLimit", DANGEROUS, "OverTimeLimit=0"),
        ({"jobrequeue": "0"}, "JobRequeue", MISSING, "JobRequeue=1"),
        ({"slurm_version": "20.11.9"}, "Slurm", MISSING, ""),
    ],
)
def test_each_fault_has_its_line(version: str, config: dict[str, str], what: str, severity: str, line: str) -> None:
    found = findings(facts(version, **config))[what]
    assert (found.severity, found.line) == (severity, line)
    assert found.why


def test_a_kill_wait_as_long_as_the_grace_is_dangerous() -> None:
    site = SiteConfig(reclaim=ReclaimSection(grace=30))
    assert findings(facts("22.05", killwait="30 sec"), site)["KillWait"].severity == DANGEROUS
    assert findings(facts("22.05", killwait="30 sec"))["KillWait"].severity == OK


def test_a_partition_with_its_own_over_time_is_found() -> None:
    cluster = replace(facts("24.11"), over_time={"main": "NONE", "long": "UNLIMITED"})
    assert findings(cluster)["OverTimeLimit"].value == "long UNLIMITED"


def test_several_lines_of_one_hook_are_one_setting() -> None:
    """As 24.11 shows them."""
    text = "Prolog[0]               = /opt/site\nProlog[1]               = /etc/slurm/prolog.d/*\n"
    cluster = facts("24.11", **settings_in(text))
    assert findings(cluster)["Prolog"].severity == OK


@pytest.mark.parametrize("version", VERSIONS)
def test_a_site_with_hooks_of_its_own_is_in_order(version: str) -> None:
    """Ours in its directory, its own script that calls ours, prologs without a limit: nothing to be done."""
    values = {"prolog": ("/site/prolog.d/*",), "epilog": ("/site/epilog",), "taskprolog": ("/site/wrapper",)}
    own = OwnSettings(values=values, wrappers=frozenset({"/site/wrapper", "/site/epilog"}))
    live = {key: value for key, (value,) in values.items()}
    cluster = replace(facts(version, **live, prologepilogtimeout="65534"), history=ClusterHistory(own))
    found = findings(cluster)
    for key in ("Prolog", "Epilog", "TaskProlog", "PrologEpilogTimeout"):
        assert found[key].severity == OK, found[key]
    assert "the site's own calls ours" in found["TaskProlog"].why


def test_a_task_prolog_of_the_sites_alone_is_told_how_both_run() -> None:
    """The line of ours would end the site's own."""
    own = OwnSettings(values={"taskprolog": ("/site/tp",)})
    one = findings(replace(facts("24.11", taskprolog="/site/tp"), history=ClusterHistory(own)))["TaskProlog"]
    assert (one.severity, one.line) == (MISSING, "drainwise config slurm: its TaskProlog runs /site/tp, too")
    assert "a check on a node" in one.why


def test_no_report_on_any_job_is_told_when_jobs_have_run_for_a_while() -> None:
    silent = tuple(replace(job, comments=()) for job in jobs("22.05"))
    cluster = replace(facts("22.05"), jobs=silent)
    assert findings(cluster, now=NOW["22.05"] + 600)["reports"].severity == MISSING
    assert "reports" not in findings(cluster, now=NOW["22.05"] - 100)


# ---- Slurm's own preemption ----

STEERED = {"preempttype": "preempt/qos", "preemptmode": "REQUEUE"}
OWED = (Qos("pilots", frozenset(), frozenset({"requeue"})), Qos("owed", frozenset({"pilots"}), frozenset({"cluster"})))
WITHIN = qos_in("normal||cluster|00:00:00|\npilots||within,requeue|00:02:00|00:01:00\n")


def test_a_steered_cluster_is_in_order() -> None:
    new = replace(facts("24.11", **STEERED, preemptparameters="min_exempt_priority=2"), qos=OWED)
    old = replace(facts("22.05", **STEERED), qos=WITHIN)
    for cluster in (new, old):
        bad = {what for what, one in findings(cluster, NATIVE).items() if one.severity != OK}
        assert bad == {"AdminComment"}


@pytest.mark.parametrize(
    ("parameters", "severity"),
    [("(null)", DANGEROUS), ("min_exempt_priority=1000000", DANGEROUS), ("min_exempt_priority=1", MISSING)],
)
def test_an_exemption_that_spares_too_few_or_too_many(parameters: str, severity: str) -> None:
    cluster = replace(facts("24.11", **STEERED, preemptparameters=parameters), qos=OWED)
    found = findings(cluster, NATIVE)["PreemptParameters"]
    assert (found.severity, found.line) == (severity, "PreemptParameters=min_exempt_priority=2")


def test_native_preemption_without_its_plugin_or_qos() -> None:
    found = findings(facts("22.05"), NATIVE)
    assert {what for what, one in found.items() if one.severity != OK} >= {"PreemptType", "QOS", "QOS Preempt"}


@pytest.mark.parametrize(
    ("told", "live", "bad"), [("24.11", "22.05", True), ("22.05", "24.11", True), ("23.11", "24.11", False)]
)
def test_a_site_file_for_another_release_is_dangerous(told: str, live: str, bad: bool) -> None:
    """The rendered line would stop every command of 22.05; without it 24.11 preempts runs that were not chosen."""
    site = replace(NATIVE, slurm=replace(NATIVE.slurm, release=Decimal(told)))
    cluster = replace(facts(live, **STEERED), qos=OWED)
    assert ("release" in findings(cluster, site)) is bad


@pytest.mark.parametrize("at_deadline", ["requeue", "end"])
def test_the_lines_of_native_preemption_are_those_that_are_rendered(at_deadline: str) -> None:
    """One line to add, whoever says it."""
    for live, release in (("22.05", "22.05"), ("24.11", "24.11")):
        slurm = replace(NATIVE.slurm, release=Decimal(release))
        site = replace(NATIVE, slurm=slurm, reclaim=replace(NATIVE.reclaim, at_deadline=at_deadline))
        text = "\n".join(file.text for file in render(site, "controller"))
        found = findings(facts(live), site)
        wanted = found["PreemptType"].line.splitlines()
        wanted.append(found["QOS" if live == "22.05" else "PreemptParameters"].line)
        lines = [line.lstrip("# ") for line in text.splitlines()]
        assert all(line in lines for line in wanted), wanted


def test_priorities_that_were_left_behind_are_dangerous_when_the_road_is_off() -> None:
    """A waiting job with one of them would overtake everybody. The lowest one may be Slurm's, where it never was on."""
    marked = (replace(jobs("22.05")[0], priority=4_000_000_000), replace(jobs("22.05")[3], priority=1))
    cluster = replace(facts("22.05", preempttype="preempt/qos"), jobs=marked)
    found = findings(cluster)["job priorities"]
    assert (found.severity, found.line) == (DANGEROUS, "scontrol release 1,4_1")
    assert "job priorities" not in findings(replace(cluster, jobs=marked[1:]))  # nothing has a weight: all have it
    never = facts("22.05", preempttype="preempt/none")
    assert findings(replace(never, jobs=marked))["job priorities"].line == "scontrol release 1"
    assert "job priorities" not in findings(replace(never, jobs=marked[1:]))
    assert "job priorities" not in findings(replace(cluster, qos=WITHIN), NATIVE)
