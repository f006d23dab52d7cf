"""The tables of `drainwise estimate`: one row per figure of a task, with the number of jobs it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drainwise.cli.screen.layout import BOLD, RED, YELLOW, Heading, Paper, headings_of, table
from drainwise.common.printable import printable
from drainwise.estimate.exhausted import TaskVerdict, is_exhausted
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
    last = task.stages[-1]
    rows = [
        (task.name, one.name, _before(one), *_cells(stages, one.name, one.unit), one.unit, one.note)
        for one in last.figures
    ]
    return rows + [
        (task.name, one.name, _NONE, *_cells(stages, one.name, ""), _NONE, f"missing, {one.why}")
        for one in last.missing
    ]


def _before(figure: Figure) -> str:
    return _NONE if figure.before is None else _number(figure.before)


def _cells(stages: Mapping[str, Stage], name: str, unit: str) -> list[str]:
    """Write a figure as it was at both moments; its unit where it is not that of the row."""
    found = [figure_called(name, stages[stage].figures) if stage in stages else None for stage in (SCOUTS, FIRST_JOBS)]
    return [_NONE if one is None else f"{_number(one.value)}{_other(one.unit, unit)} ({one.jobs})" for one in found]


def _other(unit: str, usual: str) -> str:
    return "" if unit == usual else f" {unit}"


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
    for verdict in found:
        state, style = _state(verdict)
        remove = f"; remove {', '.join(verdict.remove)}" if verdict.remove else ""
        excuse = f"; excused: {verdict.excuse}" if verdict.excuse else ""
        words = f"{task.name}: {state}: {verdict.rule}: {verdict.figures}{remove}{excuse}"
        lines.append(paper.styled(printable(words), style))
    return lines


def _state(verdict: TaskVerdict) -> tuple[str, str]:
    if is_exhausted([verdict]):
        return "exhausted", RED
    return ("to be changed" if verdict.remove else "goes on"), YELLOW
