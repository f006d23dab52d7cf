"""Where condor_defrag drains with `[htcondor] defrag = yes`: prices of slots and nodes, and what a drain gives."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import classad2
import htcondor2  # noqa: F401 - with it, MY. is bound in an ad as it is in the daemons
import pytest

from drainwise.facts.waste import classad_expressions
from drainwise.htcondor.setup.check_facts import DaemonFacts
from drainwise.htcondor.setup.check_knobs import judge_defrag
from drainwise.htcondor.setup.render import ROLES, drop_in_path, render
from drainwise.pool.finding import DANGEROUS, MISSING, OK
from drainwise.siteconfig import HTCondorSection, ReclaimSection, SiteConfig

Answers = Callable[[str, Iterable[str]], "dict[str, str]"]
OFF = SiteConfig(reclaim=ReclaimSection(grace=7200, margin=900))
SITE = replace(OFF, htcondor=HTCondorSection(defrag="yes"))
NONE = classad2.Value.Undefined
ERROR = classad2.Value.Error
RAN = 1000  # seconds since each job's start
BADPUT = "ExpectedMachineGracefulDrainingBadput"


def text_of(site: SiteConfig, role: str) -> str:
    """The text of a role's drop-in."""
    return next(file.text for file in render(site, role) if file.path == drop_in_path(role))


def resolved(answers: Answers, role: str, name: str, before: str = "", after: str = "") -> str:
    """A knob's value, with what the site has in files before and after ours."""
    text = text_of(SITE, role).replace("include ifexist", "# include")
    return answers(f"{before}\n{text}\n{after}\n", [name])[name.casefold()]


# ---- a slot ----


def slot_of(**more: object) -> dict[str, object]:
    """The slot of a pilot of 8 cores that runs since RAN seconds and has just reported: 2 cores idle for an hour."""
    now = int(time.time())
    return {
        "Cpus": 8,
        "GlobalJobId": "s#1.0#9",
        "JobStart": now - RAN,
        "PilotReportedBy": f"s#1.0#9@{now - RAN}",
        "PilotHeartbeat": now,
        "PilotUsedCpu": 6,
        "PilotLastJobStart": now - 100,
        "PilotFirstExpJobEnd": now + 3600,
        "PilotLastExpJobEnd": now + 3600,
        "PilotAddUncomTime": 0,
        "PilotAddFinalExpWaste": 50,
        **more,
    }


def price_of(answers: Answers, slot: dict[str, object], job: dict[str, object] | None = None) -> float:
    """What the node publishes for a slot whose cron printed the live metrics."""
    ad = classad2.ClassAd({name: value for name, value in slot.items() if value is not NONE})
    for name, text in classad_expressions(3600).items():
        if name not in slot:
            ad[name] = classad2.ExprTree(text)
    value = classad2.ExprTree(resolved(answers, "execute", "PilotDrainPrice")).eval(ad, classad2.ClassAd(job or {}))
    assert isinstance(value, (int, float))
    return value


NOW = int(time.time())
SILENT = dict.fromkeys(classad_expressions(3600), NONE)  # the cron publishes nothing at all
CLEARED = {name: NONE for name in slot_of() if name.startswith("Pilot") and name != "PilotHeartbeat"}


@pytest.mark.parametrize(
    ("more", "price"),
    [
        pytest.param({}, 2 * 3600 + 50, id="its draining waste"),
        pytest.param({"PilotUsedCpu": 8, "PilotAddFinalExpWaste": 0}, 0, id="believed to lose nothing"),
        pytest.param({"PilotAddFinalExpWaste": 10**12}, 8 * 3600, id="no more than its cores until it is gone"),
        pytest.param({"PilotHeartbeat": NOW - 4000}, 8 * RAN, id="stale"),
        pytest.param(CLEARED, 8 * RAN, id="contradictory: its node publishes the heartbeat alone"),
        pytest.param({"PilotAddFinalExpWaste": NONE}, 8 * RAN, id="incomplete"),
        pytest.param({"PilotReportedBy": "s#1.0#8@7"}, 8 * RAN, id="of the run before on the same claim"),
        pytest.param(SILENT, 8 * RAN, id="silent, or no pilot"),
        pytest.param({"PilotLastExpJobEnd": NOW + 7200}, 6 * 100 + 8 * 7200, id="not gone when the drain ends"),
        pytest.param({"PilotDrainingWaste": ERROR}, 8 * RAN, id="an error"),
        pytest.param({"PilotDrainingWaste": "0"}, 8 * RAN, id="no number"),
        pytest.param({**SILENT, "JobStart": NONE}, 0, id="no job"),
        pytest.param({**SILENT, "JobStart": NOW + 3600}, 0, id="a clock that was set back"),
    ],
)
def test_a_slot_costs_what_draining_it_loses(more: dict[str, object], price: int, answers: Answers) -> None:
    """Draining waste where the report is believed and the pilot leaves in time; a silent job is never for nothing."""
    assert abs(price_of(answers, slot_of(**more)) - price) <= 8 * 10


def test_a_job_lends_its_slot_no_figure(answers: Answers) -> None:
    """What stands in the job's own ad does not count."""
    job: dict[str, object] = {
        "PilotDrainingWaste": 0,
        "PilotRemaining": 0,
        "PilotKillWaste": 0,
        "JobStart": NOW,
        "Cpus": 0,
    }
    assert price_of(answers, slot_of(**SILENT), job) >= 8 * RAN


# ---- a node ----


def rank_of(answers: Answers, slot: dict[str, object], before: str = "") -> float:
    """The rank of a node for condor_defrag, which evaluates it in an ad of its own with the slot's ad as TARGET."""
    ad = classad2.ClassAd()
    ad["Rank"] = classad2.ExprTree(resolved(answers, "central", "DEFRAG_RANK", before))
    value = ad.lookup("Rank").eval(ad, classad2.ClassAd(slot))
    is_number = isinstance(value, (int, float)) and not isinstance(value, classad2.Value)
    return value if is_number else 0.0  # so does condor_defrag


@pytest.mark.parametrize(
    ("children", "price"),
    [([30.0, 40], 70), ([], 0), ([0], 0), ([0, 12600.5, 8000], 20600.5), ([5, NONE], 5)],
)
def test_a_node_costs_the_sum_of_its_slots(children: list[object], price: float, answers: Answers) -> None:
    """Also an empty one, and whatever HTCondor's own figure is."""
    assert rank_of(answers, {"ChildPilotDrainPrice": children, BADPUT: 99}) == -price


@pytest.mark.parametrize("children", [NONE, [5, ERROR], ERROR, "0", 0.0])
def test_a_node_that_publishes_no_price_counts_with_htcondors_own_figure(children: object, answers: Answers) -> None:
    """It is not the cheapest of all because nothing is known of it."""
    published = {} if children is NONE else {"ChildPilotDrainPrice": children}
    assert rank_of(answers, {BADPUT: 4711, **published}) == -4711


def test_without_any_figure_the_sites_own_rank_counts(answers: Answers) -> None:
    """Whatever it is: nothing better is there."""
    assert rank_of(answers, {"Cpus": 3}, "DEFRAG_RANK = -Cpus") == -3
    assert rank_of(answers, {"Cpus": 3}, "DEFRAG_RANK =") == rank_of(answers, {"Cpus": 3}) == 0


def test_the_sites_own_child_attributes_stay(answers: Answers) -> None:
    """Ours are added to its list."""
    name = "STARTD_PARTITIONABLE_SLOT_ATTRS"
    ours = {"PilotDrainPrice", "PilotDrainingWaste", "PilotKillWaste", "PilotRemaining"}
    ours |= {"PilotReturningCpus", "PilotReturningMemory", "PilotReturningGPUs"}
    assert set(resolved(answers, "execute", name).split()) == ours
    assert (
        set(resolved(answers, "execute", name, f"{name} = CPUsUsage, Other").split()) == {"CPUsUsage,", "Other"} | ours
    )


@pytest.mark.parametrize("role", ROLES)
def test_without_the_option_no_line_is_about_drains(role: str) -> None:
    """Neither in the drop-ins nor beside them."""
    files = render(OFF, role)
    assert not [file.path for file in files if "nodes.cpf" in file.path or "defrag" in file.text.casefold()]
    assert not [file.path for file in files if "DrainPrice" in file.text]


# ---- the time that a drain gives ----


@pytest.mark.parametrize(
    ("before", "slot", "seconds"),
    [
        ("", {}, 0),
        ("MAXJOBRETIREMENTTIME = 60", {}, 60),
        ("", {"Draining": True, "LastDrainStartTime": 5000}, 5000 + 7200 - 1000),
        ("MAXJOBRETIREMENTTIME = 60", {"Draining": True, "LastDrainStartTime": 5000}, 5000 + 7200 - 1000),
        ("MAXJOBRETIREMENTTIME = 86400", {"Draining": True, "LastDrainStartTime": 5000}, 86400),
        ("MAXJOBRETIREMENTTIME = 60", {"Draining": True}, 60),
        ("", {"LastDrainStartTime": 5000}, 0),
        ("PILOT_RECLAIM = s#1.0#9@1000=3000", {"Draining": True, "LastDrainStartTime": 5000}, 2000),
    ],
)
def test_a_drain_gives_the_grace_from_its_start(
    before: str, slot: dict[str, object], seconds: int, answers: Answers
) -> None:
    """Counted from the job's start, as HTCondor does; the node's own longer time stays, and so does an order."""
    ad = classad2.ClassAd({"GlobalJobId": "s#1.0#9", "JobStart": 1000, **slot})
    ad["Result"] = classad2.ExprTree(resolved(answers, "execute", "MAXJOBRETIREMENTTIME", before))
    assert ad.eval("Result") == seconds


# ---- the check ----

MERGED = "DEFRAG_RANK = 1000000000 * (TotalSlotCpus >= 16) - $(DRAINWISE_NODE_PRICE)"


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("", "", [("DEFRAG_RANK", OK, "")]),
        ("DEFRAG_RANK =", "", [("DEFRAG_RANK", OK, "")]),
        (text_of(SITE, "central"), "", [("DEFRAG_RANK", OK, "")]),  # read twice
        ("DEFRAG_RANK = -Cpus", "", [("DEFRAG_RANK", MISSING, "* (-cpus) - $(DRAINWISE_NODE_PRICE)")]),
        ("", "DEFRAG_RANK = -Cpus", [("DEFRAG_RANK", MISSING, "* (-Cpus) - $(DRAINWISE_NODE_PRICE)")]),
        ("DEFRAG_RANK = -Cpus", MERGED, [("DEFRAG_RANK", OK, "")]),
    ],
)
def test_a_rank_of_the_sites_own_is_named_with_the_line_that_merges_it(
    before: str, after: str, found: list[tuple[str, str, str]], answers: Answers
) -> None:
    """Set before ours or after it; a merged one is in order."""
    rank = resolved(answers, "central", "DEFRAG_RANK", before, after)
    assert verdicts({"defrag_rank": rank}) == found
    if found[0][2]:
        [(_, _, line)] = verdicts({"defrag_rank": resolved(answers, "central", "DEFRAG_RANK", before, MERGED)})
        assert line == ""


def verdicts(knobs: dict[str, str], site: SiteConfig = SITE) -> list[tuple[str, str, str]]:
    """Subject, severity, and the end of the line that mends it."""
    facts = DaemonFacts("central", "cm", (25, 14, 1), knobs)
    findings = judge_defrag(facts, site)
    return [(one.what, one.severity, one.line.partition(" = 1000000000 ")[2] or one.line) for one in findings]


def test_what_a_named_condor_defrag_has_of_its_own_is_named() -> None:
    """Knobs for one subsystem go before the plain ones."""
    knobs = {"defrag.defrag_rank": "-Cpus", "big.defrag_draining_schedule": "fast", "my_defrag_rank": "7"}
    assert verdicts(knobs) == [
        ("DEFRAG.DEFRAG_RANK", MISSING, "* (-Cpus) - $(DRAINWISE_NODE_PRICE)"),
        ("BIG.DEFRAG_DRAINING_SCHEDULE", DANGEROUS, "BIG.DEFRAG_DRAINING_SCHEDULE = graceful"),
    ]
    assert verdicts(knobs, OFF) == []
    assert verdicts({"defrag_rank": f"-{BADPUT}", "big.defrag_draining_schedule": "Graceful"}) == []
