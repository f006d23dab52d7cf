"""`drainwise simulate`: a log of real jobs is played, and each way of taking cores back is held against the optimum."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

from drainwise.cli.arguments import number, whole
from drainwise.cli.screen.layout import BOLD, Heading, Paper, standard_output, table
from drainwise.cli.simulate_options import add_demand_options, add_site_options, policies, scenario_of
from drainwise.cli.text import document, json_text, write_whole
from drainwise.common.printable import printable
from drainwise.facts.errors import UsageError
from drainwise.facts.units import duration
from drainwise.simulate.comparison import Watch
from drainwise.simulate.policies.named import ONE_SHOT, POLICIES
from drainwise.simulate.study import DOMINANT, Study, study
from drainwise.simulate.text import HEADINGS, MEANINGS, cells, legend, notes, scenario_in_words, title
from drainwise.simulate.trace import Trace, read_trace

_LEFT_OUT = {"killed": 2, "draining": 2, "predicted": 4, "restarted": 3, "given": 5, "p50": 1}
"""Columns that go where the window is narrow, the largest number first."""
_BAR = 40


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "what each way of taking cores back wastes, on a log of real jobs, held against the best possible"
    names = "\n".join(f"  {name:<18}{meaning}" for name, meaning in MEANINGS.items())
    parser = subparsers.add_parser(
        "simulate",
        help=text,
        description=text,
        epilog=f"policies:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "trace", metavar="TRACE", help="a log in the Standard Workload Format, gzipped or not; -: input"
    )
    add_site_options(parser)
    add_demand_options(parser)
    group = parser.add_argument_group("the comparison")
    group.add_argument(
        "--policies",
        type=policies,
        metavar="P,…",
        help="some of those below (all); the optimum is always there",
    )
    group.add_argument("--replications", type=whole(1, 10_000), default=5, metavar="N", help="runs (%(default)s)")
    group.add_argument("--seed", type=whole(0, 2**31), default=1, metavar="N", help="of what is drawn (%(default)s)")
    group.add_argument(
        "--processes", type=whole(1, 1024), default=_cores(), metavar="N", help="at a time (as many as there are cores)"
    )
    group.add_argument(
        "--dominant",
        type=number(0, 1),
        default=DOMINANT,
        metavar="SHARE",
        help="of the core-hours: all is shown again without a user or a group that has more (%(default)s)",
    )
    group.add_argument(
        "--vary",
        action="store_true",
        help="also vary the error, the estimates, the liars and the horizon; takes longer",
    )
    shown = parser.add_argument_group("what is shown")
    either = shown.add_mutually_exclusive_group()
    either.add_argument("--json", action="store_true", help="print JSON: times in s, core-hours per core given back")
    either.add_argument("--csv", action="store_true", help="print every decision as a row: times in s, core-seconds")
    shown.add_argument("--html", metavar="FILE", help="write one self-contained page with plots there; implies --vary")
    parser.set_defaults(run=run)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(args: argparse.Namespace) -> int:
    """Simulate and print; the exit code. Raises UsageError for the log, and for a page that cannot be written."""
    scenario = scenario_of(args)
    trace = read_trace(args.trace)
    if args.longest is not None:
        trace = _shortened(trace, args.longest)
    if args.html is not None:
        from drainwise.simulate.page import page  # what it needs is missed now, and not after minutes of work

        _writable(args.html)
    with _watched() as watch:
        found = study(
            trace,
            scenario,
            args.policies or (ONE_SHOT if scenario.arrivals else POLICIES),
            args.replications,
            args.processes,
            args.vary or args.html is not None,
            args.dominant,
            watch,
        )
    if args.html is not None:
        write_whole(args.html, page(found, _command(args), int(time.time())), "page")
    if args.json:
        from drainwise.simulate.results import as_json

        print(json_text(document("simulation", as_json(found))))
    elif args.csv:
        from drainwise.simulate.results import as_csv

        sys.stdout.write(as_csv(found))
    elif args.html != "-":
        print("\n".join(_lines(found, standard_output())))
    return 0


def _watched() -> contextlib.AbstractContextManager[Watch | None]:
    return _bar() if sys.stderr.isatty() else contextlib.nullcontext()


@contextlib.contextmanager
def _bar() -> Iterator[Watch]:
    """Draw on standard error how much is done, and wipe it out at the end."""
    begin = time.monotonic()

    def draw(share: float) -> None:
        passed = time.monotonic() - begin
        left = duration(round(passed * (1 - share) / share)) if share else "-"
        done = f"{'#' * round(_BAR * share):<{_BAR}} {share:4.0%} {duration(round(passed))} left: {left}"
        sys.stderr.write(f"\r\x1b[2Ksimulating {done}")
        sys.stderr.flush()

    try:
        draw(0.0)
        yield draw
    finally:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()


def _shortened(trace: Trace, longest: int) -> Trace:
    jobs = tuple(job for job in trace.jobs if job.run <= longest)
    if not jobs:
        raise UsageError(f"--longest {duration(longest)}: no job of {trace.name} ran as short as that")
    left_out = len(trace.jobs) - len(jobs)
    reason = f"ran for longer than {duration(longest)}: left out"
    return replace(trace, jobs=jobs, skipped=trace.skipped + type(trace.skipped)({reason: left_out}))


def _writable(path: str) -> None:
    """Raise UsageError at once where minutes of work could not be written."""
    if path == "-":
        return
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        reason = "it is a directory" if os.path.isdir(path) else f"no permission, or no such directory: {folder}"
        raise UsageError(f"--html {path!r} cannot be written: {reason}")


def _command(args: argparse.Namespace) -> str:
    """Write the command that makes the same page again, without the places of files on this machine."""
    words, names = ["drainwise", *sys.argv[1:]], {args.trace, args.html}
    return shlex.join(os.path.basename(word) if word in names else word for word in words)


def _lines(found: Study, paper: Paper) -> list[str]:
    lines = [f"{scenario_in_words(found)}."]
    headings = [Heading(text, number=bool(place), spare=_LEFT_OUT.get(text, 0)) for place, text in enumerate(HEADINGS)]
    missing: list[str] = []
    for part in found.parts:
        styles = [BOLD if line.policy == "least-waste" else "" for line in part.lines]
        rows, missing = table(headings, [cells(line) for line in part.lines], paper, styles)
        lines += ["", paper.styled(printable(title(part)), BOLD), *rows]
    lines += ["", *legend(found)]
    lines += [printable(note) for note in notes(found)]
    if missing:
        lines.append(f"(left out in this window: {', '.join(missing)})")
    return lines
