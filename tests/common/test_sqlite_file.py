"""The tables are made once, brought up to date step by step, and those of a later version are left alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from drainwise.common.sqlite_file import OtherVersionError, open_sqlite

TABLES = "CREATE TABLE jobs (name TEXT);\nCREATE TABLE rules (name TEXT);\n"


def columns(path: Path) -> list[str]:
    with sqlite3.connect(path) as connection:
        return [row[1] for row in connection.execute("PRAGMA table_info(jobs)")]


@pytest.mark.parametrize("durable", [True, False])
def test_the_tables_are_made_once(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "state"
    first = open_sqlite(str(path), TABLES, 1, 1.0, durable)
    first.execute("INSERT INTO jobs VALUES ('a')")
    first.close()
    second = open_sqlite(str(path), TABLES, 1, 1.0, durable)
    assert second.execute("SELECT * FROM jobs").fetchall() == [("a",)]
    assert second.execute("PRAGMA synchronous").fetchone() == (2 if durable else 1,)
    second.close()


def test_an_older_file_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "state"
    open_sqlite(str(path), TABLES, 1, 1.0, True).close()
    upgrades = {1: "ALTER TABLE jobs ADD COLUMN code INTEGER", 2: "ALTER TABLE jobs ADD COLUMN cpu REAL"}
    open_sqlite(str(path), TABLES, 3, 1.0, True, upgrades).close()
    assert columns(path) == ["name", "code", "cpu"]


def test_a_later_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state"
    open_sqlite(str(path), TABLES, 2, 1.0, True).close()
    with pytest.raises(OtherVersionError) as fault:
        open_sqlite(str(path), "", 1, 1.0, True)
    assert fault.value.found == 2 and columns(path) == ["name"]


def test_what_is_no_database_is_an_error_and_nothing_half_is_made(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text("garbage " * 1000)
    with pytest.raises(sqlite3.DatabaseError):
        open_sqlite(str(path), TABLES, 1, 1.0, True)
    path.unlink()
    with pytest.raises(sqlite3.Error):
        open_sqlite(str(path), f"{TABLES}NONSENSE;\n", 1, 1.0, True)
    assert columns(path) == []
