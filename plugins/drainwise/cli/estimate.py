"""`drainwise estimate`: run-time estimates by finished payloads, before and after; how far requests are off."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping

from drainwise.cli.estimate_tables import compared_lines, survey_lines
from drainwise.cli.screen.layout import standard_output
from drainwise.cli.text import document, json_text, write_whole
from drainwise.common.printable import printable
from drainwise.common.typed_table import from_json, read_text
from drainwise.estimate.parameters import parameters_from
from drainwise.estimate.records.formats import READERS, read_as
from drainwise.estimate.records.record import lines_in, opened
from drainwise.estimate.settings import DOCUMENT, PROFILES, Settings, settings_from
from drainwise.estimate.survey import Survey
from drainwise.facts.errors import ConfigurationError, DrainwiseError, UsageError

_AUTO = "auto"
_LARGEST = 64_000_000  # bytes of a JSON file
_NAMES_SHOWN = 20


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "what tasks need, learned from their finished payloads: before and after, and from how many jobs"
    parser = subparsers.add_parser("estimate", help=text, description=text)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "records", nargs="?", metavar="RECORDS", help="file of finished payloads, gzipped or not; - reads the input"
    )
    source.add_argument(
        "--swf", metavar="TRACE", help="a log in the Standard Workload Format: how far requests and estimates were off"
    )
    formats = (_AUTO, *READERS)
    parser.add_argument("--format", choices=formats, default=_AUTO, help="of the records (default: recognised)")
    parser.add_argument("--tasks", metavar="FILE", help="JSON: task (* for all others) → parameters, JEDI's names")
    parser.add_argument("--settings", metavar="FILE", help="JSON: SCOUT_… and the like, as in PanDA's gdpconfig")
    parser.add_argument("--activity", default="", metavar="A", help="whose settings count, such as user or managed")
    text = "whose figures: JEDI's document's, or those of PanDA as it runs today"
    parser.add_argument("--profile", choices=PROFILES, default=DOCUMENT, help=text)
    parser.add_argument("--task", metavar="T", help="show this task only")
    parser.add_argument("--json", action="store_true", help="print JSON: all estimates, verdicts and error ratios")
    parser.add_argument("--plot", metavar="FILE", help="write expected against real run times there, as .svg or .html")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Estimate and print; the exit code.

    Raises UsageError for wrong files, ConfigurationError, which names file, key and value, for wrong settings and
    parameters, DrainwiseError when no record is sound.
    """
    if args.swf is not None:
        return _compare(args.swf, args.json)
    settings = Settings(profile=args.profile)
    if args.settings:
        settings, unused = settings_from(_object(args.settings), args.settings, args.activity, args.profile)
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
        raise DrainwiseError(f"{args.records}: no finished payload in it{_skipped(skips)}")
    if args.task is not None:
        if args.task not in survey.tasks:
            raise UsageError(f"--task {args.task!r}: no job of that task in {args.records}")
        survey.tasks = {args.task: survey.tasks[args.task]}
        survey.points = [point for point in survey.points if point[0] == args.task]
    if args.plot is not None:
        _plot(args.plot, survey)
    if args.json:
        from drainwise.estimate.survey import as_json

        print(json_text(document("estimate", as_json(survey))))
    else:
        print("\n".join(survey_lines(survey, standard_output())))
        if skips:
            print(printable(f"drainwise:{_skipped(skips)}"), file=sys.stderr)
    return 0


def _tell_unused(file: str, names: Mapping[str, int]) -> None:
    """Say on standard error which names of a file no figure and no rule knows."""
    if names:
        shown = [name[:80] for name in sorted(names)[:_NAMES_SHOWN]]
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        print(printable(f"drainwise: {file}: not used: {', '.join(shown)}{more}"), file=sys.stderr)


def _compare(path: str, as_json: bool) -> int:
    from drainwise.estimate.survey import spread_json
    from drainwise.estimate.swf import compare, read_swf

    skips: Counter[str] = Counter()
    with opened(path) as stream:
        found = compare(read_swf(lines_in(stream, skips), skips))
    if not found[0].asked.jobs:
        raise DrainwiseError(f"{path}: no job with a run time and a requested time in it{_skipped(skips)}")
    if as_json:
        moments = [
            {"after": one.after, "request": spread_json(one.asked), "estimate": spread_json(one.estimated)}
            for one in found
        ]
        print(json_text(document("estimate of a log", {"error_ratio": moments, "skipped": dict(skips)})))
    else:
        print("\n".join(compared_lines(found, standard_output())))
        if skips:
            print(printable(f"drainwise:{_skipped(skips)}"), file=sys.stderr)
    return 0


def _skipped(skips: Mapping[str, int]) -> str:
    """Write which records were left out and why, for a line; "" when none was."""
    total = sum(skips.values())
    return f" {total} skipped: " + ", ".join(f"{count} {reason}" for reason, count in _largest(skips)) if total else ""


def _largest(skips: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    return iter(sorted(skips.items(), key=lambda pair: (-pair[1], pair[0])))


def _plot(path: str, survey: Survey) -> None:
    from drainwise.estimate.plot import page, scatter

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
