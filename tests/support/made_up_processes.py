"""A table of processes that are not there: each a row, its command line and control group beside it."""

from __future__ import annotations

from typing import NamedTuple

from drainwise.node.payloads.process_table import TICKS, ProcessTable

UP = 1_000_000 * TICKS
"""Ticks since boot at which the table is read."""


class Row(NamedTuple):
    """One process: began `age` seconds ago, used `cpu` seconds, its children that have ended `ended`."""

    pid: int
    parent: int
    age: float = 100.0
    cpu: float = 0.0
    ended: float = 0.0
    session: int = 0
    name: str = "sh"
    line: str = ""
    group: str = ""


class MadeUpTable(ProcessTable):
    """The table of some rows."""

    def __init__(self, *rows: Row, now: int = UP) -> None:
        super().__init__({row.pid: stat_text(row, now) for row in rows}, now)
        self._rows = {row.pid: row for row in rows}

    def command_line(self, pid: int) -> str:
        """Return the row's words."""
        return self._rows[pid].line

    def group(self, pid: int) -> str:
        """Return the row's control group."""
        return self._rows[pid].group


def stat_text(row: Row, now: int = UP) -> bytes:
    """Write a row as `/proc/<pid>/stat` has it."""
    times = f"{round(row.cpu * TICKS)} 0 {round(row.ended * TICKS)} 0"
    start = now - round(row.age * TICKS)
    head = f"{row.pid} ({row.name}) S {row.parent} {row.pid} {row.session or row.pid} 0 -1 4194304 1 2 3 4"
    return f"{head} {times} 20 0 1 0 {start} 1000 10 18446744073709551615 1 1 0\n".encode()
