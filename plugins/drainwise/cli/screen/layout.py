"""Plain tables as sysadmins know them: aligned columns, one line per row, names cut where the window is narrow.

What is no terminal has no width, and nothing is cut there. Colour only on a terminal, and never where NO_COLOR is set.
"""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from drainwise.common.printable import printable

_GAP = 2
_SHORTEST = 8  # a name is never cut below this
_CUT = "~"
_LEAST_FOLDED = 30
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

    cuttable: it may be cut where the paper is narrow. spare: it is left out there, the largest number first. folded: it
    is the last one and may take several lines; nothing of such a table is cut, and a terminal may have to wrap it.
    """

    text: str
    number: bool = False
    cuttable: bool = False
    spare: int = 0
    folded: bool = False


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
    folded, width = headings[-1].folded, paper.width
    if folded and width is not None:
        longest[-1] = min(longest[-1], max(_LEAST_FOLDED, width - sum(longest[:-1]) - _GAP * (len(longest) - 1)))
    shown, widths = _fit(headings, longest, None if folded else width)
    lines = [
        paper.styled(_line([one.text for one in headings], headings, shown, widths, None if folded else width), BOLD)
    ]
    for number, row in enumerate(clean):
        style = styles[number] if styles else ""
        for part in _folded(row, longest[-1]) if folded else [row]:
            lines.append(paper.styled(_line(part, headings, shown, widths, None if folded else width), style))
    return lines, [heading.text for place, heading in enumerate(headings) if place not in shown]


def _fit(headings: Sequence[Heading], longest: Sequence[int], width: int | None) -> tuple[list[int], dict[int, int]]:
    """Return the columns to show and their widths: first names are cut, then spare columns are left out."""
    shown = list(range(len(headings)))
    widths = dict(enumerate(longest))
    if width is None:
        return shown, widths
    spare = sorted((place for place in shown if headings[place].spare), key=lambda place: -headings[place].spare)
    while True:
        widths = {place: longest[place] for place in shown}
        over = sum(widths.values()) + _GAP * (len(shown) - 1) - width
        cuttable = [place for place in shown if headings[place].cuttable]
        while over > 0 and cuttable:
            widest = max(cuttable, key=lambda place: widths[place])
            if widths[widest] <= _SHORTEST:
                break
            widths[widest] -= 1
            over -= 1
        if over <= 0 or not spare:
            return shown, widths
        shown.remove(spare.pop(0))


def _line(
    row: Sequence[str], headings: Sequence[Heading], shown: Sequence[int], widths: dict[int, int], width: int | None
) -> str:
    parts = []
    for place in shown:
        text = row[place] if headings[place].folded else cut(row[place], widths[place])
        blanks = " " * (widths[place] - cells(text))
        parts.append(blanks + text if headings[place].number else text + blanks)
    line = (" " * _GAP).join(parts).rstrip()
    return line if width is None else cut(line, width)


def _folded(row: Sequence[str], width: int) -> Iterator[list[str]]:
    """Yield the rows that a row becomes when the text of its last cell is spread over lines of `width` columns."""
    before, line = list(row[:-1]), ""
    for word in row[-1].split(" "):
        if line and cells(line) + 1 + cells(word) > width:
            yield [*before, line]
            before, line = [""] * len(before), ""
        line = f"{line} {word}" if line else word
    yield [*before, line]


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
