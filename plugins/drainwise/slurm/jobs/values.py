"""Numbers, times, memory and lists of tasks as Slurm's commands write them."""

from __future__ import annotations

import functools
import re

from drainwise.facts.units import parse_amount, parse_clock

ENDLESS_MINUTES = 1 << 31
"""The least of the time limits that Slurm makes of none when a lease without end gets one: thousands of years."""

_TRES_MEMORY = re.compile(r"(?:^|,)mem=([^,]*)")
_TRES_COUNT = {name: re.compile(rf"(?:^|,){name}=([0-9]{{1,9}})(?:,|$)") for name in ("cpu", "node")}
_TASKS = re.compile(r"(\d{1,12})(?:-(\d{1,12})(?::(\d{1,12}))?)?")
_DIGITS = 18


def whole(word: str | None, digits: int = _DIGITS) -> int | None:
    """Return the whole number that `word` is, None for anything else and for more digits."""
    return int(word) if word and word.isascii() and word.isdigit() and len(word) <= digits else None


@functools.lru_cache  # jobs have the same few limits and resources
def minutes_in(limit: str) -> int | None:
    """Return the minutes in a time limit such as `1-02:03:00` or `10:00`; None for UNLIMITED.

    squeue prints INVALID for a limit of thousands of years: that is ENDLESS_MINUTES here.
    """
    if limit == "INVALID":
        return ENDLESS_MINUTES
    found = parse_clock(limit) if ":" in limit else None
    return None if found is None else int(found // 60)


def cpu_seconds(text: str) -> float | None:
    """Return `[days-[hours:]]minutes:seconds` in s; None for another text, and for 0: then nobody measured it."""
    return (parse_clock(text) if ":" in text else None) or None


def bytes_of(text: str) -> int | None:
    """Return `500M` or `1.50G` in bytes; None for 0, which is no limit."""
    return int(parse_amount(text, 1 << 20) or 0) or None


def mebibytes_in(text: str) -> int:
    """Return `1G` in MiB, rounded up; 0 for anything else."""
    return -(-(bytes_of(text) or 0) >> 20)


@functools.lru_cache
def memory_in(resources: str) -> int | None:
    """Return the memory in a list of trackable resources (`cpu=3,mem=6G`), bytes; None without any."""
    match = _TRES_MEMORY.search(resources)
    return bytes_of(match[1]) if match else None


@functools.lru_cache
def cores_in(resources: str) -> int | None:
    """Return the cores in a list of trackable resources, None without any."""
    match = _TRES_COUNT["cpu"].search(resources)
    return int(match[1]) if match else None


@functools.lru_cache
def nodes_of(resources: str) -> int | None:
    """Return the nodes in a list of trackable resources, of a waiting job the fewest that will do; None without any."""
    match = _TRES_COUNT["node"].search(resources)
    return int(match[1]) if match else None


def waiting_tasks(text: str) -> tuple[int, int | None]:
    """Return how many tasks `1-9:2,12%4` names, and how many of the array may run at a time (None: all)."""
    tasks, _, most = text.partition("%")
    count = 0
    for first, last, step in _TASKS.findall(tasks):
        count += (int(last) - int(first)) // max(1, int(step or 1)) + 1 if last else 1
    return max(1, count), whole(most, 12) or None
