"""Hold amounts of what jobs ask for and nodes have: cores, memory, GPUs, disk, and whatever else a site counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Amounts:
    """Amounts ≥ 0: `cores`, `memory` in MiB, `gpus`, `disk` in MiB; others: further countables by name, sorted.

    A GPU of a named type counts twice: in `gpus`, and in `others` under its type (`gpu:a100`).
    """

    cores: int = 0
    memory: int = 0
    gpus: int = 0
    disk: int = 0
    others: tuple[tuple[str, int], ...] = ()

    def named(self) -> Iterator[tuple[str, int]]:
        """Yield the name and amount of everything of which there is some."""
        for name in PLAIN:
            if amount := getattr(self, name):
                yield name, amount
        yield from self.others

    def covers(self, needs: Amounts) -> bool:
        """Return whether there is enough of everything that `needs` names."""
        if self.cores < needs.cores or self.memory < needs.memory:
            return False
        if self.gpus < needs.gpus or self.disk < needs.disk:
            return False
        return not needs.others or all(dict(self.others).get(name, 0) >= amount for name, amount in needs.others)

    def __add__(self, more: Amounts) -> Amounts:
        return sum_of((self, more))

    def minus(self, less: Amounts) -> Amounts:
        """Return what is left without `less`; nothing where less is left than that."""
        taken = dict(less.others)
        return amounts(
            max(0, self.cores - less.cores),
            max(0, self.memory - less.memory),
            max(0, self.gpus - less.gpus),
            max(0, self.disk - less.disk),
            tuple((name, left) for name, amount in self.others if (left := amount - taken.get(name, 0)) > 0),
        )

    def at_most(self, other: Amounts) -> Amounts:
        """Return of everything the smaller amount."""
        return self.minus(self.minus(other))

    def in_words(self) -> str:
        """Return the amounts for an administrator: `8 cores, 32 GiB memory, 1 GPU`."""
        words = [f"{self.cores} {'core' if self.cores == 1 else 'cores'}"] if self.cores else []
        words += [f"{_size(self.memory)} memory"] if self.memory else []
        words += [f"{self.gpus} {'GPU' if self.gpus == 1 else 'GPUs'}"] if self.gpus else []
        words += [f"{_size(self.disk)} disk"] if self.disk else []
        return ", ".join([*words, *(f"{amount} {name}" for name, amount in self.others)]) or "nothing"


NOTHING = Amounts()

PLAIN = ("cores", "memory", "gpus", "disk")
"""The amounts that have a name of their own."""


@lru_cache(maxsize=65_536)
def amounts(
    cores: int = 0, memory: int = 0, gpus: int = 0, disk: int = 0, others: tuple[tuple[str, int], ...] = ()
) -> Amounts:
    """Return the amounts; the same object for the same ones, as most jobs and nodes are alike."""
    return Amounts(cores, memory, gpus, disk, others)


def sum_of(parts: Iterable[Amounts]) -> Amounts:
    """Return the sum of all parts."""
    cores = memory = gpus = disk = 0
    others: dict[str, int] = {}
    for one in parts:
        cores, memory, gpus, disk = cores + one.cores, memory + one.memory, gpus + one.gpus, disk + one.disk
        for name, amount in one.others:
            others[name] = others.get(name, 0) + amount
    return amounts(cores, memory, gpus, disk, tuple(sorted(others.items())))


def _size(mebibytes: int) -> str:
    return f"{mebibytes / 1024:.4g} GiB" if mebibytes >= 1024 else f"{mebibytes} MiB"
