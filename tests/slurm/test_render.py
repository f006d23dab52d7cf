"""The rendered files: hooks that end well whatever they meet, in an order in which they can be installed."""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

import rendered_site
from drainwise.facts.errors import UsageError
from drainwise.node import settings as node_settings
from drainwise.siteconfig import SiteConfig, SlurmSection
from drainwise.siteconfig.schema import keys
from drainwise.slurm.setup import render
from drainwise.slurm.setup.own_settings import OwnSettings, own_settings
from drainwise.slurm.setup.render import ROLES, fragment_path
from made_up_node import write
from made_up_slurm_node import MadeUpJob, SlurmNode
from rendered_site import (
    SITE,
    read_on_node,
    require_comment_only,
    require_no_empty_value,
    require_own_templates,
)

from .conftest import MakeNode

FULL = replace(
    rendered_site.FULL,
    slurm=SlurmSection(
        state_dir="/srv/dw",
        runtime_dir="/run/site",
        bin_dir="/opt/slurm/bin",
        config_dir="/opt/slurm/etc",
        agent_period=10,
        command_timeout=3,
        native_preemption="yes",
    ),
)
HOOKS = ("prolog", "task_prolog", "epilog")
JOB = MadeUpJob(17, 54321)


def text_of(site: SiteConfig, role: str, end: str) -> str:
    """The text of the file of a role whose path ends so."""
    return next(file.text for file in render.render(site, role) if file.path.endswith(end))


def lines_of_slurm_conf(site: SiteConfig) -> dict[str, str]:
    """The keys that the site's fragment sets."""
    lines = [line for line in text_of(site, "controller", "drainwise.conf").splitlines() if line and line[0] != "#"]
    return dict(line.partition("=")[::2] for line in lines)


@pytest.mark.parametrize("role", [*ROLES, "all"])
@pytest.mark.parametrize("site", [SITE, FULL])
def test_slurm_conf_comes_last(role: str, site: SiteConfig) -> None:
    """It names the hooks, and Slurm drains a node whose prolog is not there."""
    paths = [file.path for file in render.render(site, role)]
    assert paths[-1] == fragment_path(site)
    assert len(set(paths)) == len(paths)
    hooks = [file.path for file in render.render(site, role) if file.mode == 0o755]
    assert (hooks == []) is (role == "controller")


def test_slurm_conf_is_the_same_on_all_machines() -> None:
    """Slurm asks for that."""
    texts = {text_of(FULL, role, "drainwise.conf") for role in (*ROLES, "all")}
    assert len(texts) == 1


def test_slurm_conf_names_the_rendered_hooks() -> None:
    """Every program that it names is one of the executables of a node."""
    set_keys = lines_of_slurm_conf(FULL)
    programs = {file.path for file in render.render(FULL, "node") if file.mode == 0o755}
    assert set_keys["TaskProlog"] in programs
    for name in ("Prolog", "Epilog"):
        directory, _, pattern = set_keys[name].rpartition("/")
        assert pattern == "*"
        assert {f"{directory}/50-drainwise"} <= programs


@pytest.mark.parametrize("site", [SITE, FULL])
def test_every_key_says_why_it_is_there(site: SiteConfig) -> None:
    """Each line has its comment directly above it."""
    lines = text_of(site, "controller", "drainwise.conf").splitlines()
    for before, line in zip(lines, lines[1:]):
        if "=" in line and line[0] != "#":
            assert before.startswith("# "), line
            assert len(before) > 15


def test_hooks_give_up_long_before_slurm_does() -> None:
    """PrologEpilogTimeout would drain the node; the longest limit that a site may set is well below it."""
    [limit] = [key for key in keys() if (key.section, key.name) == ("slurm", "prolog_time_limit")]
    assert int(lines_of_slurm_conf(SITE)["PrologEpilogTimeout"]) == 60
    limit.kind.parse("30s")
    with pytest.raises(ValueError, match="31s"):
        limit.kind.parse("31s")


def test_preemption_is_only_touched_where_the_site_says_so() -> None:
    """And nothing that a release does not know is ever set: such a line stops every command of Slurm."""
    assert not [name for name in lines_of_slurm_conf(SITE) if "Preempt" in name]
    full = lines_of_slurm_conf(FULL)
    assert (full["PreemptType"], full["PreemptMode"]) == ("preempt/qos", "REQUEUE")
    cancel = replace(FULL, reclaim=replace(FULL.reclaim, at_deadline="end"))
    assert lines_of_slurm_conf(cancel)["PreemptMode"] == "CANCEL"
    assert "PreemptParameters" not in full


@pytest.mark.parametrize(
    ("release", "set_to", "qos"),
    [
        (None, None, True),
        ("22.05", None, True),
        ("23.02", "min_exempt_priority=2", False),
        ("24.11", "min_exempt_priority=2", False),
    ],
)
@pytest.mark.parametrize("at_deadline", ["requeue", "end"])
def test_each_release_is_told_in_its_way_whom_to_spare(
    release: str | None, set_to: str | None, qos: bool, at_deadline: str
) -> None:
    """22.05 by the pilots' QOS, later ones by a line; where nobody says which it is, both stand there as comments."""
    slurm = replace(FULL.slurm, release=None if release is None else Decimal(release))
    site = replace(FULL, slurm=slurm, reclaim=replace(FULL.reclaim, at_deadline=at_deadline))
    text = text_of(site, "controller", "drainwise.conf")
    assert lines_of_slurm_conf(site).get("PreemptParameters") == set_to
    assert ("\n#PreemptParameters=min_exempt_priority=2\n" in text) is (release is None)
    order = f"#   sacctmgr modify qos PILOTS set PreemptMode={'CANCEL' if at_deadline == 'end' else 'REQUEUE'},WITHIN\n"
    assert (order in text) is qos


def test_node_settings_are_what_the_node_reads() -> None:
    """The reader on the node finds every value of the site file, in seconds and bytes."""
    read = read_on_node(text_of(FULL, "node", "node.conf"))
    assert (read.runtime_dir, read.bin_dir) == ("/run/site", "/opt/slurm/bin")
    assert (read.agent_period, read.command_timeout) == (10, 3)


def test_a_node_without_its_settings_has_the_site_files_defaults() -> None:
    """The two tables of defaults agree."""
    read, slurm = node_settings.NodeSettings(), SlurmSection()
    assert (read.runtime_dir, read.bin_dir) == (slurm.runtime_dir, slurm.bin_dir)
    assert (read.scratch_dir, OwnSettings().scratch_dir) == ("/tmp", "/tmp")
    assert (read.agent_period, read.command_timeout) == (slurm.agent_period, slurm.command_timeout)
    assert read.shutdown_file == f"{slurm.state_dir}/shutdowntime"


@pytest.mark.parametrize(
    ("live", "site", "expected"),
    [
        ("/tmp", None, "/tmp"),
        ("/local/scratch/", None, "/local/scratch"),
        ("/local/%n/tmp", None, "/local"),
        ("/scratch-%h", None, "/tmp"),
        ("/a b", None, "/tmp"),
        ("/tmp", "/srv/jobs", "/srv/jobs"),
    ],
)
def test_the_scratch_area_is_the_live_tmpfs_unless_the_site_says_otherwise(
    live: str, site: str | None, expected: str
) -> None:
    """Of one with a node's name in it, the directory above; what cannot be a path in settings is Slurm's default."""
    own = own_settings(f"SLURM_VERSION = 24.11.5\nTmpFS                   = {live}\n", "test", {})
    config = replace(SITE, slurm=replace(SITE.slurm, scratch_dir=site))
    [file] = [file for file in render.render(config, "node", own) if file.path.endswith("node.conf")]
    assert node_settings.parse(file.text, "node.conf").scratch_dir == expected


def test_another_role_is_refused() -> None:
    """A wrong word is wrong usage, not an empty tree."""
    with pytest.raises(UsageError, match="expected one of node, controller, all"):
        render.render(SITE, "worker")


@pytest.mark.parametrize("name", ["a\nEVIL = 1", "a'; reboot; '", 'a"""\nimport os', "a\\", "ü", "a\x1b[0m", "$(EVIL)"])
def test_the_name_of_the_site_file_is_only_a_comment(name: str) -> None:
    """HOSTILE 15, 41: it adds no line and no code to any file."""
    require_comment_only(render, name, "EVIL =", "$(EVIL)", "reboot;", '"; ')


def test_an_unknown_name_in_a_template_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A slip in a template never becomes an empty value."""
    require_no_empty_value(render, "node", monkeypatch, tmp_path)


@pytest.mark.daemons
def test_an_installed_package_has_its_own_templates(tmp_path: Path) -> None:
    """In a wheel the templates lie inside the package; nothing of the working copy is needed."""
    require_own_templates(render, "slurm_templates", 9, tmp_path)


# ---- the hooks as programs ----


@pytest.mark.daemons
@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_takes_nothing_from_its_environment(hook: str, node: SlurmNode) -> None:
    """HOSTILE 46: absolute paths, isolated mode without site, and none of the loader's variables."""
    with open(node.hook(hook), encoding="ascii") as stream:
        text = stream.read()
    assert text.startswith("#!/bin/sh\n")
    assert f"{node.site.slurm.python} -I -S -c '" in text
    unset = re.search(r"^unset (.*)$", text, re.MULTILINE)
    assert unset is not None
    assert {"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "GLIBC_TUNABLES"} <= set(unset[1].split())
    assert text.index("setitimer") < text.index("import sys"), "the time limit comes before all else"


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("broken", ["no python", "python dies", "no package", "a package that does not load"])
def test_what_is_broken_drains_no_node(node: SlurmNode, hook: str, broken: str) -> None:
    """A missing interpreter, one that dies, a missing or broken package: 0, and one line at most."""
    if broken == "no python":
        _replace(node, hook, node.site.slurm.python, "/nonexistent/python3")
    elif broken == "python dies":
        _replace(node, hook, node.site.slurm.python, "/bin/sh -c 'kill -SEGV $$'; :")
    else:
        _replace(node, hook, node.site.slurm.library_dir, f"{node.base}/other")
    if broken == "a package that does not load":
        os.makedirs(f"{node.base}/other/drainwise")
        write(f"{node.base}/other/drainwise/__init__.py", "1/0\n", 0)
    ran = node.run(hook, JOB, JOB.uid if hook == "task_prolog" else 0, {})
    assert (ran.returncode, ran.stdout) == (0, b"")
    if hook == "task_prolog":
        assert ran.stderr == b"", "standard error is the job's own"
    else:
        assert len(ran.stderr.splitlines()) == 1
        assert len(ran.stderr) <= 201
        assert ("package" in broken) is ran.stderr.startswith(f"drainwise: {hook} does nothing: ".encode())


def _replace(node: SlurmNode, hook: str, old: str, new: str) -> None:
    path = Path(node.hook(hook))
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.daemons  # it waits for what hangs
@pytest.mark.parametrize("hook", HOOKS)
def test_what_hangs_is_ended(make_node: MakeNode, hook: str) -> None:
    """A package on a file system that does not answer, from the first import on: the hook ends by its limit, with 0."""
    node = make_node(prolog_time_limit=1)
    _replace(node, hook, node.site.slurm.library_dir, f"{node.base}/hanging")
    os.makedirs(f"{node.base}/hanging/drainwise")
    os.mkfifo(f"{node.base}/never")
    write(f"{node.base}/hanging/drainwise/__init__.py", f"open({node.base + '/never'!r})\n", 0)
    begun = time.monotonic()
    ran = node.run(hook, JOB, 0, {})
    assert (ran.returncode, ran.stdout) == (0, b"")
    assert time.monotonic() - begun > 0.9
