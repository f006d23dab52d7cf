"""`drainwise explain JOB` or `--vo VO`: why did pilots get orders? Needs the journal and the right to read it."""

from __future__ import annotations

import argparse
import sys

from drainwise.cli.journal_options import (
    add_identity_options,
    add_journal_options,
    journal_files,
    say_passed_over,
    wanted_identity,
)
from drainwise.cli.text import document, json_text
from drainwise.common.printable import printable
from drainwise.facts.errors import UsageError
from drainwise.facts.units import clock
from drainwise.journal.explain import as_json, explain, in_words
from drainwise.journal.read import PassedOver, first_time
from drainwise.journal.stories import Sought


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "why a pilot got an order, each time, and what became of it"
    parser = subparsers.add_parser("explain", help=text, description=text)
    parser.add_argument("job", metavar="JOB", nargs="?", help="job id, slot name, or the run as the journal names it")
    add_identity_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON: times in UNIX s, wastes in core-seconds")
    add_journal_options(parser)


def run(args: argparse.Namespace) -> int:
    """Explain every run that is sought; 1 when the journal knows none.

    Raises UsageError for the journal, and when nothing is named.
    """
    sought = Sought(args.job, wanted_identity(args))
    if sought == Sought():
        raise UsageError("which pilot? name its job, or who sent it: --vo, --ce-job, --subject, --factory, --entry")
    files = journal_files(args)
    passed_over = PassedOver()
    found = explain(files, sought, passed_over)
    say_passed_over(passed_over)
    if args.json:
        print(json_text([document("explain", one) for one in as_json(found)]))
    else:
        print(
            "\n\n".join("\n".join(printable(line) for line in in_words(one)) for one in found), end="\n" * bool(found)
        )
    if found:
        return 0
    begin = first_time(files)
    since = f"; it begins {clock(begin)}" if begin else ""
    known = [] if args.job is None else [f"that is called {printable(args.job)}"]
    if sent := sought.identity.in_words():
        known.append(f"of {sent}")
    print(f"drainwise: the journal knows no pilot {' and '.join(known)}{since}", file=sys.stderr)
    return 1
