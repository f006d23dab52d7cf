"""No page, message, name or comment uses a word that left the dictionary: docs/glossary.md has the ones that stay."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LEFT = {
    r"desk": "backend state",
    r"roads?": "channel",
    r"errands?": "per-user task",
    r"visits?": "child per user",
    r"strays?": "escaped process",
    r"ladders?": "priority steps",
    r"voices?": "reporter",
    r"hers": "that user's pilots",
    r"worn": "unprotected",
    r"deaf": "does not respond",
    r"ledgers?": "daemon store",
    r"inquir(?:y|ies)": "ask-again schedule",
    r"beliefs?": "run-time estimates",
    r"comers?": "arrivals",
    r"principals?": "account",
    r"half an answer": "incomplete answer",
    r"taken back": "withdrawn",
    r"tended": "follow up",
    r"lengthen(?:s|ed)?": "withdraw",
}
"""Each word that left, and the one to use."""
KEPT = {
    "plugins/drainwise/journal/read.py": {r"principals?", r"tended"},  # names in journals of before
    "plugins/drainwise/pool/snapshot_json.py": {r"principals?"},  # the same in snapshots
}
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text().lower()
    for place in ("README.md", "plugins/drainwise", "condor_config.d", "slurm", "systemd", "docs")
    for path in [ROOT / place, *sorted((ROOT / place).rglob("*"))]
    if path.suffix in {".py", ".j2", ".md", ".example"}
}
"""All that a user or a developer reads, in lower case, by its place."""


@pytest.mark.parametrize("word", LEFT)
def test_a_word_that_left_is_used_no_more(word: str) -> None:
    """Neither alone nor as a part of a name."""
    pattern = re.compile(rf"(?:{word})(?![a-z])")
    found = [
        f"{place}:{len(text[: one.start()].splitlines())}: {one[0]}"
        for place, text in TEXTS.items()
        if word not in KEPT.get(place, set())
        for one in pattern.finditer(text)
        if not "a" <= text[one.start() - 1 : one.start()] <= "z"
    ]
    assert found == [], f"use: {LEFT[word]}"


def test_the_glossary_is_sorted_and_names_a_thing_once() -> None:
    """One row a term, to be found by its first letter."""
    terms = re.findall(r"(?m)^\| ([a-z-]+(?: [a-z-]+)*) \| ", (ROOT / "docs" / "glossary.md").read_text())[1:]
    assert terms == sorted(set(terms))
    assert len(terms) >= 30
