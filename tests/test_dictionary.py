"""No page, message, name or comment uses a word that left the dictionary: docs/glossary.md has the ones that stay."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prose import sentences, words

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
    for place in ("README.md", "plugins", "condor_config.d", "slurm", "systemd", "docs")
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


PLAIN = {
    r"dear(?:er|est)?": "expensive",
    r"mend(?:s|ed)?": "correct, cure",
    r"told": "learns, is informed",
    r"taken away": "withdrawn, removed",
}
"""Words that no page uses, and the standard ones. A letter's salutation is none of them."""
LONGEST, MEAN, ALL_WORDS = 35, 17.0, 50_000
"""Words of a sentence, of the sentences of a page on average, and of all pages."""
TROUBLESHOOTING = 0.15
"""The part of the words that belongs to what goes wrong."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_is_in_short_sentences_and_standard_words(page: Path) -> None:
    """Tables, code and headings are no sentences."""
    text = page.read_text().replace("> Dear colleagues", "")
    assert {word: use for word, use in PLAIN.items() if re.search(rf"(?i)\b{word}\b", text)} == {}
    counts = {one: len(words(one)) for one in sentences(text)}
    assert {one: count for one, count in counts.items() if count > LONGEST} == {}
    assert sum(counts.values()) / max(1, len(counts)) <= MEAN


def test_the_documents_are_half_as_long_as_they_were() -> None:
    """Words with a letter or digit in them: marks of tables are none."""
    counts = {page.name: len(words(page.read_text())) for page in PAGES}
    assert sum(counts.values()) <= ALL_WORDS, counts
    assert counts["troubleshoot.md"] >= TROUBLESHOOTING * sum(counts.values()), "what goes wrong has its share"


def test_sentences_are_found() -> None:
    """Fences, tables, headings are left out; a link counts by its text, code as one word."""
    page = "# A title here\n\nOne two [three four](x.md). `a b c` is it; and so on.\n\n"
    page += "```sh\nno such line\n```\n\n| a | b c d |\n"
    assert sentences(page) == ["One two three four.", "code is it", "and so on."]
