"""The rendered files: right for HTCondor's own libraries, safe to install in their order, and all or nothing."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import classad2
import htcondor2  # noqa: F401 - with it, MY. is bound in an ad as it is in the daemons
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rendered_site
from drainwise.facts.errors import ConfigurationError, UsageError
from drainwise.facts.waste import classad_expressions
from drainwise.features import SHUTDOWN_FILE
from drainwise.htcondor.node import CLAIM_VACATE, CLIENT, HOOK_RAN
from drainwise.htcondor.node.cron_state import options, orders_possible
from drainwise.htcondor.node.order_list import ENDLESS
from drainwise.htcondor.setup import render
from drainwise.htcondor.setup.knobs import knobs
from drainwise.htcondor.setup.render import ROLES, drop_in_path
from drainwise.install.removal import AFTER_REMOVAL
from drainwise.install.rendered_tree import RenderedFile, write_tree
from drainwise.node import settings as node_settings
from drainwise.pilotad.attributes import ATTRIBUTES, HEARTBEAT, OBSERVATION, REPORTED_BY, STANDING
from drainwise.siteconfig import FeaturesSection, HTCondorSection, SiteConfig
from rendered_site import (
    PLUGINS,
    SITE,
    read_on_node,
    require_comment_only,
    require_no_empty_value,
    require_own_templates,
)

FULL = replace(
    rendered_site.FULL,
    htcondor=HTCondorSection(negotiator_policy="least-waste", retirement=600, max_vacate_time=60, state_dir="/srv/dw"),
)


def text_of(site: SiteConfig, role: str, end: str) -> str:
    """The text of the file of a role whose path ends so."""
    return next(file.text for file in render.render(site, role) if file.path.endswith(end))


def drop_in(site: SiteConfig, role: str) -> dict[str, str]:
    """The assignments of a role's drop-in."""
    return {knob.name: knob.text for knob in knobs(text_of(site, role, drop_in_path(role)))}


ORDERS = "ORDERS-OF-THE-NODE"
"""Stands for the value of PILOT_RECLAIM in expressions that were resolved once."""


def with_orders(expression: str, orders: str) -> classad2.ExprTree:
    """A resolved expression as a node has it whose PILOT_RECLAIM is `orders`."""
    return classad2.ExprTree(expression.replace(ORDERS, orders))


@pytest.mark.parametrize("role", [*ROLES, "all"])
@pytest.mark.parametrize("site", [SITE, FULL])
def test_the_drop_ins_come_last(role: str, site: SiteConfig) -> None:
    """A hook that a configuration names before it is there would stop every job on the node."""
    paths = [file.path for file in render.render(site, role)]
    drop_ins = [path for path in paths if path.startswith("/etc/condor/config.d/")]
    expected = [drop_in_path(one) for one in (ROLES if role == "all" else [role])]
    before = [f"/etc/condor/config.d/{AFTER_REMOVAL}"] if role in {"execute", "all"} else []
    assert drop_ins == paths[-len(drop_ins) :] == before + expected
    assert len(set(paths)) == len(paths)


def test_another_role_is_refused() -> None:
    """A wrong word is wrong usage, not an empty tree."""
    with pytest.raises(UsageError, match="expected one of execute, access, central, all"):
        render.render(SITE, "worker")


@pytest.mark.parametrize("role", ROLES)
def test_every_knob_says_why_it_is_there(role: str) -> None:
    """Each assignment has its comment directly above it."""
    assert [knob.name for knob in knobs(text_of(FULL, role, drop_in_path(role))) if len(knob.why) < 20] == []


def test_the_startd_evaluates_no_figure_that_names_no_run() -> None:
    """A claim that is used again keeps inside the startd what the cron published of the run before.

    Of all that is published of a run, a node's own expressions read the live figures alone, which ask for that run.
    """
    live = classad_expressions(3600)
    assert all("PilotReportedBy =?=" in text for text in live.values())
    of_a_run = {*live, *(row.published for row in ATTRIBUTES), HEARTBEAT, STANDING, OBSERVATION, REPORTED_BY}
    of_a_run |= {CLIENT, CLAIM_VACATE, HOOK_RAN}
    read = " ".join(drop_in(replace(FULL, htcondor=replace(FULL.htcondor, defrag="yes")), "execute").values())
    assert set(re.findall(r"\bPilot\w+", read)) & of_a_run == {"PilotDrainingWaste", "PilotKillWaste", "PilotRemaining"}


def test_there_is_no_exit_hook_and_no_open_sandbox() -> None:
    """HOOK_JOB_EXIT makes jobs start again after their end; the sandboxes stay private."""
    for role in ROLES:
        assert not [name for name in drop_in(FULL, role) if "JOB_EXIT" in name or "PERMISSIONS" in name]


def test_hooks_and_cron_are_what_the_files_are() -> None:
    """Every program that the drop-in names is one of the executables rendered before it."""
    site = replace(SITE, htcondor=HTCondorSection(hook_keyword="SITE_X", libexec_dir="/opt/dw/libexec"))
    knob = {one.name: one.text for one in knobs(text_of(site, "execute", "hooks.conf"))} | drop_in(site, "execute")
    programs = {file.path for file in render.render(site, "execute") if file.mode == 0o755}
    named = ("SITE_X_HOOK_PREPARE_JOB", "SITE_X_HOOK_UPDATE_JOB_INFO", "STARTD_CRON_SITE_X_EXECUTABLE")
    assert {knob[name] for name in named} == programs
    assert knob["STARTER_JOB_HOOK_KEYWORD"] == "SITE_X"
    assert knob["STARTD_CRON_JOBLIST"] == "$(STARTD_CRON_JOBLIST) SITE_X"
    assert knob["STARTD_CRON_SITE_X_MODE"] == "Periodic"


def test_node_settings_are_what_the_node_reads() -> None:
    """The reader on the node finds every value of the site file, in seconds and bytes."""
    read_on_node(text_of(FULL, "execute", "node.conf"))


def test_what_the_site_leaves_out_stays_unknown_on_the_node() -> None:
    """A limit that nobody stated is not invented."""
    read = node_settings.parse(text_of(SITE, "execute", "node.conf"), "node.conf")
    assert read.decimal("hs06") is None
    assert read.whole("wall_limit_secs") is None
    assert read.shutdown_file == SHUTDOWN_FILE


@pytest.mark.parametrize("name", ["a\nEVIL = 1", 'a"""\nimport os', "a\\", "ü", "a\x1b[0m", "$(EVIL)"])
def test_the_name_of_the_site_file_is_only_a_comment(name: str) -> None:
    """Hostile cases 15 and 41: it adds no line and no code to any file."""
    require_comment_only(render, name, "EVIL =", "$(EVIL)")


def test_an_unknown_name_in_a_template_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A slip in a template never becomes an empty value."""
    require_no_empty_value(render, "execute", monkeypatch, tmp_path)


@pytest.mark.daemons
def test_an_installed_package_has_its_own_templates(tmp_path: Path) -> None:
    """In a wheel the templates lie inside the package; nothing of the working copy is needed."""
    require_own_templates(render, "condor_config.d", 12, tmp_path)


# ---- the scripts on the node ----


def run_script(text: str, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a rendered script as HTCondor does: by its own first line."""
    script = tmp_path / "script"
    script.write_text(text)
    script.chmod(0o755)
    return subprocess.run(
        [str(script), *arguments], capture_output=True, text=True, check=False, input="", env={}, cwd=tmp_path
    )


@pytest.mark.parametrize("name", ["prepare-hook", "update-hook", "pilot-cron"])
def test_a_script_without_its_package_stops_no_job(name: str, tmp_path: Path) -> None:
    """A missing or broken package costs one printable line and nothing else: another exit code would hold the job."""
    site = replace(SITE, htcondor=HTCondorSection(library_dir=str(tmp_path / "nowhere")))
    ran = run_script(text_of(site, "execute", name), tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith(f"drainwise: {name} does nothing: ")
    assert len(line) <= 200


@pytest.mark.parametrize("name", ["prepare-hook", "update-hook", "pilot-cron"])
def test_a_script_with_everything_closed_stops_no_job(name: str, tmp_path: Path) -> None:
    """The starter runs the update hook without output descriptors; a script that cannot even complain ends with 0."""
    site = replace(SITE, htcondor=HTCondorSection(library_dir=str(tmp_path / "nowhere")))
    script = tmp_path / "script"
    script.write_text(text_of(site, "execute", name))
    closed = subprocess.run(["/bin/sh", "-c", '"$0" "$1" <&- >&- 2>&-', sys.executable, str(script)], check=False)
    assert closed.returncode == 0


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package."""
    made = tmp_path_factory.mktemp("library")
    shutil.copytree(PLUGINS / "drainwise", made / "drainwise", ignore=shutil.ignore_patterns("__pycache__"))
    return made


@pytest.mark.parametrize("name", ["prepare-hook", "update-hook", "pilot-cron"])
def test_a_script_finds_the_package_and_its_settings(name: str, library: Path, tmp_path: Path) -> None:
    """The scripts call the code that is there, and end with 0 whatever it meets."""
    settings = tmp_path / "node.conf"
    settings.write_text("nonsense = 1\n")
    site = replace(SITE, htcondor=HTCondorSection(library_dir=str(library), node_file=str(settings)))
    arguments = ("--execute", str(tmp_path), "--state", str(tmp_path / "state"), "--settings", str(settings))
    ran = run_script(text_of(site, "execute", name), tmp_path, *(arguments if name == "pilot-cron" else ()))
    assert ran.returncode == 0
    assert "nonsense" in ran.stderr, "the hook did not read the settings that the drop-in's files name"


@pytest.mark.parametrize("name", ["prepare-hook", "update-hook", "pilot-cron"])
def test_a_script_takes_nothing_from_its_users_environment(name: str) -> None:
    """Hostile case 46: isolated mode, without site: PYTHONPATH and a user's packages reach no hook."""
    assert text_of(SITE, "execute", name).splitlines()[0] == "#!/usr/bin/python3 -IS"


# ---- the expressions, in HTCondor's own libraries ----


@pytest.fixture(scope="module")
def deadline(answers: Callable[[str, Iterable[str]], dict[str, str]]) -> Callable[[str, dict[str, object]], object]:
    """PilotReclaimDeadline on a slot under a list of orders, resolved and evaluated by HTCondor's own libraries."""
    lines = "\n".join(f"{name} = {text}" for name, text in drop_in(SITE, "execute").items())
    names = ["PilotReclaimDeadline", "PilotReclaimOrders", "PilotReclaimWithdrawn", "PREEMPT"]
    resolved = answers(f"{lines}\nPILOT_RECLAIM = {ORDERS}\n", names)
    assert resolved["pilotreclaimorders"] == f'"{ORDERS}"'

    def evaluate(orders: str, slot: dict[str, object]) -> object:
        ad = classad2.ClassAd(slot)
        ad["PilotReclaimDeadline"] = with_orders(resolved["pilotreclaimdeadline"], orders)
        ad["Preempt"] = with_orders(resolved["preempt"], orders)
        value = ad.eval("PilotReclaimDeadline")
        assert ad.eval("Preempt") is (type(value) is int)
        ad["Back"] = with_orders(resolved["pilotreclaimwithdrawn"], orders)
        last = f"{slot.get('GlobalJobId')}@{slot.get('JobStart')}=0"
        assert ad.eval("Back") is (orders.rsplit(" ", maxsplit=1)[-1] == last)
        return value

    return evaluate


JOB = "central.pool.test#28.0#1795258311"
SLOT = {"GlobalJobId": JOB, "JobStart": 1795258515}
NONE = classad2.Value.Undefined


@pytest.mark.parametrize(
    ("orders", "value"),
    [
        ("", NONE),
        (f"{JOB}@1795258515=1795259000", 1795259000),
        (f"{JOB}@1795258515=1795259000 ", 1795259000),
        (f"other#1.0#1@5=6 {JOB}@1795258515=1795259000 third#2.0#2@7=8", 1795259000),
        (f"{JOB}@1795258515=1 {JOB}@1795258515=2", 2),
        (f"{JOB}@1795258515=0", NONE),
        (f"{JOB}@1795258515=1795259000 {JOB}@1795258515=0", NONE),
        (f"{JOB}@1795258515=0 {JOB}@1795258515=1795259000", 1795259000),
        (f"{JOB}@1795258514=1795259000", NONE),
        (f"{JOB}@17952585150=1795259000", NONE),
        (f"x{JOB}@1795258515=1795259000", NONE),
        (f"{JOB.replace('.', 'x')}@1795258515=1795259000", NONE),
        (f"{JOB.replace('28.0', '28.1')}@1795258515=1795259000", NONE),
        (f"{JOB}@1795258515=", NONE),
        (f"{JOB}@1795258515=soon", NONE),
        (f"{JOB}@1795258515=12x", NONE),
        (f"{JOB}", NONE),
    ],
)
def test_an_order_fits_its_run_and_no_other(
    orders: str, value: object, deadline: Callable[[str, dict[str, object]], object]
) -> None:
    """Hostile case 50: another run, another job, a longer or a similar name never match; garbage never counts."""
    assert deadline(orders, dict(SLOT)) == value


@pytest.mark.parametrize(
    "slot",
    [
        {},
        {"GlobalJobId": NONE, "JobStart": NONE},
        {"GlobalJobId": JOB},
        {"JobStart": 1795258515},
        {"GlobalJobId": 7, "JobStart": "x"},
        {"GlobalJobId": ".*", "JobStart": 1795258515},
        {"GlobalJobId": "[", "JobStart": 1795258515},
        {"GlobalJobId": JOB, "JobStart": classad2.Value.Error},
    ],
)
def test_a_slot_without_a_sound_run_has_no_order(
    slot: dict[str, object], deadline: Callable[[str, dict[str, object]], object]
) -> None:
    """Unclaimed, half a claim, or an id that is a pattern: PREEMPT stays false, whatever the expression meets."""
    ad = dict(slot)
    value = deadline(f"{JOB}@1795258515=1795259000", ad)
    if slot.get("GlobalJobId") != ".*":  # a user's own odd id may only ever end that user's own pilot
        assert value in {NONE, classad2.Value.Error}


@given(
    cluster=st.integers(1, 10**6), proc=st.integers(0, 99), start=st.integers(10**9, 2**31), others=st.integers(0, 5)
)
def test_exactly_the_ordered_run_is_found_among_its_like(
    cluster: int, proc: int, start: int, others: int, deadline: Callable[[str, dict[str, object]], object]
) -> None:
    """Orders for neighbours of a run (other proc, start, cluster with a common prefix) never reach it."""
    job = f"sched@a.b-c.d#{cluster}.{proc}#1795258311"
    near = [
        f"sched@a.b-c.d#{cluster}.{proc + 100 + number}#1795258311@{start}=7 "
        f"sched@a.b-c.d#1{cluster}.{proc}#1795258311@{start}=8 {job}@{start + 1 + number}=9"
        for number in range(others)
    ]
    slot: dict[str, object] = {"GlobalJobId": job, "JobStart": start}
    assert deadline(" ".join(near), slot) is NONE
    assert deadline(" ".join([*near, f"{job}@{start}=1795259000", *near]), slot) == 1795259000


@pytest.mark.parametrize(
    ("site", "before", "without_order"),
    [
        (SITE, "", 0),
        (SITE, "MAXJOBRETIREMENTTIME = 3600\n", 3600),
        (replace(SITE, htcondor=HTCondorSection(retirement=600)), "MAXJOBRETIREMENTTIME = 3600\n", 600),
    ],
)
def test_retirement_lasts_to_the_deadline_and_else_as_before(
    site: SiteConfig, before: str, without_order: int, answers: Callable[[str, Iterable[str]], dict[str, str]]
) -> None:
    """Counted from the job's start; the node's own value is kept unless the site file states one."""
    lines = before + "\n".join(f"{name} = {text}" for name, text in drop_in(site, "execute").items())
    lines += f"\nPILOT_RECLAIM = {ORDERS}\n"
    expression = answers(lines, ["MAXJOBRETIREMENTTIME"])["maxjobretirementtime"]
    for orders, value in ((f"{JOB}@1795258515=1795262515", 4000), ("", without_order)):
        ad = classad2.ClassAd(SLOT)
        ad["Result"] = with_orders(expression, orders)
        assert ad.eval("Result") == value


@pytest.mark.parametrize(("before", "own"), [("", 1200), ("CLAIM_WORKLIFE = 7200\n", 7200)])
def test_while_orders_stand_a_claim_ends_with_its_job(
    before: str, own: int, answers: Callable[[str, Iterable[str]], dict[str, str]]
) -> None:
    """Else the next job of the same user takes what its pilot gave back; without orders the node's own value counts."""
    lines = before + "\n".join(f"{name} = {text}" for name, text in drop_in(SITE, "execute").items())
    expression = answers(f"{lines}\nPILOT_RECLAIM = {ORDERS}\n", ["CLAIM_WORKLIFE"])["claim_worklife"]
    now, run = int(time.time()), "ce01.example.org#12.0#1795249000@1795249100"
    for orders, seconds in (
        (f"{run}={now + 3600}", 0),
        (f"{run}={now - 3600} {run}={now - 60}", 0),
        (f"{run}={now + 3600} {run}={now - 3600}", own),
        ("", own),
    ):
        ad = classad2.ClassAd({"PilotReclaimOrders": f"{run}={now + 3600}"})
        ad["Result"] = with_orders(expression, orders)
        assert ad.eval("Result") == seconds


@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        ({}, ENDLESS),
        ({"Draining": False}, ENDLESS),
        ({"Draining": True}, 600),
        ({"PreemptingUser": "bob@pool"}, 600),
        ({"JobStart": 1795258514}, 600),
        ({"PilotReclaimDeadline": 5000, "PilotReclaimWithdrawn": False, "PilotReclaimOrders": ""}, ENDLESS),
        ({"MemoryExceeded": True}, 600),
    ],
)
def test_a_run_whose_order_was_withdrawn_retires_for_ever_unless_others_want_its_slot(
    wanted: dict[str, object], value: int, answers: Callable[[str, Iterable[str]], dict[str, str]]
) -> None:
    site = replace(SITE, htcondor=HTCondorSection(retirement=600))
    own = "PREEMPT = MY.MemoryExceeded =?= true\n"
    lines = own + "\n".join(f"{name} = {text}" for name, text in drop_in(site, "execute").items())
    lines += f"\nPILOT_RECLAIM = {JOB}@1795258515=0\n"
    ad = classad2.ClassAd({**SLOT, **wanted})
    ad["Result"] = classad2.ExprTree(answers(lines, ["MAXJOBRETIREMENTTIME"])["maxjobretirementtime"])
    assert ad.eval("Result") == value


@pytest.mark.parametrize(
    ("orders", "wanted", "value"),
    [
        (f"{JOB}@1795258515=0", {}, ENDLESS),
        (f"{JOB}@1795258515=1795262515", {"Draining": False}, ENDLESS),
        (f"a.b#1.0#1795258515@1795258515=0 {JOB}@1795258515=0 c#1.0#1795258515@1795258515=0", {}, ENDLESS),
        (f"{JOB}@1795258515=0", {"Draining": True}, 600),
        (f"{JOB}@1795258515=0", {"PreemptingUser": "bob@pool"}, 600),
        (f"{JOB}@1795258515=0", {"MemoryExceeded": True}, 600),
        (f"{JOB}@1795258515=0", {"JobStart": 1795258514}, 600),
        (f"x{JOB}@1795258515=0", {}, 600),
        ("", {}, 600),
    ],
)
def test_after_the_removal_a_run_that_had_an_order_retires_for_ever_unless_others_want_its_slot(
    orders: str, wanted: dict[str, object], value: int, answers: Callable[[str, Iterable[str]], dict[str, str]]
) -> None:
    """Its file alone is left; no name in it makes a job's id tell that job from others."""
    own = "PREEMPT = MY.MemoryExceeded =?= true\nMAXJOBRETIREMENTTIME = 600\n"
    left = (
        text_of(SITE, "execute", AFTER_REMOVAL).replace("if defined DRAINWISE_RUN\nelse\n", "").replace("endif\n", "")
    )
    lines = f"{own}{left}" + (f"PILOT_RECLAIM = {orders}\n" if orders else "")
    text = answers(lines, ["MAXJOBRETIREMENTTIME"])["maxjobretirementtime"]
    assert len(text) < 60 or orders
    ad = classad2.ClassAd({**SLOT, **wanted})
    ad["Result"] = classad2.ExprTree(text)
    assert ad.eval("Result") == value
    assert not re.search("GlobalJobId|JobStart", re.sub('"[^"]*"', "", text))


@pytest.mark.parametrize(
    ("before", "preempts"),
    [("", False), ("PREEMPT = True", True), ("PREEMPT = NoSuch > 5", NONE), ("PREEMPT = A =?= 1 || False", False)],
)
def test_the_nodes_own_preempt_stays(
    before: str, preempts: object, answers: Callable[[str, Iterable[str]], dict[str, str]]
) -> None:
    """With an order the slot is preempted even if the old expression is undefined; without one nothing changes."""
    lines = "\n".join([before, *(f"{name} = {text}" for name, text in drop_in(SITE, "execute").items())])
    expression = answers(f"{lines}\nPILOT_RECLAIM = {ORDERS}\n", ["PREEMPT"])["preempt"]
    for orders, value in ((f"{JOB}@1795258515=1795259000", True), ("", preempts)):
        ad = classad2.ClassAd(SLOT)
        ad["Result"] = with_orders(expression, orders)
        assert ad.eval("Result") == value


@pytest.mark.parametrize(
    ("limit", "known", "value"),
    [
        (None, {"PilotReclaimDeadline": 5000, "JobStart": 1000}, 5000),
        (None, {"JobStart": 1000}, NONE),
        (36000, {"PilotReclaimDeadline": 5000, "JobStart": 1000}, 5000),
        (36000, {"PilotReclaimDeadline": 50000, "JobStart": 1000}, 37000),
        (36000, {"JobStart": 1000}, 37000),
        (36000, {}, NONE),
    ],
)
def test_a_lease_ends_by_order_or_by_the_wall_limit(limit: int | None, known: dict[str, object], value: object) -> None:
    """Whichever comes first; without a job, or without either, it is unknown."""
    ad = classad2.ClassAd(known)
    site = replace(SITE, features=FeaturesSection(wall_limit=limit))
    ad["PilotLeaseEnd"] = classad2.ExprTree(drop_in(site, "execute")["PilotLeaseEnd"])
    assert ad.eval("PilotLeaseEnd") == value


def test_slots_without_a_job_say_so() -> None:
    """Both are on every slot: else GlobalJobId would part the pool's jobs into as many kinds as there are jobs."""
    knob = drop_in(SITE, "execute")
    assert (knob["GlobalJobId"], knob["JobStart"]) == ("undefined", "undefined")
    assert {"GlobalJobId", "JobStart", "PilotReclaimOrders", "PilotReclaimDeadline", "PilotLeaseEnd"} <= set(
        knob["STARTD_ATTRS"].split()
    )


# ---- what a site has already ----

OURS = "root@pool.test, condor@pool.test"


@pytest.mark.parametrize(
    ("before", "value"),
    [
        ("ALLOW_WRITE = *", OURS),
        ("ALLOW_WRITE_STARTD = condor@cm.pool.test", "condor@cm.pool.test"),
        ("STARTD.ALLOW_WRITE = condor@cm.pool.test", None),
        ("LEGACY_ALLOW_SEMANTICS = TRUE\nALLOW_WRITE = *.pool.test", None),
        ("LEGACY_ALLOW_SEMANTICS = False", OURS),
    ],
)
def test_who_may_set_attributes_of_slots_is_restricted_and_never_widened(
    before: str, value: str | None, answers: Callable[[str, Iterable[str]], dict[str, str]]
) -> None:
    """Where a site has a list of its own, or where schedds come by ALLOW_WRITE alone, nothing is set."""
    text = text_of(SITE, "execute", drop_in_path("execute"))
    found = answers(f"UID_DOMAIN = pool.test\n{before}\n{text}", ["ALLOW_WRITE_STARTD"])
    assert found.get("allow_write_startd") == value


@pytest.mark.parametrize(
    ("before", "keyword"),
    [
        ("", "DRAINWISE"),
        ("STARTER_JOB_HOOK_KEYWORD = SITE", "SITE"),
        ("STARTER_DEFAULT_JOB_HOOK_KEYWORD = SITE", None),
        ("SITE_HOOK_PREPARE_JOB = /site", "DRAINWISE"),
    ],
)
def test_hooks_of_the_sites_own_are_not_switched_off(
    before: str, keyword: str | None, answers: Callable[[str, Iterable[str]], dict[str, str]]
) -> None:
    """Neither forced ones nor those that jobs have by default."""
    text = text_of(SITE, "execute", "hooks.conf")
    found = answers(f"{before}\n{text}", ["STARTER_JOB_HOOK_KEYWORD", "DRAINWISE_HOOK_PREPARE_JOB"])
    assert found.get("starter_job_hook_keyword") == keyword
    assert found["drainwise_hook_prepare_job"] == "/usr/libexec/drainwise/prepare-hook"


CHAINED = HTCondorSection(hook_keyword="SITE", site_prepare_hook="/site/prepare", site_update_hook="/site/update")


def test_hooks_that_the_site_names_are_called_and_the_others_of_their_keyword_stay(
    answers: Callable[[str, Iterable[str]], dict[str, str]],
) -> None:
    """Ours stand under the site's keyword; its job exit hook and its arguments are as they were."""
    own = "STARTER_JOB_HOOK_KEYWORD = SITE\nSITE_HOOK_JOB_EXIT = /site/exit\nSITE_HOOK_PREPARE_JOB = /site/prepare\n"
    site = replace(SITE, htcondor=CHAINED)
    names = ["STARTER_JOB_HOOK_KEYWORD", "SITE_HOOK_JOB_EXIT", "SITE_HOOK_PREPARE_JOB", "SITE_HOOK_UPDATE_JOB_INFO"]
    found = answers(own + text_of(site, "execute", "hooks.conf"), names)
    libexec = "/usr/libexec/drainwise"
    assert list(found.values()) == ["SITE", "/site/exit", f"{libexec}/prepare-hook", f"{libexec}/update-hook"]
    for name, hook in (("prepare-hook", "/site/prepare"), ("update-hook", "/site/update")):
        assert f'["{hook}", *sys.argv[1:]]' in text_of(site, "execute", name)
    assert "argv" not in text_of(SITE, "execute", "prepare-hook")


@pytest.mark.parametrize(
    ("later", "possible"),
    [
        ("", True),
        ("SITE_HOOK_PREPARE_JOB = /site/prepare", True),
        ("SITE_HOOK_UPDATE_JOB_INFO = /site/update", False),
        ("STARTER_JOB_HOOK_KEYWORD = OTHER", False),
    ],
)
def test_a_later_file_that_takes_the_hooks_away_closes_the_node(
    later: str, possible: bool, answers: Callable[[str, Iterable[str]], dict[str, str]]
) -> None:
    """The hooks of a site often stand in a file that sorts behind ours: no pilot could be told of an order there."""
    site = replace(SITE, htcondor=CHAINED)
    text = f"{text_of(site, 'execute', 'hooks.conf')}\n{text_of(site, 'execute', drop_in_path('execute'))}\n{later}\n"
    name = "STARTD_CRON_SITE_ARGS"
    assert orders_possible(options(answers(text, [name])[name.lower()].split())) is possible


@pytest.mark.parametrize(
    ("own", "limit", "intervals"),
    [
        (HTCondorSection(), 4200, (300, 150)),
        (HTCondorSection(cron_period=3600), 4200, (300, 150)),
        (HTCondorSection(cron_period=10), 4200, (50, 25)),
        (HTCondorSection(cron_period=1), 4200, (5, 2)),
        (HTCondorSection(slot_update_interval=900), 4200, (900, 900)),
        (HTCondorSection(partial_return="yes"), 4200, (60, 30)),
        (HTCondorSection(partial_return="yes", cron_period=10), 4200, (10, 10)),
        (HTCondorSection(), 200, (100, 100)),
    ],
)
def test_a_node_sends_its_slots_twice_as_often_as_htcondor_does_at_most(
    own: HTCondorSection,
    limit: int,
    intervals: tuple[int, int],
    answers: Callable[[str, Iterable[str]], dict[str, str]],
) -> None:
    """Where nothing else is sent; but a report is never seen so late that it is stale, and what is lent is seen soon.

    The library is one of the later releases.
    """
    pilot = replace(SITE.pilot, heartbeat_limit=limit - 100, heartbeat_slack=100)
    site = replace(SITE, htcondor=own, pilot=pilot)
    assert render.update_intervals(site) == intervals
    text = text_of(site, "execute", drop_in_path("execute"))
    assert answers(text, ["UPDATE_INTERVAL"])["update_interval"] == str(intervals[0])
    lines = [line.strip() for line in text.splitlines() if "UPDATE_INTERVAL = " in line and "STARTER" not in line]
    assert [int(line.partition(" = ")[2]) for line in lines] == list(dict.fromkeys(intervals[::-1]))


def test_only_what_the_cron_publishes_of_returned_cores_and_ends_is_guarded() -> None:
    """Where HTCondor decides by it; else the slots carry nothing more."""
    for section, guarded in (
        (HTCondorSection(), ""),
        (HTCondorSection(negotiator_policy="least-waste"), "PilotRemaining PilotDrainingWaste PilotKillWaste"),
        (HTCondorSection(partial_return="yes"), "PilotReturnedBy PilotLentCpus=0 PilotLentMemory=0"),
    ):
        words = drop_in(replace(SITE, htcondor=section), "execute")["STARTD_CRON_DRAINWISE_ARGS"].split()
        assert options(words).get("guarded", "") == guarded


@pytest.mark.parametrize("one", ["site_prepare_hook", "site_update_hook"])
def test_the_sites_hooks_without_their_keyword_are_refused(one: str) -> None:
    """Under ours, all that the site has under its own would be switched off silently."""
    site = replace(SITE, htcondor=HTCondorSection(**{one: "/site/hook"}))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="the keyword of the site's own hooks"):
        render.render(site, "execute")


@pytest.mark.parametrize("name", ["prepare-hook", "update-hook"])
def test_without_our_package_the_sites_hook_runs(name: str, tmp_path: Path) -> None:
    """A broken package costs one line, and nothing that the site had."""
    hook = tmp_path / "site-hook"
    hook.write_text("#!/bin/sh\necho $1; cat; exit 7\n")
    hook.chmod(0o755)
    chained = replace(
        CHAINED, library_dir=str(tmp_path / "nowhere"), site_prepare_hook=str(hook), site_update_hook=str(hook)
    )
    ran = run_script(text_of(replace(SITE, htcondor=chained), "execute", name), tmp_path, "word")
    assert (ran.returncode, ran.stdout) == (7, "word\n")
    assert ran.stderr.startswith(f"drainwise: {name} does nothing: ")


# ---- the negotiator's policy ----


def policy(answers: Callable[[str, Iterable[str]], dict[str, str]], name: str) -> classad2.ExprTree:
    """A knob of the central manager, resolved."""
    lines = "\n".join(f"{knob} = {text}" for knob, text in drop_in(FULL, "central").items())
    return classad2.ExprTree(answers(lines, [name])[name.casefold()])


NEGOTIATED_SLOT: dict[str, object] = {
    "Cpus": 8,
    "Memory": 16000,
    "JobStart": 1000,
    "RemoteOwner": "alice",
    "PilotKillWaste": 35034,
    "RemoteGroupResourcesInUse": 48,
    "RemoteGroupQuota": 24,
    "Rank": 0.0,
}
REQUEST: dict[str, object] = {"RequestCpus": 8, "SubmitterGroupResourcesInUse": 8, "SubmitterGroupQuota": 24}


def negotiated(expression: classad2.ExprTree, slot: dict[str, object], request: dict[str, object]) -> object:
    """What the negotiator finds for this slot (MY) and this waiting job (TARGET)."""
    return classad2.ExprTree(str(expression)).eval(classad2.ClassAd(slot), classad2.ClassAd(request))


@pytest.mark.parametrize(
    ("slot", "request_", "taken"),
    [
        ({}, {}, True),
        ({"PilotCronHeartbeat": 0}, {}, False),
        ({"PilotCronHeartbeat": NONE}, {}, False),
        ({"Cpus": 4}, {}, False),
        ({"RemoteGroupResourcesInUse": 31}, {}, False),
        ({"RemoteGroupResourcesInUse": 32}, {}, True),
        ({"RemoteGroupQuota": NONE}, {}, False),
        ({"RemoteGroupQuota": NONE}, {"RemoteGroupQuota": 0}, False),
        ({}, {"SubmitterGroupResourcesInUse": 17}, False),
        ({}, {"SubmitterGroupResourcesInUse": 16}, True),
        ({}, {"SubmitterGroupQuota": NONE}, False),
        ({"SubmitterGroupQuota": 999}, {"SubmitterGroupQuota": NONE}, False),
    ],
)
def test_the_negotiator_takes_from_the_rich_for_the_poor_and_no_further(
    slot: dict[str, object],
    request_: dict[str, object],
    taken: bool,
    answers: Callable[[str, Iterable[str]], dict[str, str]],
) -> None:
    """Only on a node that speaks, only a slot of the size asked for, and neither group crosses its quota by it."""
    expression = policy(answers, "PREEMPTION_REQUIREMENTS")
    mine = {**NEGOTIATED_SLOT, "PilotCronHeartbeat": int(time.time()), **slot}
    assert negotiated(expression, mine, {**REQUEST, **request_}) is taken


@pytest.mark.parametrize(
    ("slot", "waste"),
    [
        ({}, 35034),
        ({"PilotKillWaste": 12.5}, 12.5),
        ({"PilotKillWaste": NONE}, "cores x elapsed"),
        ({"PilotKillWaste": classad2.Value.Error}, "cores x elapsed"),
        ({"PilotKillWaste": "0"}, "cores x elapsed"),
        ({"PilotKillWaste": NONE, "JobStart": NONE}, 0),
    ],
)
def test_the_negotiator_ranks_by_live_waste(
    slot: dict[str, object], waste: object, answers: Callable[[str, Iterable[str]], dict[str, str]]
) -> None:
    """The published waste; what HTCondor itself knows where a pilot is silent; never undefined or the job's word."""

    lying_job = {**REQUEST, "PilotKillWaste": -5, "JobStart": 1}
    before = int(time.time()) - 1  # ClassAds read a clock that is up to a tick behind this one
    rank = negotiated(policy(answers, "PREEMPTION_RANK"), {**NEGOTIATED_SLOT, **slot}, lying_job)
    if waste == "cores x elapsed":
        assert isinstance(rank, (int, float))
        assert 8 * (before - 1000) <= -rank <= 8 * (time.time() - 1000)
    else:
        assert rank == -1 * waste  # type: ignore[operator]


@given(
    claims=st.lists(st.none() | st.integers(-(10**9), 10**12), min_size=2, max_size=2),
    priorities=st.lists(st.floats(0.5, 5e7), min_size=2, max_size=2),
    held=st.lists(st.integers(1, 5000), min_size=2, max_size=2),
)
def test_no_claim_moves_a_kill_to_another_user(
    claims: list[int | None],
    priorities: list[float],
    held: list[int],
    answers: Callable[[str, Iterable[str]], dict[str, str]],
) -> None:
    """The worst priority goes first, of equal ones who holds more, of equal ones whose name is longer."""
    expression = policy(answers, "NEGOTIATOR_PRE_JOB_RANK")
    facts = zip(("g.alice@x", "g.bob@x"), priorities, held)
    slots = [
        {**NEGOTIATED_SLOT, "AccountingGroup": name, "RemoteUserPrio": priority, "RemoteUserResourcesInUse": cores}
        for name, priority, cores in facts
    ]
    lying = [{**slot, "PilotKillWaste": NONE if said is None else said} for slot, said in zip(slots, claims)]
    job = {**REQUEST, "RemoteUserPrio": 10**9, "RemoteUserResourcesInUse": 10**9}
    honest = [negotiated(expression, slot, job) for slot in slots]
    assert [negotiated(expression, slot, job) for slot in lying] == honest
    if abs(priorities[0] - priorities[1]) > 1:
        assert (honest[0] > honest[1]) is (priorities[0] > priorities[1])  # type: ignore[operator]
    equal = [negotiated(expression, {**slot, "RemoteUserPrio": 500.0}, job) for slot in slots]
    first = (min(held[0], 999), len("g.alice@x")) > (min(held[1], 999), len("g.bob@x"))
    assert (equal[0] > equal[1]) is first  # type: ignore[operator]


def test_free_slots_come_first_and_the_machines_rank_before_all(
    answers: Callable[[str, Iterable[str]], dict[str, str]],
) -> None:
    """A free slot of any size beats every claimed one; among free ones the tightest fit is first, as by default."""
    expression = policy(answers, "NEGOTIATOR_PRE_JOB_RANK")

    def rank(**slot: object) -> float:
        value = negotiated(expression, {**NEGOTIATED_SLOT, **slot}, REQUEST)
        assert isinstance(value, (int, float))
        return value

    free = {"RemoteOwner": NONE, "PilotKillWaste": NONE, "JobStart": NONE}
    huge = rank(**free, Cpus=4096, Memory=10**8)
    assert huge > rank(PilotKillWaste=0, RemoteUserPrio=1e12, RemoteUserResourcesInUse=10**9)
    assert rank(**free, Cpus=8) > rank(**free, Cpus=16) > huge
    assert rank(Rank=1.0, PilotKillWaste=10**9) > rank(**free, Cpus=8)
    assert rank(Rank=NONE, RemoteUserPrio=5.5) == rank(RemoteUserPrio=5.5) > rank(RemoteUserPrio=NONE)


def test_without_the_policy_the_negotiator_is_left_alone() -> None:
    """negotiator_policy = none sets no knob there at all."""
    assert drop_in(SITE, "central") == {}


@pytest.mark.parametrize(("retirement", "early"), [(None, True), (600, True), (0, True)])
def test_retirement_does_not_hold_the_negotiator_up(retirement: int | None, early: bool) -> None:
    """Slots that are taken have retirement time left: it matches them before that has passed."""
    site = replace(SITE, htcondor=HTCondorSection(negotiator_policy="least-waste", retirement=retirement))
    assert ("NEGOTIATOR_CONSIDER_EARLY_PREEMPTION" in drop_in(site, "central")) is early


# ---- writing ----


def tree(root: Path) -> dict[str, str]:
    """Path and content of every file below a directory."""
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_the_tree_is_what_was_rendered(tmp_path: Path) -> None:
    """Every file lies below DIR at its path, with its mode, whatever the umask is."""
    old = os.umask(0o077)
    try:
        write_tree(render.render(FULL, "all"), str(tmp_path / "out"))
    finally:
        os.umask(old)
    assert tree(tmp_path / "out") == {file.path.lstrip("/"): file.text for file in render.render(FULL, "all")}
    for file in render.render(FULL, "all"):
        place = tmp_path / "out" / file.path.lstrip("/")
        assert stat.S_IMODE(place.stat().st_mode) == file.mode
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o755


def test_a_machine_of_two_roles_has_their_files_once(tmp_path: Path) -> None:
    """What two roles share is written once, and both are complete."""
    write_tree([*render.render(FULL, "access"), *render.render(FULL, "central")], str(tmp_path))
    files = {*render.render(FULL, "access"), *render.render(FULL, "central")}
    assert tree(tmp_path) == {file.path.lstrip("/"): file.text for file in files}


def test_writing_again_replaces_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Hostile case 51: what a killed run left beside a file does not stay and does not disturb."""
    write_tree(render.render(SITE, "execute"), str(tmp_path))
    (tmp_path / "etc/drainwise/.node.conf.new").write_text("half of")
    (tmp_path / "usr/libexec/drainwise/.prepare-hook.new").symlink_to("/etc/passwd")
    write_tree(render.render(FULL, "execute"), str(tmp_path))
    assert tree(tmp_path) == {file.path.lstrip("/"): file.text for file in render.render(FULL, "execute")}


def test_a_link_in_a_files_place_is_replaced_not_followed(tmp_path: Path) -> None:
    """Hostile case 1: another file is never overwritten through a link."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "out/etc/drainwise").mkdir(parents=True)
    (tmp_path / "out/etc/drainwise/node.conf").symlink_to(victim)
    write_tree(render.render(SITE, "execute"), str(tmp_path / "out"))
    assert victim.read_text() == "precious"
    assert not (tmp_path / "out/etc/drainwise/node.conf").is_symlink()


@pytest.mark.parametrize("obstacle", ["directory in the last file's place", "file in a directory's place"])
def test_a_tree_that_cannot_be_written_stays_as_it_was(tmp_path: Path, obstacle: str) -> None:
    """Nothing half written: the files before the obstacle are not replaced either, and the fault names the place."""
    write_tree(render.render(SITE, "execute"), str(tmp_path))
    drop = tmp_path / drop_in_path("execute").lstrip("/")
    drop.unlink()
    (drop.parent / AFTER_REMOVAL).unlink()
    if obstacle.startswith("directory"):
        drop.mkdir()
    else:
        drop.parent.rmdir()
        drop.parent.write_text("")
    before = tree(tmp_path)
    with pytest.raises(UsageError, match=re.escape(str(drop.parent))):
        write_tree(render.render(FULL, "execute"), str(tmp_path))
    assert tree(tmp_path) == before


def test_a_full_disk_leaves_the_tree_as_it_was(tmp_path: Path) -> None:
    """Hostile case 27: the last file does not fit any more; none of the others was replaced."""
    write_tree([RenderedFile("/a", "old"), RenderedFile("/b", "old")], str(tmp_path))
    program = (
        f"import resource, signal, sys; sys.path.insert(0, {str(PLUGINS)!r})\n"
        "from drainwise.install.rendered_tree import RenderedFile, write_tree\n"
        "from drainwise.facts.errors import ConfigurationError, UsageError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try:\n"
        f"    write_tree([RenderedFile('/a', 'new'), RenderedFile('/b', 'x' * 200)], {str(tmp_path)!r})\n"
        "except UsageError as fault:\n"
        "    sys.exit(str(fault))"
    )
    ran = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=False)
    assert "cannot be written: File too large" in ran.stderr
    assert tree(tmp_path) == {"a": "old", "b": "old"}
