"""JSON for programs and eyes, and files that are written whole."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping

from drainwise.facts.errors import UsageError

FORMATS = {
    "status": 1,
    "plan": 1,
    "reclaim": 1,
    "requests": 1,
    "explain": 1,
    "report": 1,
    "shutdown": 1,
    "site file": 1,
    "check": 1,
    "doctor": 1,
    "local account": 1,
    "local job": 1,
    "features": 1,
    "features check": 1,
    "launch": 2,
    "validation": 1,
    "estimate": 1,
    "estimate of a log": 1,
    "simulation": 1,
    "lease costs": 1,
}
"""The version of each document that a command prints as JSON: docs/json.md.

A key that goes, or that means something else, counts it up; a new key does not.
"""

_DEEPEST = 4  # levels that are broken into lines
_ENCODER = json.JSONEncoder(allow_nan=False)


def document(name: str, value: Mapping[str, object]) -> dict[str, object]:
    """Return a document of FORMATS: what it is and its version stand before its values."""
    return {"format": f"drainwise {name}", "version": FORMATS[name], **value}


def json_text(value: object) -> str:
    """Write JSON for programs and eyes: ASCII, and no control character raw (JSON itself would leave DEL as it is).

    What holds nothing but plain values stands on one line, and so does all that lies deep: a pilot of a plan is a row.
    """
    return _rows(value, "\n").replace("\x7f", "\\u007f")


def _rows(value: object, line: str) -> str:
    """Write JSON; `line` begins a line at its depth. The encoder indents twenty times as slowly as it encodes."""
    if len(line) <= 2 * _DEEPEST and isinstance(value, (dict, list, tuple)):
        within, parts = line + "  ", value.values() if isinstance(value, dict) else value
        if any(isinstance(one, (dict, list, tuple)) and one for one in parts):
            rows = [_rows(one, within) for one in parts]
            if isinstance(value, dict):
                rows = [f"{json.dumps(str(name))}: {row}" for name, row in zip(value, rows)]
                return f"{{{within}{f',{within}'.join(rows)}{line}}}"
            return f"[{within}{f',{within}'.join(rows)}{line}]"
    return _ENCODER.encode(value)


def show(
    as_json: bool, name: str, values: Callable[[], Mapping[str, object]], lines: Callable[[], Iterable[str]]
) -> None:
    """Print a document of FORMATS, or lines for people."""
    print(json_text(document(name, values())) if as_json else "\n".join(lines()))


def write_whole(path: str, text: str, what: str) -> None:
    """Put `text` at `path` whole or not at all, as a web server may read it at any moment; "-": the standard output.

    what: what errors call it. Raises UsageError.
    """
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8"))  # as the page says of itself, whatever the terminal has
        return
    half = f"{path}.{os.getpid()}.new"
    try:
        with open(half, "x", encoding="utf-8", newline="") as stream:
            stream.write(text)
        os.replace(half, path)
    except (OSError, ValueError) as fault:
        if not isinstance(fault, FileExistsError) and os.path.lexists(half):
            os.unlink(half)
        reason = getattr(fault, "strerror", None) or fault
        raise UsageError(f"the {what} {path!r} cannot be written: {reason}") from None
