"""Decide which running jobs may be ordered, by `[reclaim] preemptible`, `exempt` and `[scope NAME]` of the site file.

The conditions are those of `[clients]` (see `client_rules`): patterns on facts of a job. No text is evaluated.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from drainwise.facts.client_rules import ATTRIBUTE, alternatives
from drainwise.facts.name_patterns import any_matches

PREEMPTIBLE, EXEMPT = "preemptible", "exempt"
OUT_OF_SCOPE = "out of scope"
"""How the reason begins for which a job outside of the scope gets no order."""
END, REQUEUE = "end", "requeue"
"""What becomes of a job at the deadline of an order."""
OF_USERS = ("name", "comment", "feature")
"""What users set themselves."""

JobFacts = Mapping[str, Sequence[str]]
"""By key of a condition, the texts of which one must match."""


@dataclass(frozen=True)
class Scope:
    """One `[scope NAME]`: the jobs that its conditions fit. multi_node: see docs. min_age (s), at_deadline: None as for
    all.
    """

    name: str
    jobs: str
    min_age: int | None = None
    multi_node: bool = False
    at_deadline: str | None = None


@dataclass(frozen=True)
class ScopeRules:
    """preemptible, exempt: rows of conditions, "" for none. scopes: in the order of the site file; the first counts.

    at_deadline: END or REQUEUE; None: END, but a job that is ended at once is requeued.
    """

    preemptible: str = ""
    exempt: str = ""
    scopes: tuple[Scope, ...] = ()
    at_deadline: str | None = None

    def __bool__(self) -> bool:
        return bool(self.preemptible or self.exempt or self.scopes or self.at_deadline)

    def why_out(self, facts: JobFacts) -> str:
        """Return why a job may not be ordered, with the key that says so; "" when it may. `exempt` wins."""
        if self.exempt and fits(self.exempt, facts):
            return f"{OUT_OF_SCOPE} by [reclaim] {EXEMPT} = {self.exempt}"
        if self.preemptible and not fits(self.preemptible, facts):
            return f"{OUT_OF_SCOPE} of [reclaim] {PREEMPTIBLE} = {self.preemptible}"
        return ""

    def scope_of(self, facts: JobFacts) -> Scope | None:
        """Return the first scope that fits a job."""
        return next((one for one in self.scopes if fits(one.jobs, facts)), None)

    def at_deadline_of(self, facts: JobFacts) -> str | None:
        """Return what becomes of a job at its deadline, as `at_deadline`."""
        scope = self.scope_of(facts)
        return self.at_deadline if scope is None or scope.at_deadline is None else scope.at_deadline

    @property
    def may_requeue(self) -> bool:
        """Whether some jobs are requeued at their deadline."""
        return REQUEUE in {self.at_deadline, *(one.at_deadline for one in self.scopes)}

    def rows(self) -> dict[str, str]:
        """Return the conditions by their place in the site file."""
        found = {f"[reclaim] {PREEMPTIBLE}": self.preemptible, f"[reclaim] {EXEMPT}": self.exempt}
        found |= {f"[scope {one.name}] jobs": one.jobs for one in self.scopes}
        return {place: row for place, row in found.items() if row}

    def remarks(self, jobs: Sequence[JobFacts] | None) -> list[str]:
        """Return what an administrator should know of the scope; jobs: those that run, None where nobody tells."""
        if not (self.preemptible or self.exempt):
            return [
                "no scope: each running job of an account over its share may be ordered ([reclaim] preemptible, exempt)"
            ]
        found = []
        for place, row in self.rows().items():
            keys = dict.fromkeys(key for every in _conditions(row) for key, _ in every)
            own = [key for key in keys if key in OF_USERS or (key.startswith(ATTRIBUTE) and not _is_credential(key))]
            found += [f"{place} = {row}: users set {', '.join(own)} of their jobs themselves"] if own else []
            if jobs is not None and not any(fits(row, job) for job in jobs):
                found.append(f"{place} = {row}: no running job fits")
        return found

    def attributes(self) -> tuple[str, ...]:
        """Return the attributes of HTCondor's job ad that the conditions ask for."""
        return tuple(sorted(key[len(ATTRIBUTE) :] for key in self.keys() if key.startswith(ATTRIBUTE)))

    def keys(self) -> frozenset[str]:
        """Return the keys that the conditions ask for."""
        return frozenset(key for row in self.rows().values() for every in _conditions(row) for key, _ in every)


def _is_credential(key: str) -> bool:
    """Decide whether the access point sets an attribute, and no user can (SYSTEM_SECURE_JOB_ATTRS)."""
    return key[len(ATTRIBUTE) :].lower().startswith(("x509userproxy", "authtoken"))


@functools.lru_cache(maxsize=64)
def _conditions(row: str) -> tuple[tuple[tuple[str, str], ...], ...]:
    return alternatives(row)


def fits(row: str, facts: JobFacts) -> bool:
    """Decide whether a row of conditions fits a job; a fact that is not there fits none."""
    return any(all(any_matches(patterns, facts.get(key, ())) for key, patterns in every) for every in _conditions(row))
