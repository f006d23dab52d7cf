"""Define one finding of a check of a live pool: the verdict, why it matters, and the line that mends it."""

from __future__ import annotations

from dataclasses import dataclass

OK, MISSING, DANGEROUS = "ok", "missing", "dangerous"


@dataclass(frozen=True)
class Finding:
    """One verdict: its severity, on which machine, about what (a knob or a file), why it matters, and the line to add.

    `value` is what was found there, as far as there is something to show.
    """

    severity: str
    machine: str
    what: str
    why: str
    line: str = ""
    value: str = ""
