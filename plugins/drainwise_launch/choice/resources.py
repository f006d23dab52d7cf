"""The resources that a job reserves while it runs: cores, memory, scratch, and whatever a site has names for.

What needs nearly the same waits in one bucket, so that choosing costs the number of buckets, not of jobs. Rounding
groups; what is reserved in the end are the exact amounts. Source: SPEC §5; open-lmake's resource buckets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Union

from drainwise.common.typed_table import shown
from drainwise.facts.errors import UsageError

CPU, MEM, TMP = "cpu", "mem", "tmp"
STANDARD = (CPU, MEM, TMP)
MOST = 1 << 50
"""The largest amount of anything."""
MOST_CPU = 1_000_000
TEXT_LIMIT = 1000

BITS = 3
"""Significant bits that rounding leaves: steps of an eighth to a quarter."""

Amount = Union[int, str]
"""Whole numbers are reserved; texts (a partition, a feature) are passed to the batch system as they are."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
_OF_COMPONENT = re.compile(f"({'|'.join(STANDARD)})[0-9]{{1,3}}")
_TEXT_AMOUNT = re.compile(r"([0-9]{1,16})([kMGT]?)")
_MB = {"": 0, "k": -10, "M": 0, "G": 10, "T": 20}
_PLAIN = {"": 0, "k": 10, "M": 20, "G": 30, "T": 40}


@dataclass(frozen=True)
class Resources:
    """`cpu`: threads; `mem` and `tmp`: MB (2^20 bytes); `others`: (name, amount), by name. Source: SPEC §5.

    Made by `parse_resources`, which checks; equal ones are equal, so that a million jobs may share fifty.
    """

    cpu: int = 1
    mem: int = 0
    tmp: int = 0
    others: tuple[tuple[str, Amount], ...] = ()

    def get(self, name: str) -> Amount | None:
        """Return the amount of one resource by its name; None for another one that was not asked for."""
        if name in STANDARD:
            amount: int = getattr(self, name)
            return amount
        return dict(self.others).get(name)

    def amounts(self) -> dict[str, int]:
        """Return the counted amounts by name; cpu, mem and tmp are always there."""
        counted = {name: amount for name, amount in self.others if isinstance(amount, int)}
        return {CPU: self.cpu, MEM: self.mem, TMP: self.tmp, **counted}

    def texts(self) -> dict[str, str]:
        """Return the texts that are passed on, by name."""
        return {name: amount for name, amount in self.others if isinstance(amount, str)}


def parse_resources(found: Mapping[str, object], whose: str) -> Resources:
    """Return resources as a person wrote them: numbers, or texts such as "2G" for mem and tmp (MB without a letter).

    A text of another name is a number when it looks like one. `mem1` and `tmp1` are in MB as `mem` is: the amounts of
    another component of a heterogeneous job. `whose` names the job or the table in a complaint. Raises UsageError for
    what is zero, absurd or not named soundly; a cpu of 0 would be a job that never counts.
    """
    standard = {CPU: 1, MEM: 0, TMP: 0}
    others: list[tuple[str, Amount]] = []
    for name, value in found.items():
        if name in STANDARD:
            amount = _amount(value, _MB if name != CPU else _PLAIN)
            least, most = (1, MOST_CPU) if name == CPU else (0, MOST)
            if not isinstance(amount, int) or not least <= amount <= most:
                raise wrong(whose, name, value, f"a whole number from {least} to {most}" + _UNIT[name])
            standard[name] = amount
            continue
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UsageError(f"{whose}: resource {shown(name)!a}: expected a name of A-Z a-z 0-9 _ . -, a letter first")
        others.append((name, _other(whose, name, value)))
    return Resources(standard[CPU], standard[MEM], standard[TMP], tuple(sorted(others)))


_UNIT = {CPU: " (threads)", MEM: " (MB, or such as 2G)", TMP: " (MB, or such as 2G)"}


def standard_of(name: str) -> str:
    """Return which of cpu, mem and tmp a resource like `mem1` is of another component; "" for another resource."""
    match = _OF_COMPONENT.fullmatch(name)
    return match[1] if match else ""


def _other(whose: str, name: str, value: object) -> Amount:
    amount = _amount(value, _MB if standard_of(name) in {MEM, TMP} else _PLAIN)
    if isinstance(amount, int):
        if not 1 <= amount <= MOST:
            raise wrong(whose, name, value, f"a whole number from 1 to {MOST}, or a text")
        return amount
    if isinstance(value, str) and 0 < len(value) <= TEXT_LIMIT and value.isprintable():
        return value
    raise wrong(whose, name, value, f"a whole number, or a printable text of at most {TEXT_LIMIT} characters")


def _amount(value: object, letters: Mapping[str, int]) -> int | None:
    """Return the number that was written; None for what is none. Kilobytes are rounded up to MB."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _TEXT_AMOUNT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    number, shift = int(match[1]), letters[match[2]]
    return number << shift if shift >= 0 else -(-number >> -shift)


def wrong(whose: str, key: str, value: object, expected: str) -> UsageError:
    """Return the error of one value, in one line."""
    return UsageError(f"{whose}: {key} = {shown(value)!a}: expected {expected}")


def rounded_up(amount: int) -> int:
    """Return the next number of at most BITS significant bits: 8 → 8, 9 → 10, 17 → 20, 1000 → 1024, 1025 → 1280."""
    spare = amount.bit_length() - BITS
    return amount if spare <= 0 else -(-amount >> spare) << spare


@cache
def bucket_of(resources: Resources) -> Resources:
    """Return the bucket, one object for equal resources: cpu, mem and tmp of every component rounded up."""
    others = tuple(
        (name, rounded_up(amount) if isinstance(amount, int) and standard_of(name) else amount)
        for name, amount in resources.others
    )
    return Resources(rounded_up(resources.cpu), rounded_up(resources.mem), rounded_up(resources.tmp), others)
