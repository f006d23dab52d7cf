"""Find what other installed packages add to drainwise by an entry-point group; skip what is broken with a warning.

A package adds one object by a line of its metadata, `[drainwise.GROUP]` with `name = module:object`; nothing of it is
imported before its name is asked for.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Generic, TypeVar

from drainwise.common.printable import ascii_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

_NAME = re.compile("[a-z][a-z0-9_-]{0,31}")
_EXPECTED = "expected a name of at most 32 small letters, digits, - and _ that begins with a letter"


def warn(text: str) -> None:
    """Write one line to standard error."""
    print(f"drainwise: {text}", file=sys.stderr)


class PluginEntries(Generic[T]):
    """The objects of one entry-point group, each loaded when it is asked for first.

    accept: return what is used of a loaded object, raise TypeError for one that does not fit. own: names that no
    package can take. A name that two packages offer is the first one's on sys.path.
    """

    def __init__(
        self, group: str, accept: Callable[[str, object], T], own: Collection[str], warn: Callable[[str], None] = warn
    ) -> None:
        self._group, self._accept, self._own, self._warn = group, accept, own, warn
        self._offers: dict[str, tuple[str, EntryPoint]] | None = None
        self._loaded: dict[str, T | None] = {}

    def names(self) -> tuple[str, ...]:
        """Return the names that packages offer, sorted; nothing of the packages is imported."""
        return tuple(sorted(self._found()))

    def get(self, name: str) -> T | None:
        """Return the object of that name; None where no package offers it, or where it is broken (warned of once)."""
        if name not in self._loaded and name in self._found():
            package, entry = self._found()[name]
            try:
                self._loaded[name] = self._accept(name, entry.load())
            except (Exception, SystemExit) as fault:  # foreign code may raise anything
                self._loaded[name] = None
                self._skip(name, package, f"{type(fault).__name__}: {fault}")
        return self._loaded.get(name)

    def all(self) -> dict[str, T]:
        """Return every object that can be loaded, by name."""
        found = {name: self.get(name) for name in self.names()}
        return {name: one for name, one in found.items() if one is not None}

    def _found(self) -> dict[str, tuple[str, EntryPoint]]:
        if self._offers is not None:
            return self._offers
        from importlib.metadata import distributions  # noqa: PLC0415 - takes longer to import than most commands need

        self._offers = {}
        seen: set[str] = set()
        for package in distributions():
            title = "?"
            try:
                offered = [one for one in package.entry_points if one.group == self._group]
                # To read the other metadata takes longer than most commands do. Of a second one of a name on sys.path
                # nothing can be imported.
                if not offered or (title := str(package.metadata["Name"])) in seen:
                    continue
                seen.add(title)
                version = package.version
            except Exception as fault:  # any package, and what is left of one, may have metadata that nobody can read
                self._warn(ascii_line(f"package {title} is left out: its metadata: {type(fault).__name__}: {fault}"))
                continue
            for entry in offered:
                name, whose, taken = entry.name, f"{title} {version}", self._offers.get(entry.name)
                if _NAME.fullmatch(name) is None:
                    self._skip(name, whose, _EXPECTED)
                elif name in self._own:
                    self._skip(name, whose, "drainwise has one of this name itself")
                elif taken is not None:
                    self._skip(name, whose, f"{taken[0]} offers one of this name, too")
                else:
                    self._offers[name] = (whose, entry)
        return self._offers

    def _skip(self, name: str, package: str, fault: str) -> None:
        self._warn(ascii_line(f"{name!r} ({self._group}) of package {package} is left out: {fault}"))
