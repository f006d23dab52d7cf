"""`drainwise estimate`: run-time estimates by finished payloads, before and after; how far requests are off."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence

from drainwise.cli.command_line.options import MUST, Command, option
from drainwise.cli.screen.layout import BOLD, RED, YELLOW, Heading, Paper, headings_of, standard_output, table
from drainwise.cli.text import show, write_whole
from drainwise.common.printable import printable
from drainwise.common.typed_table import from_json, read_text
from drainwise.facts.errors import ConfigurationError, DrainwiseError, UsageError
from drainwise.facts.units import duration
from drainwise_tasks.estimate.exhausted import TaskVerdict, is_exhausted
from drainwise_tasks.estimate.learning import FIRST_JOBS, SCOUTS, Stage, Task
from drainwise_tasks.estimate.parameters import parameters_from
from drainwise_tasks.estimate.records.formats import READERS, read_as
from drainwise_tasks.estimate.records.record import lines_in, opened, skipped_words
from drainwise_tasks.estimate.scouts import figure_called
from drainwise_tasks.estimate.settings import Settings, settings_from
from drainwise_tasks.estimate.spread import Spread
from drainwise_tasks.estimate.survey import P90, Survey
from drainwise_tasks.estimate.swf import Compared

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
        (
            task.name,
            one.name,
            _NONE if one.before is None else _number(one.before),
            *_cells(stages, one.name, one.unit),
            one.unit,
            one.note,
        )
        for one in last.figures
    ]
    return rows + [
        (task.name, one.name, _NONE, *_cells(stages, one.name, ""), _NONE, f"missing, {one.why}")
        for one in last.missing
    ]


def _cells(stages: Mapping[str, Stage], name: str, unit: str) -> list[str]:
    """Write a figure as it was at both moments; its unit where it is not that of the row."""
    found = [figure_called(name, stages[stage].figures) if stage in stages else None for stage in (SCOUTS, FIRST_JOBS)]
    return [
        _NONE if one is None else f"{_number(one.value)}{'' if one.unit == unit else f' {one.unit}'} ({one.jobs})"
        for one in found
    ]


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


_AUTO = "auto"
_LARGEST = 64_000_000  # bytes of a JSON file
_NAMES_SHOWN = 20


def run(args: argparse.Namespace) -> int:
    """Estimate and print; the exit code.

    Raises UsageError for wrong files, ConfigurationError, which names file, key and value, for wrong settings and
    parameters, DrainwiseError when no record is sound.
    """
    if args.swf is not None:
        return _compare(args.swf, args.json)
    if args.profile == "panda":
        raise UsageError("--profile panda: those figures are made by scripts/panda_figures.py of the source now")
    settings = Settings()
    if args.settings:
        settings, unused = settings_from(_object(args.settings), args.settings, args.activity)
        _tell_unused(args.settings, dict.fromkeys(unused, 1))
    parameters, seen = {}, Counter[str]()
    for task, found in _object(args.tasks).items() if args.tasks else ():
        parameters[task], unused = parameters_from(found, args.tasks, task)
        seen.update(unused)
    _tell_unused(args.tasks, seen)
    skips: Counter[str] = Counter()
    survey = Survey(settings, parameters, skips)
    with opened(args.records) as stream:
        survey.add_all(read_as(args.format, lines_in(stream, skips), skips))
    if not survey.tasks:
        raise DrainwiseError(f"{args.records}: no finished payload in it{skipped_words(skips)}")
    if args.task is not None:
        if args.task not in survey.tasks:
            raise UsageError(f"--task {args.task!r}: no job of that task in {args.records}")
        survey.tasks = {args.task: survey.tasks[args.task]}
        survey.points = [point for point in survey.points if point[0] == args.task]
    if args.plot is not None:
        _plot(args.plot, survey)
    from drainwise_tasks.estimate.survey import as_json

    show(args.json, "estimate", lambda: as_json(survey), lambda: survey_lines(survey, standard_output()))
    if skips and not args.json:
        print(printable(f"drainwise{skipped_words(skips)}"), file=sys.stderr)
    return 0


def _tell_unused(file: str, names: Mapping[str, int]) -> None:
    """Say on standard error which names of a file no figure and no rule knows."""
    if names:
        shown = [name[:80] for name in sorted(names)[:_NAMES_SHOWN]]
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        print(printable(f"drainwise: {file}: not used: {', '.join(shown)}{more}"), file=sys.stderr)


def _compare(path: str, as_json: bool) -> int:
    from drainwise_tasks.estimate.survey import spread_json
    from drainwise_tasks.estimate.swf import compare, read_swf

    skips: Counter[str] = Counter()
    with opened(path) as stream:
        found = compare(read_swf(lines_in(stream, skips), skips))
    if not found[0].asked.jobs:
        raise DrainwiseError(f"{path}: no job with a run time and a requested time in it{skipped_words(skips)}")
    moments = [
        {"after": one.after, "request": spread_json(one.asked), "estimate": spread_json(one.estimated)} for one in found
    ]
    values = {"error_ratio": moments, "skipped": dict(skips)}
    show(as_json, "estimate of a log", lambda: values, lambda: compared_lines(found, standard_output()))
    if skips and not as_json:
        print(printable(f"drainwise{skipped_words(skips)}"), file=sys.stderr)
    return 0


def _plot(path: str, survey: Survey) -> None:
    from drainwise_tasks.estimate.plot import page, scatter

    if not path.endswith((".svg", ".html")):
        raise UsageError(f"--plot {path!r}: expected a name that ends with .svg or .html")
    text = (scatter if path.endswith(".svg") else page)(survey.points)
    write_whole(path, text, "plot")


def _object(path: str) -> dict[str, object]:
    """Read a JSON object. Raises ConfigurationError, which names the file, for anything else."""
    found = from_json(path, read_text(path, _LARGEST, "a file that can be read", "one JSON object"))
    if not isinstance(found, dict):
        raise ConfigurationError(path, "", "", str(found)[:80], "one JSON object")
    return found


COMMAND = Command(
    "what tasks need, learned from their finished payloads: before and after, and from how many jobs",
    (
        option(
            "records RECORDS", "file of finished payloads, gzipped or not; - reads the input", one_of=MUST, nargs="?"
        ),
        option(
            "--swf TRACE", "a log in the Standard Workload Format: how far requests and estimates were off", one_of=MUST
        ),
        option("--format", "of the records (default: recognised)", choices=(_AUTO, *READERS), default=_AUTO),
        option("--tasks FILE", "JSON: task (* for all others) → parameters, JEDI's names"),
        option("--settings FILE", "JSON: SCOUT_… and the like, as in PanDA's gdpconfig"),
        option("--activity A", "whose settings count, such as user or managed", default=""),
        option("--profile", argparse.SUPPRESS, choices=("document", "panda")),
        option("--task T", "show this task only"),
        option("--json", "print JSON: all estimates, verdicts and error ratios"),
        option("--plot FILE", "write expected against real run times there, as .svg or .html"),
    ),
    run,
)
