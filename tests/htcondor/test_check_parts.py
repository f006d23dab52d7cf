"""`[htcondor] partial_return`: what is rendered with it and without, and what `check` says of the release."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import classad2
import htcondor2  # noqa: F401 - with it, MY. is bound in an ad as it is in the daemons
import pytest

from drainwise.htcondor.node.job_directories import JobSandbox
from drainwise.htcondor.node.parts import returned_by
from drainwise.htcondor.setup.check_facts import DaemonFacts
from drainwise.htcondor.setup.check_knobs import expected_knobs, judge_partial_return, judge_updates
from drainwise.htcondor.setup.render import ROLES, render
from drainwise.pilotad.partial_return import ReturnedPart
from drainwise.pool.finding import MISSING, OK
from drainwise.siteconfig import HTCondorSection, SiteConfig

Answers = Callable[[str, Iterable[str]], "dict[str, str]"]
OFF = SiteConfig()
SITE = replace(OFF, htcondor=HTCondorSection(partial_return="yes", cron_period=10))
BEFORE = "NUM_CPUS = 8\nMEMORY = 16384\nRESERVED_MEMORY = 384\nSTART = Mine\n"
NOW = int(time.time())
JOB, START = "ce#7.0#1795250000", NOW - 900
SANDBOX = JobSandbox(3, 54321, "slot1_1@node1", JOB, 8, START, 0)


def resolved(answers: Answers, name: str) -> classad2.ExprTree:
    """A knob of the execute node's drop-in as an expression of a slot."""
    lines, names = _wanted()
    return classad2.ExprTree(answers(lines, names)[name.casefold()])


@functools.cache
def _wanted() -> tuple[str, tuple[str, ...]]:
    wanted = expected_knobs(SITE, "execute")
    return BEFORE + "\n".join(knob.line for knob in wanted), tuple(knob.name for knob in wanted)


def slot_of(answers: Answers, **more: object) -> classad2.ClassAd:
    """The dynamic slot of a pilot that has returned 5 of 8 cores, with the node's expressions."""
    values = {"Name": "slot1_1@node1", "Cpus": 8, "Memory": 16000, "GlobalJobId": JOB, "JobStart": START}
    values |= {
        "PilotReturnedCpus": 5,
        "PilotReturnedMemory": 99999,
        "PilotReturnedAt": int(time.time()),
    }
    values |= {"PilotReturnedBy": f"{JOB}@{START}", "slot1_ChildCpus": [8], "slot1_ChildMemory": [16000]}
    values |= {"slot1_ChildPilotLentCpus": [5], "slot1_ChildPilotLentMemory": [10000], "slot2_ChildCpus": [2, 1]}
    values |= {"slot2_ChildMemory": [2000, 1000], "slot2_ChildPilotLentCpus": [0, 0], **more}
    ad = classad2.ClassAd({name: value for name, value in values.items() if value is not None})
    for line in returned_by(ReturnedPart(5, 0, NOW), SANDBOX, None, 30).splitlines():
        name, _, text = line.partition(" = ")
        if name.startswith("PilotLent"):
            ad[name] = classad2.ExprTree(text)
    for name in ("PilotSecondSlot", "PilotFreeCpus", "PilotFreeMemory", "PilotBorrowedCpus"):
        ad[name] = resolved(answers, name)
    return ad


@pytest.mark.parametrize(
    ("more", "lent"),
    [
        ({}, 5),
        ({"PilotReturnedCpus": 8}, 7),
        ({"PilotReturnedCpus": -3}, 0),
        ({"PilotReturnedCpus": None}, 0),
        ({"PilotReturnedCpus": "7"}, 0),
        ({"PilotReturnedAt": NOW - 40}, 0),
        ({"PilotReturnedAt": None}, 0),
        ({"PilotReturnedBy": None}, 0),
        ({"GlobalJobId": "ce#8.0#1795250000"}, 0),
        ({"JobStart": START + 300}, 0),
    ],
)
def test_only_this_runs_own_word_lends_and_only_while_it_is_fresh(
    more: dict[str, object], lent: int, answers: Answers
) -> None:
    """Inside the startd a claim that is used again has the values of the run before: they lend nothing."""
    ad = slot_of(answers, **more)
    assert ad.eval("PilotLentCpus") == lent
    assert ad.eval("PilotLentMemory") == 16000 * lent // 8


def test_what_is_free_is_what_nobody_holds(answers: Answers) -> None:
    """8 cores: the pilot's 8 without 5, and 3 of others."""
    ad = slot_of(answers)
    assert (ad.eval("PilotFreeCpus"), ad.eval("PilotBorrowedCpus")) == (2, 3)
    assert ad.eval("PilotFreeMemory") == (16384 - 384) - 16000 + 10000 - 3000


def test_who_returns_cores_is_charged_for_those_that_nobody_holds(answers: Answers) -> None:
    """Both slots and all that runs in them weigh what the node has."""
    ad = slot_of(answers)
    ad["W"] = resolved(answers, "SLOT_WEIGHT")
    assert ad.eval("W") == 5.0
    for name, cores in (("slot1@node1", 0), ("slot2@node1", 5), ("slot1@node1", 3)):
        whole = slot_of(answers, Name=name, Cpus=cores, PartitionableSlot=True, PilotReturnedBy=None)
        whole["W"] = resolved(answers, "SLOT_WEIGHT")
        assert whole.eval("W") == 0
    empty = dict.fromkeys(("slot1_ChildCpus", "slot1_ChildPilotLentCpus", "slot2_ChildCpus"))
    for name, weight in (("slot1@node1", 8.0), ("slot2@node1", 0.0)):
        whole = slot_of(answers, Name=name, PartitionableSlot=True, PilotReturnedBy=None, **empty)
        whole["W"] = resolved(answers, "SLOT_WEIGHT")
        assert whole.eval("W") == weight


@pytest.mark.parametrize(
    ("slot", "job", "starts"),
    [
        ({"Name": "slot1@node_1", "PilotReturnedBy": None}, {"RequestCpus": 2}, True),
        ({"Name": "slot1@node1", "PilotReturnedBy": None}, {"RequestCpus": 3}, False),
        ({"Name": "slot1@node1", "DynamicSlot": True}, {"RequestCpus": 3}, False),  # with level WRITE one may say so
        ({"Name": "slot1@node1", "PilotReturnedBy": None}, {"RequestCpus": 1, "RequestMemory": 7001}, False),
        (
            {"PilotReturnedBy": None},
            {"RequestCpus": 3},
            False,
        ),  # counted already, and nothing is lent
        ({"PilotReturnedBy": None, "slot1_ChildPilotLentCpus": [5]}, {"RequestCpus": 3}, True),
        ({}, {"RequestCpus": 8, "GlobalJobId": "ce#9.0#1"}, False),  # a claim whose run has lent
        ({"Mine": False, "Name": "slot1@node1", "PilotReturnedBy": None}, {"RequestCpus": 2}, False),
    ],
)
def test_a_job_starts_where_its_cores_are_really_free(
    slot: dict[str, object], job: dict[str, object], starts: bool, answers: Answers
) -> None:
    """Asked of a partitionable slot by what a job wants; of a dynamic one by what is left with it."""
    if slot == {"PilotReturnedBy": None}:
        slot = {**slot, "slot1_ChildPilotLentCpus": [0]}
    ad = slot_of(answers, **{"Mine": True, **slot})
    ad["S"] = resolved(answers, "START")
    assert ad["S"].eval(ad, classad2.ClassAd({"RequestMemory": 128, **job})) is starts


@pytest.mark.parametrize("role", ROLES)
def test_without_the_option_no_line_is_about_it(role: str) -> None:
    """Neither in the drop-ins nor beside them."""
    words = ("PilotReturned", "PilotLent", "PILOT_RETURN", "partial_return", "SLOT_TYPE", "SLOT_WEIGHT", "PilotFree")
    assert not [(file.path, word) for file in render(OFF, role) for word in words if word in file.text]


@pytest.mark.parametrize(
    ("version", "found"), [((25, 14, 1), []), ((23, 9, 6), [(OK, "HTCondor", "23.9.6")]), ((), [])]
)
def test_a_release_that_charges_all_to_the_end_is_named(
    version: tuple[int, ...], found: list[tuple[str, str, str]]
) -> None:
    """It cannot be mended there."""
    facts = DaemonFacts("execute", "node1", version, {})
    assert [(one.severity, one.what, one.value) for one in judge_partial_return(facts, SITE)] == found
    assert not list(judge_partial_return(facts, OFF))


@pytest.mark.parametrize(
    ("version", "interval", "line", "lends"),
    [
        ((25, 14, 1), "300", "", False),
        ((25, 14, 1), "301", "UPDATE_INTERVAL = 300   ([htcondor] slot_update_interval = 5m)", False),
        ((25, 14, 1), None, "", False),  # HTCondor's own
        ((25, 7, 0), "151", "", False),
        ((25, 6, 9), "150", "", False),
        ((25, 6, 9), "151", "UPDATE_INTERVAL = 150   ([htcondor] slot_update_interval = 2m30s)", False),
        ((23, 9, 6), None, "UPDATE_INTERVAL = 150   ([htcondor] slot_update_interval = 2m30s)", False),
        ((23, 9, 6), "x * 2", "", False),
        ((), "300", "", False),
        ((25, 14, 1), "60", "UPDATE_INTERVAL = 10   ([htcondor] slot_update_interval = 10s)", True),
        ((23, 9, 6), "10", "", True),
    ],
)
def test_a_node_that_is_heard_of_too_seldom_is_named(
    version: tuple[int, ...], interval: str | None, line: str, lends: bool
) -> None:
    """By what its release sends at once; where pilots return cores others wait for them."""
    facts = DaemonFacts("execute", "node1", version, {} if interval is None else {"update_interval": interval})
    found = list(judge_updates(facts, SITE if lends else OFF))
    assert [(one.severity, one.what, one.line) for one in found] == (
        [(MISSING, "UPDATE_INTERVAL", line)] if line else []
    )
    assert all(("returned cores" in one.why) is lends for one in found)


# ---- condor_defrag ----

FULL = {"Name": "slot1@n", "PartitionableSlot": True, "Cpus": 0, "TotalSlotCpus": 8, "PilotFreeCpus": 0}
EMPTY = {**FULL, "Cpus": 8, "PilotFreeCpus": 8}
SECOND = {**EMPTY, "Name": "slot2@n", "PilotSecondSlot": True}
OTHER = {"Name": "slot1@o", "PartitionableSlot": True, "Cpus": 8, "TotalSlotCpus": 8}
BOTH = replace(SITE, htcondor=replace(SITE.htcondor, defrag="yes"))


def of_central(answers: Answers, name: str, ad: dict[str, object], site: SiteConfig = SITE, before: str = "") -> object:
    """What a knob of the central manager's drop-in gives in a slot's ad."""
    lines = "\n".join(knob.line for knob in expected_knobs(site, "central"))
    return classad2.ExprTree(answers(f"{before}\n{lines}", (name,))[name.casefold()]).eval(classad2.ClassAd(ad))


@pytest.mark.parametrize("before", ["", 'DEFRAG_REQUIREMENTS = PartitionableSlot && Name =!= "slot1@p"'])
def test_the_second_slot_is_not_drained(answers: Answers, before: str) -> None:
    """What the site allows itself stays."""
    found = [of_central(answers, "DEFRAG_REQUIREMENTS", ad, before=before) for ad in (FULL, SECOND, OTHER)]
    assert found == [True, False, True]
    sites = {**OTHER, "Name": "slot1@p"}
    assert of_central(answers, "DEFRAG_REQUIREMENTS", sites, before=before) is (not before)


@pytest.mark.parametrize("twice", [False, True])
def test_what_is_rendered_is_in_force(answers: Answers, twice: bool) -> None:
    """With what the site has of its own before it, and in a configuration that HTCondor reads twice."""
    wanted = expected_knobs(BOTH, "central")
    lines = "\n".join(knob.line for knob in wanted)
    live = answers(f"DEFRAG_REQUIREMENTS = Mine\n{lines}\n{lines if twice else ''}", [knob.name for knob in wanted])
    assert [knob.name for knob in wanted if not knob.in_force(live.get(knob.name.casefold()))] == []


@pytest.mark.parametrize("name", ["DEFRAG_WHOLE_MACHINE_EXPR", "DEFRAG_CANCEL_REQUIREMENTS"])
def test_a_node_is_whole_when_nobody_has_any_of_its_cores(answers: Answers, name: str) -> None:
    """Neither by its first slot nor by the second one, which is never a machine of its own."""
    lent = {**EMPTY, "PilotFreeCpus": 6}
    ads = (FULL, EMPTY, lent, SECOND, OTHER, {**OTHER, "Cpus": 7})
    assert [of_central(answers, name, ad) for ad in ads] == [False, True, False, False, True, False]


def test_the_price_of_a_node_has_what_the_jobs_of_its_second_slot_lose(answers: Answers) -> None:
    """A drain ends them, too."""
    ads = [{**FULL, "ChildPilotDrainPrice": [70.0], **more} for more in ({}, {"slot2_ChildPilotDrainPrice": [40, 2]})]
    assert [of_central(answers, "DRAINWISE_NODE_PRICE", ad, BOTH) for ad in ads] == [70, 112]
    [published] = [knob for knob in expected_knobs(BOTH, "execute") if knob.name == "STARTD_SLOT_ATTRS"]
    assert "ChildPilotDrainPrice" in published.line
