"""Names that somebody types, against those that are known: a user with or without its domain, a node by a pattern."""

from __future__ import annotations

from collections.abc import Collection

from drainwise.facts.errors import UsageError
from drainwise.facts.name_patterns import matches

_MOST_NAMED = 20
"""Known names that a refusal shows."""


def called(name: str, known: Collection[str]) -> set[str]:
    """Return the known names that `name` means: itself, else those that are it with a domain, `alice@pool`."""
    return {name} & set(known) or {one for one in known if one.partition("@")[0] == name}


def nodes_called(pattern: str, known: Collection[str]) -> set[str]:
    """Return the known nodes that a pattern means, with their domain or without it; patterns as in `name_patterns`."""
    return {one for one in known if matches(pattern, one) or matches(pattern, one.partition(".")[0])}


def unknown_name(what: str, name: str, known: Collection[str]) -> UsageError:
    """Return the refusal of a name that nothing is called by, which shows known names; what: such as "user"."""
    shown = sorted(known)
    more = f" and {len(shown) - _MOST_NAMED} more" if len(shown) > _MOST_NAMED else ""
    return UsageError(f"no {what} is called {name!r}; there is {', '.join(shown[:_MOST_NAMED]) or 'nobody'}{more}")
