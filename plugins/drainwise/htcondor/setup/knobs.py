"""The knobs of a rendered drop-in, and whether a running daemon has them.

The drop-in is the one table: its lines are what the daemons must have, and each line's comment says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ASSIGNMENT = re.compile(r"(\w+)\s*=\s*(.*)")
_MACRO = re.compile(r"\$[A-Z]*\([^()]*\)")
_GAP = "\0"
_BLANKS = re.compile(r"[\s,]+")
_WORDS = re.compile(r"[^\s,]+")
_ANYONE = re.compile(r"\*(@.*|/\*)?")


@dataclass(frozen=True)
class Knob:
    """One assignment of a drop-in: its name, its right side as written there, and why it is there."""

    name: str
    text: str
    why: str

    @property
    def line(self) -> str:
        """Return the line as it stands in the drop-in."""
        return f"{self.name} = {self.text}"

    @property
    def appended(self) -> tuple[str, ...]:
        """Return the words that a line such as `LIST = $(LIST) word word` appends to a list; empty for another line."""
        own, _, words = self.text.partition(" ")
        return tuple(words.split()) if own.casefold() == f"$({self.name})".casefold() else ()

    def in_force(self, value: str | None) -> bool:
        """Decide whether `value`, which a daemon gave for this knob with all macros resolved, does what this line asks.

        A list must have the appended words, wherever they stand. A line without macros must be equal. In another line
        what stands around the macros must stand in the value in this order: a later file of the site may have built
        upon it.
        """
        if value is None:
            return False
        if self.appended:
            present = {word.casefold() for word in _BLANKS.split(value)}
            return all(word.casefold() in present for word in self.appended)
        live, pieces = plain(value), [plain(piece) for piece in _without_macros(self.text)]
        if len(pieces) == 1:
            return live == pieces[0]
        position = 0
        for piece in pieces:
            found = live.find(piece, position)
            if found < 0:
                return False
            position = found + len(piece)
        return True


def _without_macros(text: str) -> list[str]:
    """Return what stands around the macros of a line; the name of one may have another in it."""
    found = 1
    while found:
        text, found = _MACRO.subn(_GAP, text)
    return text.split(_GAP)


def words(value: str) -> list[str]:
    """Split the value of a knob that is a list."""
    return _WORDS.findall(value)


def means_anyone(word: str) -> bool:
    """Decide whether an entry of a list such as ALLOW_WRITE means any user, here or of a domain; no bare host does."""
    return _ANYONE.fullmatch(word) is not None


def knobs(drop_in: str) -> Iterator[Knob]:
    """Yield the assignments in the text of a drop-in, each with the comment directly above it.

    Those that are not for all releases are indented, and are none of them.
    """
    comment: list[str] = []
    for line in drop_in.splitlines():
        match = _ASSIGNMENT.fullmatch(line)
        if line.startswith("#"):
            comment.append(line.lstrip("# "))
            continue
        if match:
            yield Knob(match[1], match[2], " ".join(comment))
        comment = []


def plain(text: str) -> str:
    """Remove the differences that HTCondor does not see from the text: case, blanks, commas in lists."""
    return _BLANKS.sub(" ", text).strip().casefold()
