"""One features directory, wherever it lies: the keys by name, and their text as typed values.

An absent key is None. Garbage is a FeatureError that names file, value and what was expected: a pilot that takes an
empty file for 0 stops or never stops.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features.facts import LONGEST_TEXT, sound_text
from drainwise.features.keys import BY_NAME, KEYS, LARGEST, keys_of

LARGEST_FILE = 4096
"""Bytes of a key file; no key needs a tenth of it."""
HTTP_PREFIXES = ("http://", "https://")


class FeatureReader(ABC):
    """The keys of one features directory; each call reads anew, so that a dynamic key is seen when it comes or goes."""

    def __init__(self, location: str) -> None:
        self.location = location

    @abstractmethod
    def fetch(self, key: str) -> bytes | None:
        """Read the raw content of a key; None when it is absent. Raises: FeatureError when it cannot be read."""

    @abstractmethod
    def names(self, directory: str | None = None) -> list[str]:
        """List the keys there are, sorted; `directory` (machine or job) says which to ask for where nothing lists."""

    @abstractmethod
    def problem(self) -> str | None:
        """Say why the location as a whole cannot be read; None when it can."""

    def text(self, key: str) -> str | None:
        """Read a key as text without its newline.

        Raises: FeatureError when the file is unreadable, empty, or anything else than one line of printable ASCII.
        """
        content = self.fetch(checked_name(key))
        return None if content is None else parse_text(content, self._place(key))

    def integer(self, key: str) -> int | None:
        """Read a key as an integer; its unit is in the table. Raises: FeatureError, also for `86400.0` and `-1`."""
        content = self.fetch(checked_name(key))
        return None if content is None else parse_integer(content, self._place(key))

    def decimal(self, key: str) -> float | None:
        """Read a key as a number in plain notation, `187.5`. Raises: FeatureError."""
        content = self.fetch(checked_name(key))
        return None if content is None else parse_decimal(content, self._place(key))

    def present(self) -> list[str]:
        """List the keys of the table that are there, sorted."""
        return [name for name in self.names() if name in BY_NAME]

    def _place(self, key: str) -> str:
        return f"{self.location.rstrip('/')}/{key}"


def checked_name(key: str) -> str:
    """Return the name of a key. Raises: UsageError for what cannot be one (a path, a query, a blank)."""
    if not (key.isidentifier() and key.isascii() and len(key) <= 64):
        raise UsageError(f"feature key {key[:64]!a}: expected letters, digits and underscores")
    return key


def table_names(directory: str | None) -> list[str]:
    """List the keys of the table for a directory, or all of them."""
    return [key.name for key in (KEYS if directory is None else keys_of(directory))]


def _garbage(content: bytes, place: str, expected: str) -> FeatureError:
    return FeatureError(f"{place}: {ascii(content[:40])[1:]} found, expected {expected}")


def parse_text(content: bytes, place: str) -> str:
    """Parse one line of printable ASCII without blanks; blanks and line ends around it are forgiven."""
    text = content.decode("latin-1").strip(" \t\r\n")
    if not text:
        raise FeatureError(f"{place}: the file is empty, expected a value (an unknown one is left out)")
    if not sound_text(text):
        raise _garbage(content, place, f"one line of printable ASCII without blanks, at most {LONGEST_TEXT} characters")
    return text


def parse_integer(content: bytes, place: str) -> int:
    """Parse plain ASCII digits up to 2**63 - 1: no sign, no point, no exponent, no underscore."""
    text = parse_text(content, place)
    if text.isdecimal() and len(text) <= 19 and int(text) <= LARGEST:
        return int(text)
    raise _garbage(content, place, "a decimal integer without sign, below 2**63")


def parse_decimal(content: bytes, place: str) -> float:
    """Parse digits with at most one point in them, `187.5`: no sign, no exponent."""
    text = parse_text(content, place)
    whole, point, fraction = text.partition(".")
    if whole.isdecimal() and (fraction.isdecimal() or not point) and len(text) <= 30:
        return float(text)
    raise _garbage(content, place, "a number in plain notation such as 187.5")
