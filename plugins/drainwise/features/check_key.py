"""The rules for one key by itself: must it be there, is it written as the specification wants, is its value sound."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from drainwise.errors import FeatureError
from drainwise.features.keys import DECIMAL, INTEGER, PATH, Key
from drainwise.features.read import DirectoryReader, FeatureReader, parse_decimal, parse_integer, parse_text
from drainwise.features.verdict import ABSENT, ERROR, INFO, OK, WARNING, Verdict, shown_value

if TYPE_CHECKING:
    from collections.abc import Iterator

PROBE_ERRORS = frozenset({"total_cpu", "allocated_cpu", "jobstart_secs", "job_id", "wall_limit_secs", "cpu_limit_secs"})
PROBE_WARNINGS = frozenset({"hs06", "hs06_job", "max_rss_bytes", "max_swap_bytes", "scratch_limit_bytes"})
"""What the WLCG SAM probe calls an error or a warning when it is missing."""

SHUTDOWN_KEYS = frozenset({"shutdowntime", "shutdowntime_job"})
_NOT_READABLE = "the draft wants every file readable by the user and by the provider's services"


@dataclass
class Snapshot:
    """What was found in the directories that were looked at: sound values only, in the types of the table."""

    now: int
    directories: set[str] = field(default_factory=set)
    present: set[str] = field(default_factory=set)
    numbers: dict[str, float] = field(default_factory=dict)
    integers: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    written_at: dict[str, float] = field(default_factory=dict)


def check_key(key: Key, reader: FeatureReader, snapshot: Snapshot) -> list[Verdict]:
    """Read one key, note it in the snapshot, and judge it by itself; at least one verdict."""
    try:
        if isinstance(reader, DirectoryReader):
            found = reader.fetch_with_status(key.name)
            content, mode = (None, 0o644) if found is None else (found[0], found[1].st_mode)
            if found is not None:
                snapshot.written_at[key.name] = found[1].st_mtime
        else:
            content, mode = reader.fetch(key.name), 0o644
    except FeatureError as error:
        snapshot.present.add(key.name)
        return [Verdict(key.directory, key.name, ERROR, "readable", str(error))]
    if content is None:
        return [_absent(key)]
    snapshot.present.add(key.name)
    verdicts = list(_written(key, content, mode))
    try:
        _note(key, content, snapshot)
    except FeatureError as error:
        detail = str(error).partition(f"{key.name}: ")[2] or str(error)
        if key.name in SHUTDOWN_KEYS:
            detail += "; glideinWMS never drains on it"
        rule = "format" if content.strip() else "not-empty"
        verdicts.append(Verdict(key.directory, key.name, ERROR, rule, detail, shown_value(content)))
    verdicts.extend(_in_range(key, snapshot))
    return verdicts or [Verdict(key.directory, key.name, OK, "present", value=shown_value(content.strip()))]


def _absent(key: Key) -> Verdict:
    if key.name in PROBE_ERRORS:
        detail = "the WLCG SAM probe calls this an error; without a limit, state the largest value the site will allow"
        return Verdict(key.directory, key.name, ERROR, "sam-required", detail)
    if key.name in PROBE_WARNINGS:
        return Verdict(key.directory, key.name, WARNING, "sam-wanted", "the WLCG SAM probe warns when it is missing")
    return Verdict(key.directory, key.name, ABSENT, "optional")


def _written(key: Key, content: bytes, mode: int) -> Iterator[Verdict]:
    """How the file is written: one value, exactly one newline, no blanks, readable by all."""

    def warning(rule: str, detail: str) -> Verdict:
        return Verdict(key.directory, key.name, WARNING, rule, detail, shown_value(content))

    value = content.strip()
    if value and content != value + b"\n":
        if content.strip(b"\n") == value and not content.startswith(b"\n"):
            count = len(content) - len(value)
            yield warning("one-newline", f"expected exactly one newline after the value, found {count}")
        else:
            yield warning("no-blanks", "blanks around the value; some clients compare the line as it is")
    if mode & 0o004 == 0:
        yield warning("world-readable", f"mode {mode & 0o7777:04o}: {_NOT_READABLE}")


def _note(key: Key, content: bytes, snapshot: Snapshot) -> None:
    if key.kind == INTEGER:
        value = parse_integer(content, key.name)
        snapshot.integers[key.name] = snapshot.numbers[key.name] = value
    elif key.kind == DECIMAL:
        snapshot.numbers[key.name] = parse_decimal(content, key.name)
    elif key.kind == PATH and not parse_text(content, key.name).startswith("/"):
        raise FeatureError(f"{key.name}: expected an absolute path")
    snapshot.texts[key.name] = parse_text(content, key.name)


def _in_range(key: Key, snapshot: Snapshot) -> Iterator[Verdict]:
    value = snapshot.numbers.get(key.name)
    if value is None:
        return
    text = snapshot.texts[key.name]
    if value < key.minimum:
        least = f"{key.minimum:g} {key.unit} or more" if key.kind == INTEGER else "more than 0"
        detail = f"expected {least}"
        if key.name == "total_cpu":
            detail += "; the PanDA pilot crashes on 0"
        yield Verdict(key.directory, key.name, ERROR, "range", detail, text)
    elif value == 0 and "limit" in key.name:
        yield Verdict(
            key.directory, key.name, WARNING, "zero-limit", "a limit of 0 stops a job, or reads as none", text
        )
    if key.name == "shutdowntime":
        detail = "JAliEn fails on any shutdowntime file, so it must go when the plan is dropped"
        yield Verdict(key.directory, key.name, INFO, "jalien", detail, text)
    if key.name in SHUTDOWN_KEYS and value <= snapshot.now:
        detail = f"{snapshot.now - value:.0f} s ago; the file is removed when its time has come"
        yield Verdict(key.directory, key.name, ERROR, "future", detail, text)
