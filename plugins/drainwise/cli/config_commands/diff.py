"""`drainwise config SYSTEM --diff`: what rendering would change in a tree, as a unified diff; nothing is written."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterator, Sequence

from drainwise.install.edited_files import beside, sparing_edited, text_of
from drainwise.install.rendered_tree import RenderedFile


def changes(files: Sequence[RenderedFile], out: str) -> Iterator[str]:
    """Yield the lines of what `drainwise config --out` would change below `out`; none where it would change nothing.

    What a person has edited is compared with what would be written beside it. Raises UsageError for a file that cannot
    be read.
    """
    written, kept = sparing_edited(files, out)
    besides = {file.path for file in kept}
    last = {file.path: file for file in written}  # a machine of two roles has some files twice
    for file in last.values():
        place = _place(out, file.path)
        if file.path in besides:
            edited = next(one.path for one in files if beside(one.path) == file.path)
            if os.path.isfile(place) and text_of(place) == file.text:
                continue  # it lies there already, for a person to compare
            yield f"{_place(out, edited)} was edited by hand: it would be kept, and {place} written"
            yield from _diff(text_of(_place(out, edited)), file.text, _place(out, edited), place)
            continue
        yield from _changed(file, place)


def _changed(file: RenderedFile, place: str) -> Iterator[str]:
    if not os.path.isfile(place):
        yield f"new file {place} (mode {file.mode:04o})"
        yield from _diff("", file.text, os.devnull, place)
        return
    mode = stat.S_IMODE(os.stat(place).st_mode)
    if mode != file.mode:
        yield f"mode of {place}: {mode:04o} -> {file.mode:04o}"
    yield from _diff(text_of(place), file.text, place, place)


def _diff(old: str, new: str, before: str, after: str) -> Iterator[str]:
    return difflib.unified_diff(old.splitlines(), new.splitlines(), before, after, lineterm="")


def _place(out: str, path: str) -> str:
    return os.path.join(out, path.lstrip("/"))
