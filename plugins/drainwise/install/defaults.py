"""Files that a package brings, rendered from the defaults: they give way to what a site has rendered or edited."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from drainwise.install.edited_files import STUB, is_edited, signed, text_of
from drainwise.install.removal import paths_in, takers_of
from drainwise.install.rendered_tree import RenderedFile

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
