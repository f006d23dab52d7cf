"""docs/estimate.md is true: its record and parameters parse, its keys, names, rules and defaults are the code's."""

from __future__ import annotations

import json
import re
from pathlib import Path

from drainwise_tasks.estimate import exhausted
from drainwise_tasks.estimate.parameters import JEDI_NAMES, parameters_from
from drainwise_tasks.estimate.records.formats import READERS
from drainwise_tasks.estimate.records.record import KEYS, Finished, finished_of
from drainwise_tasks.estimate.settings import Settings

from .test_panda_figures import NAMES as FIGURES

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "estimate.md").read_text()


def first_cells(heading: str) -> set[str]:
    """The code in the first column of the tables below a heading."""
    part = DOCUMENT.partition(f"\n{heading}\n")[2].partition("\n#")[0]
    return {word for row in re.findall(r"^\| (`[^|]*) \|", part, re.MULTILINE) for word in re.findall("`([^`]+)`", row)}


def test_the_examples_parse() -> None:
    """The record is sound and makes the cpuTime of the formula; the parameters are known."""
    record, tasks = (json.loads(text) for text in re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL))
    assert isinstance(finished_of(record), Finished)
    assert [parameters_from(found, "f", task)[0].base_time for task, found in tasks.items()] == [600, 60]


def test_every_key_parameter_and_format_is_documented() -> None:
    """No more and no less than there are."""
    formats = first_cells("### Formats")
    assert formats == {"--format", "auto", *READERS} | set(KEYS)
    assert first_cells("### Parameters of tasks") == set(JEDI_NAMES.values())


def test_every_figure_of_panda_server_is_documented() -> None:
    """By the script that calculates them."""
    said = (ROOT / "scripts" / "panda_figures.py").read_text().split('"""')[1].partition("docs/estimate.md:\n")[2]
    assert set(re.findall(r"^([A-Za-z]+): ", said, re.MULTILINE)) - {"all"} == set(FIGURES)


def test_every_rule_and_setting_is_documented_with_its_default() -> None:
    """The names of the rules, and each setting with what holds when nothing is said."""
    names = {value for name, value in vars(exhausted).items() if name.isupper() and isinstance(value, str)}
    part = DOCUMENT.partition("### When a task is exhausted")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| ([a-z_]+) \|", part, re.MULTILINE)) - {"rule"} == names
    for name, value in vars(Settings()).items():
        shown = "off" if value is None else str(value).lower() if isinstance(value, bool) else f"{value:g}"
        assert re.search(rf"`{name.upper()}`\s+\(?{re.escape(shown)}\b", part), name
