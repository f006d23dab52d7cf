"""Find a batch system by its name: the built-in ones, and those of installed packages (`drainwise.systems`)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from drainwise.common.plugin_entries import PluginEntries, warn
from drainwise.common.printable import ascii_line
from drainwise.facts.errors import UsageError
from drainwise.systems.system import System

T = TypeVar("T")

GROUP = "drainwise.systems"
FALLBACK = "local"
"""The one that needs nothing of the machine."""
OWN = ("htcondor", "slurm", FALLBACK)
"""The built-in ones, in the order in which `--pool auto` looks: `drainwise.NAME.system` has each as SYSTEM."""
TAKEN = frozenset({*OWN, "sge", "local-batch", "auto", "check", "keys", "example"})
"""The names that no package can give a system: a command has each for something else."""


def _accept(name: str, found: object) -> System:
    system = found() if isinstance(found, type) and issubclass(found, System) else found
    if not isinstance(system, System):
        raise TypeError(f"expected a drainwise.systems.System, found {type(system).__name__}")
    if system.name != name:
        raise TypeError(f"calls itself {system.name!r}")
    return system


_loaded: dict[str, System] = {}
_installed = PluginEntries(GROUP, _accept, TAKEN)


def own(name: str) -> System:
    """Return a built-in system."""
    if name not in _loaded:
        _loaded[name] = importlib.import_module(f"drainwise.{name}.system").SYSTEM
    return _loaded[name]


def installed(name: str) -> System | None:
    """Return the system of an installed package; None where there is none of that name, or a broken one."""
    return _installed.get(name)


def offering(method: Callable[..., object]) -> Iterator[System]:
    """Yield the systems that offer a method of `System`: built-in ones, installed ones, and last the fallback.

    Installed ones are loaded only when their turn comes.
    """
    for turn in (map(own, OWN[:-1]), _each_installed(), [own(FALLBACK)]):
        yield from (system for system in turn if system.offers(method))


def _each_installed() -> Iterator[System]:
    yield from _installed.all().values()


def named(name: str, method: Callable[..., object], option: str) -> System:
    """Return the system of that name. Raises UsageError that lists the names there are where it does not offer this."""
    system = own(name) if name in OWN else installed(name)
    if system is None or not system.offers(method):
        raise UsageError(f"{option} {name[:80]}: expected one of {', '.join(one.name for one in offering(method))}")
    return system


def tried(system: System, call: Callable[[], T], otherwise: T) -> T:
    """Return the result of a call to a system; `otherwise`, and a warning, where an installed one fails.

    For calls that concern all systems: one that is broken must not hinder the others.
    """
    try:
        return call()
    except Exception as fault:
        if system.name in OWN:
            raise
        warn(ascii_line(f"{system.name}: {type(fault).__name__}: {fault}"))
        return otherwise
