"""The ends of the daemons' logs: what a failed test needs to be understood, since the logs go with the site."""

from __future__ import annotations

from collections.abc import Iterable


def tails(logs: Iterable[tuple[str, str]], lines: int = 25) -> str:
    """The last lines of each log that has any, under its headline; `logs` are pairs of headline and path."""
    parts = []
    for headline, path in logs:
        with open(path, encoding="utf-8", errors="replace") as file:
            tail = "".join(file.readlines()[-lines:]).rstrip()
        if tail:
            parts.append(f"--- {headline}\n{tail}")
    return "\n".join(parts)
