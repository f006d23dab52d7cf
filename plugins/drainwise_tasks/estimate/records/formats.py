"""The reader for a file of finished payloads, chosen by name or from its first lines."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from drainwise.facts.errors import UsageError
from drainwise_tasks.estimate.records.condor_history import read_history_json, read_history_long
from drainwise_tasks.estimate.records.pilot_records import read_pilot_records
from drainwise_tasks.estimate.records.record import Finished, json_of, read_json_lines
from drainwise_tasks.estimate.records.sacct import read_sacct

Reader = Callable[[Iterable[bytes], "Counter[str]"], Iterator[Finished]]

JSON_LINES, PILOT, HISTORY_JSON, HISTORY_LONG, SACCT = "records", "pilot", "condor-json", "condor-long", "sacct"
READERS: dict[str, Reader] = {
    JSON_LINES: read_json_lines,
    PILOT: read_pilot_records,
    HISTORY_JSON: read_history_json,
    HISTORY_LONG: read_history_long,
    SACCT: read_sacct,
}
"""Name of a format → its reader."""
_LOOK = 50  # lines of which the first that shows the format counts


def read_as(name: str, lines: Iterable[bytes], skips: Counter[str]) -> Iterator[Finished]:
    """Yield the payloads among `lines` in the named format; "auto" looks at the first lines. Blank lines are b"".

    Raises UsageError when they are of no known format.
    """
    if name != "auto":
        return _read(name, lines, skips)
    ahead = iter(lines)
    seen: list[bytes] = []
    for line in itertools.islice(ahead, _LOOK):
        seen.append(line)
        found = format_of(line)
        if found:
            return _read(found, itertools.chain(seen, ahead), skips)
    if not any(seen):
        return iter(())
    raise UsageError(
        f"the format of the records cannot be seen from their first lines: name it with --format ({', '.join(READERS)})"
    )


def _read(name: str, lines: Iterable[bytes], skips: Counter[str]) -> Iterator[Finished]:
    """Read without blank lines, except in the one format in which they end an ad."""
    return READERS[name](lines if name == HISTORY_LONG else filter(None, lines), skips)


def format_of(line: bytes) -> str:
    """Return the format that a first line shows; "" when it shows none."""
    text = line.strip()
    if text.startswith((b"[", b"{")):
        found = json_of(text[1:].rstrip(b",]") if text.startswith(b"[{") else text.rstrip(b","))
        if not isinstance(found, dict):
            return HISTORY_JSON if text in {b"[", b"{", b"[{"} else ""
        if "event" in found and "pilot" in found:
            return PILOT
        return HISTORY_JSON if "ClusterId" in found else JSON_LINES
    if text.startswith(b"***") or b" = " in text:
        return HISTORY_LONG
    return SACCT if b"|" in text and b"JobID" in text else ""
