"""Files that a package brings, rendered from the defaults: they give way to what a site has rendered or edited."""

from __future__ import annotations

import os
from collections.abc import Iterable

from drainwise.install.edited_files import is_edited, signed, text_of
from drainwise.install.rendered_tree import RenderedFile

_ORIGIN = "rendered from the defaults"


def without_the_sites(files: Iterable[RenderedFile], root: str) -> list[RenderedFile]:
    """Return the files to write below `root`, signed: where none stands, or one of an earlier package.

    What the site has rendered from a site file, or edited, stays as it is and is no fault. Raises UsageError for what
    cannot be read.
    """
    return [file for file in map(signed, files) if _gives_way(os.path.join(root, file.path.lstrip("/")))]


def _gives_way(place: str) -> bool:
    if not os.path.isfile(place):
        return True
    text = text_of(place)
    return _ORIGIN in text and not is_edited(text)
