"""Check one key by itself: must it be there, is it written as the specification wants, is its value sound."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from drainwise.facts.errors import FeatureError
from drainwise.features.keys import DECIMAL, INTEGER, PATH, Feature
from drainwise.features.read import DirectoryReader
from drainwise.features.reader import FeatureReader, parse_decimal, parse_integer, parse_text

if TYPE_CHECKING:
    from collections.abc import Iterator

OK, ABSENT, INFO, WARNING, ERROR = "ok", "absent", "info", "warning", "error"
LEVELS = (OK, ABSENT, INFO, WARNING, ERROR)
"""From best to worst; `absent` is a key that may be left out and is."""

LONGEST_VALUE = 60


@dataclass(frozen=True)
class KeyVerdict:
    """One rule applied to one key; `key` is empty when the verdict is about the directory as a whole."""

    directory: str
    key: str
    level: str
    rule: str
    detail: str = ""
    value: str | None = None


def shown_value(content: bytes) -> str:
    """Print a file's content in one line: ASCII, no control characters, cut to what a terminal line can hold."""
    return ascii(content[:LONGEST_VALUE].decode("latin-1"))[1:-1][:LONGEST_VALUE]


def worst(verdicts: list[KeyVerdict]) -> str:
    """Return the worst level among the verdicts; `ok` when there are none."""
    return max((verdict.level for verdict in verdicts), key=LEVELS.index, default=OK)


PROBE_ERRORS = frozenset({"total_cpu", "allocated_cpu", "jobstart_secs", "job_id", "wall_limit_secs", "cpu_limit_secs"})
PROBE_WARNINGS = frozenset({"hs06", "hs06_job", "max_rss_bytes", "max_swap_bytes", "scratch_limit_bytes"})
"""The keys that the WLCG SAM probe calls an error or a warning when missing."""

SHUTDOWN_KEYS = frozenset({"shutdowntime", "shutdowntime_job"})
_NOT_READABLE = "the draft wants every file readable by the user and by the provider's services"


@dataclass
class FoundKeys:
    """The values found in the directories that were read: sound ones only, in the types of the table."""

    now: int
    directories: set[str] = field(default_factory=set)
    present: set[str] = field(default_factory=set)
    numbers: dict[str, float] = field(default_factory=dict)
    integers: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    written_at: dict[str, float] = field(default_factory=dict)


def check_key(key: Feature, reader: FeatureReader, seen: FoundKeys) -> list[KeyVerdict]:
    """Read one key, note it in `seen`, and judge it by itself; at least one verdict."""
    try:
        if isinstance(reader, DirectoryReader):
            found = reader.fetch_with_status(key.name)
            content, mode = (None, 0o644) if found is None else (found[0], found[1].st_mode)
            if found is not None:
                seen.written_at[key.name] = found[1].st_mtime
        else:
            content, mode = reader.fetch(key.name), 0o644
    except FeatureError as error:
        seen.present.add(key.name)
        return [KeyVerdict(key.directory, key.name, ERROR, "readable", str(error))]
    if content is None:
        return [_absent(key)]
    seen.present.add(key.name)
    verdicts = list(_written(key, content, mode))
    try:
        _note(key, content, seen)
    except FeatureError as error:
        detail = str(error).partition(f"{key.name}: ")[2] or str(error)
        if key.name in SHUTDOWN_KEYS:
            detail += "; glideinWMS never drains on it"
        rule = "format" if content.strip() else "not-empty"
        verdicts.append(KeyVerdict(key.directory, key.name, ERROR, rule, detail, shown_value(content)))
    verdicts.extend(_in_range(key, seen))
    return verdicts or [KeyVerdict(key.directory, key.name, OK, "present", value=shown_value(content.strip()))]


def _absent(key: Feature) -> KeyVerdict:
    if key.name in PROBE_ERRORS:
        detail = "the WLCG SAM probe calls this an error; without a limit, state the largest value the site will allow"
        return KeyVerdict(key.directory, key.name, ERROR, "sam-required", detail)
    if key.name in PROBE_WARNINGS:
        return KeyVerdict(key.directory, key.name, WARNING, "sam-wanted", "the WLCG SAM probe warns when it is missing")
    return KeyVerdict(key.directory, key.name, ABSENT, "optional")


def _written(key: Feature, content: bytes, mode: int) -> Iterator[KeyVerdict]:
    """Check how the file is written: one value, exactly one newline, no blanks, readable by all."""

    def warning(rule: str, detail: str) -> KeyVerdict:
        return KeyVerdict(key.directory, key.name, WARNING, rule, detail, shown_value(content))

    value = content.strip()
    if value and content != value + b"\n":
        if content.strip(b"\n") == value and not content.startswith(b"\n"):
            count = len(content) - len(value)
            yield warning("one-newline", f"expected exactly one newline after the value, found {count}")
        else:
            yield warning("no-blanks", "blanks around the value; some clients compare the line as it is")
    if mode & 0o004 == 0:
        yield warning("world-readable", f"mode {mode & 0o7777:04o}: {_NOT_READABLE}")


def _note(key: Feature, content: bytes, seen: FoundKeys) -> None:
    if key.kind == INTEGER:
        value = parse_integer(content, key.name)
        seen.integers[key.name] = seen.numbers[key.name] = value
    elif key.kind == DECIMAL:
        seen.numbers[key.name] = parse_decimal(content, key.name)
    elif key.kind == PATH and not parse_text(content, key.name).startswith("/"):
        raise FeatureError(f"{key.name}: expected an absolute path")
    seen.texts[key.name] = parse_text(content, key.name)


def _in_range(key: Feature, seen: FoundKeys) -> Iterator[KeyVerdict]:
    value = seen.numbers.get(key.name)
    if value is None:
        return
    text = seen.texts[key.name]
    if value < key.minimum:
        least = f"{key.minimum:g} {key.unit} or more" if key.kind == INTEGER else "more than 0"
        detail = f"expected {least}"
        if key.name == "total_cpu":
            detail += "; the PanDA pilot crashes on 0"
        yield KeyVerdict(key.directory, key.name, ERROR, "range", detail, text)
    elif value == 0 and "limit" in key.name:
        yield KeyVerdict(
            key.directory, key.name, WARNING, "zero-limit", "a limit of 0 stops a job, or reads as none", text
        )
    if key.name == "shutdowntime":
        detail = "JAliEn fails on any shutdowntime file, so it must go when the plan is dropped"
        yield KeyVerdict(key.directory, key.name, INFO, "jalien", detail, text)
    if key.name in SHUTDOWN_KEYS and value <= seen.now:
        detail = f"{seen.now - value:.0f} s ago; the file is removed when its time has come"
        yield KeyVerdict(key.directory, key.name, ERROR, "future", detail, text)
