"""Asking for what the site has: a file instead of the command, rendered lines of before, scripts that call ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.facts.errors import ConfigurationError, UsageError
from drainwise.siteconfig import SiteConfig, SlurmSection
from drainwise.slurm.setup.live_settings import calls, history_of, settings_to_merge
from drainwise.slurm.setup.own_settings import OwnSettings
from drainwise.slurm.setup.render import fragment_path, render

from .test_merge import OURS, live


@pytest.fixture
def site(tmp_path: Path) -> SiteConfig:
    """A site whose directories are the test's own; there are no commands of Slurm."""
    place = f"{tmp_path}/etc/slurm"
    return SiteConfig(slurm=replace(SlurmSection(), bin_dir=f"{tmp_path}/bin", config_dir=place))


def write(path: Path, text: str) -> str:
    """Write a file, its directories as well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_without_an_answer_nothing_is_taken_for_granted(site: SiteConfig) -> None:
    """The lines could replace what the site has: it is refused, with the two ways on."""
    with pytest.raises(UsageError, match=r"`scontrol show config` works, or .* --live FILE \(--live none: a new"):
        settings_to_merge(site, None, None)
    assert settings_to_merge(site, "none", None) == OwnSettings()


def test_the_answer_may_come_from_a_file(site: SiteConfig, tmp_path: Path) -> None:
    """Its cluster and release are named; slurm.conf of this machine is another one's and is not read."""
    conf = write(tmp_path / "slurm.conf", "TaskProlog=/elsewhere\n")
    text = live("22.05", TaskProlog="/site/tp").replace("/etc/slurm/slurm.conf", conf)
    own = settings_to_merge(site, write(tmp_path / "live", text), None)
    assert own.all("TaskProlog") == ("/site/tp",)
    assert own.source == "`scontrol show config` of cluster test, Slurm 22.05.8"


@pytest.mark.parametrize("text", ["", "Prolog = /a\n", "scontrol: error: no answer\n"])
def test_what_is_no_answer_is_refused(site: SiteConfig, tmp_path: Path, text: str) -> None:
    """Half an output would be taken for a site that has nothing."""
    with pytest.raises(UsageError, match="no SLURM_VERSION in it; expected the whole output"):
        settings_to_merge(site, write(tmp_path / "live", text), None)
    with pytest.raises(ConfigurationError, match="No such file"):
        settings_to_merge(site, str(tmp_path / "missing"), None)


def test_what_stood_before_ours_must_be_known(site: SiteConfig, tmp_path: Path) -> None:
    """Ours is live: the lines rendered before say what it hands over to; without them it is refused."""
    first = settings_to_merge(site, write(tmp_path / "live", live("22.05", TaskProlog="/site/tp")), None)
    after = write(tmp_path / "after", live("22.05", TaskProlog=OURS["TaskProlog"]))
    with pytest.raises(UsageError, match="TaskProlog: drainwise's own lines are live, and what stood there before"):
        settings_to_merge(site, after, None)
    out = tmp_path / "out"
    write(Path(f"{out}{fragment_path(site)}"), render(site, "controller", first)[-1].text)
    assert settings_to_merge(site, after, str(out)).all("TaskProlog") == ("/site/tp",)
    write(Path(fragment_path(site)), render(site, "controller", first)[-1].text)
    assert settings_to_merge(site, after, None).all("TaskProlog") == ("/site/tp",)


def test_the_check_reads_slurm_conf_with_ours_in_it(site: SiteConfig, tmp_path: Path) -> None:
    """What the site has is what stands there without ours; what the last program runs by its text is merged."""
    wrapper = write(tmp_path / "wrapper", "#!/bin/sh\n/site/first\n" + OURS["TaskProlog"] + "\n")
    fragment = write(Path(fragment_path(site)), f"TaskProlog={OURS['TaskProlog']}\n")
    text = f"TaskProlog=/site/first\nInclude {fragment}\nTaskProlog={wrapper}\n"
    conf = write(tmp_path / "slurm.conf", text)
    config = live("24.11", TaskProlog=wrapper).replace("/etc/slurm/slurm.conf", conf)
    found = history_of(site, config)
    assert (found.own.all("TaskProlog"), found.own.wrappers) == ((wrapper,), frozenset({wrapper}))
    assert [line.value for line in found.lines or ()] == ["/site/first", OURS["TaskProlog"], wrapper]
    assert found.merged == {("taskprolog", "/site/first"), ("taskprolog", OURS["TaskProlog"])}
    assert (found.unread, found.rendered_for) == ("", "")
    hidden = history_of(site, live("24.11").replace("/etc/slurm/slurm.conf", f"{tmp_path}/none"))
    assert (hidden.lines, "No such file" in hidden.unread) == (None, True)


def test_the_check_knows_for_which_release_was_rendered(site: SiteConfig) -> None:
    """The installed lines say so, and what ours hands over to."""
    own = replace(OwnSettings("test", "22.05.8"), values={"taskprolog": ("/site/tp",)})
    write(Path(fragment_path(site)), render(site, "controller", own)[-1].text)
    found = history_of(site, live("24.11", TaskProlog=OURS["TaskProlog"]))
    assert found.rendered_for == "22.05.8"
    assert found.merged == {("taskprolog", "/site/tp")}


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("#!/bin/sh\n/our/hook\n", True),
        ("#!/bin/sh\nexec '/our/hook' # ours\n", True),
        ('#!/bin/sh\neval "$(/our/hook)"\n', True),
        ("#!/bin/sh\n# /our/hook was here\n", False),
        ("#!/bin/sh\n/our/hook-of-before\n/and/our/hook\n", False),
        ("#!/our/hook\n", False),
        ("", False),
    ],
)
def test_which_scripts_call_a_hook(tmp_path: Path, text: str, does: bool) -> None:
    """Named outside of a comment, as a whole path."""
    assert calls(write(tmp_path / "script", text), "/our/hook") is does
    assert not calls(str(tmp_path / "missing"), "/our/hook")
