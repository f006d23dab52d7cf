"""The columns of `drainwise status`: name and meaning of each, its value for programs, its text for people.

The names serve `--format` and `--sort` alike. Values are in base units: seconds, core-seconds, UNIX seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Union

from drainwise.cli.command_line.parser import near
from drainwise.cli.screen.wanted import state_of
from drainwise.facts.errors import UsageError
from drainwise.facts.units import duration
from drainwise.reclaim.candidates import LEARNED, NO_PAYLOAD, Candidate

Value = Union[int, float, str, None]
UNKNOWN = "?"


@dataclass(frozen=True)
class Row:
    """One pilot with its figures at `now` (UNIX s)."""

    one: Candidate
    now: int


@dataclass(frozen=True)
class Column:
    """One column; `value` gives None for what is not known or not believed, `show` is how people read a known value."""

    name: str
    heading: str
    meaning: str
    value: Callable[[Row], Value]
    show: Callable[[Value], str] = str
    number: bool = False
    is_waste: bool = False

    def text(self, row: Row) -> str:
        """Write the cell as people read it; a waste as the site bills it."""
        value = self.value(row)
        if self.is_waste and value is not None:
            return row.one.in_unit(_whole(value))
        return UNKNOWN if value is None else self.show(value)

    def word(self, row: Row) -> str:
        """Write the cell as one word of a line that a program splits at its blanks."""
        value = self.value(row)
        if value is None:
            return UNKNOWN
        return f"{value:g}" if isinstance(value, float) else "_".join(str(value).split()) or "_"


def _number(name: str, heading: str, meaning: str, value: Callable[[Row], Value]) -> Column:
    return Column(name, heading, meaning, value, _plain, number=True)


def _seconds(name: str, heading: str, meaning: str, value: Callable[[Row], Value]) -> Column:
    return Column(name, heading, f"{meaning}, seconds", value, lambda value: duration(_whole(value)), number=True)


def _waste(name: str, heading: str, meaning: str, value: Callable[[Row], Value]) -> Column:
    return Column(name, heading, f"{meaning}, core-seconds", value, number=True, is_waste=True)


def _plain(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _whole(value: Value) -> int:
    return round(value) if isinstance(value, (int, float)) else 0


def state(row: Row) -> str:
    """Return the state of a pilot, one of `wanted.STATES`."""
    return state_of(row.one.pilot, row.one.draining)


def _state_and_time(row: Row) -> str:
    deadline = row.one.pilot.deadline
    if deadline is None:
        return state(row)
    left = deadline - row.now
    return f"ordered, {duration(left)} left" if left >= 0 else f"ordered, {duration(-left)} overdue"


_UNPUBLISHED = {LEARNED: ", ends learned", NO_PAYLOAD: ", no payload"}


def _standing_and_age(row: Row) -> str:
    age, ends = _heartbeat_age(row), _UNPUBLISHED.get(row.one.ends, "")
    return row.one.standing if age is None else f"{row.one.standing}, {duration(age)} old{ends}"


def _heartbeat_age(row: Row) -> int | None:
    report = row.one.pilot.report
    return None if report is None else row.now - report.heartbeat


def _of_report(name: str) -> Callable[[Row], Value]:
    """Return what gives a figure of the pilot's report; None without one."""
    return lambda row: getattr(row.one.pilot.report, name, None)


def _since_save(row: Row) -> int | None:
    saved = row.one.pilot.saved
    return None if saved is None else row.now - saved


def _time_left(row: Row) -> int | None:
    pilot = row.one.pilot
    ends = [end for end in (pilot.deadline, pilot.lease_end) if end is not None]
    return min(ends) - row.now if ends else None


def _identity(name: str, heading: str, meaning: str) -> Column:
    def value(row: Row) -> str | None:
        return getattr(row.one.pilot.identity, name, "") or None

    return Column(name.replace("_", ""), heading, meaning, value)


COLUMNS = (
    Column("name", "pilot", "what an administrator types to find the pilot", lambda row: row.one.pilot.name),
    Column("user", "user", "its owner", lambda row: row.one.pilot.user),
    Column("account", "account", "whose quota it uses", lambda row: row.one.pilot.account),
    Column("node", "node", "where it runs", lambda row: row.one.pilot.node),
    Column("run", "run", "this run and no other", lambda row: row.one.pilot.run),
    Column("client", "client", "its kind of client by [clients]", lambda row: row.one.pilot.client),
    _number("cores", "cores", "cores of the lease", lambda row: row.one.pilot.cores),
    _number("gpus", "GPUs", "GPUs that it holds", lambda row: row.one.pilot.gpus),
    _number("used", "used", "cores that its payloads use", _of_report("used_cpu")),
    Column(
        "standing",
        "standing",
        "fresh, glidein (its node reads its files), observed (its node sees its payloads), or why it is not believed",
        lambda row: row.one.standing,
    ),
    Column(
        "ends",
        "ends",
        "when its payloads end: published, learned (by the agent, by how long such payloads ran), or no payload",
        lambda row: row.one.ends or None,
    ),
    _seconds("reportage", "report age", "time since its last report", _heartbeat_age),
    Column("report", "report", "standing and age of its report, and whether the ends are learned", _standing_and_age),
    _seconds("remaining", "remaining", "time until it could be gone by itself", lambda row: row.one.remaining),
    _seconds("maxremaining", "remaining at most", "the same, as it guarantees", lambda row: row.one.remaining_max),
    _waste("drainwaste", "draining waste", "what idles if it drains", lambda row: row.one.draining_waste),
    _waste("killwaste", "kill waste", "what is lost if it is killed now", lambda row: row.one.kill_waste),
    _waste("orderwaste", "waste if drained", "what draining it now would waste", lambda row: row.one.drained.waste),
    _number(
        "billed", "billed", "what the site bills for each of its cores ([reclaim] billing)", lambda row: row.one.billed
    ),
    _number("priority", "worth", "what its owner says it is worth; higher is better", _of_report("priority_factor")),
    Column("state", "state", "running, draining, ordered or leaving", state),
    Column("status", "state", "its state, and how long it has to go after an order", _state_and_time),
    _number("started", "started", "start of its run, UNIX seconds", lambda row: row.one.pilot.started),
    _seconds("elapsed", "elapsed", "time since its start", lambda row: row.now - row.one.pilot.started),
    _seconds(
        "saved",
        "saved",
        "since its last checkpoint, with --scheduler-only its longest step, by its batch system",
        _since_save,
    ),
    _seconds("timeleft", "time left", "time until its deadline or the end of its lease", _time_left),
    _number("leaseend", "lease end", "end of its lease, UNIX seconds", lambda row: row.one.pilot.lease_end),
    _number("deadline", "deadline", "the deadline of its order, UNIX seconds", lambda row: row.one.pilot.deadline),
    _identity("vo", "VO", "the virtual organisation that sent it"),
    _identity("ce_job", "CE job", "its job id at the computing element"),
)
BY_NAME = {column.name: column for column in COLUMNS}
DEFAULT = "name,user,client,cores,used,report,remaining,drainwaste,killwaste,priority,status"
"""The table without --format; `client` only where a pilot is of another kind than the paper's."""


def columns_called(names: str) -> tuple[Column, ...]:
    """Return the columns of a comma-separated list of names; raises UsageError."""
    return tuple(column_called(name.strip()) for name in names.split(","))


def column_called(name: str) -> Column:
    """Return the column of that name in small or capital letters; raises UsageError, with one that is near."""
    try:
        return BY_NAME[name.lower()]
    except KeyError:
        hint = near(name.lower(), BY_NAME) or ";"
        raise UsageError(f"no column is called {name!r}{hint} `drainwise status --help` lists them") from None


def sorted_rows(rows: Iterable[Row], order: str | None) -> list[Row]:
    """Sort rows by `NAME` or `NAME:desc` (`:asc` is the default), unknown last; None: by account, user and place.

    Raises UsageError for a name that does not exist.
    """
    found = sorted(rows, key=attrgetter("one.pilot.account", "one.pilot.user", "one.pilot.node", "one.pilot.name"))
    if order is None:
        return found
    name, _, direction = order.partition(":")
    column, backwards = column_called(name), direction.lower() == "desc"
    if direction.lower() not in {"", "asc", "desc"}:
        raise UsageError(f"--sort {order!r}: expected COLUMN, COLUMN:asc or COLUMN:desc")
    values = [(column.value(row), row) for row in found]
    known = [pair for pair in values if pair[0] is not None]
    return [row for _, row in sorted(known, key=lambda pair: _rank(pair[0]), reverse=backwards)] + [
        row for value, row in values if value is None
    ]


def _rank(value: Value) -> tuple[float, str]:
    return (0.0, value) if isinstance(value, str) else (float(value or 0), "")


def explained(names: Sequence[Column] = COLUMNS) -> str:
    """Write the table of columns for --help."""
    width = max(len(column.name) for column in names)
    return "\n".join(f"  {column.name:<{width}}  {column.meaning}" for column in names)
