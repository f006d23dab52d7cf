#!/usr/bin/env python3
"""Write the pages of docs/ that the code itself states; a test holds that they are current.

docs/site-keys.md and docs/site.ini.example have the keys of the site file, docs/commands.md the commands and options,
docs/index.md, the front page of the site, the first paragraphs of README.md, the drawing of the concepts and its table.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "plugins"))

from drainwise.cli import config  # noqa: E402 - from this clone
from drainwise.cli.command_line.commands import GROUPS  # noqa: E402
from drainwise.cli.main import whole_parser  # noqa: E402

_KEYS_BEGIN = "### ["
_COMMANDS = """\
# Commands and exit codes

Written from the program; `drainwise COMMAND --help` says the same. An option without a value is a switch. Results go to
standard output, all else to standard error; a fault is one line that begins with `drainwise: `. With
`DRAINWISE_TRACEBACK=1` an unforeseen one is shown with its place in the code. [JSON](json.md) has a page of its own.

## Exit codes

| code | meaning |
|---|---|
| 0 | done; nothing is wrong |
| 1 | failed, or found: an order failed, no answer, a finding, a file would change, a pilot is unknown |
| 2 | wrong usage: an option, a value or a file is wrong; nothing was done |
| 130 | interrupted |
| 141 | the reader of the output has gone, as behind `head` |

`pilot run` ends with 0 when it left in order, whatever its payloads ended with. `launch` ends with 1 when a job has
failed.

## Times

A duration is seconds (`5400`), or has units (`90s`, `90m`, `2h`, `7d`, `1h30m`, `1d12h`). A time is UNIX seconds, a
date (`2026-11-21T18:00`, with `+01:00` where wanted), or `+2h`. In the site file a duration always has its unit.

## Groups
"""
_DRAWING = """\
![bob's waiting jobs, the batch system, the reclaim agent, a node with alice's pilot](images/who-is-who.svg)
"""


_OF_THE_TABLE = {_text for names in GROUPS.values() for _text in names.values()}
"""What the table of the groups says of a command already."""


def pages() -> dict[Path, str]:
    """Return the text of each page by its path; of the page of keys what stands before them is kept."""
    docs = ROOT / "docs"
    head = (docs / "site-keys.md").read_text().partition(_KEYS_BEGIN)[0]
    return {
        docs / "index.md": _front_page((ROOT / "README.md").read_text()),
        docs / "site-keys.md": head + config.markdown(),
        docs / "site.ini.example": config.example(),
        docs / "commands.md": "\n".join([_COMMANDS, *_commands()]),
    }


def _front_page(readme: str) -> str:
    """Return README's first screen and its table, with links as they are within docs/."""
    first, _, rest = readme.partition("\n## Two commands\n")
    where = rest.partition("\n## Where to go\n")[2]
    inside = re.sub(r"\]\((?!docs/|https?:)([^)]+)\)", r"](../\1)", where).replace("](docs/", "](")
    return f"{first.replace('](docs/', '](')}\n{_DRAWING}\n## Where to go\n{inside}"


def _commands() -> Iterator[str]:
    """Yield the commands by group, the options that several have, and each command with its own."""
    yield "| group | command | what it does |\n|---|---|---|"
    yield from (f"| {group} | `{name}` | {text} |" for group, names in GROUPS.items() for name, text in names.items())
    parser = whole_parser()
    times = Counter(row for one in _parsers(parser) for row in _rows(one))
    shared = {row: times[row] for row in times if times[row] > 1}
    yield "\n## Options of several commands\n\n| | |\n|---|---|"
    yield from (_line(row) for row in sorted(shared))
    yield ""
    for one in _parsers(parser):
        text = _plain(one.description or said_of(parser, one.prog))
        rows = _rows(one)
        own = [row for row in rows if row not in shared]
        also = [name.partition("`,")[0].split()[0].strip("`") for name, _ in rows if (name, _) in shared]
        options = "Also " + ", ".join(f"`{name}`" for name in also) + "." if also else ""
        if one.prog.count(" ") > 1 and not own:
            yield f"**{one.prog}**: {text.rstrip('.')}. {options}\n"
            continue
        yield f"## {one.prog}\n" if one.prog.count(" ") == 1 else f"### {one.prog}\n"
        if text and text.rstrip(".") not in _OF_THE_TABLE:
            yield f"{text[0].upper()}{text[1:].rstrip('.')}.\n"
        if own:
            yield "\n".join(["| | |", "|---|---|", *_lines(own)]) + "\n"
        if options:
            yield f"{options}\n"


def said_of(parser: argparse.ArgumentParser, prog: str) -> str:
    """Return what the list of commands above a command says of it."""
    *above, name = prog.split()
    for one in [parser, *_parsers(parser)]:
        if one.prog.split() == above:
            for action in one._actions:
                if isinstance(action, argparse._SubParsersAction):
                    return {each.dest: each.help or "" for each in action._choices_actions}.get(name, "")
    return ""


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield each command below the parser, and the commands below that."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield below
                yield from _parsers(below)


def _rows(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    """Return each argument of a command and its meaning."""
    return [
        (_name(action), _plain("" if action.help is None else action.help % {**vars(action), "prog": parser.prog}))
        for action in parser._actions
        if not isinstance(action, (argparse._SubParsersAction, argparse._HelpAction))
        and action.help != argparse.SUPPRESS
    ]


def _lines(rows: list[tuple[str, str]]) -> Iterator[str]:
    """Yield a line for each argument, and one for those that are feature keys."""
    keys = [name for name, _ in rows if name.endswith(" V`")]
    yield from (_line(row) for row in rows if row[0] not in keys)
    if keys:
        yield _line((", ".join(name.replace(" V`", "`") for name in keys), "the value of the key of that name"))


def _line(row: tuple[str, str]) -> str:
    return f"| {row[0]} | {row[1]} |"


def _name(action: argparse.Action) -> str:
    value = (
        "" if action.nargs == 0 else action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper()
    )
    shown = " ".join(value) if isinstance(value, tuple) else value
    if not action.option_strings:
        return f"`{shown}`".replace("|", "\\|")
    return ", ".join(f"`{f'{option} {shown}'.strip()}`" for option in action.option_strings).replace("|", "\\|")


def _plain(text: str) -> str:
    """Return the text on one line, as a cell of a table may have it."""
    return _TIMES.sub("", " ".join(text.split())).replace("|", "\\|").replace("<", "\\<")


_TIMES = re.compile(
    r":? ?UNIX seconds, a date such as [^ ]+ or [^ ]+, or \+2h, \+30m, \+1h30m"
    r"|seconds, or such as \w+: |,? seconds or such as \w+|: seconds, or such as \w+|, such as (?:2h|10m)"
)
"""What the page says once of all durations and times."""


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
        print(os.path.relpath(path))
