"""`drainwise install`: put this package, its command and a rendered tree in place on a machine where jobs run."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence

from drainwise.cli.command_line.options import Command, option
from drainwise.facts.errors import DrainwiseError, UsageError
from drainwise.install.edited_files import said_of, sparing_edited
from drainwise.install.expected_files import LIBRARY, forget_tree, keep_tree, not_yet_in_force, without_the_sites
from drainwise.install.package import command_text, put_in_place, take_away
from drainwise.install.removal import live_configuration, may_have_orders, removal_of
from drainwise.install.rendered_tree import RenderedFile, read_tree, rename_units, with_new_names, write_tree
from drainwise.install.templates import PLACE, prolog_scripts

COMMAND_PLACE, _PYTHON = "/usr/bin/drainwise", "/usr/bin/python3"

_OWN = "drainwise"
_PLACES = re.compile(r'#!(\S+) -IS\n.*?^sys\.path\.append\("([^"]+)"\)$', re.DOTALL | re.MULTILINE)


def run(args: argparse.Namespace) -> int:
    """Install, last what the batch system reads, or remove; the exit code: 1 where something that stands was kept.

    Raises SystemExit where nothing is named that is to be installed.
    """
    if not (args.tree or args.defaults or args.remove or args.prologs or args.library):
        args.refuse("name what to put in place: --tree DIR, --prologs, or --library DIR for the package alone")
    files = () if args.tree is None else with_new_names(read_tree(args.tree))
    defaults = () if args.defaults is None else read_tree(args.defaults)
    rename_units("/")
    named = places_in(files)
    library, python = os.path.abspath(args.library or named[0]), args.python or named[1]
    if args.remove:
        return _remove((*files, *defaults), library, args)
    open_to_users(files, "/")
    release = library if args.files_only else _put_package(library, python, os.path.abspath(args.program))
    scripts = prolog_scripts(release, library, python) if args.prologs else ()
    open_to_users(scripts, "/")
    written, kept = sparing_edited((*scripts, *files), "/")
    left_out = not_yet_in_force(defaults, live_configuration, "/")
    for file in left_out:
        why = "the batch system would run it at once, so it is not written; `drainwise install --tree` writes it"
        print(f"drainwise: {file.path}: {why}", file=sys.stderr)
    written += without_the_sites([file for file in defaults if file not in left_out], "/")
    changed = write_tree(written, "/")
    if files:
        keep_tree(files)
    for file in written:
        print(f"{'wrote' if file.path in changed else 'unchanged'} {file.path}")
    for line in said_of(kept, "/"):
        print(line, file=sys.stderr)
    return 1 if kept else 0


def _remove(files: Sequence[RenderedFile], library: str, args: argparse.Namespace) -> int:
    removal = removal_of(files, live_configuration(), "/", may_have_orders())
    write_tree(removal.stubs, "/")
    for path in removal.unlinked:
        os.unlink(path)
        print(f"removed {path}")
    named = "the batch system's configuration names it, so it stays and does nothing"
    until = "delete it when the startd has started anew (the next reboot, say), and not before"
    kept = {stub.path: f"{named}: take it out there, and repeat this" for stub in removal.stubs}
    kept |= dict.fromkeys(removal.needed, f"stays: without it jobs here that had an order are evicted: {until}")
    for path, why in {**kept, **dict.fromkeys(removal.edited, "was edited by hand: it is kept")}.items():
        print(f"drainwise: {path}: {why}", file=sys.stderr)
    if not args.files_only:
        forget_tree()
        take_away(library)
        if os.path.lexists(args.program) and not _is_anothers(args.program):
            os.unlink(args.program)
    return 1 if removal.stubs or removal.edited else 0


def _put_package(library: str, python: str, program: str) -> str:
    """Put the package and its command in place; the directory of the release."""
    release = put_in_place(library, python)
    print(f"{library}/drainwise is {release}")
    if _is_anothers(program):
        print(f"kept {program}, which is another program")
    else:
        write_tree([RenderedFile(program, command_text(library, python), 0o755)], "/")
        print(f"wrote {program}")
    return release


def places_in(files: Iterable[RenderedFile]) -> tuple[str, str]:
    """Return the package's directory and the interpreter as programs among the files name them, else the usual."""
    found = (_PLACES.match(file.text) for file in files)
    return next(((one[2], one[1]) for one in found if one is not None), (LIBRARY, _PYTHON))


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


_ABOUT = "put this package, its command and a rendered tree in place on a machine where jobs run"
COMMAND = Command(
    _ABOUT,
    (
        option("--tree DIR", "what `drainwise config … --out DIR` wrote for this machine"),
        option("--defaults DIR", "the tree of a package, for files that the site has not rendered or edited"),
        option(
            "--remove",
            "remove them; what the batch system's configuration names stays, and does nothing",
        ),
        option("--files-only", "only files of a tree: the package is there already"),
        option("--library DIR", f"where the package goes (default: as the tree says, else {LIBRARY})"),
        option("--python FILE", f"what runs it (default: as the tree says, else {_PYTHON})"),
        option("--command FILE", "default: %(default)s", dest="program", default=COMMAND_PLACE),
        option("--prologs", f"put the prologs for LSF, PBS, Torque, Grid Engine and Flux into {PLACE}, too"),
    ),
    run,
    f"{_ABOUT}; again: replace what is there",
)
