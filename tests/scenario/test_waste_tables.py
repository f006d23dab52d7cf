"""The standard tables: rows are measured in parts, kept, and written into a document."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from panda_record import HEADING, record
from waste_table.command import main
from waste_table.document import BEGIN, END, tables, written
from waste_table.workloads import workloads


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """PanDA's records of a few jobs; no log lies there."""
    rows = [record(1, 300 + 90 * number) for number in range(5)] + [record(8, 400 + 90 * number) for number in range(4)]
    (tmp_path / "panda-bnl-2025-01-100-anon.csv").write_text("\n".join([HEADING, *rows]))
    return tmp_path


def test_every_row_has_its_share_and_its_horizon() -> None:
    """Two logs and nine mixes, two shares, three horizons; a row's name is in no other workload."""
    rows = {name: scenario for one in workloads() for name, scenario in one.rows().items()}
    assert len(rows) == 11 * 2 * 3
    assert {(one.reclaimed, one.site.horizon) for one in rows.values()} == {
        (share, horizon) for share in (0.25, 0.05) for horizon in (7200, 21_600, 86_400)
    }
    assert rows["mix-80/8/twentieth/2h"].mix == ((8, 1.0),) and rows["lcg/quarter/1d"].step == 3600


@pytest.mark.daemons  # whole simulations take their time
def test_rows_are_measured_in_parts_and_written(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second run adds its policies to the same row, and a row to the table."""
    results, page = logs / "results.json", logs / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    words = ["--logs", str(logs), "--results", str(results), "--moments", "1", "--replications", "2", "--days", "4"]
    words += ["--policies"]
    assert main([*words, "site-default,youngest-first", "--only", "mix-80/8/twentieth/2h"]) == 0
    assert "**Mixes, site-default to youngest-first**" in capsys.readouterr().out
    assert main([*words, "least-waste", "--only", "mix-80/8/twentieth", "--write", str(page)]) == 0
    rows = json.loads(results.read_text())
    assert set(rows) == {f"mix-80/8/twentieth/{horizon}" for horizon in ("2h", "6h", "1d")}
    assert set(rows["mix-80/8/twentieth/2h"]["policies"]) == {"site-default", "youngest-first", "least-waste"}
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert "| | a twentieth, 2h | a twentieth, 6h | a twentieth, 1d |" in text
    [row] = re.findall(r"(?m)^\| mix-80/8 \| (.*) \|$", text.partition("site-default to youngest-first")[2])
    assert [bool(cell.strip()) for cell in row.split("|")] == [True, False, False], "only one horizon has both policies"
    assert main([*words, "least-waste", "--only", "none", "--write", str(page)]) == 0
    assert page.read_text() == text


def test_a_ratio_is_of_the_same_states() -> None:
    """With an interval over the replications; nothing where one of both was not measured."""
    row = {"wasted": [1.0, 0.5, 1.5], "given": 1.0}
    policies = {
        "least-waste": {**row, "sums": [[2.0, 1.0], [4.0, 5.0]]},
        "site-default": {**row, "sums": [[2.0, 2.0], [4.0, 4.0]]},
        "youngest-first": {**row, "sums": [[4.0, 4.0], [8.0, 8.0]]},
        "site-least-waste": {**row, "sums": [[0.0, 0.0], [0.0, 0.0]]},
        "open-need": row,
    }
    made = tables({"lcg/quarter/2h": {"moments": 1, "replications": 2, "policies": policies}}, workloads())
    assert "| site-default to youngest-first | 0.5±0 |" in made
    assert "| least-waste: predicted to wasted | 1±4.2 |" in made
    assert "to site-least-waste" not in made and "| open-need |" not in made, "of some policies alone there are rows"


def test_a_document_without_marks_is_left_alone() -> None:
    """Nobody's text is overwritten."""
    with pytest.raises(ValueError, match="the document has no"):
        written("text", "made")


def test_a_twentieth_of_each_site_is_a_whole_pilot_or_more() -> None:
    """Else no policy gives anything, and a row says nothing."""
    for one in workloads():
        assert sum(one.site.pilots) * 0.05 >= one.site.pilots[0]
