"""The files that this machine is to have: by its site file, by the tree that was put in place, or by the packages.

`drainwise install --tree DIR` keeps a copy of the tree: so a machine without a site file, and without what renders it,
knows what is missing, and can put it in place again. Files that a package brings, rendered from the defaults, give way
to what a site has rendered or edited.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

from drainwise.install.edited_files import STUB, is_edited, signed, text_of
from drainwise.install.removal import live_configuration, paths_in, takers_of
from drainwise.install.rendered_tree import RenderedFile, read_tree, write_tree

_ORIGIN = "rendered from the defaults"
_OURS = "/usr/libexec/drainwise/"


def not_yet_in_force(files: Iterable[RenderedFile], live: Callable[[], str], root: str) -> list[RenderedFile]:
    """Return the programs that must not be written below `root`: a pattern of the site's would have them run at once.

    So it is where slurm.conf names `prolog.d/*` and drainwise is not in force there yet. live: gives the text of the
    batch systems' configuration; it is asked for only where a program is not there.
    """
    new = [file for file in files if file.mode & 0o111 and not os.path.lexists(os.path.join(root, file.path[1:]))]
    words = paths_in(live()) if new else set()
    if any(word.startswith(_OURS) for word in words):
        return []
    return [file for file in new if set(takers_of(file.path, words)) - {file.path}]


def without_the_sites(files: Iterable[RenderedFile], root: str) -> list[RenderedFile]:
    """Return the files to write below `root`, signed: where none stands, a stub, or one of an earlier package.

    What the site has rendered from a site file, or edited, stays as it is and is no fault. Raises UsageError for what
    cannot be read.
    """
    return [file for file in map(signed, files) if _gives_way(os.path.join(root, file.path.lstrip("/")))]


def _gives_way(place: str) -> bool:
    if not os.path.isfile(place):
        return True
    text = text_of(place)
    return text == STUB or (_ORIGIN in text and not is_edited(text))


LIBRARY = "/usr/share/drainwise"
KEPT, _PACKAGES = f"{LIBRARY}/tree", f"{LIBRARY}/defaults"


@dataclass(frozen=True)
class ExpectedFiles:
    """The files as they are to lie here, and the command that puts those in place again that are missing or changed."""

    files: tuple[RenderedFile, ...] = ()
    command: str = ""


def keep_tree(files: Iterable[RenderedFile]) -> None:
    """Keep a copy of a tree that has been put in place. Raises UsageError where it cannot be written."""
    write_tree(files, KEPT)


def forget_tree() -> None:
    """Remove the copy."""
    shutil.rmtree(KEPT, ignore_errors=True)


def laid_down(root: str = "") -> ExpectedFiles:
    """Return the files of the tree that was put in place below `root`, else of the packages; nothing without either.

    Raises UsageError.
    """
    packages = root + _PACKAGES
    if os.path.isdir(root + KEPT):
        return ExpectedFiles(read_tree(root + KEPT), f"drainwise install --files-only --tree {KEPT}")
    names = sorted(os.listdir(packages)) if os.path.isdir(packages) else []
    files = [signed(file) for name in names for file in read_tree(f"{packages}/{name}")]
    left_out = not_yet_in_force(files, live_configuration, root or "/")
    commands = (f"drainwise install --files-only --defaults {_PACKAGES}/{name}" for name in names)
    return ExpectedFiles(tuple(file for file in files if file not in left_out), "; ".join(commands))


def rendered_anew(render: Callable[[], Iterable[RenderedFile]], command: str) -> ExpectedFiles:
    """Return what `render` gives, as `command` writes it; nothing where it cannot be rendered here."""
    return ExpectedFiles() if find_spec("jinja2") is None else ExpectedFiles(tuple(map(signed, render())), command)


def expected_files(render: Callable[[], Iterable[RenderedFile]], command: str, *, has_site_file: bool) -> ExpectedFiles:
    """Return the files by the site file, where there is one that can be rendered here; else what was put in place.

    Without either they are what the defaults give, where that can be rendered. See `rendered_anew`, `laid_down`.
    """
    ways = (partial(rendered_anew, render, command), laid_down)
    found = (way() for way in (ways if has_site_file else ways[::-1]))
    return next((one for one in found if one.files), ExpectedFiles())
