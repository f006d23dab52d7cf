"""`[clients]` in the site file: read, refused with its place, and rendered for the nodes of both batch systems."""

from __future__ import annotations

from pathlib import Path

import pytest

from drainwise.facts.errors import ConfigurationError
from drainwise.htcondor.setup import render as htcondor_render
from drainwise.node.settings import NodeSettings, parse
from drainwise.siteconfig import SiteConfig, load
from drainwise.slurm.setup import render as slurm_render

ROWS = """\
[clients]
panda = user=atlas* or job.x509UserProxyVOName=atlas
alice = user=alice* name=JAliEn*   # the two names
[kind fast]
host = wn1
hs23 = 400
"""


def site_of(tmp_path: Path, text: str) -> SiteConfig:
    file = tmp_path / "site.ini"
    file.write_text(text)
    return load(str(file))


def test_rows_are_read(tmp_path: Path) -> None:
    rules = site_of(tmp_path, ROWS).clients.rules
    assert rules.profile_of({"user": ("atlas1",)}).name == "panda"
    assert rules.attributes() == ("x509UserProxyVOName",)
    assert not site_of(tmp_path, "").clients.rules
    assert site_of(tmp_path, "[clients]\ndefault = none\n").clients.rules.profile_of({}).name == "none"


@pytest.mark.parametrize(
    ("line", "key", "value", "expected"),
    [
        ("pandas = user=atlas*", "pandas", "user=atlas*", "a known key, perhaps panda"),
        (
            "xrootd = user=x",
            "xrootd",
            "user=x",
            "one of the keys none, alice, panda, dirac, glideinwms, paper, default",
        ),
        ("panda = atlas*", "panda", "atlas*", "conditions user="),
        ("panda = usr=atlas*", "panda", "usr=atlas*", "conditions user="),
        ("panda = user=at$las", "panda", "user=at$las", "conditions user="),
        ("panda =", "panda", "", "conditions user="),
        ("default = jalien", "default", "jalien", "one of paper, glideinwms, dirac, panda, alice, none"),
    ],
)
def test_a_row_that_can_match_nothing_is_refused_with_its_place(
    tmp_path: Path, line: str, key: str, value: str, expected: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        site_of(tmp_path, f"[clients]\n{line}\n")
    fault = caught.value
    assert (fault.file, fault.section, fault.key, fault.value) == (str(tmp_path / "site.ini"), "clients", key, value)
    assert expected in fault.expected


def node_settings(site: SiteConfig, system: str) -> NodeSettings:
    """What the nodes of a batch system have by this site file."""
    files = htcondor_render.render(site, "execute") if system == "htcondor" else slurm_render.render(site, "node")
    return parse(files[0].text, "node.conf")


@pytest.mark.parametrize("system", ["htcondor", "slurm"])
def test_nodes_know_the_rows(tmp_path: Path, system: str) -> None:
    """Those of a kind, too; without rows a hook does not even import what reads them."""
    settings = node_settings(site_of(tmp_path, ROWS), system)
    assert [kind for kind, _ in settings.kinds] == ["fast"]
    for found in (settings, settings.of_node("wn1")):
        assert found.clients is not None
        assert found.clients.profile_of({"user": ("atlas1",)}).name == "panda"
        assert found.clients.profile_of({"user": ("alice",), "name": ("JAliEn_1",)}).name == "alice"
    assert node_settings(site_of(tmp_path, ""), system).clients is None
    default = node_settings(site_of(tmp_path, "[clients]\ndefault = alice\n"), system).clients
    assert default is not None
    assert default.profile_of({}).name == "alice"


@pytest.mark.parametrize("line", ["client_pandas = user=x", "client_panda = x", "client_default = x"])
def test_a_node_refuses_what_it_does_not_know(line: str) -> None:
    with pytest.raises(ConfigurationError):
        parse(line, "node.conf")


def test_no_attribute_of_a_job_is_put_into_its_slot(tmp_path: Path) -> None:
    """A user may set it to an expression that keeps the startd, the collector and whoever asks busy."""
    assert "STARTD_JOB_ATTRS" not in htcondor_render.render(site_of(tmp_path, ROWS), "execute")[-1].text
