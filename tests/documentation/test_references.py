"""Pages that list what the code has list all of it: site keys, attributes, exit codes, lines of the logs."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

import clean_machine
import condor_pool
import reference_pages
import sge_cluster
import slurm_cluster
from drainwise.cli.command_line.commands import COMMANDS
from drainwise.cli.screen.columns import COLUMNS
from drainwise.facts.waste import classad_expressions
from drainwise.pilotad.attributes import ATTRIBUTES
from drainwise.pilotad.report import STANDINGS
from drainwise.siteconfig import load

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = (DOCS / "reference.md").read_text()
TROUBLESHOOTING = (DOCS / "troubleshoot.md").read_text()


def column(title: str, number: int, page: str = REFERENCE) -> list[str]:
    """The cells of the first table below a heading of the reference, or of another page."""
    text = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = re.search(r"(?ms)^\|[-|]+\|\n(.*?)\n\n", f"{text}\n\n")
    assert rows is not None, title
    return [line.split(" | ")[number].strip("| ") for line in rows[1].splitlines()]


@pytest.mark.parametrize("path", reference_pages.pages(), ids=lambda path: path.name)
def test_a_page_that_the_code_states_is_current(path: Path) -> None:
    """Where this fails `scripts/reference_pages.py` writes it anew: keys of the site file, commands and options."""
    assert path.read_text() == reference_pages.pages()[path]


def test_the_page_of_commands_has_every_command_and_each_of_its_options() -> None:
    page = (DOCS / "commands.md").read_text()
    for name in COMMANDS:
        part = page.partition(f"\n## drainwise {name}\n")[2].partition("\n## ")[0]
        assert len(part.split()) > 5, name
    assert "| `--standby` |" in page.partition("\n## drainwise reclaim\n")[2].partition("\n## ")[0]
    assert "\n### drainwise local submit\n" in page


def test_each_attribute_stands_in_the_reference_under_its_three_names() -> None:
    """In the order of the table in the code."""
    shown = zip(*(column("What a pilot reports", number) for number in range(3)))
    names = [tuple(cell.strip("`") for cell in row) for row in shown]
    assert names == [(one.ad_name, one.status_name, one.published) for one in ATTRIBUTES]


def test_each_standing_is_explained() -> None:
    said = re.findall(r"(?m)^\| `?([a-z]+)`? \| [^|]+ \| [^|]+ \|$", TROUBLESHOOTING)
    assert set(STANDINGS) <= set(said)


def test_each_number_has_the_names_that_the_page_gives() -> None:
    """As a column of `status`, in JSON, and as an attribute of a slot."""
    rows = re.findall(r"(?m)^\| [^|]+ \| [^|`]+ \| `(\w+)` \| `(\w+)` \| `(Pilot\w+)` \|$", REFERENCE)
    assert len(rows) == 4
    columns = {column.name for column in COLUMNS}
    in_plans = (ROOT / "plugins" / "drainwise" / "reclaim" / "plan_json.py").read_text()
    for name, in_json, attribute in rows:
        assert name in columns
        assert f'"{in_json}"' in in_plans
        assert attribute in classad_expressions(3600)


def test_the_exit_codes_are_those_of_the_command() -> None:
    """The first lines of the entry point name the same."""
    said = (ROOT / "plugins" / "drainwise" / "cli" / "main.py").read_text().partition("Exit codes: ")[2]
    assert column("Exit codes", 0, (DOCS / "commands.md").read_text()) == re.findall(
        r"(\d+) [a-z]", said.partition('"""')[0]
    )


@pytest.mark.parametrize("line", [cell.strip("`… ") for cell in column("Lines of the logs", 0, TROUBLESHOOTING)])
def test_a_line_of_a_log_is_written_by_the_code(line: str) -> None:
    """As a piece of a message: a reader searches the page for what the log has."""
    modules = (ROOT / "plugins" / "drainwise").rglob("*.py")
    assert any(line in path.read_text() for path in modules), line


SITE_FILES = [
    (path.name, number, textwrap.dedent(text))
    for path in sorted(DOCS.glob("*.md"))
    if not path.name.startswith("your-own-")  # what another package adds
    for number, text in enumerate(re.findall(r"(?ms)^ *```ini\n(.*?)^ *```$", path.read_text()), 1)
]


@pytest.mark.parametrize(("page", "number", "text"), SITE_FILES, ids=lambda value: str(value)[:20])
def test_a_site_file_that_a_page_shows_is_accepted(page: str, number: int, text: str, tmp_path: Path) -> None:
    """Every key is one, and every value fits it."""
    file = tmp_path / "site.ini"
    file.write_text(text)
    assert load(str(file)).file == str(file), f"{page}, {number}"


def test_the_support_matrix_names_each_release_that_the_suite_is_run_on() -> None:
    """Pythons of clean machines, and the Debian releases of pools, clusters and cells."""
    page = (DOCS / "install.md").read_text()
    numbers = {"bullseye": "Debian 11", "bookworm": "Debian 12", "trixie": "Debian 13", "sid": "Debian unstable"}
    for release, (python, _) in clean_machine.RELEASES.items():
        assert f"{python} ({numbers[release]})" in page
    for part, releases in (
        ("HTCondor", condor_pool.RELEASES),
        ("Slurm", slurm_cluster.SUPPORTED),
        ("Grid Engine", sge_cluster.RELEASES),
    ):
        [row] = [line for line in page.splitlines() if line.startswith(f"| {part} | ")]
        assert re.findall(r"Debian \w+", row) == [numbers[release] for release in releases]
