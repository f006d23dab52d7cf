"""A section of the site file as a typed table: the fields of a frozen dataclass are its keys.

The fields *are* the table: the reader checks a file against it, `drainwise config keys` prints it, and whoever uses a
value gets it typed. Durations are held in seconds and sizes in bytes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from drainwise.siteconfig.kinds import TextKind

T = TypeVar("T")


def key(kind: TextKind[T], default: T, meaning: str) -> T:
    """Declare a key with a default value."""
    return field(default=default, metadata={"kind": kind, "meaning": meaning})


def optional(kind: TextKind[T], example: str, meaning: str) -> T | None:
    """Declare a key that a site may leave out; its value is then None."""
    return field(default=None, metadata={"kind": kind, "meaning": meaning, "example": example})


@dataclass(frozen=True)
class Key:
    """One key; `default` is the text that a site file would have, empty when there is none.

    `example` is what a key without a default may look like.
    """

    section: str
    name: str
    kind: TextKind[Any]
    default: str
    meaning: str
    example: str


def keys_of(section: str, table: type[Any]) -> Iterator[Key]:
    """Yield the keys of a table in their order."""
    for row in dataclasses.fields(table):
        kind = cast("TextKind[Any]", row.metadata["kind"])
        default = "" if row.default is None else kind.show(row.default)
        meaning, example = str(row.metadata["meaning"]), str(row.metadata.get("example", ""))
        yield Key(section, row.name, kind, default, meaning, example)
