"""Rendered files that a person has edited since: known by a checksum in each, and never written over."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from drainwise import __version__
from drainwise.facts.errors import UsageError
from drainwise.install.rendered_tree import RenderedFile

_WORDS = "edited by hand, this file is kept, and what is rendered anew is written beside it."
_MARK = re.compile(
    rf"^# Checksum ([0-9a-f]{{16}})(?:, drainwise ([0-9A-Za-z.+-]{{1,32}}))?: {re.escape(_WORDS)}\n", re.MULTILINE
)
_BESIDE = ".rendered"
STUB = """\
#!/bin/sh
# drainwise was removed while the batch system's configuration named this program. It does nothing.
exit 0
"""
"""What a removal leaves of such a program; the next installation writes over it."""
_LONGEST = 1 << 20


def signed(file: RenderedFile) -> RenderedFile:
    """Put this version and a checksum of both into the file, in a comment: its first line, a script's second.

    One that has it already, from a tree that was written, stays as it is.
    """
    if _MARK.search(file.text):
        return file
    first, rest = "", file.text
    if rest.startswith("#!"):
        first, _, rest = rest.partition("\n")
        first += "\n"
    checksum = _checksum(f"{__version__}\n{file.text}")
    return replace(file, text=f"{first}# Checksum {checksum}, drainwise {__version__}: {_WORDS}\n{rest}")


def is_edited(text: str) -> bool:
    """Return whether the text of a rendered file has been changed since, or has no checksum that would say so."""
    mark = _MARK.search(text)
    if mark is None:
        return True
    rest = text[: mark.start()] + text[mark.end() :]
    return mark[1] not in (_checksum(f"{mark[2]}\n{rest}"), _checksum(rest))  # the version was no part of it once


def version_in(text: str) -> str:
    """Return the version of drainwise that rendered the text; "" where it does not say it."""
    mark = _MARK.search(text)
    return "" if mark is None else mark[2] or ""


def unsigned(text: str) -> str:
    """Return the text of a rendered file as it was before it was signed."""
    return _MARK.sub("", text, count=1)


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def beside(path: str) -> str:
    """Return the path for a file whose place is taken; batch systems pass over names that begin with a dot."""
    return os.path.join(os.path.dirname(path), f".{os.path.basename(path)}{_BESIDE}")


def sparing_edited(files: Iterable[RenderedFile], out: str) -> tuple[list[RenderedFile], list[RenderedFile]]:
    """Return the files to write below `out`, signed, and those of them that go beside what a person has edited there.

    What stands there already as it would be written is neither. Raises UsageError for what cannot be read.
    """
    written, kept = [], []
    for file in map(signed, files):
        place = os.path.join(out, file.path.lstrip("/"))
        text = text_of(place) if os.path.isfile(place) else None
        if text is None or not is_edited(text) or text == STUB or unsigned(text) == unsigned(file.text):
            written.append(file)
        else:
            kept.append(replace(file, path=beside(file.path)))
    return [*written, *kept], kept


def said_of(kept: Iterable[RenderedFile], out: str) -> list[str]:
    """Return a line for a person on each file that was not written over below `out`."""
    places = [os.path.join(out, file.path.lstrip("/")) for file in kept]
    edited = [os.path.join(os.path.dirname(one), os.path.basename(one)[1 : -len(_BESIDE)]) for one in places]
    why = "was edited by hand, or rendered by a drainwise without checksums: it is kept; compare it with"
    return [f"drainwise: {old} {why} {new}, and put that in its place" for old, new in zip(edited, places)]


def text_of(place: str) -> str:
    """Read a file that stands on the machine; raises UsageError when it cannot be read."""
    try:
        with open(place, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read(_LONGEST)
    except OSError as fault:
        raise UsageError(f"{place}: cannot be read, so nobody knows whether it was edited: {fault.strerror}") from None


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
        old = text_of(place) if os.path.isfile(place) else ""
        if file.path in besides:
            edited = next(_place(out, one.path) for one in files if beside(one.path) == file.path)
            if old != file.text:  # else it lies there already, for a person to compare
                yield f"{edited} was edited by hand: it would be kept, and {place} written"
                yield from _diff(text_of(edited), file.text, edited, place)
        elif not os.path.isfile(place):
            yield f"new file {place} (mode {file.mode:04o})"
            yield from _diff("", file.text, os.devnull, place)
        else:
            mode = stat.S_IMODE(os.stat(place).st_mode)
            if mode != file.mode:
                yield f"mode of {place}: {mode:04o} -> {file.mode:04o}"
            yield from _diff(old, file.text, place, place)


def _diff(old: str, new: str, before: str, after: str) -> Iterator[str]:
    return difflib.unified_diff(old.splitlines(), new.splitlines(), before, after, lineterm="")


def _place(out: str, path: str) -> str:
    return os.path.join(out, path.lstrip("/"))
