"""`drainwise install`: put this package, its command and a rendered tree in place on a machine where jobs run."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable

from drainwise.facts.errors import DrainwiseError, UsageError
from drainwise.install.edited_files import said_of, sparing_edited
from drainwise.install.package import command_text, put_in_place
from drainwise.install.prolog_scripts import PLACE, prolog_scripts
from drainwise.install.rendered_tree import RenderedFile, read_tree, write_tree

_LIBRARY, _COMMAND, _PYTHON = "/usr/share/drainwise", "/usr/bin/drainwise", "/usr/bin/python3"

_OWN = "drainwise"
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
    text = f"put the prologs and epilogs for LSF, PBS, Torque, Grid Engine and Flux into {PLACE}, too"
    parser.add_argument("--prologs", action="store_true", help=text)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Install, last what the batch system reads; the exit code: 1 where a file that a person has edited was kept."""
    files = () if args.tree is None else read_tree(args.tree)
    named = places_in(files)
    library, python = os.path.abspath(args.library or named[0]), args.python or named[1]
    open_to_users(files, "/")
    release = put_in_place(library, python)
    print(f"{library}/drainwise is {release}")
    if _is_anothers(args.program):
        print(f"kept {args.program}, which is another program")
    else:
        write_tree([RenderedFile(os.path.abspath(args.program), command_text(library, python), 0o755)], "/")
        print(f"wrote {args.program}")
    scripts = prolog_scripts(release, library, python) if args.prologs else ()
    open_to_users(scripts, "/")
    written, kept = sparing_edited((*scripts, *files), "/")
    write_tree(written, "/")
    for file in written:
        print(f"wrote {file.path}")
    for line in said_of(kept, "/"):
        print(line, file=sys.stderr)
    return 1 if kept else 0


def places_in(files: Iterable[RenderedFile]) -> tuple[str, str]:
    """Return the package's directory and the interpreter as programs among the files name them, else the usual."""
    found = (_PLACES.match(file.text) for file in files)
    return next(((one[2], one[1]) for one in found if one is not None), (_LIBRARY, _PYTHON))


def open_to_users(files: Iterable[RenderedFile], root: str) -> None:
    """Open the directories called `drainwise` below `root` in which some of the files lie: the jobs' users go there.

    Raises DrainwiseError when one on the way, which is somebody else's, is closed to them.
    """
    for directory in sorted({os.path.dirname(file.path) for file in files if "/drainwise/" in file.path}):
        place = root
        for name in directory.strip("/").split("/"):
            place = os.path.join(place, name)
            if not os.path.isdir(place) or os.stat(place).st_mode & 0o001:
                continue
            if name != _OWN:
                raise DrainwiseError(f"{place}: the jobs' users cannot get to {directory}: chmod o+x {place}")
            os.chmod(place, 0o755)  # noqa: S103 - made under another umask


def _is_anothers(program: str) -> bool:
    """Return whether another program stands there: on a central machine, a link to the whole drainwise."""
    if not os.path.lexists(program):
        return False
    if os.path.islink(program):
        return True
    try:
        with open(program, encoding="utf-8", errors="replace") as stream:
            return "written by `drainwise install`" not in stream.read(400)
    except OSError as fault:
        raise UsageError(f"--command {program}: {fault.strerror}") from None
