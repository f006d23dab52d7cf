"""Kinds of nodes in the site file, rendered into one tree for all nodes."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from drainwise.facts.errors import ConfigurationError
from drainwise.htcondor.setup import render as condor
from drainwise.node import settings as node_settings
from drainwise.siteconfig import SiteConfig, load
from drainwise.slurm.setup import render as slurm

SITE = """\
[features]
hs23 = 100
wall_limit = 2d
[kind rome]
host = wn[001-120].*, rome-*
cpu_model = AMD EPYC 7*2 (Rome) @ 2.2GHz
hs23 = 1500.5
cpufactor_lrms = 1.3
jobslots = 128
wall_limit = 3d
[kind old.1]
host = old*
scratch_limit = 20GB
max_swap = 0B
cpu_limit_per_core = 1d
"""


@pytest.fixture
def site(tmp_path: Path) -> SiteConfig:
    file = tmp_path / "site.ini"
    file.write_text(SITE)
    return load(str(file))


def test_kinds_keep_their_order_and_values(site: SiteConfig) -> None:
    assert list(site.kinds) == ["rome", "old.1"]
    rome, old = site.kinds.values()
    assert (rome.host, rome.hs23, rome.jobslots, rome.wall_limit) == (
        *("wn[001-120].*, rome-*", Decimal("1500.5"), 128, 259200),
    )
    assert (old.scratch_limit, old.max_swap, old.hs23) == (20 * 10**9, 0, None)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[kind a]\nhs23 = 5\n", "host, cpu_model or feature"),
        ("[kind a]\nhost = $(reboot)\n", "patterns"),
        ("[kind a]\nhost = x\ngrace_job = 1h\n", "section .features."),
        ("[kind a]\nhost = x\n[kind a]\nhost = y\n", "the section once"),
        ("[kind a b]\nhost = x\n", "a section of"),
        ("[kind]\nhost = x\n", "a section of"),
        ("[kind ../x]\nhost = x\n", "a section of"),
    ],
)
def test_what_is_no_kind_is_refused(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "site.ini"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=named):
        load(str(file))


@pytest.mark.parametrize("render", [condor.render, slurm.render])
def test_one_tree_holds_them_all(site: SiteConfig, render: object) -> None:
    """The reader on the node finds every value of each kind, in the node's units."""
    files = condor.render(site, "execute") if render is condor.render else slurm.render(site, "node")
    [file] = [file for file in files if file.path.endswith("/node.conf")]
    read = node_settings.parse(file.text, "node.conf")
    assert [name for name, _ in read.kinds] == ["rome", "old.1"]
    assert read.kinds[0][1] == {
        "host": "wn[001-120].*, rome-*",
        "cpu_model": "AMD EPYC 7*2 (Rome) @ 2.2GHz",
        "hs23": "1500.5",
        "cpufactor_lrms": "1.3",
        "wall_limit_secs": "259200",
        "jobslots": "128",
    }
    old = read.of_node("old17.example.org")
    assert (old.kind, old.whole("max_swap_bytes"), old.whole("wall_limit_secs")) == ("old.1", 0, 172800)
    assert (old.whole("cpu_limit_secs_per_core"), old.decimal("hs23")) == (86400, 100)


def test_htcondors_lease_ends_by_the_limit_of_the_nodes_kind(site: SiteConfig, tmp_path: Path) -> None:
    """The drop-in is the same on all nodes: the cron publishes the limit. By a feature it could not."""
    drop_in = condor.render(site, "execute")[-1].text
    assert "PilotLeaseEnd = min({MY.PilotReclaimDeadline, MY.JobStart + MY.PilotWallLimit})" in drop_in
    assert "\nPilotWallLimit =" not in drop_in
    [attributes] = [line for line in drop_in.splitlines() if line.startswith("STARTD_ATTRS")]
    assert "PilotWallLimit" not in attributes
    file = tmp_path / "by-feature.ini"
    file.write_text("[kind a]\nfeature = fast\nwall_limit = 1h\n")
    with pytest.raises(ConfigurationError, match=r"kind a.*host or cpu_model"):
        condor.render(load(str(file)), "execute")
