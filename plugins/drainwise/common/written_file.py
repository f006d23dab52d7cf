"""A file that a person wrote, read with care: what is wrong is refused by file, and by line or key.

TOML where this Python can, JSON everywhere.
"""

from __future__ import annotations

import importlib
import os
import stat
from collections.abc import Callable

from drainwise.common.typed_table import in_file, read_json
from drainwise.facts.errors import ConfigurationError

_TOML_READERS = ("tomllib", "tomli")
"""The standard library's since Python 3.11, and the package of the same interface for older ones."""


def read_text(path: str, longest: int, wanted: str, shorter: str) -> str:
    """Read the text of a regular file of at most `longest` bytes. Raises ConfigurationError.

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
    """Return the reader of TOML; None on a Python before 3.11 without the package tomli."""
    for name in _TOML_READERS:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        read: Callable[[str], object] = module.loads
        return read
    return None


def from_toml(path: str, text: str) -> object:
    """Read the value. Raises ConfigurationError."""
    read = toml_reader()
    if read is None:
        expected = "JSON in a file whose name ends in .json: TOML needs Python 3.11 or the package tomli"
        raise ConfigurationError(path, "", "", "TOML", expected)
    try:
        return read(text)
    except (ValueError, RecursionError) as fault:  # TOMLDecodeError is a ValueError, and names line and column
        raise ConfigurationError(path, "", "", " ".join(str(fault).split())[:120], "TOML") from None


def from_json(path: str, text: str) -> object:
    """Return the value of JSON; a key that stands twice and what is no number are refused: ConfigurationError."""
    return read_json(text, in_file(path))
