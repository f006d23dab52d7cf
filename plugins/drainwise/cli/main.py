"""`drainwise`: find the command, run it, and turn a fault into one line and an exit code.

A command's module is imported only when it is asked for: on a worker node `drainwise features` needs the standard
library alone. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 141 the reader of our output went away.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from drainwise import __version__
from drainwise.cli.command_line.commands import COMMANDS
from drainwise.cli.command_line.faults import VARIABLE, in_words, is_of_output
from drainwise.cli.command_line.options import Command, build
from drainwise.cli.command_line.output import give_up_output, open_what_is_closed, say, spell_what_it_lacks
from drainwise.cli.command_line.parser import CommandParser, MainParser
from drainwise.common.neighbours import PACKAGES, load
from drainwise.common.printable import printable
from drainwise.facts.errors import DrainwiseError

_EPILOG = "`drainwise help COMMAND` explains a command. Exit codes: 0 done, 1 failed, 2 wrong usage."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (`sys.argv` by default) and return its exit code.

    Wrong usage, --help and --version leave by SystemExit, as argparse does.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    closed = open_what_is_closed()
    spell_what_it_lacks()
    try:
        try:
            return _run(words)
        finally:
            if not isinstance(sys.exc_info()[1], DrainwiseError):  # which is the better news
                sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        give_up_output()
        return 141
    except Exception as fault:
        if is_of_output(fault):
            give_up_output()
        elif os.environ.get(VARIABLE) and not isinstance(fault, DrainwiseError):
            raise
        text, code = in_words(fault, words, closed)
        say(f"drainwise: {printable(' '.join(text.split()))}")
        return code


def _run(words: Sequence[str]) -> int:
    parser, subparsers = _parser()
    asked = next((word for word in words if not word.startswith("-")), None)
    for name, text in COMMANDS.items():
        if name == asked:
            build(subparsers, name, _command(name))
        else:
            subparsers.add_parser(name, help=text)
    if not words:
        parser.print_help(sys.stderr)
        return 2
    args = parser.parse_args(words)
    if asked not in COMMANDS:
        parser.error("a command is needed")
    return int(args.run(args))


def _command(name: str) -> Command:
    command: Command = load(f"{PACKAGES.get(name, 'drainwise')}.cli.{name}").COMMAND
    return command


def _parser() -> tuple[argparse.ArgumentParser, argparse._SubParsersAction[CommandParser]]:
    parser = MainParser(
        prog="drainwise",
        description="Reclaim cores from pilot jobs with the least wasted work (HTCondor, Slurm).",
        epilog=_EPILOG,
    )
    parser.add_argument("-V", "--version", action="version", version=f"drainwise {__version__}")
    return parser, parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=CommandParser)


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser with all commands and their options, for manual pages and completion."""
    parser, subparsers = _parser()
    for name in COMMANDS:
        build(subparsers, name, _command(name))
    return parser
