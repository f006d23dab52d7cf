"""The engine of findings of `check` and `doctor`: a table of rules reads facts and gives verdicts, each with its cure.

A rule is a function: facts in, findings out. It says nothing where it does not apply. The standard library suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

OK, MISSING, DANGEROUS = "ok", "missing", "dangerous"
LEVELS = (DANGEROUS, MISSING, OK)
"""The severities, the worst first."""


@dataclass(frozen=True)
class Finding:
    """One verdict: its severity, about what (a knob or a file), why it matters, and the line to add or command to type.

    `value` is what was found there, as far as there is something to show. `machine`: where; a rule about one machine
    leaves it to `judged`.
    """

    severity: str
    what: str
    why: str
    line: str = ""
    value: str = ""
    machine: str = ""


Rule = Callable[..., Iterable[Finding]]


def judged(machine: str, rules: Iterable[Rule], *facts: object) -> list[Finding]:
    """Return what each of the rules finds in the facts, in the order of the rules; all on `machine` by default."""
    found = (finding for rule in rules for finding in rule(*facts))
    return [finding if finding.machine else replace(finding, machine=machine) for finding in found]


def to_mend(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that are not in order, the dangerous ones first."""
    return [finding for finding in worst_first(findings) if finding.severity != OK]


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings by severity, those of one severity in their order."""
    return sorted(findings, key=lambda finding: LEVELS.index(finding.severity))


def first_few(names: Sequence[str], most: int = 5) -> str:
    """Return at most so many of these names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def as_json(finding: Finding) -> dict[str, str]:
    """Return a finding as it stands in the document of `check`."""
    names = ("severity", "machine", "what", "why", "line", "value")
    return {name: getattr(finding, name) for name in names}
