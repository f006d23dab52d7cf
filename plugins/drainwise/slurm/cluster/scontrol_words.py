"""The lines of `scontrol --oneliner show`: words `Key=value`; what stands there is the administrators'."""

from __future__ import annotations

from collections.abc import Iterator

_NOTHING = {"(null)", "N/A", "ALL", "UNLIMITED", "NONE"}


def words_of(line: str) -> dict[str, str]:
    """Return the values of a line by their keys: of a key that stands there twice the first."""
    found: dict[str, str] = {}
    for word in line.split():
        key, equals, value = word.partition("=")
        if equals:
            found.setdefault(key, value)
    return found


def lines_with(answer: str, key: str) -> Iterator[dict[str, str]]:
    """Yield the words of each line that begins with `key`."""
    for line in answer.splitlines():
        if line.startswith(f"{key}="):
            yield words_of(line)


def names_in(value: str) -> frozenset[str]:
    """Return the names in a list; none where all are meant, or nobody."""
    return frozenset() if value in _NOTHING else frozenset(filter(None, value.split(",")))
