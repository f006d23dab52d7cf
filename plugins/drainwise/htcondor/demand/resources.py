"""Read amounts out of ads: what a slot has, what a job asks for.

HTCondor counts Cpus, Memory (MiB) and Disk (KiB) on every node, and what MachineResources names beside these: GPUs and
whatever else a site counts. A job asks for `Foo` by the attribute `RequestFoo`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping

from drainwise.htcondor.ads.values import Ad, text, whole
from drainwise.pool.amounts import Amounts, amounts

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
