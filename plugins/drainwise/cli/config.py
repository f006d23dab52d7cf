"""`drainwise config SYSTEM | check | keys | example`: files of each machine from the site file, its faults and keys."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from drainwise.cli.command_line.options import Command, option
from drainwise.cli.site_file import SITE, SITE_FILE
from drainwise.cli.text import document
from drainwise.common.printable import printable
from drainwise.facts.errors import UsageError
from drainwise.local.system import VARIABLE, default_directory
from drainwise.siteconfig import DEFAULT_SITE_FILE, load
from drainwise.siteconfig.kinds import Key, keys_of
from drainwise.siteconfig.load import SiteReading, effective_values, examine
from drainwise.siteconfig.node_sections import CONDITIONS, KIND, KindSection
from drainwise.siteconfig.schema import SCOPE, SECTIONS, ScopeSection, SiteConfig
from drainwise.systems.find import named, offering, tried
from drainwise.systems.system import System

if TYPE_CHECKING:
    from drainwise.install.rendered_tree import RenderedFile


def _rendered(args: argparse.Namespace) -> int:
    """Print the files of a machine, or write them, or show what would change; the exit code."""
    if args.diff and args.out is None:
        raise UsageError("--diff: give --out DIR, the tree to compare with (/ is this machine)")
    system = named(args.action, System.render, "config")
    files = system.render(load(args.site), args)
    return _differences(files, args.out) if args.diff else _files(files, args.out)


def _differences(files: Sequence[RenderedFile], out: str) -> int:
    """Show what writing them would change; 1 where it would change something."""
    from drainwise.install.edited_files import changes

    lines = list(changes(files, out))
    print("\n".join(map(printable, lines)) or f"{out} is as it would be written: nothing would change")
    return 1 if lines else 0


def _files(files: Sequence[RenderedFile], out: str | None) -> int:
    """Print the files, or write them; 1 when one went beside what a person has edited."""
    from drainwise.install.edited_files import said_of, sparing_edited
    from drainwise.install.rendered_tree import write_tree

    if out is None:
        for file in files:
            print(f"##### {file.path} (mode {file.mode:04o})")
            print(file.text, end="")
        return 0
    written, kept = sparing_edited(files, out)
    changed = write_tree(written, out)
    for file in written:
        done = "wrote" if file.path in changed else "unchanged"
        print(f"{done} {os.path.join(out, file.path.lstrip('/'))}")
    for line in said_of(kept, out):
        print(line, file=sys.stderr)
    return 1 if kept else 0


_HEAD = """\
# The site file of drainwise. Every key may be left out. A line shows the default, or an example where there is none
# and a key left out means unknown or not wanted. Durations have units (90s, 30m, 1h30m, 7d) and so have sizes (20GB is
# 1000-based, 16GiB 1024-based). A comment begins with # or ;.
"""


def _tables() -> dict[str, type[Any]]:
    """Return all sections, those of batch systems of installed packages too."""
    others = {one.name: one.site_keys for one in offering(System.open_pool) if one.site_keys is not None}
    return {**SECTIONS, **others}


def markdown() -> str:
    """Write one table per section: key, what it takes, default, meaning; of sections with a name what others lack."""
    lines: list[str] = []
    first: dict[str, str] = {}
    for section, table in _tables().items():
        again: dict[str, list[str]] = {}
        for key in keys_of(section, table):
            again.setdefault(first.setdefault(_row(key), section), []).append(f"`{key.name}`")
        said = [f"As in [{one}]: {', '.join(names)}.\n" for one, names in again.items() if one != section]
        own = [row for row in map(_row, keys_of(section, table)) if first[row] == section]
        lines += [f"### [{section}]", "", *said, *_HEADING, *own, ""]
    for section, table, of in ((KIND, KindSection, "features"), (SCOPE, ScopeSection, "reclaim")):
        known = {key.name for key in keys_of(of, SECTIONS[of])}
        own = [_row(key) for key in keys_of(section, table) if key.name not in known]
        also = ", ".join(f"`{key.name}`" for key in keys_of(section, table) if key.name in known)
        lines += [f"### [{section}NAME]", "", f"{table.__doc__} As in [{of}]: {also}.", "", *_HEADING, *own, ""]
    return "\n".join(lines)


_HEADING = ("| key | value | default | meaning |", "|---|---|---|---|")


def _row(key: Key) -> str:
    """Return the line of a key; where the kind or its limits say all, one of them."""
    kind, limits = key.kind.name, key.kind.limits
    value = {"choice": limits, "conditions": kind, "path": kind, "rule": kind, "patterns": kind}.get(
        kind, f"{kind}, {limits}"
    )
    return f"| `{key.name}` | {value} | {f'`{key.default}`' if key.default else '–'} | {key.meaning} |"


def _example_of(section: str, table: type[KindSection | ScopeSection], conditions: Collection[str]) -> list[str]:
    """Return a section with a name as comments, its heading too: an empty one would be none."""
    text = f"{table.__doc__} Any number of such sections."
    lines = ["", *textwrap.wrap(text, 118, initial_indent="# ", subsequent_indent="# "), f"#  [{section}]"]
    for key in sorted(keys_of(section, table), key=lambda key: key.name not in conditions):
        meaning = f"  # {key.meaning}" if key.name in conditions else ""
        lines.append(f"#  {key.name} = {key.example or key.default}{meaning}")
    return lines


def example() -> str:
    """Write a site file that sets nothing: every key stands there as a comment, with its default or an example."""
    lines = []
    for section, table in _tables().items():
        lines += ["", f"# {(table.__doc__ or '').strip()}", f"[{section}]"]
        for key in keys_of(section, table):
            default = "" if key.default else "; no default"
            wording = f"{key.meaning} ({key.kind.name}: {key.kind.limits}{default})"
            lines += textwrap.wrap(wording, 118, initial_indent="# ", subsequent_indent="# ")
            lines.append(f"#{key.name} = {key.default or key.example}")
        if section == "features":
            lines += _example_of(f"{KIND}epyc", KindSection, CONDITIONS)
        if section == "reclaim":
            lines += _example_of(f"{SCOPE}scavengers", ScopeSection, ("jobs", "min_age", "multi_node"))
    return _HEAD + "\n".join(lines) + "\n"


_LEFT_OUT = "(left out)"
_ORIGIN_COLUMN = 46


def _checked(args: argparse.Namespace) -> int:
    """Check the file and show what was asked for; 1 when there are faults.

    Raises ConfigurationError where the file cannot be read.
    """
    if args.site is None and not os.path.exists(DEFAULT_SITE_FILE):
        reading = SiteReading(SiteConfig(), {}, ())
    else:
        reading = examine(DEFAULT_SITE_FILE if args.site is None else args.site)
    if args.json:
        print(json.dumps(document("site file", _as_json(reading)), indent=2))
    else:
        print("\n".join(map(printable, _lines(reading, args.show))))
    return 1 if reading.faults else 0


def _lines(reading: SiteReading, show: bool) -> Iterator[str]:
    values = list(effective_values(reading))
    if show:
        for section, rows in itertools.groupby(values, key=lambda one: one.section):
            yield f"[{section}]"
            for one in rows:
                origin = f"{reading.config.file}:{one.line}" if one.line else "default"
                yield f"{f'{one.key} = {one.value or _LEFT_OUT}':<{_ORIGIN_COLUMN}}  # {origin}"
            yield ""
        origin = f"environment: ${VARIABLE}" if os.environ.get(VARIABLE) else "default"
        yield f"{f'local batch system: {default_directory()}':<{_ORIGIN_COLUMN}}  # {origin}"
        yield ""
    yield from map(str, reading.faults)
    yield from reading.config.former
    file = reading.config.file or f"no site file {DEFAULT_SITE_FILE}"
    count, written = len(reading.faults), sum(1 for one in values if one.line)
    faults = f"{count} fault{'s' if count > 1 else ''}" if count else "no fault"
    yield f"{file}: {faults}; {written} keys are set, {len(values) - written} have their default or are left out"


def _as_json(reading: SiteReading) -> dict[str, object]:
    names = ("section", "key", "value", "expected")
    return {
        "file": reading.config.file or None,
        "faults": [
            {"line": one.line or None, **{name: getattr(one, name) for name in names}} for one in reading.faults
        ],
        "read_no_more": list(reading.config.former),
        "values": [
            {
                "section": one.section,
                "key": one.key,
                "value": one.value or None,
                "origin": "file" if one.line else "default",
                "line": one.line or None,
            }
            for one in effective_values(reading)
        ],
        "local_directory": default_directory(),
        "local_directory_origin": "environment" if os.environ.get(VARIABLE) else "default",
    }


def _printed(text: Callable[[], str]) -> Callable[[argparse.Namespace], int]:
    def run(_: argparse.Namespace) -> int:
        print(text(), end="")
        return 0

    return run


def _actions() -> dict[str, Command]:
    rendered = {
        system.name: Command(
            "print, or write below a directory, the files of a machine",
            (
                option("--role", "what the machine is in the pool", choices=system.roles, required=True),
                SITE_FILE,
                option("--out DIR", "write the tree below DIR (/ installs it) instead of printing it"),
                option(
                    "--diff",
                    "with --out: write nothing, show what would change; ends with 1 where something would",
                ),
            ),
            _rendered,
            extend=partial(_extended, system),
        )
        for system in offering(System.render)
    }
    check = Command(
        "check the site file: all faults at once with their lines; ends with 1 when there is one",
        (
            SITE,
            option("--show", "show every value that counts, and where it comes from"),
            option("--json", "print JSON: faults, and every value with its origin"),
        ),
        _checked,
    )
    keys = Command("print the table of the site file's keys as Markdown", run=_printed(markdown))
    whole = Command("print a site file in which every key is explained", run=_printed(example))
    return {**rendered, "check": check, "keys": keys, "example": whole}


def _extended(system: System, parser: argparse.ArgumentParser) -> None:
    tried(system, partial(system.add_render_options, parser), None)


COMMAND = Command(
    "check the site file; write the batch system's configuration from it", actions=_actions, metavar=" | "
)
