"""`drainwise install`: put this package, its command and a rendered tree in place on a machine where jobs run."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable

from drainwise.errors import UsageError
from drainwise.node_package import command_text, put_in_place
from drainwise.siteconfig.rendered_tree import RenderedFile, read_tree, write_tree

_LIBRARY, _COMMAND, _PYTHON = "/usr/share/drainwise", "/usr/bin/drainwise", "/usr/bin/python3"

_PLACES = re.compile(r'#!(\S+) -IS\n.*?^sys\.path\.append\("([^"]+)"\)$', re.DOTALL | re.MULTILINE)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "put this package, its command and a rendered tree in place on a machine where jobs run"
    parser = subparsers.add_parser("install", help=text, description=f"{text}; again: replace what is there")
    parser.add_argument("--tree", metavar="DIR", help="what `drainwise config … --out DIR` wrote for this machine")
    parser.add_argument(
        "--library", metavar="DIR", help=f"where the package goes (default: as the tree says, else {_LIBRARY})"
    )
    parser.add_argument("--python", metavar="FILE", help=f"what runs it (default: as the tree says, else {_PYTHON})")
    parser.add_argument("--command", metavar="FILE", dest="program", default=_COMMAND, help="default: %(default)s")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Install; the exit code. What the batch system reads comes last."""
    files = () if args.tree is None else read_tree(args.tree)
    named = places_in(files)
    library, python = os.path.abspath(args.library or named[0]), args.python or named[1]
    print(f"{library}/drainwise is {put_in_place(library, python)}")
    if _is_anothers(args.program):
        print(f"kept {args.program}, which is another program")
    else:
        write_tree([RenderedFile(os.path.abspath(args.program), command_text(library, python), 0o755)], "/")
        print(f"wrote {args.program}")
    write_tree(files, "/")
    for file in files:
        print(f"wrote {file.path}")
    return 0


def places_in(files: Iterable[RenderedFile]) -> tuple[str, str]:
    """The package's directory and the interpreter, as the programs among the files name them; else the usual ones."""
    found = (_PLACES.match(file.text) for file in files)
    return next(((one[2], one[1]) for one in found if one is not None), (_LIBRARY, _PYTHON))


def _is_anothers(program: str) -> bool:
    """Whether something else than a command of ours stands there: on a central machine, a link to the whole program."""
    if not os.path.lexists(program):
        return False
    if os.path.islink(program):
        return True
    try:
        with open(program, encoding="utf-8", errors="replace") as stream:
            return "written by `drainwise install`" not in stream.read(400)
    except OSError as fault:
        raise UsageError(f"--command {program}: {fault.strerror}") from None
