"""The tables as Markdown, from the rows that were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drainwise_simulate.intervals import Interval, ratio
from waste_table.workloads import Workload

Row = Mapping[str, Any]
BEGIN, END = "<!-- scripts/waste_tables: begin -->", "<!-- scripts/waste_tables: end -->"
RATIOS = (
    ("least-waste: predicted to wasted", "least-waste", "least-waste"),
    ("site-default to site-least-waste", "site-default", "site-least-waste"),
    ("site-default to youngest-first", "site-default", "youngest-first"),
)
"""In words, and the two policies."""
CLAIRVOYANTS = ("clairvoyant-waiting", "clairvoyant")
SHOWN = {"clairvoyant", "site-default", "least-waste", "site-least-waste", "least-kill", "youngest-first"}
"""The policies that have a row on the page; the file of results has all."""


def tables(found: Mapping[str, Row], all_workloads: Sequence[Workload]) -> str:
    """Return a table for each log of which there is a row, and for the mixes one of each ratio."""
    there = [one for one in all_workloads if any(name in found for name in one.rows())]
    mixes = [one for one in there if one.name.startswith("mix-")]
    made = [_table(one, found) for one in there if one not in mixes]
    return "\n\n".join(made + [_of_mixes(ratio, mixes, found) for ratio in RATIOS[1:] if mixes])


def _of_mixes(of: tuple[str, str, str], mixes: Sequence[Workload], found: Mapping[str, Row]) -> str:
    """Return a table of one ratio, a mix in each row."""
    words, above, below = of
    columns = [name.partition("/")[2].partition("/")[2] for name in mixes[0].rows() if name in found]
    lines = [f"**Mixes, {words}**:", "", *_heading(columns)]
    for one in mixes:
        rows = [found.get(f"{one.name}/{column}", {"policies": {}})["policies"] for column in columns]
        lines.append(f"| {one.name} | " + " | ".join(_ratio(row, above, below) for row in rows) + " |")
    return "\n".join(lines)


def _heading(columns: Sequence[str]) -> list[str]:
    return ["| | " + " | ".join(map(_title, columns)) + " |", "|---|" + "---:|" * len(columns)]


def _table(workload: Workload, found: Mapping[str, Row]) -> str:
    columns = [name for name in workload.rows() if name in found]
    policies = sorted(
        {policy for name in columns for policy in found[name]["policies"] if policy in SHOWN},
        key=lambda policy: (policy not in CLAIRVOYANTS, _sum(policy, columns, found), policy),
    )
    draws = sorted({(found[name]["moments"], found[name]["replications"]) for name in columns})
    counts = ", ".join(f"{moments} moments in each of {replications} replications" for moments, replications in draws)
    lines = [
        f"**{workload.words}** (`{workload.name}`; {counts}):",
        "",
        *_heading(columns),
    ]
    for policy in policies:
        lines.append(
            f"| {policy} | " + " | ".join(_cell(found[name]["policies"].get(policy)) for name in columns) + " |"
        )
    for words, above, below in RATIOS:
        cells = [_ratio(found[name]["policies"], above, below) for name in columns]
        if any(cells):
            lines.append(f"| {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _sum(policy: str, columns: Sequence[str], found: Mapping[str, Row]) -> float:
    return sum(float(found[name]["policies"].get(policy, {"wasted": [0.0]})["wasted"][0]) for name in columns)


def _title(name: str) -> str:
    share, horizon = name.split("/")[-2:]
    return f"a {share}, {horizon}"


def _cell(line: Row | None) -> str:
    if line is None:
        return ""
    return _close(Interval(*line["wasted"])) if line["given"] else "nothing given"


def _ratio(row: Row, above: str, below: str) -> str:
    """Return a policy's waste as a multiple of another's in the same states; of its own: what it had predicted."""
    first, second = row.get(above), row.get(below)
    if not first or not second or "sums" not in first or "sums" not in second:
        return ""
    if above == below:
        found = ratio([predicted for _, predicted in first["sums"]], [wasted for wasted, _ in first["sums"]])
    else:
        found = ratio([wasted for wasted, _ in first["sums"]], [wasted for wasted, _ in second["sums"]])
    return "" if found is None else _close(found)


def _close(figure: Interval) -> str:
    """Return the figure with its interval as one word, which no cell breaks."""
    return str(figure).replace(" ", "")


def written(text: str, made: str) -> str:
    """Return the document with what is made between its marks. Raises ValueError when they are not there."""
    head, mark, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"the document has no {BEGIN} with {END} after it")
    return f"{head}{BEGIN}\n\n{made}\n\n{END}{tail}"
