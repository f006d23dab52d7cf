"""What is written of a study says the same in every form, and is whole: JSON, CSV, words, page and plots."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from drainwise_simulate.intervals import Interval
from drainwise_simulate.page import page, plots_of
from drainwise_simulate.policies.meanings import MEANINGS
from drainwise_simulate.policies.named import POLICIES as ALL_POLICIES
from drainwise_simulate.results import HEADINGS as COLUMNS
from drainwise_simulate.results import as_csv, as_json
from drainwise_simulate.study import Study
from drainwise_simulate.text import HEADINGS, cells, notes, scenario_in_words, times, when

from .small import EXCERPT, POLICIES, swept

# Whole simulations take their time.
pytestmark = [pytest.mark.daemons, pytest.mark.in_turn("simulator", "results")]


@pytest.fixture(scope="module")
def found() -> Study:
    return swept()


def test_json_has_every_figure(found: Study) -> None:
    """Plain values only; each policy's waste is killed plus drained."""
    text = json.dumps(as_json(found), allow_nan=False)
    read = json.loads(text)
    [part] = read["results"]
    assert {one["policy"] for one in part["policies"]} == set(POLICIES) and part["jobs"] == 1500
    for one in part["policies"]:
        assert one["core_hours_per_core"]["value"] == pytest.approx(one["killed"]["value"] + one["drained"]["value"])
        assert one["core_hours_per_core"]["low"] <= one["core_hours_per_core"]["high"]
        assert one["bursts"] == 6 and one["replications"] == 2
    assert read["scenario"]["cores"] == 64 and read["scenario"]["mix"] == {"8": 1.0} and read["scenario"]["seed"] == 1
    assert set(read["sweeps"]) == {"error", "estimates", "liars", "horizon"}


def test_csv_has_every_decision(found: Study) -> None:
    """Its rows add up to the figures of the table."""
    rows = list(csv.DictReader(io.StringIO(as_csv(found))))
    assert list(rows[0]) == list(COLUMNS)
    cases = 1 + sum(len(sweep.points) for sweep in found.sweeps)
    assert len(rows) == cases * 6 * len(POLICIES)
    for line in found.parts[0].lines:
        own = [row for row in rows if row["policy"] == line.policy and not row["varied"]]
        waste = sum(float(row["killed_core_s"]) + float(row["drained_core_s"]) for row in own)
        given = sum(int(row["cores_given"]) for row in own)
        assert waste / 3600 / given == pytest.approx(line.core_hours_per_core.value, rel=1e-3, abs=1e-4)


def test_words() -> None:
    """Figures as people read them."""
    assert [times(one) for one in (None, Interval(1.0), Interval(0.5, 0.4, 0.6), Interval(123.4))] == [
        "-",
        "1.00",
        "0.500 ± 0.1",
        "123",
    ]
    assert (when(float("inf")), when(5400)) == ("never", "1h30m")


def test_what_was_simulated_is_said(found: Study) -> None:
    """With the faults that were asked for, and what was left out of the log."""
    assert scenario_in_words(found) == (
        "8 pilots on 64 cores (100 % in 8-core pilots); 25 % of the pilots' cores are wanted back at each of 6 moments "
        "in 2 replications, within 2h; payloads are expected to run as long as their like did; seed 1"
    )
    odd = replace(found, scenario=replace(found.scenario, liars=0.1, stuck=0.2, error=0.5, mix=((8, 0.5), (16, 0.5))))
    said = scenario_in_words(odd)
    assert "50 % in 8-core pilots, 50 % in 16-core pilots" in said
    assert "off by a log-normal factor of sigma 0.5, 20 % of the pilots stuck, 10 % of the pilots liars" in said
    assert notes(replace(found, unfit=type(found.unfit)({"x": 3}), notes=("y",))) == ["3 of the log's jobs: x", "y"]


def test_the_page_needs_nothing_else(found: Study) -> None:
    """No script, nothing fetched, every plot in it, and names from files are text."""
    named = replace(found.trace, name="/a/<b>.swf", header=("; Computer: <script>alert(1)</script>\x1b",))
    text = page(replace(found, trace=named), "drainwise simulate '<b>.swf'", 1_795_249_000)
    assert "<script" not in text and "&lt;script&gt;" in text and "\x1b" not in text and "/a/" not in text
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#)""", re.sub(r'xmlns[^=]*="[^"]*"', "", text)), (
        "nothing is fetched"
    )
    assert "url(http" not in text and "@import" not in text
    assert text.count("<svg") == len(plots_of(found)) == 6
    for line in found.parts[0].lines:
        assert all(
            re.search(rf"<t[dh][^>]*>{re.escape(cell)}( \(the default\))?</t[dh]>", text) for cell in cells(line)
        )
    assert all(re.search(rf"<th [^>]*>{heading}</th>", text) for heading in HEADINGS)


def test_plots_are_drawings_and_the_same_each_time(found: Study) -> None:
    """Sound XML with every policy's name as text."""
    drawn = dict(plots_of(found))
    for text in drawn.values():
        ElementTree.fromstring(text)
    for title in ("Waste by policy", "Waste against the share of liars"):
        assert all(f">{policy}<" in drawn[title] for policy in POLICIES)
    without = plots_of(replace(found, sweeps=()))
    assert [title for title, _ in without] == ["Waste by policy", "Time until the cores were free", "Promise and truth"]
    assert all(drawn[title] == text for title, text in without)


def test_every_policy_is_explained() -> None:
    """In the help, in the order in which they are run, and in docs/simulate.md."""
    assert tuple(MEANINGS) == ALL_POLICIES
    document = (EXCERPT.parents[1] / "docs" / "simulate.md").read_text()
    section = document.partition("## Policies")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE) == list(MEANINGS)
