"""Text of users, nodes and files made printable: ASCII for logs and files, Unicode for terminals; lines to write."""

from __future__ import annotations

import posix
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LINE_LIMIT = 200
"""Characters of a line of a log."""

_LOOKED_AT = 8
"""Characters that are looked at for each one of a line: a text may be of any length, and blank for the most part."""


def printable(text: str) -> str:
    """Return `text` without control characters, line breaks and marks that change the direction of writing."""
    return "".join(letter for letter in text if letter.isprintable())


def printable_ascii(text: str) -> str:
    """Return `text` with `?` for each character that is not printable ASCII."""
    return "".join(letter if " " <= letter <= "~" else "?" for letter in text)


def one_line(text: str, longest: int = LINE_LIMIT) -> str:
    """Return at most `longest` printable characters of `text`; blanks and line breaks become one blank.

    There is none at either end, so that the line of a line is the same one.
    """
    start = "".join(" " if letter.isspace() else letter for letter in text[: _LOOKED_AT * longest])
    return " ".join(printable(start).split())[:longest].rstrip()


def ascii_line(text: str, longest: int = LINE_LIMIT) -> str:
    """Return as `one_line`, in ASCII, with `?` for what is not printable."""
    return printable_ascii(" ".join(text[: _LOOKED_AT * longest].split())[:longest]).rstrip()


def write_line(text: str, descriptor: int = 2) -> None:
    """Write one line of at most 200 printable characters; a closed or full descriptor is no reason to fail."""
    try:
        posix.write(descriptor, f"{ascii_line(text)}\n".encode("ascii"))
    except OSError:
        return


class Log:
    """The pilot's log: lines to a descriptor. The payloads matter more than that they can be written."""

    def __init__(self, clock: Callable[[], float] = time.time, descriptor: int = 2) -> None:
        self._clock, self._descriptor = clock, descriptor

    def __call__(self, text: str) -> None:
        """Write one line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._clock()))
        write_line(f"{moment} pilot: {text}", self._descriptor)
