"""Verdicts on what nodes publish and on the files of the node itself."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from drainwise.htcondor.setup.check import file_facts, judge_closed, judge_files, judge_slots, paths_on_node
from drainwise.htcondor.setup.check_facts import FileFacts, PoolFacts, SlotFacts
from drainwise.htcondor.setup.render import drop_in_path, render
from drainwise.install.expected_files import ExpectedFiles
from drainwise.install.rendered_tree import write_tree
from drainwise.pool.finding import DANGEROUS, MISSING, OK
from drainwise.siteconfig import HTCondorSection, SiteConfig

NOW = 1795260000
SITE = SiteConfig(htcondor=HTCondorSection(cron_period=60))
EXPECTED = ExpectedFiles(render(SITE, "execute"), "drainwise config htcondor --out /")
SLOT = SlotFacts("slot1@n1", "n1", NOW, NOW - 1000, NOW - 59, True)


def verdicts(*slots: SlotFacts) -> dict[tuple[str, str], str]:
    """Severity by machine and subject."""
    return {(one.machine, one.what): one.severity for one in judge_slots(slots, SITE)}


@pytest.mark.parametrize(("heartbeat", "severity"), [(NOW, OK), (NOW - 180, OK), (NOW - 181, MISSING), (None, MISSING)])
def test_a_cron_is_running_while_its_heartbeat_is_young(heartbeat: int | None, severity: str) -> None:
    """Three periods late is no chance any more; never seen is not running."""
    slot = dataclasses.replace(SLOT, cron_heartbeat=heartbeat)
    assert verdicts(slot)["n1", "PilotCronHeartbeat"] == severity


def test_a_slot_that_has_just_been_made_does_not_speak_for_the_node() -> None:
    """A new dynamic slot has no heartbeat before the cron's next run."""
    fresh = dataclasses.replace(SLOT, name="slot1_1@n1", cron_heartbeat=None)
    assert verdicts(fresh, SLOT)["n1", "PilotCronHeartbeat"] == OK


def test_each_node_is_judged_by_its_own_slots() -> None:
    """One node's cron says nothing of the other's."""
    other = dataclasses.replace(SLOT, name="slot1@n2", machine="n2", cron_heartbeat=None)
    assert verdicts(SLOT, other)["n1", "PilotCronHeartbeat"] == OK
    assert verdicts(SLOT, other)["n2", "PilotCronHeartbeat"] == MISSING


def test_a_slot_that_hides_its_order_is_named() -> None:
    """The agent could not read its own orders back."""
    hidden = dataclasses.replace(SLOT, name="slot1_2@n1", orders_visible=False)
    finding = next(one for one in judge_slots([SLOT, hidden], SITE) if one.what == "PilotReclaimDeadline")
    assert (finding.severity, finding.value) == (MISSING, "slot1_2@n1")
    assert finding.line.startswith("STARTD_ATTRS = $(STARTD_ATTRS)")


@pytest.mark.parametrize(
    ("since", "words"),
    [(None, ""), (1, ""), (NOW - 1001, ""), (NOW - 999, "has not been started"), (0, "hooks go first")],
)
def test_a_node_that_says_it_takes_no_orders_is_named(since: int | None, words: str) -> None:
    """Its startd began at NOW - 1000; once, by whatever finding, and not by a slot that says nothing yet."""
    slots = [dataclasses.replace(SLOT, orders_since=since), SLOT]
    found = list(judge_closed(slots, ()))
    assert [words in one.why for one in found] == [True] * bool(words)
    assert not list(judge_closed(slots, {"n1"}))


def test_unusable_files_are_named_once_for_a_node() -> None:
    """Every slot shows them."""
    slots = [dataclasses.replace(SLOT, name=name, unusable=("/l/update-hook",)) for name in ("slot1@n1", "slot1_1@n1")]
    [found] = [one for one in judge_slots(slots, SITE) if one.severity != OK]
    assert (found.what, found.severity, found.value) == ("files of the node", MISSING, "/l/update-hook")
    assert found.line == f"drainwise doctor   # on {SLOT.machine}"


@pytest.fixture
def node(tmp_path: Path) -> str:
    """The file system of an execute node on which everything is installed as it should be."""
    root = str(tmp_path)
    tmp_path.chmod(0o755)
    write_tree(render(SITE, "execute"), root)
    for directory in ("usr/bin", "usr/share/drainwise/drainwise"):
        (tmp_path / directory).mkdir(parents=True)
    python = tmp_path / "usr/bin/python3"
    python.write_text("")
    python.chmod(0o755)
    return root


def file_verdicts(root: str, started: int = NOW) -> dict[str, str]:
    """Severity by path of what is wrong on the node below `root`, whose startd began at `started` (UNIX s)."""
    slot = dataclasses.replace(SLOT, startd_started=started)
    facts = PoolFacts((), (slot,), "n1", tuple(file_facts(paths_on_node(SITE, EXPECTED), root)))
    return {one.what: one.severity for one in judge_files(facts, SITE) if one.severity != OK}


NEW = 2**33  # a startd younger than every file


def test_a_node_with_everything_in_place_has_nothing_to_mend(node: str) -> None:
    """The very files that drainwise writes are judged to be in order."""
    assert file_verdicts(node, NEW) == {}


@pytest.mark.parametrize("path", [path for path in paths_on_node(SITE, EXPECTED) if path != drop_in_path("execute")])
def test_a_file_that_is_not_there_is_missing(node: str, path: str) -> None:
    """Interpreter, package, settings, each hook."""
    os.rename(node + path, node + path + ".away")
    assert file_verdicts(node, NEW) == {path: MISSING}


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
def test_a_hook_that_others_can_write_is_dangerous(node: str, mode: int) -> None:
    """Whoever can change it runs code as every job's user."""
    path = f"{SITE.htcondor.libexec_dir}/prepare-hook"
    os.chmod(node + path, mode)
    assert file_verdicts(node, NEW) == {path: DANGEROUS}


def test_a_hook_of_another_owner_is_dangerous(node: str) -> None:
    """Only root may own what runs as every user."""
    path = f"{SITE.htcondor.libexec_dir}/update-hook"
    os.chown(node + path, 65534, 0)
    assert file_verdicts(node, NEW) == {path: DANGEROUS}


def test_a_directory_that_others_can_write_endangers_what_lies_below(node: str) -> None:
    """They could put another file in the hook's place."""
    os.chmod(f"{node}/usr/libexec", 0o777)
    hooks = {file.path for file in render(SITE, "execute") if file.path.startswith(SITE.htcondor.libexec_dir)}
    assert file_verdicts(node, NEW) == dict.fromkeys(hooks, DANGEROUS)


def test_a_directory_behind_a_link_endangers_what_it_leads_to(node: str) -> None:
    """The hooks lie elsewhere, below a directory that others can write; a sticky one keeps root's files as they are."""
    os.mkdir(f"{node}/srv")
    os.rename(f"{node}/usr/libexec/drainwise", f"{node}/srv/hooks")
    os.symlink("../../srv/hooks", f"{node}/usr/libexec/drainwise")
    hooks = {file.path for file in render(SITE, "execute") if file.path.startswith(SITE.htcondor.libexec_dir)}
    for mode, expected in ((0o755, {}), (0o777, dict.fromkeys(hooks, DANGEROUS)), (0o1777, {})):
        os.chmod(f"{node}/srv", mode)
        assert file_verdicts(node, NEW) == expected


@pytest.mark.parametrize(
    ("path", "mode"), [("/usr/libexec/drainwise/pilot-cron", 0o744), ("/etc/drainwise/node.conf", 0o640)]
)
def test_a_file_that_the_jobs_users_cannot_use_is_missing(node: str, path: str, mode: int) -> None:
    """Hooks run as the job's user and read the settings as the job's user."""
    os.chmod(node + path, mode)
    assert file_verdicts(node, NEW) == {path: MISSING}


def test_a_startd_older_than_the_drop_in_must_be_restarted(node: str) -> None:
    """ENABLE_RUNTIME_CONFIG takes effect at the daemon's start only."""
    modified = int(os.stat(node + drop_in_path("execute")).st_mtime)
    assert file_verdicts(node, modified) == {}
    assert file_verdicts(node, modified - 1) == {"ENABLE_RUNTIME_CONFIG": MISSING}


def test_files_are_judged_only_where_the_check_runs() -> None:
    """From the central manager nothing can be said of a node's files, and nothing is."""
    assert list(judge_files(PoolFacts((), (SLOT,)), SITE)) == []


def test_what_cannot_be_looked_at_is_a_fact_of_its_own(tmp_path: Path) -> None:
    """A path below a file: a reason, no exception."""
    (tmp_path / "a").write_text("")
    assert list(file_facts(["/a/b"], str(tmp_path))) == [FileFacts("/a/b", "Not a directory")]
