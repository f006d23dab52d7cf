"""Keep pilots outside of the site's scope from orders, each with the key that says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from drainwise.facts.client_rules import ACCOUNT, USER, user_texts
from drainwise.facts.scope_rules import OUT_OF_SCOPE, JobFacts, ScopeRules
from drainwise.pool.facts import Pilot, Snapshot


def job_facts(pilot: Pilot) -> JobFacts:
    """Return what the conditions of a scope ask of a pilot's job."""
    return {USER: user_texts((pilot.user,)), ACCOUNT: (pilot.account,), **dict(pilot.traits)}


def in_scope(pilots: Iterable[Pilot], rules: ScopeRules) -> tuple[Pilot, ...]:
    """Return the pilots; those outside of the scope can get no order, and others have their scope's least age."""
    known: dict[object, tuple[str, int | None]] = {}
    found = []
    for pilot in pilots:
        key = (pilot.user, pilot.account, pilot.traits)
        if key not in known:
            facts = job_facts(pilot)
            scope = rules.scope_of(facts)
            known[key] = rules.why_out(facts), None if scope is None else scope.min_age
        why, min_age = known[key]
        changed = why or min_age is not None
        found.append(replace(pilot, cannot=why or pilot.cannot, min_age=min_age) if changed else pilot)
    return tuple(found)


def is_out_of_scope(pilot: Pilot) -> bool:
    """Return whether `in_scope` has kept a pilot from orders."""
    return pilot.cannot.startswith(OUT_OF_SCOPE)


def with_scope(snapshot: Snapshot, rules: ScopeRules) -> Snapshot:
    """Return the snapshot with its pilots as `in_scope` has them."""
    return replace(snapshot, pilots=in_scope(snapshot.pilots, rules)) if rules else snapshot
