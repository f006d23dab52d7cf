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
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "plugins"))

from drainwise.cli import config  # noqa: E402 - from this clone
from drainwise.cli.main import whole_parser  # noqa: E402

_KEYS_BEGIN = "### ["
_COMMANDS = """\
# Commands

Every command and option, from the program itself; `drainwise COMMAND --help` says the same. Where an option names no
value, it is a switch. Exit codes, files and log lines are in the [reference](reference.md#exit-codes).
"""


_DRAWING = """\
![bob's waiting jobs, the batch system, the agent, a node with alice's pilot](images/who-is-who.svg)
"""


def pages() -> dict[Path, str]:
    """Return the text of each page by its path; of the page of keys what stands before them is kept."""
    docs = ROOT / "docs"
    head = (docs / "site-keys.md").read_text().partition(_KEYS_BEGIN)[0]
    return {
        docs / "index.md": _front_page((ROOT / "README.md").read_text()),
        docs / "site-keys.md": head + config.markdown(),
        docs / "site.ini.example": config.example(),
        docs / "commands.md": "\n".join([_COMMANDS, *_sections(whole_parser(), 2)]),
    }


def _front_page(readme: str) -> str:
    """Return README's first screen and its table, with links as they are within docs/."""
    first, _, rest = readme.partition("\n## Two commands\n")
    where = rest.partition("\n## Where to go\n")[2]
    inside = re.sub(r"\]\((?!docs/|https?:)([^)]+)\)", r"](../\1)", where).replace("](docs/", "](")
    return f"{first.replace('](docs/', '](')}\n{_DRAWING}\n## Where to go\n{inside}"


def _sections(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    """Yield the lines of each command below the parser, and of the commands below that."""
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        said = {one.dest: one.help or "" for one in action._choices_actions}
        for name, below in action.choices.items():
            yield f"{'#' * level} {below.prog}\n"
            if text := _plain(below.description or said.get(name, "")):
                yield f"{text[0].upper()}{text[1:].rstrip('.')}.\n"
            yield from _table(below)
            yield from _sections(below, level + 1)


def _table(parser: argparse.ArgumentParser) -> Iterator[str]:
    rows = []
    for action in parser._actions:
        if isinstance(action, (argparse._SubParsersAction, argparse._HelpAction)) or action.help == argparse.SUPPRESS:
            continue
        text = "" if action.help is None else action.help % {**vars(action), "prog": parser.prog}
        rows.append(f"| {_name(action)} | {_plain(text)} |")
    if rows:
        yield "\n".join(["| argument | meaning |", "|---|---|", *rows]) + "\n"


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
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
        print(os.path.relpath(path))
