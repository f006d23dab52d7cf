"""Waiting jobs by kind, places and amounts as plain values for JSON and back; memory and disk in MiB."""

from __future__ import annotations

from drainwise.facts.errors import UsageError
from drainwise.pool.amounts import PLAIN, Amounts
from drainwise.pool.checked_json import checked, checked_object
from drainwise.pool.job_kinds import JobKind, Place

_AMOUNTS = {**dict.fromkeys(PLAIN, "int"), "others": "object"}
_KIND = {
    "name": "text",
    "account": "text",
    "jobs": "int",
    "needs": "object",
    "classes": "list",
    "places": "int",
    "whole": "bool",
    "asks": "text",
    "example": "text",
    "starting": "int",
}
_PLACE = {
    "name": "text",
    "node": "text",
    "node_class": "text",
    "free": "object",
    "total": "object",
    "divisible": "bool",
    "unseen": "object",
}
_PLACE_AMOUNTS = ("free", "total", "unseen")


def amounts_as_json(amounts: Amounts) -> dict[str, object]:
    """Return amounts as plain values; memory and disk in MiB."""
    return {**{name: getattr(amounts, name) for name in PLAIN}, "others": dict(amounts.others)}


def without_names(of: Amounts) -> tuple[object, ...]:
    """Return amounts without their names, as a part of a snapshot's hash."""
    return (of.cores, of.memory, of.gpus, of.disk, of.others)


def kind_as_json(kind: JobKind) -> dict[str, object]:
    """Return a kind of waiting jobs as plain values."""
    plain: dict[str, object] = {name: getattr(kind, name) for name in _KIND}
    plain |= {"needs": amounts_as_json(kind.needs), "classes": sorted(kind.classes)}
    return {**plain, "planned": sorted(kind.planned)} if kind.planned else plain


def place_as_json(place: Place) -> dict[str, object]:
    """Return a place as plain values."""
    plain: dict[str, object] = {name: getattr(place, name) for name in _PLACE}
    return {**plain, **{name: amounts_as_json(getattr(place, name)) for name in _PLACE_AMOUNTS}}


def kind_from_json(value: object, where: str) -> JobKind:
    """Return the kind of plain values; `where` names them. Raises UsageError for what is none."""
    planned = value.get("planned", []) if isinstance(value, dict) else []
    plain = {name: one for name, one in value.items() if name != "planned"} if isinstance(value, dict) else value
    values = checked_object(plain, _KIND, where)
    values["planned"] = frozenset(checked(one, "text", f"{where}, planned") for one in checked(planned, "list", where))
    values["needs"] = amounts_from_json(values["needs"], f"{where}, needs")
    values["classes"] = frozenset(checked(one, "text", f"{where}, classes") for one in values["classes"])
    return JobKind(**values)


def place_from_json(value: object, where: str) -> Place:
    """Return the place of plain values; `where` names them. Raises UsageError for what is none."""
    values = checked_object(value, _PLACE, where)
    return Place(**{**values, **{one: amounts_from_json(values[one], f"{where}, {one}") for one in _PLACE_AMOUNTS}})


def amounts_from_json(value: object, where: str) -> Amounts:
    """Return the amounts of plain values; `where` names them. Raises UsageError for what is none."""
    values = checked_object(value, _AMOUNTS, where)
    others = {name: checked(amount, "int", f"{where}, {name}") for name, amount in values.pop("others").items()}
    found = Amounts(**values, others=tuple(sorted(others.items())))
    if any(amount < 0 for _, amount in found.named()):
        raise UsageError(f"{where}: expected amounts of 0 or more")
    return found
