"""The lines of slurm.conf as they are written, with those of the files that it includes, in the order in which Slurm
reads them: of a key with one value the last line counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from drainwise.common.typed_table import read_text
from drainwise.facts.errors import ConfigurationError

_LONGEST = 16 << 20  # bytes; the nodes of a large cluster fill a few MB
_MOST_FILES = 256
_INCLUDE = re.compile(r"\s*include\s+(\S+)", re.IGNORECASE)
_SETTING = re.compile(r'\s*([A-Za-z0-9_.]+)\s*=\s*(?:"([^"]*)"|(\S*))')
_COMMENT = re.compile(r"(?<!\\)#.*")


@dataclass(frozen=True)
class ConfigLine:
    """One setting: the key in lower case, its value without quotes, and where it stands."""

    file: str
    number: int
    key: str
    value: str

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{self.number}"


def read_config(path: str, cluster: str = "") -> tuple[ConfigLine, ...]:
    """Return the settings of the file `path` and of what it includes; `cluster` stands for `%c` in the names of these.

    Raises ConfigurationError for a file that cannot be read, and for files that include each other without end.
    """
    opened: list[str] = []
    return tuple(_lines(path, os.path.dirname(path), cluster, opened))


def _lines(path: str, directory: str, cluster: str, opened: list[str]) -> Iterator[ConfigLine]:
    opened.append(path)
    if len(opened) > _MOST_FILES:
        raise ConfigurationError(
            path, "", "Include", path, f"at most {_MOST_FILES} files, none of which includes itself"
        )
    text = read_text(path, _LONGEST, "a file of slurm.conf's lines that this user can read", "a shorter slurm.conf")
    for number, line in _joined(text):
        included = _INCLUDE.match(line)
        setting = _SETTING.match(line)
        if included:
            yield from _lines(os.path.join(directory, included[1].replace("%c", cluster)), directory, cluster, opened)
        elif setting:
            value = setting[3] if setting[2] is None else setting[2]
            yield ConfigLine(path, number, setting[1].lower(), value)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines without comments by number; what follows a backslash at a line's end belongs to it."""
    begun, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        first = first or number
        plain = _COMMENT.sub("", line).rstrip()
        if plain.endswith("\\"):
            begun += plain[:-1]
            continue
        yield first, (begun + plain).replace("\\#", "#")
        begun, first = "", 0
