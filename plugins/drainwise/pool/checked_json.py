"""Check values out of JSON by their kind, and refuse what is not one with the place of the fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, cast

from drainwise.facts.errors import UsageError

_LARGEST = 1 << 63
_MOST_KNOWN = 1000
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "number": (int, float),
    "text": (str,),
    "bool": (bool,),
    "list": (list,),
    "object": (dict,),
}


def checked_object(value: object, kinds: Mapping[str, str], where: str) -> dict[str, Any]:
    """Return the values of an object that has exactly these names, each of its kind."""
    if not isinstance(value, dict):
        raise UsageError(f"{where}: expected an object")
    odd = sorted(set(kinds) ^ set(cast("dict[str, object]", value)))
    if odd:
        raise UsageError(f"{where}: {odd[0]!r} is {'missing' if odd[0] in kinds else 'not known'}")
    return {name: checked(value[name], kind, f"{where}, {name}") for name, kind in kinds.items()}


def checker(kinds: Mapping[str, str]) -> Callable[[object, str], tuple[Any, ...]]:
    """Return what checks many objects of these kinds as `checked_object` does: as strictly, and faster.

    It returns the values in the order of `kinds`, of which there are several. What it has found sound once it looks at
    by its types alone, but for the size of numbers.
    """
    values_of, count = itemgetter(*kinds), len(kinds)
    numbers = [place for place, kind in enumerate(kinds.values()) if kind.rstrip("?") in {"int", "number"}]
    known: set[tuple[type, ...]] = set()

    def check(value: object, where: str) -> tuple[Any, ...]:
        if type(value) is dict and len(value) == count:
            try:
                found: tuple[Any, ...] = values_of(value)
            except KeyError:
                found = ()
            if tuple(map(type, found)) in known:
                for place in numbers:
                    if found[place] is not None and not -_LARGEST < found[place] < _LARGEST:
                        break
                else:
                    return found
        found = tuple(checked_object(value, kinds, where).values())
        if len(known) < _MOST_KNOWN:
            known.add(tuple(map(type, found)))
        return found

    return check


def checked(value: Any, kind: str, where: str) -> Any:
    """Return a value of that kind (`?` at its end: or null). Raises UsageError for another one."""
    if value is None and kind.endswith("?"):
        return None
    plain = kind.rstrip("?")
    sound = isinstance(value, _TYPES[plain]) and (plain == "bool" or not isinstance(value, bool))
    if sound and isinstance(value, (int, float)):
        sound = abs(value) < _LARGEST  # which NaN is not
    if not sound:
        raise UsageError(f"{where}: expected {plain}" + (" or null" if kind.endswith("?") else ""))
    return value
