"""A SQLite file with tables of a known version: opened, made or brought up to date, each within one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping


class OtherVersionError(Exception):
    """The tables are of a version that is not known here; `found` is its number."""

    def __init__(self, found: int) -> None:
        self.found = found
        super().__init__(str(found))


def open_sqlite(
    path: str, tables: str, version: int, busy_seconds: float, durable: bool, upgrades: Mapping[int, str] | None = None
) -> sqlite3.Connection:
    """Open the file at `path` and make its `tables` (statements that end in `;` and a line end) where it has none yet.

    version: of these tables. upgrades: by version, the statement that makes its tables those of the next one. durable:
    each commit waits for the disk. busy_seconds: how long another process is waited for. Raises sqlite3.Error and
    OtherVersionError; nothing is open then.
    """
    connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        if _version(connection) == 0:
            _change(connection, 0, tables, version)
        while statement := (upgrades or {}).get(found := _version(connection)):
            _change(connection, found, statement, found + 1)
        if _version(connection) != version:
            raise OtherVersionError(_version(connection))
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection) -> int:
    [found] = connection.execute("PRAGMA user_version").fetchone()
    return int(found)


def _change(connection: sqlite3.Connection, before: int, statements: str, after: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) == before:  # else another process did it in the meantime
            for statement in statements.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {after}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
