"""What every batch system's rendered files promise: promises of `tests/htcondor` and `tests/slurm`, written once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import jinja2
import pytest

from drainwise.install.templates import template_dir
from drainwise.node import settings as node_settings
from drainwise.siteconfig import FeaturesSection, PilotSection, SiteConfig

PLUGINS = Path(__file__).parents[2] / "plugins"
SITE = SiteConfig(file="/etc/drainwise/site.ini")
FULL = replace(
    SITE,
    features=FeaturesSection(
        hs06=Decimal("380.50"),
        hs23=Decimal(391),
        cpufactor_lrms=Decimal("0.000001"),
        wall_limit=36000,
        cpu_limit_per_core=35000,
        max_swap=4 << 30,
        scratch_limit=20 * 10**9,
        jobslots=24,
        shutdown_command="/usr/sbin/poweroff",
        url="https://%h:8443",
        grace=3600,
        grace_job=1800,
    ),
    pilot=PilotSection(heartbeat_limit=1500, heartbeat_slack=300),
)
"""A site file whose `state_dir` is still to be set to /srv/dw in the section of the batch system."""


def read_on_node(text: str) -> node_settings.NodeSettings:
    """Return node.conf of `FULL` as the node reads it; every value must be there, in seconds and bytes."""
    read = node_settings.parse(text, "node.conf")
    assert (read.decimal("hs06"), read.decimal("hs23"), read.decimal("cpufactor_lrms")) == (380.5, 391, 1e-06)
    assert (read.whole("wall_limit_secs"), read.whole("cpu_limit_secs_per_core")) == (36000, 35000)
    assert (read.whole("max_swap_bytes"), read.whole("scratch_limit_bytes")) == (4 << 30, 20 * 10**9)
    assert (read.whole("jobslots"), read.text("shutdown_command")) == (24, "/usr/sbin/poweroff")
    assert (read.whole("grace_secs"), read.whole("grace_secs_job")) == (3600, 1800)
    assert (read.heartbeat_limit, read.shutdown_file) == (1800, "/srv/dw/shutdowntime")
    return read


def require_comment_only(render: ModuleType, name: str, *evil: str) -> None:
    """Require that a site file's name, the one text that no kind has checked, adds no line and none of `evil`."""
    for file, plain in zip(render.render(replace(SITE, file=name), "all"), render.render(SITE, "all")):
        assert file.text.isascii()
        assert len(file.text.splitlines()) == len(plain.text.splitlines())
        assert not [word for word in evil if word in file.text]


def require_no_empty_value(render: ModuleType, role: str, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    """Require that an unknown name in a template is an error."""
    shutil.copytree(render.template_dir(), place / "templates")
    (place / "templates" / "node.conf.j2").write_text("hs06 = {{ features.hs60 }}\n")
    monkeypatch.setattr(render, "template_dir", lambda: str(place / "templates"))
    with pytest.raises(jinja2.UndefinedError, match="hs60"):
        render.render(SITE, role)


def require_own_templates(render: ModuleType, inside: str, files: int, place: Path) -> None:
    """Require that a package as a wheel installs it renders so many files from its own templates, those of `inside`."""
    shutil.copytree(PLUGINS / "drainwise", place / "drainwise", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(render.template_dir(), place / "drainwise" / inside)
    shutil.copytree(template_dir("systemd", "systemd_templates"), place / "drainwise" / "systemd_templates")
    program = (
        f"import sys; sys.path.insert(0, {str(place)!r})\n"
        f"from {render.__name__} import render, template_dir\n"
        "from drainwise.siteconfig import SiteConfig\n"
        "print(template_dir()); print(len(render(SiteConfig(), 'all')))"
    )
    command = [sys.executable, "-B", "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/", env={"PATH": os.environ["PATH"]})
    assert ran.stdout.splitlines() == [f"{place}/drainwise/{inside}", str(files)]
