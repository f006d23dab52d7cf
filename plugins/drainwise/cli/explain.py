"""`drainwise explain JOB`: why did my pilot get an order? Needs the journal alone, and the right to read it."""

from __future__ import annotations

import argparse
import sys

from drainwise.cli.journal_options import add_journal_options, journal_files, say_passed_over
from drainwise.cli.text import json_text
from drainwise.common.printable import printable
from drainwise.facts.units import clock
from drainwise.journal.explain import as_json, explain, in_words
from drainwise.journal.read import PassedOver, first_time


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "why a pilot got an order, each time, and what became of it"
    parser = subparsers.add_parser("explain", help=text, description=text)
    parser.add_argument("job", metavar="JOB", help="job id, slot name, or the run as the journal names it")
    parser.add_argument("--json", action="store_true", help="print JSON: times in UNIX s, wastes in core-seconds")
    add_journal_options(parser)


def run(args: argparse.Namespace) -> int:
    """Explain every run that is called so; 1 when the journal knows none. Raises UsageError for the journal."""
    files = journal_files(args)
    passed_over = PassedOver()
    found = explain(files, args.job, passed_over)
    say_passed_over(passed_over)
    if args.json:
        print(json_text(as_json(found)))
    else:
        print(
            "\n\n".join("\n".join(printable(line) for line in in_words(one)) for one in found), end="\n" * bool(found)
        )
    if found:
        return 0
    begin = first_time(files)
    since = f"; it begins {clock(begin)}" if begin else ""
    print(f"drainwise: the journal knows no pilot that is called {printable(args.job)}{since}", file=sys.stderr)
    return 1
