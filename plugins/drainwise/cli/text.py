"""What users and nodes named, made fit for a terminal."""

from __future__ import annotations

import json

_DEEPEST = 4  # levels that are broken into lines
_ENCODER = json.JSONEncoder(allow_nan=False)


def printable(text: str) -> str:
    """The text without control characters, line breaks and marks that change the direction of writing."""
    return "".join(letter for letter in text if letter.isprintable())


def json_text(value: object) -> str:
    """JSON for programs and eyes: ASCII, and no control character raw (JSON itself would leave DEL as it is).

    What holds nothing but plain values stands on one line, and so does all that lies deep: a pilot of a plan is a row.
    """
    return _rows(value, "\n").replace("\x7f", "\\u007f")


def _rows(value: object, line: str) -> str:
    """JSON; `line` begins a line at its depth. The encoder indents twenty times as slowly as it encodes."""
    if len(line) <= 2 * _DEEPEST and isinstance(value, (dict, list, tuple)):
        within, parts = line + "  ", value.values() if isinstance(value, dict) else value
        if any(isinstance(one, (dict, list, tuple)) and one for one in parts):
            rows = [_rows(one, within) for one in parts]
            if isinstance(value, dict):
                rows = [f"{json.dumps(str(name))}: {row}" for name, row in zip(value, rows)]
                return f"{{{within}{f',{within}'.join(rows)}{line}}}"
            return f"[{within}{f',{within}'.join(rows)}{line}]"
    return _ENCODER.encode(value)
