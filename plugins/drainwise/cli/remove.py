"""`drainwise remove`: take what was installed on a machine away, and leave stubs where the batch system names it."""

from __future__ import annotations

import argparse
import os
import sys

from drainwise.cli.install import COMMAND, LIBRARY, is_anothers
from drainwise.install.package import take_away
from drainwise.install.removal import live_configuration, removal_of
from drainwise.install.rendered_tree import read_tree, write_tree


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "take the files of a rendered tree, and with --package this package, away from this machine"
    more = "What the batch system's configuration names stays and does nothing: without it no job would start."
    parser = subparsers.add_parser("remove", help=text, description=f"{text}. {more}")
    parser.add_argument("--tree", metavar="DIR", required=True, help="the tree that was installed")
    parser.add_argument("--package", action="store_true", help="the package and its command, too")
    parser.add_argument("--library", metavar="DIR", default=LIBRARY, help="where the package is (default: %(default)s)")
    parser.add_argument("--command", metavar="FILE", dest="program", default=COMMAND, help="default: %(default)s")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Remove; the exit code: 1 where a file was edited or is named, and so something stays."""
    removal = removal_of(read_tree(args.tree), live_configuration(), "/")
    write_tree(removal.stubs, "/")
    for path in removal.unlinked:
        os.unlink(path)
        print(f"removed {path}")
    for stub in removal.stubs:
        said = "the batch system's configuration names it, so it stays and does nothing"
        print(f"drainwise: {stub.path}: {said}: take it out there, and repeat this", file=sys.stderr)
    for path in removal.edited:
        print(f"drainwise: {path}: was edited by hand: it is kept", file=sys.stderr)
    if args.package:
        take_away(args.library)
        if os.path.lexists(args.program) and not is_anothers(args.program):
            os.unlink(args.program)
    return 1 if removal.stubs or removal.edited else 0
