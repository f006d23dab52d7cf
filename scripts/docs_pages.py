"""Hooks of mkdocs: the pages are written for readers of plain files, and are made ready for the generator here.

A page that the navigation does not name gets a place. A link out of docs/ becomes a path. Lists are as Python-Markdown
wants them: an empty line before, and what belongs to a numbered item four columns in. No script names another server.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_REFERENCE = "Reference"
_ITEM = re.compile(r"(?:[*-]|[0-9]+[.]) ")
_IN_NUMBERED = re.compile(r" {3}(?! )")
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)[^)]*\)")


def on_config(config: Any) -> Any:
    """Put the pages of docs/ that the navigation does not name behind those of the reference."""
    named = {page for group in config.nav for pages in group.values() for page in pages}
    others = sorted(name for name in os.listdir(config.docs_dir) if name.endswith(".md") and name not in named)
    for group in config.nav:
        if _REFERENCE in group:
            group[_REFERENCE] = [*group[_REFERENCE], *others]
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the page as the generator wants it."""
    return "\n".join(_with_lists(_OUTSIDE.sub(r"\1 (`\2`)", markdown).split("\n")))


def _with_lists(lines: list[str]) -> Iterator[str]:
    """Yield the lines; those of a fence that begins in the first column stay as they are."""
    in_fence, before = False, ""
    for line in lines:
        if line.startswith("```"):
            in_fence = not in_fence
        if not in_fence and _ITEM.match(line) and before and not before.startswith(" ") and not _ITEM.match(before):
            yield ""
        yield f" {line}" if not in_fence and _IN_NUMBERED.match(line) else line
        before = line


def on_post_build(config: Any) -> None:
    """Take out of the theme's scripts the server from which old browsers and drawings that no page has would fetch."""
    scripts = Path(config.site_dir) / "assets" / "javascripts"
    for script in scripts.glob("*.js"):
        script.write_text(script.read_text().replace("https://unpkg.com/", ""))
    for part in (*scripts.rglob("*.map"), *(scripts.parent / "stylesheets").rglob("*.map")):
        part.unlink()
