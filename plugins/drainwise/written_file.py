"""A file that a person wrote, read with care: what is no text of a bearable size is refused by file and line."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from drainwise.errors import ConfigurationError


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


def keys_once(path: str, wanted: str) -> Callable[[list[tuple[str, object]]], dict[str, object]]:
    """The `object_pairs_hook` of a JSON reader that refuses a key that stands twice; `wanted`: what is expected."""

    def collect(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in pairs:
            if key in found:
                raise ConfigurationError(path, "", key[:80], ascii(value)[:80], wanted)
            found[key] = value
        return found

    return collect
