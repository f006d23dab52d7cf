"""The parser of the command line: help by groups, proposals for what was misspelt, output that is never lost unseen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from drainwise.cli.command_line.commands import GROUPS
from drainwise.cli.command_line.output import say
from drainwise.common.printable import printable

_LONGEST_SHOWN = 80


class CommandParser(argparse.ArgumentParser):
    """argparse's parser with messages that propose the nearest word, for a command and for its sub-commands."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse as argparse does; whatever this command does not know is refused here, with its own usage."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(self._unknown(unknown[0]))
        return found, []

    def error(self, message: str) -> NoReturn:
        """End with 2 and the one line that matters; `--help` has the usage."""
        self.exit(2, f"{self.prog}: error: {message}\n")

    def _unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"unexpected argument {shown(word)}"
        known = [option for action in self._actions for option in action.option_strings]
        return f"unknown option {shown(word)}{near(word.partition('=')[0], known)}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a word that is none of the choices; argparse's own message repeats all of them in quotes."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(one) for one in action.choices]
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse has no public name for it
            found = near(value, choices) or f"; there are {', '.join(choices)}"
            self.error(f"{self.prog} has no command {shown(value)}{found}")
        raise argparse.ArgumentError(
            action, f"{shown(value)}: expected one of {', '.join(choices)}{near(str(value), choices)}"
        )

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write; what cannot be written to standard output is an error, which argparse would keep to itself."""
        if file is sys.stdout:
            file.write(message)
            return
        say(message, end="")


class MainParser(CommandParser):
    """The parser of `drainwise` itself: its help shows the commands by group."""

    def format_help(self) -> str:
        """Return the help: usage, groups of commands, options."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        rows = {row.dest: row for row in self._rows()}
        for title, commands in GROUPS.items():
            formatter.start_section(title)
            formatter.add_arguments(rows[name] for name in commands)
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments(action for action in self._actions if action.option_strings)
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def _rows(self) -> Iterator[argparse.Action]:
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                yield from action._get_subactions()  # noqa: SLF001


def near(word: str, known: Iterable[str]) -> str:
    """Return a proposal for a misspelt word, to be put behind a message; "" where nothing is near."""
    import difflib  # only then

    found = difflib.get_close_matches(word[:_LONGEST_SHOWN], list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def shown(word: object) -> str:
    """Return a word of the command line for a message: its beginning, printable, in quotes."""
    return repr(printable(str(word))[:_LONGEST_SHOWN])
