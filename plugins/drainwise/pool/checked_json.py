"""Check values out of JSON by their kind, and refuse what is not one with the place of the fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from drainwise.facts.errors import UsageError

_LARGEST = 1 << 63
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
