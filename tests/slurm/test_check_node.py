"""What is said of the hooks on disk: real files, spoilt in each way that matters."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.install import expected_files
from drainwise.install.rendered_tree import write_tree
from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding
from drainwise.siteconfig import SiteConfig, SlurmSection
from drainwise.slurm.setup.check_facts import ClusterFacts
from drainwise.slurm.setup.check_node import hook_files, judge_hooks
from drainwise.slurm.setup.merge import hooks_of
from drainwise.slurm.setup.own_settings import ClusterHistory, OwnSettings
from drainwise.slurm.setup.render import render
from made_up_node import public_directory

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the hooks are root's")
ALICE = 54321


class Node:
    """A node with the hooks installed below its own directory."""

    def __init__(self, base: str) -> None:
        self.site = SiteConfig(
            slurm=replace(SlurmSection(), config_dir=f"{base}/etc/slurm", libexec_dir=f"{base}/libexec")
        )
        hooks = hooks_of(self.site, OwnSettings())
        self.paths = {key: hook.path for key, hook in hooks.items()}
        self.base = base
        self.live = {key.lower(): hook.value for key, hook in hooks.items()}
        self.history = ClusterHistory()

    def install(self) -> None:
        files = [file for file in render(self.site, "node", self.history.own) if file.path.startswith(self.base)]
        write_tree(files, "/")
        for above, _, _ in os.walk(self.base):
            os.chmod(above, 0o755)

    def found(self) -> list[Finding]:
        facts = ClusterFacts(self.live, {}, (), (), history=self.history)
        return list(judge_hooks(hook_files(facts, self.site)))


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """One on which no tree and no package was put in place."""
    for name in ("KEPT", "_PACKAGES"):
        monkeypatch.setattr(expected_files, name, "/nonexistent")
    with public_directory() as base:
        yield Node(base)


def test_hooks_as_they_were_installed_are_in_order(node: Node) -> None:
    """One verdict for each of the three, whatever the name of the site file was."""
    node.install()
    node.site = replace(node.site, file="/etc/other.ini")
    found = node.found()
    assert [(one.what, one.severity) for one in found] == [
        ("Prolog file", OK),
        ("Epilog file", OK),
        ("TaskProlog file", OK),
    ]
    assert [one.value for one in found] == list(node.paths.values())


def test_a_machine_without_any_is_no_node(node: Node) -> None:
    """The controller need not have them."""
    (only,) = node.found()
    assert (only.what, only.severity) == ("hook files", OK)
    assert "no node" in only.why


def test_what_slurm_conf_does_not_name_is_not_looked_at(node: Node) -> None:
    """That they are not named is another finding."""
    node.live.clear()
    assert node.found() == []


def linked(node: Node, path: str) -> None:
    os.rename(path, f"{node.base}/libexec/elsewhere")
    os.symlink(f"{node.base}/libexec/elsewhere", path)
    os.chmod(f"{node.base}/libexec", 0o775)


def in_its_place(make: Callable[[str], None]) -> Callable[[Node, str], None]:
    def spoil(node: Node, path: str) -> None:
        os.unlink(path)
        make(path)

    return spoil


SPOILT: dict[str, tuple[Callable[[Node, str], object], str, str]] = {
    "gone": (lambda node, path: os.unlink(path), DANGEROUS, "config slurm"),
    "a user's": (lambda node, path: os.chown(path, ALICE, 0), DANGEROUS, "chown root:root"),
    "its group may write": (lambda node, path: os.chmod(path, 0o775), DANGEROUS, "chmod 755"),
    "all may write": (lambda node, path: os.chmod(path, 0o757), DANGEROUS, "chmod 755"),
    "cannot be run": (lambda node, path: os.chmod(path, 0o644), DANGEROUS, "chmod 755"),
    "above it others may write": (
        lambda node, path: os.chmod(os.path.dirname(path), 0o777),
        DANGEROUS,
        "chmod go-w",
    ),
    "above it is a user's": (
        lambda node, path: os.chown(os.path.dirname(path), ALICE, 0),
        DANGEROUS,
        "chown root:root",
    ),
    "a link to where others may write": (linked, DANGEROUS, "chmod go-w"),
    "another program": (lambda node, path: Path(path).write_text("#!/bin/sh\nexit 0\n"), MISSING, "config slurm"),
    "of another version": (
        lambda node, path: Path(path).write_text(Path(path).read_text().replace("exit 0", "exit 1")),
        MISSING,
        "config slurm",
    ),
    "a directory": (in_its_place(os.mkdir), DANGEROUS, "config slurm"),
    "a FIFO": (in_its_place(os.mkfifo), DANGEROUS, "config slurm"),
}


@pytest.mark.parametrize("key", ["Prolog", "Epilog", "TaskProlog"])
@pytest.mark.parametrize("how", SPOILT)
def test_each_fault_is_found_with_its_command(node: Node, key: str, how: str) -> None:
    """What ends jobs, drains the node or gives root away is dangerous; the other hooks stay in order."""
    node.install()
    spoil, severity, line = SPOILT[how]
    spoil(node, node.paths[key])
    bad = [one for one in node.found() if one.severity != OK]
    assert [(one.severity, line in one.line) for one in bad if one.what == f"{key} file"] == [(severity, True)]
    if "above" not in how and "link" not in how:
        assert len(bad) == 1


def test_the_command_mends_it(node: Node) -> None:
    """As it stands there, typed by root."""
    node.install()
    for path in node.paths.values():
        os.chown(path, ALICE, ALICE)
        os.chmod(path, 0o666)
        os.chmod(os.path.dirname(path), 0o777)
    for one in node.found():
        assert os.system(one.line) == 0
    assert {one.severity for one in node.found()} == {OK}


def test_a_user_who_cannot_look_is_told_so(node: Node) -> None:
    """And nothing is called missing."""
    node.install()
    for path in ("etc/slurm", "libexec"):
        os.chmod(f"{node.base}/{path}", 0o700)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setresuid(ALICE, ALICE, ALICE)
            os.write(writer, "\n".join(f"{one.severity} {one.why}" for one in node.found()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    said = os.read(reader, 4096).decode()
    os.close(reader)
    assert said.count("cannot be looked at by this user") == 3
    assert MISSING not in said


# ---- on a site with hooks of its own ----


def test_a_hook_among_the_sites_own_is_looked_at_there(node: Node) -> None:
    """Its name is one that the site's pattern takes; Slurm does not miss it, but jobs do."""
    place = f"{node.base}/site"
    node.live["prolog"] = f"{place}/*.sh"
    node.history = ClusterHistory(OwnSettings(values={"prolog": (f"{place}/*.sh",)}))
    node.install()
    assert {one.severity for one in node.found()} == {OK}
    assert node.found()[0].value == f"{place}/50-drainwise.sh"
    os.unlink(f"{place}/50-drainwise.sh")
    [gone] = [one for one in node.found() if one.severity != OK]
    assert (gone.severity, gone.what, "no features" in gone.why) == (MISSING, "Prolog file", True)


@pytest.mark.parametrize("missing", ["the site's program", "its interpreter"])
def test_what_a_hook_runs_must_be_there(node: Node, missing: str) -> None:
    """Slurm drains the node, or ends each job, where it is not."""
    theirs = f"{node.base}/libexec/site-task-prolog"
    node.history = ClusterHistory(OwnSettings(values={"taskprolog": (theirs,)}))
    node.install()
    Path(theirs).write_text("#!/bin/sh\n")
    os.chmod(theirs, 0o755)
    assert {one.severity for one in node.found()} == {OK}
    if missing == "the site's program":
        os.unlink(theirs)
    else:
        path = Path(node.paths["TaskProlog"])
        path.write_text(path.read_text().replace("#!/bin/bash -p", "#!/nonexistent/bash -p"))
    [bad] = [one for one in node.found() if one.severity == DANGEROUS]
    assert "which it runs, cannot be run here: Slurm ends each job here" in bad.why


def test_a_hook_that_hands_over_to_another_is_of_another_version(node: Node) -> None:
    """slurm.conf has a new task prolog of the site's, and the node the hook of before."""
    node.history = ClusterHistory(OwnSettings(values={"taskprolog": ("/bin/true",)}))
    node.install()
    node.history = ClusterHistory(OwnSettings(values={"taskprolog": ("/bin/false",)}))
    [bad] = [one for one in node.found() if one.severity != OK]
    assert (bad.severity, bad.what) == (MISSING, "TaskProlog file")
