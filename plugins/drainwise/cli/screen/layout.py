"""Plain tables as sysadmins know them: aligned columns, one line per row, names cut where the window is narrow.

What is no terminal has no width, and nothing is cut there. In a narrow window columns are left out, and the screen
names them; a number is never cut. Colour only on a terminal, and never where NO_COLOR is set.
"""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from drainwise.common.printable import printable

_GAP = 2
_SHORTEST = 8  # a name is never cut below this
_CUT = "~"
_INDENT = " " * 4
BOLD, YELLOW, RED = "1", "33", "31"


@dataclass(frozen=True)
class Paper:
    """The terminal or file that is printed on: width and height in characters (None: endless), and colour."""

    width: int | None = None
    height: int | None = None
    colour: bool = False
    terminal: bool = False

    def styled(self, text: str, style: str) -> str:
        """Return the text in a style (an SGR number), or as it is."""
        return f"\033[{style}m{text}\033[0m" if self.colour and style and text else text


def standard_output() -> Paper:
    """Return the paper of standard output: a terminal has its window's size; COLUMNS sets the width elsewhere, too."""
    terminal = sys.stdout.isatty()
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if not terminal:
        known = os.environ.get("COLUMNS", "")
        return Paper(int(known) if known.isdigit() and int(known) > 0 else None)
    size = shutil.get_terminal_size()
    return Paper(size.columns, size.lines, colour, terminal=True)


@dataclass(frozen=True)
class Heading:
    """One column of a table.

    cuttable: it may be cut where the paper is narrow, to `shortest` characters while a column can be left out instead.
    spare: it is left out there, the largest number first. Columns without a number are left out last, from the right;
    the first one stays.
    """

    text: str
    number: bool = False
    cuttable: bool = False
    spare: int = 0
    shortest: int = _SHORTEST


def headings_of(*texts: str) -> tuple[Heading, ...]:
    """Return plain headings: `>` stands before a column of numbers, `~` behind one that may be cut."""
    return tuple(Heading(one.strip(">~"), number=one[0] == ">", cuttable=one[-1] == "~") for one in texts)


def table(
    headings: Sequence[Heading], rows: Sequence[Sequence[str]], paper: Paper, styles: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """Return the lines of a table, and the headings that had to be left out so that no line is wider than the paper.

    `styles` has one SGR number per row, "" for none.
    """
    clean = [[printable(cell) for cell in row] for row in rows]
    longest = [
        max([cells(heading.text), *(cells(row[place]) for row in clean)]) for place, heading in enumerate(headings)
    ]
    shown, widths = _fit(headings, longest, paper.width)
    lines = [paper.styled(_line([one.text for one in headings], headings, shown, widths), BOLD)]
    for number, row in enumerate(clean):
        lines.append(paper.styled(_line(row, headings, shown, widths), styles[number] if styles else ""))
    return lines, [heading.text for place, heading in enumerate(headings) if place not in shown]


def noted_table(
    headings: Sequence[Heading],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str],
    paper: Paper,
    note: str,
    styles: Sequence[str] = (),
) -> tuple[list[str], list[str]]:
    """Return the lines of a table whose rows have a sentence each, and the headings that were left out.

    Where the paper is endless the sentences are the last column, called `note`; else each stands below its row, folded.
    """
    if paper.width is None:
        return table([*headings, Heading(note)], [[*row, text] for row, text in zip(rows, notes)], paper, styles)
    (heading, *lines), missing = table(headings, rows, paper, styles)
    found = [heading]
    for line, text in zip(lines, notes):
        found += [line, *folded(text, paper, _INDENT)]
    return found, missing


def folded(text: str, paper: Paper, indent: str = "") -> list[str]:
    """Return a sentence as lines that fit the paper, none where it is empty; only a longer word is cut."""
    text = printable(text)
    if paper.width is None or not text:
        return [indent + text] if text else []
    indent = indent if paper.width > 2 * len(indent) else ""
    width, found, line = paper.width - len(indent), list[str](), ""
    for word in text.split(" "):
        if line and cells(line) + 1 + cells(word) > width:
            found.append(line)
            line = ""
        line = f"{line} {word}" if line else word
    return [indent + cut(one, width) for one in (*found, line)]


def left_out(missing: Sequence[str], paper: Paper, see: str) -> list[str]:
    """Return the line below a table that names the columns left out of it; see: how they are had."""
    return folded(f"(left out in this window: {', '.join(missing)}; {see})", paper) if missing else []


def _fit(headings: Sequence[Heading], longest: Sequence[int], width: int | None) -> tuple[list[int], dict[int, int]]:
    """Return the columns to show and their widths: names are cut, spare columns left out, names cut to the shortest,
    then any column but the first is left out, from the right; in the narrowest paper the first one is cut.
    """
    shown = list(range(len(headings)))
    if width is None:
        return shown, dict(enumerate(longest))
    go = sorted((place for place in shown if headings[place].spare), key=lambda place: -headings[place].spare)
    last = [place for place in shown[:0:-1] if not headings[place].spare]
    for shortest, leaving in ((None, go), (_SHORTEST, last)):
        while True:
            widths = _cut_to(headings, {place: longest[place] for place in shown}, width, shortest)
            if _wide(widths) <= width:
                return shown, widths
            if not leaving:
                break
            shown.remove(leaving.pop(0))
    return shown, {shown[0]: width}


def _cut_to(headings: Sequence[Heading], widths: dict[int, int], width: int, shortest: int | None) -> dict[int, int]:
    """Return the widths with names cut until the columns fit, or are `shortest` (None: as their heading says)."""
    while _wide(widths) > width:
        least = {place: shortest or headings[place].shortest for place in widths if headings[place].cuttable}
        longer = [place for place, limit in least.items() if widths[place] > limit]
        if not longer:
            break
        widest = max(longer, key=lambda place: widths[place])
        widths[widest] -= 1
    return widths


def _wide(widths: dict[int, int]) -> int:
    return sum(widths.values()) + _GAP * (len(widths) - 1)


def _line(row: Sequence[str], headings: Sequence[Heading], shown: Sequence[int], widths: dict[int, int]) -> str:
    parts = []
    for place in shown:
        text = cut(row[place], widths[place])
        blanks = " " * (widths[place] - cells(text))
        parts.append(blanks + text if headings[place].number else text + blanks)
    return (" " * _GAP).join(parts).rstrip()


def cells(text: str) -> int:
    """Return the number of terminal columns that a printable text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells_of(letter) for letter in text)


def _cells_of(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Return the text in at most `width` columns; `~` at its end says that something is missing."""
    if cells(text) <= width:
        return text
    kept, taken = "", 0
    for letter in text:
        if taken + _cells_of(letter) > width - 1:
            break
        kept, taken = kept + letter, taken + _cells_of(letter)
    return kept + _CUT[:width]
