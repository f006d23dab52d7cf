"""Sentences of the documents' prose: tables, code, headings and comments are left out."""

from __future__ import annotations

import re

_FENCE = re.compile(r"(?ms)^ *```.*?^ *```$")
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[*-]|\d+\.) )|\n(?=[|#>])")
_END = re.compile(r"(?<=[.!?])(?:\*\*)?\s+(?=[A-Z*\"(0-9]|code\b|drainwise\b)|:\s+(?=[A-Z])|;\s")


def sentences(page: str) -> list[str]:
    """Return the sentences of a page of three words or more; what stands in `code` counts as one word."""
    found = []
    for block in _BLOCK.split(_FENCE.sub("\n\n", page)):
        text = block.strip()
        if not text or text.startswith(("|", "#", "<!--", "!", ">")) or block.lstrip("\n").startswith("    "):
            continue
        text = re.sub(r"^(?:[*-]|\d+\.) ", "", text)
        text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
        text = " ".join(re.sub(r"`[^`]*`", "code", text).split())
        found += [one for one in _END.split(text) if len(words(one)) > 2]
    return found


def words(text: str) -> list[str]:
    """Return what is a word of a text: it has a letter or a digit."""
    return [one for one in text.split() if re.search(r"\w", one)]
