"""What a newcomer searches for stands on a page: the words of HTCondor, Slurm and of every installation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TEXT = "\n".join(path.read_text() for path in sorted(DOCS.glob("*.md")))
FIRST = "\n".join((DOCS / f"{name}.md").read_text() for name in ("index", "compare", "install", "quickstart-slurm"))
SEARCHED = (
    "scavenger preemptible checkpoint fairshare exempt uninstall supported prerequisites Rocky AlmaLinux RHEL Ubuntu"
    " QOS GraceTime requeue preempts badput defrag condor_drain Kueue"
)


@pytest.mark.parametrize("word", SEARCHED.split())
def test_a_word_of_the_field_is_found(word: str) -> None:
    assert re.search(rf"(?i)\b{word}", TEXT)


@pytest.mark.parametrize("word", ["preempt", "scavenger", "checkpoint", "fairshare", "prerequisite", "Rocky"])
def test_the_first_pages_use_it(word: str) -> None:
    """Those that an administrator reads before anything is installed."""
    assert re.search(rf"(?i)\b{word}", FIRST)


@pytest.mark.parametrize("name", ["quickstart-htcondor", "quickstart-slurm"])
def test_a_quick_start_has_its_frame(name: str) -> None:
    """What is needed and what orders cost before the first step; next steps and help after the last."""
    headings = re.findall(r"(?m)^## (.+)$", (DOCS / f"{name}.md").read_text())
    assert headings[0] == "Before you start" and headings[1].startswith("1. ")
    assert headings[-2:] == ["Next steps", "Getting help"]
