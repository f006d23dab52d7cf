"""What the accounting says of the qualities of service: whom each may preempt, how, and how long before."""

from __future__ import annotations

from dataclasses import dataclass

from drainwise.facts.units import parse_clock

_FIELDS = ("Name", "Preempt", "PreemptMode", "GraceTime", "PreemptExemptTime")
COMMAND = ("sacctmgr", "--noheader", "--parsable2", "show", "qos", f"format={','.join(_FIELDS)}")


@dataclass(frozen=True)
class Qos:
    """A quality of service: which others it may preempt, the words of its PreemptMode, and its GraceTime, s.

    exempt: how long its runs are safe from their start, s; None as for all.
    """

    name: str
    preempts: frozenset[str]
    modes: frozenset[str]
    grace: int = 0
    exempt: int | None = None


def qos_in(answer: str) -> tuple[Qos, ...]:
    """Return the qualities of service in the output of COMMAND."""
    rows = [line.split("|") for line in answer.splitlines()]
    return tuple(
        Qos(
            row[0],
            frozenset(filter(None, row[1].split(","))),
            frozenset(row[2].lower().split(",")),
            int(parse_clock(row[3]) or 0),
            None if (exempt := parse_clock(row[4])) is None else int(exempt),
        )
        for row in rows
        if len(row) == len(_FIELDS)
    )
