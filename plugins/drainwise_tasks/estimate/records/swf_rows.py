"""A row of a log in the Standard Workload Format: 18 columns or more, blank-separated, −1 = unknown; `;` is a comment.

The one reader of such rows: what a row says, what is wrong in it, and why a sound row may still be of no use.
"""

from __future__ import annotations

from typing import NamedTuple, Union

from drainwise_tasks.estimate.records.record import END_BEFORE_START, LARGEST

COLUMNS = (
    *("job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time"),
    *("used memory", "requested processors", "requested time", "requested memory", "status", "user", "group"),
    *("application", "queue", "partition", "preceding job", "think time"),
)
COMMENT = b";"
NO_REQUEST, NO_RUN_TIME, PART_OF_A_JOB = "no requested time", "no run time", "part of a job"
MOST_CORES = 10**6
_WIDTH = len(COLUMNS)
_PARTS = (2, 3, 4)  # states of the pieces of a job that was checkpointed; the whole job has a row of its own
_SUBMIT, _STATUS = 2, 10  # the column of a fault, the cell; of the pieces only the first has a submit time
_SHOWN = 40


class SwfRow(NamedTuple):
    """One job of a log; times in s. A time that is unknown is −1, `cores` that are unknown are 0.

    cores: allocated, or requested where that is all that is known. run < −1: its end lies before its start.
    """

    number: int
    submit: float
    wait: float
    run: float
    cores: int
    requested: float
    status: int
    user: str
    group: str


class Wrong(NamedTuple):
    """A fault in a line: its column (from 1; 0 = the line as a whole), what stands there, what was expected."""

    column: int
    text: str
    expected: str

    def __str__(self) -> str:
        place = f"column {self.column} ({COLUMNS[self.column - 1]}): " if self.column else ""
        return f"{place}{self.text}: expected {self.expected}"


def row_of(line: bytes) -> SwfRow | Wrong:
    """Return the row in a line that is no comment, or what is wrong in it."""
    cells = line.split(None, _WIDTH)
    try:
        number, submit, wait, run, allocated, _, _, asked, requested, _, status, user, group, *_ = map(
            float, cells[:_WIDTH]
        )
        row = SwfRow(
            int(number),
            submit,
            wait,
            run,
            int(allocated if allocated > 0 else asked if asked > 0 else 0),
            requested,
            int(status),
            str(int(user)),
            str(int(group)),
        )
    except (ValueError, OverflowError):
        return _fault(cells)
    # Every comparison is written so that a NaN fails it.
    if (
        len(cells) >= _WIDTH
        and -1 <= wait <= LARGEST
        and (0 <= submit <= LARGEST or (submit == -1 and status in _PARTS))
        and -LARGEST <= run <= LARGEST
        and -LARGEST <= requested <= LARGEST
        and -1 <= allocated <= MOST_CORES
        and -1 <= asked <= MOST_CORES
        and 0 <= number <= LARGEST
        # What no number has, except for how Python writes them: 1_000; and a part of a processor or of a user.
        and (b"_" not in line or b"_" not in b"".join(cells[:_WIDTH]))
        and allocated % 1 == asked % 1 == number % 1 == user % 1 == group % 1 == status % 1 == 0
    ):
        return row
    return _fault(cells)


def reason_to_skip(row: SwfRow) -> str:
    """Return why a sound row is of no use: its job's run time or requested time is missing; "" when it is of use."""
    if row.status in _PARTS:
        return PART_OF_A_JOB
    if row.run < 0:
        return END_BEFORE_START if row.run < -1 else NO_RUN_TIME
    return "" if row.requested > 0 else NO_REQUEST


_LEAST = {1: 0.0, 2: 0.0, 3: -1.0, 5: -1.0, 8: -1.0}
_MOST = {5: float(MOST_CORES), 8: float(MOST_CORES)}
_WHOLE = {1, 5, 8, 11, 12, 13}


def _fault(cells: list[bytes]) -> Wrong:
    """Return the first fault in a row that has one."""
    is_part = len(cells) > _STATUS and _number(cells[_STATUS]) in _PARTS
    for column, cell in enumerate(cells[:_WIDTH], 1):
        expected = "" if is_part and column == _SUBMIT and cell == b"-1" else _expected(column, cell)
        if expected:
            return Wrong(column, repr(cell[:_SHOWN].decode("ascii", "replace")), expected)
    return Wrong(0, f"{len(cells)} columns", f"{_WIDTH} or more")


def _expected(column: int, cell: bytes) -> str:
    value = _number(cell)
    if value is None or not -LARGEST <= value <= LARGEST:
        return "a number"
    if column in _WHOLE and value != int(value):
        return "a whole number"
    least, most = _LEAST.get(column, -LARGEST), _MOST.get(column, LARGEST)
    if value < least:
        return f"{least:g} or more"
    return f"at most {most:g}" if value > most else ""


def _number(cell: bytes) -> Union[float, None]:
    try:
        return None if b"_" in cell else float(cell)
    except ValueError:
        return None
