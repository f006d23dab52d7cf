"""The documentation of the keys comes from the table, and the example in docs/ is that documentation."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from drainwise.cli.config import example, markdown
from drainwise.siteconfig import SiteConfig, load
from drainwise.siteconfig.schema import keys

DOCS = Path(__file__).parents[2] / "docs"


def test_the_example_in_docs_is_the_table() -> None:
    """docs/site.ini.example is what `drainwise config example` prints."""
    assert (DOCS / "site.ini.example").read_text() == example()


def test_the_example_is_plain_text_for_every_locale() -> None:
    """Packages install it, and files of the site are read and written as ASCII."""
    assert example().isascii()


def test_the_example_as_it_stands_sets_nothing(tmp_path: Path) -> None:
    """All its values are comments: it may be installed unread."""
    file = tmp_path / "site.ini"
    file.write_text(example())
    assert load(str(file)) == dataclasses.replace(SiteConfig(), file=str(file))


def test_the_example_with_every_key_switched_on_is_right(tmp_path: Path) -> None:
    """Every value shown could be used."""
    file = tmp_path / "site.ini"
    file.write_text(re.sub(r"(?m)^#(?=\w+ = )", "", example()))
    config = load(str(file))
    assert all(getattr(getattr(config, key.section), key.name) is not None for key in keys())


def test_the_markdown_table_has_every_key() -> None:
    """One row for each key, with its meaning."""
    text = markdown()
    for key in keys():
        assert sum(row.startswith(f"| `{key.name}` |") and key.meaning in row for row in text.splitlines()) >= 1
