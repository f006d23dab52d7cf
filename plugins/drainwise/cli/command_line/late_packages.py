"""Let a command explain itself where a package that it needs is missing: help needs no numpy.

A package that is not there is stood in for while the command's module is imported. It has types to be named and
nothing that works, and the command is refused before it runs.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import sys
import types
from collections.abc import Iterator, Sequence

POOL_SIDE = frozenset({"numpy", "htcondor2", "classad2", "jinja2", "prometheus_client"})
"""The packages that only some commands need."""


class _Name:
    """A name of a package that is not there: a type in an annotation, and no more."""

    def __getitem__(self, item: object) -> _Name:
        return self


class _StandIn(types.ModuleType):
    """A package that is not there."""

    def __getattr__(self, name: str) -> _Name:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Name()


class _Finder:
    """Finds, and loads, the packages that no other finder has found; `missing` are their names."""

    def __init__(self) -> None:
        self.missing: list[str] = []

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002
        target: types.ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a package of POOL_SIDE, or a part of one that is stood in for."""
        top = fullname.partition(".")[0]
        if top not in POOL_SIDE or (fullname != top and top not in self.missing):
            return None
        self.missing.append(fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Make the stand-in."""
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leave it without contents."""


@contextlib.contextmanager
def stood_in() -> Iterator[list[str]]:
    """Stand in for the missing packages; give the names of those that were imported.

    Raises ModuleNotFoundError where a module needs more of one than names.
    """
    finder = _Finder()
    sys.meta_path.append(finder)
    try:
        yield finder.missing
    except Exception as fault:
        if not finder.missing:
            raise
        raise missed(finder.missing) from fault
    finally:
        sys.meta_path.remove(finder)
        for name in finder.missing:  # so that whoever looks for the package later does not find it
            sys.modules.pop(name, None)


def missed(missing: Sequence[str]) -> ModuleNotFoundError:
    """Return the error of a package that was stood in for."""
    return ModuleNotFoundError(f"No module named {missing[0]!r}", name=missing[0])
