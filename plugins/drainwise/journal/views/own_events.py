"""Take out of an event of the journal what concerns the pilots of one user, and nothing that names anybody else.

Other accounts stay as numbers of cores; who sent a pilot is left out. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, cast

from drainwise.journal.event import DECISION, ENDED, ORDER, PART, WITHDRAWAL, Event

OTHERS = "other accounts"
_OF_A_PILOT = {ORDER, WITHDRAWAL, ENDED, PART}
_KEPT = (
    "event",
    "version",
    "time",
    "acting",
    "taken",
    "policy",
    "demand",
    "free",
    "leaving",
    "deficit",
    "spared_count",
)
_PILOT = ("run", "name", "node", "account", "user", "cores", "started", "client", "reason")
_LISTS = {"chosen": ("run", "name", "account", "user"), "spared": _PILOT}
MOST_NAMED = 20
"""Pilots of a user that a decision in its view names, chosen or spared: the first ones."""


def own_events(event: Event) -> dict[str, dict[str, object]]:
    """Return for each user that an event concerns the part that its own view has, by user; none for other kinds."""
    if event.get("event") in _OF_A_PILOT:
        user = event.get("user")
        return {user: _without_others(event)} if isinstance(user, str) else {}
    if event.get("event") != DECISION or event.get("acting") is not True:
        return {}
    found = defaultdict[str, "dict[str, list[object]]"](lambda: {name: [] for name in _LISTS})
    for name, keys in _LISTS.items():
        for one in _objects(event, name):
            if isinstance(user := one.get("user"), str) and len(found[user][name]) < MOST_NAMED:
                found[user][name].append({key: one[key] for key in keys if key in one})
    return {user: {**_decided(event, user), **lists} for user, lists in found.items()}


def _decided(event: Event, user: str) -> dict[str, object]:
    """Return what of a decision any user may know: how many cores were needed, and the user's own part."""
    waits = sum(cores for one in _objects(event, "waiting") if isinstance(cores := one.get("cores"), (int, float)))
    return {
        **{name: event[name] for name in _KEPT if name in event},
        "waiting": [{"account": OTHERS, "cores": waits}] if waits else [],
        "users": [one for one in _objects(event, "users") if one.get("user") == user],
        **({"requests": requests} if (requests := [_request(one) for one in _objects(event, "requests")]) else {}),
    }


def _request(one: Event) -> dict[str, object]:
    """Return a request without the nodes and names of others: its reason is for those who have to go."""
    return {**one, "user": None, "account": None, "nodes": []}


def _without_others(one: Event) -> dict[str, object]:
    """Return what an event tells of a pilot, without who sent it and for whose jobs it makes room."""
    found = {name: value for name, value in one.items() if name != "identity"}
    room = found.get("room")
    if isinstance(room, dict):
        jobs = [{**job, "kind": "", "account": OTHERS, "example": ""} for job in _objects(room, "jobs")]
        found["room"] = {**room, "jobs": jobs}
    return found


def _objects(event: Event, name: str) -> Iterable[dict[str, Any]]:
    values = event.get(name)
    return [cast("dict[str, Any]", one) for one in values if isinstance(one, dict)] if isinstance(values, list) else []
