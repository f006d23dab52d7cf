"""A bundle for a bug report holds the facts and nothing that is secret or names somebody."""

from __future__ import annotations

import json
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.doctor.bundle import bundle_texts, site_lines, write_bundle
from drainwise.doctor.facts import AgentLook, BatchFacts, Installation, MachineFacts, Rights, SeenNode
from drainwise.facts.errors import UsageError
from drainwise.pool.finding import MISSING, Finding
from drainwise.siteconfig import SiteConfig, load

SECRET = "Xq7secretQ"
FACTS = MachineFacts(
    "wn1.cern.example",
    4711,
    Installation("0.2.0", "clone", f"/home/{SECRET}/drainwise/plugins"),
    (
        BatchFacts(
            *("htcondor", "HTCondor", "25.4.0", ("central",)),
            whole=True,
            nodes=(SeenNode("wn1.cern.example", "0.2.0", 3), SeenNode("wn2.cern.example", "0.1.0", 9999)),
            rights=Rights(False, f"{SECRET}@cern is not allowed", f"ALLOW_ADMINISTRATOR = {SECRET}@cern"),
            fault=f"condor_status: token of {SECRET}",
            findings=(Finding(MISSING, "munge", f"said {SECRET}", f"scp root@{SECRET}:x", SECRET, "wn1.cern.example"),),
        ),
    ),
    agent=(AgentLook(False, f"orders of {SECRET} failed", f"see /srv/{SECRET}"),),
    site="/etc/drainwise/site.ini",
    faults=(f"slurm: user {SECRET}",),
)


@pytest.fixture
def site(tmp_path: Path) -> SiteConfig:
    file = tmp_path / "site.ini"
    file.write_text(
        f"[reclaim]\ngrace = 3h\n[journal]\nfile = /srv/{SECRET}/journal\n[identity]\n"
        f"[features]\nurl = https://{SECRET}.example:8443\n"
        f"[kind {SECRET}]\nhost = {SECRET}\n"
    )
    return load(str(file))


def test_the_whole_bundle_has_no_secret_and_no_name(
    site: SiteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEARER_TOKEN", SECRET)
    place = tmp_path / "bundle.tar.gz"
    write_bundle(str(place), bundle_texts(FACTS, site))
    assert os.stat(place).st_mode & 0o777 == 0o600
    with tarfile.open(place) as archive:
        texts = {one.name: archive.extractfile(one).read().decode() for one in archive}  # type: ignore[union-attr]
    assert set(texts) == {f"drainwise-doctor/{name}" for name in ("doctor.json", "system.json", "site.txt")}
    whole = "\n".join(texts.values())
    for hidden in (SECRET, "cern", "wn1", "wn2", "4711"):
        assert hidden not in whole, hidden
    shown = json.loads(texts["drainwise-doctor/doctor.json"])
    assert [one["name"] for one in shown["facts"]["batch"][0]["nodes"]] == ["HOST", "NODE1"]
    assert any(one["severity"] == "missing" and one["topic"] == "allowed" for one in shown["findings"])


def test_the_site_file_is_told_by_its_keys(site: SiteConfig) -> None:
    """Values of kinds that can name nobody stand there; of others only that they are set."""
    lines = list(site_lines(site))
    assert lines == [
        "[features] url = (set)",
        "[reclaim] grace = 3h",
        "[journal] file = (set)",
        "1 sections [kind NAME]",
    ]


def test_no_file_is_written_over(tmp_path: Path) -> None:
    there = tmp_path / "mine"
    there.write_text("mine")
    with pytest.raises(UsageError, match="File exists"):
        write_bundle(str(there), {})
    assert there.read_text() == "mine"


def test_a_machine_without_a_name_is_no_fault(site: SiteConfig) -> None:
    assert "doctor.json" in bundle_texts(replace(FACTS, host="", batch=()), site)
