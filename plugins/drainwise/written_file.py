"""A file that a person wrote, read with care: what is wrong is refused by file, and by line or key.

TOML where this Python can, JSON everywhere.
"""

from __future__ import annotations

import importlib
import json
import os
import stat
from collections.abc import Callable
from typing import NoReturn

from drainwise.errors import ConfigurationError

_TOML_READERS = ("tomllib", "tomli")
"""The standard library's since Python 3.11, and the package of the same interface for older ones."""


def read_text(path: str, longest: int, wanted: str, shorter: str) -> str:
    """The text of a regular file of at most `longest` bytes. Raises ConfigurationError.

    wanted: what is expected in words where that is no file, or none that can be read; shorter: where it is longer.
    O_NONBLOCK keeps a FIFO in the file's place from holding the command for ever.
    """
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigurationError(path, "", "", "not a regular file", wanted)
            content = file.read(longest + 1)
    except (OSError, ValueError) as fault:  # ValueError: a NUL in the path
        reason = getattr(fault, "strerror", "") or str(fault)
        raise ConfigurationError(path, "", "", reason, wanted) from None
    if len(content) > longest:
        raise ConfigurationError(path, "", "", f"more than {longest} bytes", shorter)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line, byte = content.count(b"\n", 0, fault.start) + 1, f"byte {content[fault.start]:#x}"
        raise ConfigurationError(path, "", "", byte, f"UTF-8 text on line {line}") from None


def toml_reader() -> Callable[[str], object] | None:
    """What reads TOML here; None on a Python before 3.11 without the package tomli."""
    for name in _TOML_READERS:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        read: Callable[[str], object] = module.loads
        return read
    return None


def from_toml(path: str, text: str) -> object:
    """The value. Raises ConfigurationError."""
    read = toml_reader()
    if read is None:
        expected = "JSON in a file whose name ends in .json: TOML needs Python 3.11 or the package tomli"
        raise ConfigurationError(path, "", "", "TOML", expected)
    try:
        return read(text)
    except (ValueError, RecursionError) as fault:  # TOMLDecodeError is a ValueError, and names line and column
        raise ConfigurationError(path, "", "", " ".join(str(fault).split())[:120], "TOML") from None


def from_json(path: str, text: str) -> object:
    """The value; a key that stands twice and what is no number are refused. Raises ConfigurationError."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in pairs:
            if key in found:
                raise ConfigurationError(path, "", key[:80], ascii(value)[:80], "the key once")
            found[key] = value
        return found

    def no_number(word: str) -> NoReturn:
        raise ConfigurationError(path, "", "", word, "JSON, which has no such number")

    try:
        found: object = json.loads(text, object_pairs_hook=once, parse_constant=no_number)
    except (ValueError, RecursionError) as fault:
        raise ConfigurationError(path, "", "", str(fault)[:120], "JSON") from None
    return found
