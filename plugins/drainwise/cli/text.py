"""What users and nodes named, made fit for a terminal."""

from __future__ import annotations

import json


def printable(text: str) -> str:
    """The text without control characters, line breaks and marks that change the direction of writing."""
    return "".join(letter for letter in text if letter.isprintable())


def json_text(value: object) -> str:
    """JSON for programs and eyes: ASCII, and no control character raw (JSON itself would leave DEL as it is)."""
    return json.dumps(value, indent=2, allow_nan=False).replace("\x7f", "\\u007f")
