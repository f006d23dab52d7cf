"""A command as a table: its help, its options, its sub-commands and what runs it. One builder reads it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Union

MAY, MUST = "one of them may be given", "one of them must be given"
"""Values of `one_of`: options of a table that exclude each other."""


class Option(NamedTuple):
    """One row: names and what stands for the value ("-j --jobs N"; a name alone is a flag), help, words for argparse.

    one_of: MAY or MUST where it excludes the other rows that have it, too.
    """

    words: str
    help: str | None
    one_of: str
    more: Mapping[str, Any]


def option(
    words: str, text: str | None, read: Callable[[str], object] | None = None, one_of: str = "", **more: object
) -> Option:
    """Return a row; text: its help, read: reads the value. "job JOB" is an argument by its place."""
    return Option(words, text, one_of, {**more, **({} if read is None else {"type": read})})


Rows = Iterable[Union[Option, str]]
"""Rows of a table; a text among them is the title of those that follow."""


class Command(NamedTuple):
    """A command, or a sub-command of one.

    * help: what it does, in a line. description: above its own options; "": the same line.
    * run: takes the parsed command line and returns the exit code. actions: its sub-commands by name, or what gives
      them; `dest` and `metavar` are of the word that chooses one: a "|" stands between the names of all of them.
    * epilog: below its options. extend: adds further ones to the parser.
    """

    help: str
    options: Rows = ()
    run: Callable[[argparse.Namespace], int] | None = None
    description: str = ""
    actions: Mapping[str, Command] | Callable[[], Mapping[str, Command]] | None = None
    dest: str = "action"
    metavar: str = "ACTION"
    epilog: str | None = None
    extend: Callable[[argparse.ArgumentParser], object] = lambda _: None


def build(subparsers: argparse._SubParsersAction[Any], name: str, command: Command) -> None:
    """Add a command with its options and sub-commands to the parser; `args.run` runs it, `args.refuse` ends it."""
    shown = command.description or (command.help if command.options else None)
    layout = argparse.RawDescriptionHelpFormatter if command.epilog else argparse.HelpFormatter
    parser = subparsers.add_parser(
        name, help=command.help, description=shown, epilog=command.epilog, formatter_class=layout
    )
    add_options(parser, command.options)
    command.extend(parser)
    actions = command.actions() if callable(command.actions) else command.actions
    if actions:
        metavar = command.metavar.join(actions) if "|" in command.metavar else command.metavar
        place = parser.add_subparsers(dest=command.dest, metavar=metavar, required=True)
        for action, one in actions.items():
            build(place, action, one)
    else:
        parser.set_defaults(run=command.run, refuse=parser.error)


def add_options(parser: argparse.ArgumentParser, rows: Rows) -> None:
    """Add the rows of a table, in their order."""
    place: Any = parser
    choice: Any = None
    for row in rows:
        if isinstance(row, str):
            place = parser.add_argument_group(row)
            continue
        if row.one_of and choice is None:
            choice = place.add_mutually_exclusive_group(required=row.one_of == MUST)
        words, more = row.words.split(), dict(row.more)
        names = [word for word in words if word[0] == "-"] or words[:1]
        if len(words) > len(names):
            more["metavar"] = words[-1]
        elif names[0][0] == "-" and not more.keys() & {"choices", "action"}:
            more["action"] = "store_true"
        (choice if row.one_of else place).add_argument(*names, help=row.help, **more)
