"""What the check says about a key: how bad it is, by which rule, with the value and the reason."""

from __future__ import annotations

from dataclasses import dataclass

OK, ABSENT, INFO, WARNING, ERROR = "ok", "absent", "info", "warning", "error"
LEVELS = (OK, ABSENT, INFO, WARNING, ERROR)
"""From best to worst; `absent` is a key that may be left out and is."""

LONGEST_VALUE = 60


@dataclass(frozen=True)
class Verdict:
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


def worst(verdicts: list[Verdict]) -> str:
    """The worst level among the verdicts; `ok` when there are none."""
    return max((verdict.level for verdict in verdicts), key=LEVELS.index, default=OK)
