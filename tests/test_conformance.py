"""tests/conformance.md is true: what it names is there, and each key of the documents has its row."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from drainwise.features.facts import KEYS
from drainwise.pilotad.attributes import ATTRIBUTES

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "tests" / "conformance.md").read_text()
DOCUMENTS = re.findall(r"(?m)^## (.+)$", PAGE)
ROWS = [
    [cell.strip() for cell in line.strip().strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| sentence")
]
SINCE_2016 = {"total_cpu", "hs23", "grace_secs", "allocated_cpu", "hs06_job", "grace_secs_job", "job_id"}
SINCE_2016 |= {"max_rss_bytes", "max_swap_bytes", "scratch_limit_bytes"}
"""Keys that the draft does not have."""


@functools.cache
def functions_in(path: Path) -> set[str]:
    """The names of the functions of a file of tests."""
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_there_is_a_table_for_each_of_the_five_documents() -> None:
    """None is empty, and each row has its four cells."""
    assert len(DOCUMENTS) == 5
    for part in PAGE.split("\n## ")[1:]:
        assert part.count("\n| ") > 20, part.splitlines()[0]
    assert [row for row in ROWS if len(row) != 4] == []
    assert len({row[0] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_the_module_and_the_test_of_a_row_are_there(row: list[str]) -> None:
    """Both by their names, and the state is one of two; who differs says why."""
    _, where, test, state = row
    places = (ROOT / "plugins" / "drainwise", ROOT / "plugins")
    assert any((place / where.strip("`")).is_file() for place in places), where
    file, name = test.strip("`").split("::")
    assert name.startswith("test_") and name in functions_in(ROOT / "tests" / file), test
    assert re.fullmatch(r"works.*|differs.*: .{20,}", state), state


def test_each_key_of_the_documents_has_its_row() -> None:
    """The nine attributes of the paper, its two answers, and every key of the draft; others are our own."""
    asked = " ".join(row[0] for row in ROWS)
    draft = {key.name for key in KEYS} - SINCE_2016
    paper = {one.ad_name for one in ATTRIBUTES} | {"VACATE_DESIRED", "PAYLOAD_DEADLINE"}
    assert {name for name in draft | paper if not re.search(rf"\b{name}\b", asked)} == {
        "CHECKPOINT_SECONDS",
        "EXP_WASTE_CURVE",
        "LAST_CHECKPOINT",
        "NEXT_CHECKPOINT",
        "RESTART_COST",
        "RETURNED_CORES",
        "RETURNED_MEMORY",
        "RETURNED_SINCE",
    }
