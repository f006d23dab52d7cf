"""The values of an ad: believed by type and range, else unknown.

An ad is a mapping of attribute names to evaluated values. Nodes are not trusted blindly: one may be old,
broken or hostile, so a value of the wrong type counts as one that is not there. A number that no pool has must not be
calculated with either: see `odd_number`.

HTCondor counts Cpus, Memory (MiB) and Disk (KiB) on every node, and what MachineResources names beside these: GPUs and
whatever else a site counts. A job asks for `Foo` by the attribute `RequestFoo`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from drainwise.pilotad.values import unix_time
from drainwise.pool.amounts import Amounts, amounts
from drainwise.pool.finding import first_few

Ad = Mapping[str, object]

STARTD_START = "DaemonStartTime"
CLOCK = "MyCurrentTime"
"""A daemon's own time as it sent its ad, UNIX s."""

BACKFILL = "BackfillSlot"
"""True on a slot that shows cores a second time, for jobs that stand in nobody's way (SLOT_TYPE_2_BACKFILL)."""

DAEMON_ADDRESS = ("Name", "MyAddress", "CondorVersion")
"""Where a daemon other than a node's is to be found."""

LARGEST_SLOT = 16_384
"""Cores of one slot that are believed: four times the largest machine that was ever sold."""

LARGEST_POOL = 1e9
"""Cores, jobs or weights of a whole pool that are believed."""

_LARGEST_FLOAT = sys.float_info.max
_SHOWN, _BITS, _NAMES = 80, 128, 3  # characters of a foreign text, bits of a whole number, names that are shown


@dataclass(frozen=True)
class Others:
    """The answer beside the slots: the accountant's lines, the submitters, and the ads by which it is complete.

    masters: of a collector that started not long ago; nobody else needs them.
    """

    accounting: Sequence[Ad] = ()
    submitters: Sequence[Ad] = ()
    schedds: Sequence[Ad] = ()
    startds: Sequence[Ad] = ()
    collectors: Sequence[Ad] = ()
    masters: Sequence[Ad] = ()


# Kinds are compared exactly: a bool is no number here, nor is the bindings' Undefined, which is a kind of int.


def shown(value: object) -> str:
    """Show a value of an ad in a sentence to the administrator: printable, and not too long."""
    if isinstance(value, str):
        found = value
    else:
        found = "a huge number" if isinstance(value, int) and value.bit_length() > _BITS else repr(value)
    found = found[:_SHOWN].encode("ascii", "backslashreplace").decode("ascii")
    return "".join(sign if sign.isprintable() else "?" for sign in found)


def named(names: Iterable[str], most: int = _NAMES) -> str:
    """Write some names for a sentence: the first few of them and how many more there are."""
    return first_few(list(map(shown, sorted(names))), most)


def text(ad: Ad, name: str) -> str | None:
    """Return an attribute that is a string and not empty, else None."""
    value = ad.get(name)
    return value if type(value) is str and value else None


def number(ad: Ad, name: str) -> float | None:
    """Return an attribute that is a finite number of 0 or more, else None."""
    return _amount(ad.get(name))


def whole(ad: Ad, name: str) -> int | None:
    """Return a number of 0 or more, cut to a whole one (`TotalCpus = 24.0`), else None."""
    value = _amount(ad.get(name))
    return None if value is None else int(value)


def odd_number(ad: Ad, largest: Mapping[str, float]) -> str:
    """Return the first of these attributes that is there and no number from 0 to its `largest`; "" for none.

    Such a value, in one ad of thousands, would end every cycle or change everybody's share of the pool.
    """
    for name, most in largest.items():
        value = ad.get(name)
        if value is not None and ((amount := _amount(value)) is None or amount > most):
            return name
    return ""


def moment(ad: Ad, name: str) -> int | None:
    """Return a UNIX time in s of this century, else None."""
    return unix_time(ad.get(name))


def _amount(value: object) -> float | None:
    if type(value) is int or type(value) is float:
        return value if 0 <= value <= _LARGEST_FLOAT else None  # what no float can hold, arithmetic cannot either
    return None


MACHINE_RESOURCES = "MachineResources"
_GPUS = "gpus"
_EVERYWHERE = frozenset(("cpus", "memory", "disk", "swap"))
_MOST_NAMES = 32
_LARGEST = 10**12
_KIB = 1024
_MEMORY_STEP = 128
"""MiB: a partitionable slot gives memory in such steps (MODIFY_REQUEST_EXPR_REQUESTMEMORY of HTCondor)."""


def countables(listed: Iterable[object]) -> tuple[str, ...]:
    """Return the names that these values of MachineResources have beside what every node has, each in one spelling."""
    found: dict[str, str] = {}
    for names in listed:
        for name in names.split() if isinstance(names, str) else ():
            if name.isidentifier() and name.isascii() and name.lower() not in _EVERYWHERE:
                found[name.lower()] = max(name, found.get(name.lower(), ""))
    return tuple(found[name] for name in sorted(found)[:_MOST_NAMES])


def resources_of(ads: Iterable[Ad]) -> tuple[str, ...]:
    """Return the countables of a pool by the ads of its nodes."""
    return countables({text(ad, MACHINE_RESOURCES) for ad in ads})


def slot_amounts(ad: Ad, names: Collection[str], prefix: str = "") -> Amounts:
    """Return what a slot has; names: the countables of the pool; prefix: of the attributes, `TotalSlot` for all of it.

    An amount that cannot be counts as nothing.
    """
    gpus, others = _apart({name: _bounded(whole(ad, f"{prefix}{name}")) for name in names}) if names else (0, ())
    disk = _bounded(whole(ad, f"{prefix}Disk")) // _KIB
    return amounts(_bounded(whole(ad, f"{prefix}Cpus")), _bounded(whole(ad, f"{prefix}Memory")), gpus, disk, others)


def job_needs(value_of: Callable[[str], object], names: Collection[str]) -> Amounts:
    """Return what a job asks for; value_of: the evaluated value of an attribute, None where it has none.

    A job that does not say its cores, or not as a number, asks for one.
    """

    def asked(name: str) -> int:
        return _asked(value_of(f"Request{name}"))

    gpus, others = _apart({name: asked(name) for name in names})
    memory = -(-asked("Memory") // _MEMORY_STEP) * _MEMORY_STEP
    return amounts(max(1, asked("Cpus")), memory, gpus, -(-asked("Disk") // _KIB), others)


def _apart(counts: Mapping[str, int]) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Return the GPUs, and what else there is of the countables, under their names in lower case."""
    found = {name.lower(): amount for name, amount in counts.items() if amount}
    return found.pop(_GPUS, 0), tuple(sorted(found.items()))


def _asked(value: object) -> int:
    if (type(value) is int or type(value) is float) and value > 0:
        return min(math.ceil(value), _LARGEST) if value < _LARGEST else _LARGEST
    return 0


def _bounded(value: int | None) -> int:
    return value if value is not None and value <= _LARGEST else 0
