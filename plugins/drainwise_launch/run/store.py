"""The state between runs, in SQLite: how each job ended, how long it takes, its rule's average, and open starts.

A start in a batch system is written down before it is made, by its tag: whoever is killed in between finds it again.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from drainwise.common.sqlite_file import OtherVersionError, open_sqlite
from drainwise.facts.errors import PoolError, UsageError
from drainwise_launch.choice.work import MovingAverage

FILE = "launch.sqlite"
FORMAT = 1
_BUSY_SECONDS = 10.0
_MANY = 1000
"""From this many names on it is cheaper to read all rows."""

_TABLES = """
CREATE TABLE jobs (
    name TEXT PRIMARY KEY, digest BLOB NOT NULL, state TEXT NOT NULL, code INTEGER, ended REAL NOT NULL,
    wall REAL, cpu REAL, last_success REAL, why TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE rules (name TEXT PRIMARY KEY, seconds REAL NOT NULL, weight INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE starts (tag TEXT PRIMARY KEY, name TEXT NOT NULL, backend TEXT NOT NULL, native TEXT, at REAL NOT NULL)
    WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""


class EndedJob(NamedTuple):
    """The end of a job: `ended` UNIX s, `wall` and `cpu` seconds or None, `last_success` that of its last success."""

    name: str
    digest: bytes
    state: str
    code: int | None
    ended: float
    wall: float | None
    cpu: float | None
    last_success: float | None
    why: str


class OpenStart(NamedTuple):
    """A start that has not been seen to end; `native`: its id in the batch system, None when that is not known."""

    tag: str
    name: str
    backend: str
    native: str | None
    at: float


class Store:
    """The state in `directory`. `commit` makes what was written last; without it nothing is kept.

    Raises UsageError for what is no state, PoolError when it cannot be read or written now.
    """

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, FILE)
        self._is_durable = False
        with self._told():
            try:
                self._base = open_sqlite(self._path, _TABLES, FORMAT, _BUSY_SECONDS, durable=False)
            except OtherVersionError:
                raise UsageError(f"{self._path}: of another version of drainwise; --again begins anew") from None

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raise our errors for those of SQLite: a state that is busy, full or read-only is not to be thrown away."""
        try:
            yield
        except sqlite3.OperationalError as fault:
            raise PoolError(f"{self._path}: cannot be read or written: {fault}") from None
        except sqlite3.Error as fault:
            raise UsageError(
                f"{self._path}: cannot be used as a launcher's state: {fault}; --again begins anew"
            ) from None

    def _execute(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        with self._told():
            if not self._base.in_transaction:
                self._base.execute("BEGIN")
            self._base.executemany(statement, rows)

    def _rows(self, statement: str, values: tuple[object, ...] = ()) -> Iterator[Any]:
        with self._told():
            yield from self._base.execute(statement, values)

    def commit(self) -> None:
        """Keep what was written."""
        if self._base.in_transaction:
            with self._told():
                self._base.execute("COMMIT")

    def close(self) -> None:
        """Keep what was written, and let go."""
        try:
            self.commit()
        finally:
            self._base.close()

    def ended(self, rows: Iterable[EndedJob]) -> None:
        """Write down how jobs ended."""
        self._execute("INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def known(self, names: Collection[str]) -> Iterator[EndedJob]:
        """Yield the ends of those of these jobs that have ended here."""
        if len(names) > _MANY:
            yield from (row for row in map(EndedJob._make, self._rows("SELECT * FROM jobs")) if row.name in names)
            return
        for name in names:
            yield from map(EndedJob._make, self._rows("SELECT * FROM jobs WHERE name = ?", (name,)))

    def forget_results(self) -> None:
        """Forget all results but keep how long each job took. Raises UsageError where anything is damaged."""
        for (said,) in self._rows("PRAGMA quick_check(1)"):
            if said != "ok":
                raise UsageError(f"{self._path}: damaged: {said}")
        self._execute("UPDATE jobs SET state = ?", [("forgotten",)])
        self.commit()

    def keep_rules(self, rules: Iterable[tuple[str, MovingAverage]]) -> None:
        """Write down averages."""
        rows = ((name, average.seconds, average.weight) for name, average in rules)
        self._execute("INSERT OR REPLACE INTO rules VALUES (?, ?, ?)", rows)

    def rules(self) -> dict[str, MovingAverage]:
        """Return the averages by rule."""
        rows = self._rows("SELECT name, seconds, weight FROM rules")
        return {name: MovingAverage(seconds, weight) for name, seconds, weight in rows}

    def starting(self, starts: Iterable[OpenStart]) -> None:
        """Write down what is about to be started, or that it has an id now.

        From the first one on what is committed outlives a loss of power, at a wait for the disk each time: so does what
        is started in a batch system.
        """
        if not self._is_durable:
            self.commit()  # within a transaction SQLite does not change it
            with self._told():
                self._base.execute("PRAGMA synchronous = FULL")
            self._is_durable = True
        self._execute("INSERT OR REPLACE INTO starts VALUES (?, ?, ?, ?, ?)", starts)

    def settled(self, tags: Iterable[str]) -> None:
        """Remove starts that have been seen to end."""
        self._execute("DELETE FROM starts WHERE tag = ?", ((tag,) for tag in tags))

    def open_starts(self) -> list[OpenStart]:
        """Return the starts that have not ended, the oldest first."""
        return [OpenStart(*row) for row in self._rows("SELECT * FROM starts ORDER BY at, tag")]

    def fact(self, name: str, default: str) -> str:
        """Return a fact of this state, made at its first query."""
        self._execute("INSERT OR IGNORE INTO facts VALUES (?, ?)", [(name, default)])
        [(value,)] = self._rows("SELECT value FROM facts WHERE name = ?", (name,))
        return str(value)
