"""The tables of `drainwise estimate`: one row per figure of a task, with the number of jobs it comes from."""

from __future__ import annotations

from collections.abc import Sequence

from drainwise.cli.layout import BOLD, RED, YELLOW, Heading, Paper, headings_of, table
from drainwise.common.printable import printable
from drainwise.estimate.exhausted import is_exhausted
from drainwise.estimate.learning import FIRST_JOBS, SCOUTS, Stage, Task
from drainwise.estimate.scouts import Figure, figure_called
from drainwise.estimate.spread import Spread
from drainwise.estimate.survey import P90, Survey
from drainwise.estimate.swf import Compared
from drainwise.facts.units import duration

_NONE = "-"
_FIGURES = (
    *headings_of("task~", "figure", ">before"),
    Heading(SCOUTS, number=True, spare=1),
    *headings_of(f">{FIRST_JOBS}", "unit~"),
    Heading("note", cuttable=True, spare=2),
)
_TIMES = headings_of(
    *("task~", ">jobs", ">failed", ">expected", ">request off by", ">estimate off by", ">jobs compared")
)


def survey_lines(survey: Survey, paper: Paper) -> list[str]:
    """Write figures before and after, then run times, then what must not go on."""
    tasks = [survey.tasks[name] for name in sorted(survey.tasks)]
    rows = [row for task in tasks for row in _figure_rows(task)]
    lines: list[str] = []
    if rows:
        lines += [paper.styled("Needs, and from how many jobs", BOLD), *table(_FIGURES, rows, paper)[0], ""]
    lines += [paper.styled("Run times: factors of which half and nine in ten jobs were off by less", BOLD)]
    lines += table(_TIMES, [_time_row(task) for task in tasks], paper)[0]
    for task in tasks:
        lines += _notes(task, paper)
    return lines


def compared_lines(compared: Sequence[Compared], paper: Paper) -> list[str]:
    """Write how far requests and estimates were off, at the start of jobs and later."""
    headings = headings_of("asked when a job", ">jobs", ">request, median", ">p90", ">estimate, median", ">p90")
    rows = [
        (
            "starts" if not one.after else f"has run for {duration(round(one.after))}",
            str(one.asked.jobs),
            *(_factor(spread.ratio(share)) for spread in (one.asked, one.estimated) for share in (0.5, P90)),
        )
        for one in compared
    ]
    return table(headings, rows, paper)[0]


def _figure_rows(task: Task) -> list[tuple[str, ...]]:
    stages = {stage.name: stage for stage in task.stages}
    if not task.stages:
        return []
    rows = []
    for last in task.stages[-1].figures:
        cells = [_cell(stages.get(name), last) for name in (SCOUTS, FIRST_JOBS)]
        before = _NONE if last.before is None else _number(last.before)
        rows.append((task.name, last.name, before, *cells, last.unit, last.note))
    return rows


def _cell(stage: Stage | None, last: Figure) -> str:
    figure = None if stage is None else figure_called(last.name, stage.figures)
    if figure is None:
        return _NONE
    unit = "" if figure.unit == last.unit else f" {figure.unit}"
    return f"{_number(figure.value)}{unit} ({figure.jobs})"


def _time_row(task: Task) -> tuple[str, ...]:
    middle = task.run_times.expected(task.kind)
    return (
        task.name,
        str(task.ended),
        str(task.failed),
        _NONE if middle is None else duration(round(middle)),
        _off(task.asked),
        _off(task.estimated),
        str(task.estimated.jobs),
    )


def _off(spread: Spread) -> str:
    return f"{_factor(spread.ratio(0.5))} / {_factor(spread.ratio(P90))}" if spread.jobs else _NONE


def _factor(ratio: float | None) -> str:
    return _NONE if ratio is None else f"{ratio:.3g}×" if ratio < 1000 else f"{ratio:.0f}×"


def _number(value: float) -> str:
    return f"{value:.4g}" if value < 10_000 else f"{value:.0f}"


def _notes(task: Task, paper: Paper) -> list[str]:
    lines = []
    if task.missing:
        lines.append(printable(f"{task.name}: no estimate yet, {task.missing} finished jobs are missing"))
    found = task.verdicts()
    state, style = ("exhausted", RED) if is_exhausted(found) else ("to be changed", YELLOW)
    for verdict in found:
        remove = f"; remove {', '.join(verdict.remove)}" if verdict.remove else ""
        lines.append(paper.styled(printable(f"{task.name}: {state}: {verdict.rule}: {verdict.figures}{remove}"), style))
    return lines
