"""The file that holds the state: opened with care, changed in whole transactions, its rows read as facts.

SQLite keeps it sound over a kill -9 or a power cut at any moment. Whoever may write here can have commands run as the
daemon's user, so the directory must belong to that user alone.

SQLite keeps any value in any column, so a row that another program changed may hold anything. A command, an environment
or a report that cannot be read is none; any other value that cannot be is a PoolError that names its place.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from drainwise.common.sqlite_file import OtherVersionError, open_sqlite
from drainwise.facts.errors import DrainwiseError, PoolError, PoolUnreachable, UsageError
from drainwise.local.job import LIVE, AccountQuota, JobRequest, LocalJob, LocalNode
from drainwise.local.schedule import WaitingJob
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pilotad.report import PilotReport, from_plain
from drainwise.processes.process import Process

STATE = "state.db"

_BUSY_SECONDS = 5.0
_FORMAT = 3
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_TABLES = """
CREATE TABLE accounts (name TEXT PRIMARY KEY, quota INTEGER NOT NULL);
CREATE TABLE nodes (name TEXT PRIMARY KEY, place INTEGER NOT NULL, cores INTEGER NOT NULL);
CREATE TABLE jobs (
    job_id INTEGER PRIMARY KEY AUTOINCREMENT,
    account TEXT NOT NULL, user TEXT NOT NULL, cores INTEGER NOT NULL, wall_limit INTEGER NOT NULL,
    priority INTEGER NOT NULL, command TEXT NOT NULL, environment TEXT NOT NULL, submitted REAL NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting', node TEXT NOT NULL DEFAULT '', run TEXT NOT NULL DEFAULT '',
    started INTEGER NOT NULL DEFAULT 0, keeper_pid INTEGER, keeper_birth INTEGER, deadline INTEGER,
    removed INTEGER NOT NULL DEFAULT 0, term_sent REAL, kill_sent REAL, not_before REAL NOT NULL DEFAULT 0,
    ended REAL, code INTEGER, signal INTEGER, note TEXT NOT NULL DEFAULT '', cpu_seconds REAL);
CREATE INDEX jobs_by_state ON jobs (state);
CREATE TABLE reports (run TEXT PRIMARY KEY, report TEXT NOT NULL);
CREATE TABLE parts (run TEXT PRIMARY KEY, cores INTEGER NOT NULL, until INTEGER, chunk INTEGER NOT NULL);
CREATE TABLE events (time REAL NOT NULL, job_id INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX events_by_job ON events (job_id);
"""
_UPGRADES = {
    1: "ALTER TABLE jobs ADD COLUMN cpu_seconds REAL",
    2: "CREATE TABLE parts (run TEXT PRIMARY KEY, cores INTEGER NOT NULL, until INTEGER, chunk INTEGER NOT NULL)",
}
"""The statement that makes a state of that format one of the next."""


def check_directory(directory: str, create: bool) -> None:
    """See that the state's directory is there and ours alone; `create` makes it (0700). Raises UsageError."""
    try:
        if create:
            os.makedirs(directory, 0o700, exist_ok=True)
        elif not os.path.lexists(directory):
            hint = "`drainwise local start` makes one, --directory names another"
            raise UsageError(f"{directory}: no local batch system is there; {hint}")
        found = os.stat(directory)
    except OSError as error:
        raise UsageError(f"{directory}: the state cannot be kept there: {error.strerror}; {_ELSEWHERE}") from None
    if not stat.S_ISDIR(found.st_mode):
        raise UsageError(f"{directory}: the state cannot be kept there: not a directory; {_ELSEWHERE}")
    if found.st_uid != os.geteuid():
        raise UsageError(f"{directory}: belongs to uid {found.st_uid}: run this as its owner, or {_ELSEWHERE}")
    if found.st_mode & _OTHERS_WRITE:
        raise UsageError(
            f"{directory}: mode {found.st_mode & 0o7777:04o}: others may write there, and so run commands as you;"
            f" chmod 700 it, or {_ELSEWHERE}"
        )


_ELSEWHERE = "name another with --directory or DRAINWISE_LOCAL"


class Database:
    """One connection to the state in `directory`; `create` makes what is not there yet.

    Raises UsageError when it cannot be opened or written there, or is of another version.
    """

    def __init__(self, directory: str, create: bool = False) -> None:
        check_directory(directory, create)
        self.directory = os.path.abspath(directory)
        path = os.path.join(self.directory, STATE)
        if not create and not os.path.exists(path):
            raise UsageError(f"{directory}: no local batch system is there yet; `drainwise local start` makes one")
        before = os.umask(0o077)
        try:
            self._connection = open_sqlite(path, _TABLES, _FORMAT, _BUSY_SECONDS, durable=True, upgrades=_UPGRADES)
        except OtherVersionError as fault:
            what = f"state of format {fault.found}, this version of drainwise reads {_FORMAT}"
            raise UsageError(f"{path}: {what}") from None
        except sqlite3.Error as error:
            raise self._fault(error, UsageError, "kept there") from None
        finally:
            os.umask(before)
        self._connection.row_factory = sqlite3.Row
        self._path, self._identity = path, _identity(path)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def in_place(self) -> bool:
        """Return whether the open file is still the one under its name; SQLite would go on writing a removed one."""
        return self._identity is not None and _identity(self._path) == self._identity

    @contextmanager
    def transaction(self, write: bool = True) -> Iterator[sqlite3.Connection]:
        """Do all of the block or nothing of it; what is read is of one moment.

        Raises PoolUnreachable when another process holds the state for too long, PoolError when it cannot be written.
        """
        try:
            self._connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self._fault(error) from None

    def changes_by_others(self) -> int:
        """Return a number that is another one whenever another connection has changed the state."""
        try:
            [number] = self._connection.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error as error:
            raise self._fault(error) from None
        return int(number)

    def _fault(
        self, error: sqlite3.Error, kind: type[DrainwiseError] = PoolError, what: str = "read or written"
    ) -> DrainwiseError:
        path = os.path.join(self.directory, STATE)
        if "locked" in str(error) or "busy" in str(error):
            return PoolUnreachable(f"{path}: held by another process for more than {_BUSY_SECONDS:g} s: {error}")
        hint = f"; {_ELSEWHERE}" if kind is UsageError else ""
        return kind(f"{path}: the state cannot be {what}: {error}{hint}")


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def accounts_in(look: sqlite3.Connection) -> tuple[AccountQuota, ...]:
    """Return all accounts by name."""
    rows = look.execute("SELECT name, quota FROM accounts ORDER BY name").fetchall()
    return tuple(AccountQuota(**_values(row, "accounts", {"name": _TEXT, "quota": _WHOLE})) for row in rows)


def nodes_in(look: sqlite3.Connection) -> tuple[LocalNode, ...]:
    """Return the nodes in their order."""
    rows = look.execute("SELECT name, cores FROM nodes ORDER BY place").fetchall()
    return tuple(LocalNode(**_values(row, "nodes", {"name": _TEXT, "cores": _WHOLE})) for row in rows)


def live_in(look: sqlite3.Connection) -> list[LocalJob]:
    """Return the jobs that hold cores, by id."""
    rows = look.execute("SELECT * FROM jobs WHERE state IN (?, ?) ORDER BY job_id", LIVE)
    return [job_in(row) for row in rows]


def parts_in(look: sqlite3.Connection) -> dict[str, PartialReturn]:
    """Return what is asked of pilots beside leaving, by run."""
    rows = look.execute("SELECT run, cores, until, chunk FROM parts").fetchall()
    found = [_values(row, "parts", {"run": _TEXT, "cores": _WHOLE, "until": _NUMBER, "chunk": _WHOLE}) for row in rows]
    return {one["run"]: PartialReturn(one["cores"], one["until"], one["chunk"]) for one in found}


def add_event(change: sqlite3.Connection, now: float, job_id: int, text: str) -> None:
    """Write down what happened to a job; `now` is UNIX seconds."""
    change.execute("INSERT INTO events VALUES (?, ?, ?)", (now, job_id, text))


def job_in(row: sqlite3.Row) -> LocalJob:
    """Read the job in a row; without a command, which cannot be run, where its own cannot be read."""
    values = _values(row, f"job {row['job_id']!r} in jobs", _JOB)
    command, environment = _texts(row["command"], list), _texts(row["environment"], dict)
    request = JobRequest(
        command=() if command is None or environment is None else tuple(command),
        environment=environment or {},
        **{name: values.pop(name) for name in ("account", "user", "cores", "wall_limit", "priority")},
    )
    pid, birth = values.pop("keeper_pid"), values.pop("keeper_birth")
    supervisor = None if pid is None else Process(pid, birth)
    return LocalJob(request=request, supervisor=supervisor, removed=bool(values.pop("removed")), **values)


def waiting_in(row: sqlite3.Row) -> WaitingJob:
    """Read a waiting job, from the columns that a choice needs."""
    names = ("job_id", "account", "cores", "wall_limit", "priority")
    return WaitingJob(**_values(row, f"job {row['job_id']!r} in jobs", {name: _JOB[name] for name in names}))


def report_in(text: object) -> PilotReport | None:
    """Read the report that the state has; None for what `as_plain` cannot have written."""
    values = _decoded(text)
    try:
        return from_plain(values) if isinstance(values, dict) else None
    except ValueError:
        return None


_TEXT, _WHOLE, _NUMBER = "a text", "a whole number", "a number"
_TYPES: dict[str, Any] = {_TEXT: str, _WHOLE: int, _NUMBER: (int, float, type(None))}
_LARGEST = 1 << 62
_JOB = {
    **dict.fromkeys(("account", "user", "state", "node", "run", "note"), _TEXT),
    **dict.fromkeys(("job_id", "cores", "wall_limit", "priority", "started", "removed"), _WHOLE),
    **dict.fromkeys(("submitted", "keeper_pid", "keeper_birth", "deadline", "term_sent", "kill_sent"), _NUMBER),
    **dict.fromkeys(("not_before", "ended", "code", "signal", "cpu_seconds"), _NUMBER),
}
"""The columns of a job; a number may be missing."""


def _values(row: sqlite3.Row, place: str, kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of a row by column, each of its kind. Raises PoolError for another."""
    values = {name: row[name] for name in kinds}
    for name, value in values.items():
        kind = kinds[name]
        is_number = value is not None and kind != _TEXT
        if not isinstance(value, _TYPES[kind]) or (is_number and not -_LARGEST < value < _LARGEST):
            raise PoolError(
                f"the state is damaged: {place}: {name} = {repr(value)[:60]}: expected {kind}; mend or delete that row"
            )
    return values


def _decoded(text: object) -> object:
    """Parse JSON; None for what is none."""
    if not isinstance(text, (str, bytes)):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _texts(text: object, kind: type[list[Any] | dict[str, Any]]) -> Any:
    """Parse a list or a table of texts; None for what is none."""
    found = _decoded(text)
    if not isinstance(found, kind):
        return None
    values = found.values() if isinstance(found, dict) else found
    return found if all(isinstance(value, str) for value in values) else None
