"""`drainwise explain JOB` or `--vo VO`: why did pilots get orders? By the journal, or the agent's view for a user."""

from __future__ import annotations

import argparse
import sys

from drainwise.cli.arguments import at_most, name_filters, wanted_of
from drainwise.cli.command_line.options import Command, option
from drainwise.cli.journal_options import (
    IDENTITY,
    JOURNAL,
    readable_files,
    require_known,
    say_passed_over,
    wanted_identity,
)
from drainwise.cli.screen.layout import Paper, folded, standard_output
from drainwise.cli.text import document, json_text
from drainwise.common.printable import printable
from drainwise.facts.errors import UsageError
from drainwise.facts.units import clock
from drainwise.journal.event import Event, text
from drainwise.journal.explain import Sought, as_json, explain, in_words
from drainwise.journal.read import PassedOver, first_time, unusable_lines

_NAMING = "--user, --account, --node, --vo, --ce-job"


def run(args: argparse.Namespace) -> int:
    """Explain every run that is sought; 1 when the journal knows none.

    Raises UsageError for the journal, when nothing is named, and for a name that the journal does not know.
    """
    wanted = wanted_of(args)

    def also(event: Event) -> bool:
        return wanted.fits_place(text(event, "account"), text(event, "user"), (text(event, "node"),))

    sought = Sought(args.job, wanted_identity(args), also if wanted.is_some else None)
    if sought == Sought():
        raise UsageError(f"which pilot? name its job, or which ones: {_NAMING}")
    files, is_view = readable_files(args)
    if is_view:
        print("drainwise: the journal may not be read; what is said is from the views of single users", file=sys.stderr)
    passed_over = PassedOver()
    found = explain(files, sought, passed_over)
    if not found:
        require_known(files, wanted)
        passed_over = max(passed_over, unusable_lines(files), key=lambda one: one.lines)  # any may be about it
    say_passed_over(passed_over)
    further, found = len(found), found[-(wanted.limit or len(found)) :]
    further -= len(found)
    if args.json:
        print(json_text([document("explain", one) for one in as_json(found)]))
    elif found:
        paper = standard_output()
        print("\n\n".join("\n".join(_folded(line, paper) for line in in_words(one)) for one in found))
    if further:
        print(f"drainwise: {further} earlier ones; a higher --limit shows them", file=sys.stderr)
    if found:
        return 0
    begin = first_time(files)
    since = f"; it begins {clock(begin)}" if begin else ""
    known = [] if args.job is None else [f"that is called {printable(args.job)}"]
    if sent := sought.identity.in_words():
        known.append(f"of {sent}")
    print(f"drainwise: the journal knows no pilot {' and '.join(known)}{since}", file=sys.stderr)
    return 1


def _folded(line: str, paper: Paper) -> str:
    """Return a line as one or more that fit the paper, the further ones below its first word."""
    text = line.lstrip(" ")
    return "\n".join(folded(text, paper, line[: len(line) - len(text)]))


COMMAND = Command(
    "why a pilot got an order, each time, and what became of it",
    (
        option("job JOB", "job id, slot name, or the run as the journal names it", nargs="?"),
        *name_filters(),
        at_most("runs, the last that the journal names"),
        *IDENTITY,
        option("--json", "print JSON: times in UNIX s, wastes in core-seconds"),
        *JOURNAL,
    ),
    run,
)
