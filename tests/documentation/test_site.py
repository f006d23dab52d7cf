"""The documentation as a site: `scripts/docs` builds it, no link leads nowhere, nothing is fetched from elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.daemons  # it takes its time
BESIDE = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built by the script where no proxy and no index would answer."""
    place = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "DRAINWISE_VENV": sys.prefix, "https_proxy": "http://127.0.0.1:9", "PIP_NO_INDEX": "1"}
    command = [str(ROOT / "scripts" / "docs"), str(place)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stderr == ""
    return place


def test_each_page_is_in_the_site_and_in_its_navigation(site: Path) -> None:
    shown = (site / "index.html").read_text()
    navigation = shown.partition('<nav class="md-nav md-nav--primary')[2]
    names = [path.stem for path in DOCS.glob("*.md")]
    assert len(names) > 30
    for name in names:
        assert (site / f"{name}.html").exists(), name
        assert f'href="{name}.html"' in navigation, name


def test_search_knows_each_page(site: Path) -> None:
    """By the index that the reader's browser searches."""
    found = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    pages = {one["location"].partition("#")[0] for one in found}
    assert {f"{path.stem}.html" for path in DOCS.glob("*.md")} <= pages
    assert any("min_grace" in one["text"] and one["location"].startswith("concepts.html") for one in found)


def test_a_reader_fetches_nothing_from_elsewhere(site: Path) -> None:
    """Neither scripts, styles, fonts nor pictures; a link that a reader follows is another thing."""
    for page in site.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page.read_text()):
            assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", tag), (page, tag)
    for script in site.rglob("*.js"):
        assert "unpkg.com" not in script.read_text(), script
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//", style.read_text()), style


def test_lists_and_fences_in_numbered_items_are_rendered_as_such(site: Path) -> None:
    """What GitHub shows as a list or as lines to type is one here, too."""
    page = (site / "install.html").read_text()
    assert not re.search(r"<p>[^<]*```", page)
    assert page.count("<ol>") == 5
    assert len(re.findall(r'<div class="[^"]*highlight[^"]*"><pre', page)) >= 6


@pytest.mark.parametrize("name", BESIDE)
def test_links_of_the_files_beside_lead_somewhere(name: str) -> None:
    """To a file, and to a heading of it where they name one."""
    for target in re.findall(r"\]\(([^)\s]+)\)", (ROOT / name).read_text()):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = ROOT / path if path else ROOT / name
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            headings = re.findall(r"(?m)^#+ (.+)$", file.read_text())
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, target


def test_the_script_installs_what_the_extra_names() -> None:
    """The same releases in both places."""
    extra = re.search(r"(?m)^docs = \[(.*)\]$", (ROOT / "pyproject.toml").read_text())
    assert extra is not None
    for requirement in re.findall(r'"([^"]+)"', extra[1]):
        assert f"'{requirement}'" in (ROOT / "scripts" / "docs").read_text()
