"""A snapshot as plain values for JSON and back, without loss: so that a decision can be made again elsewhere.

Version 6; a pilot has `identity` only where that is known, and numbers of cores that it returns only where it can.
Versions 1 to 5 are read too: none knows a pilot's `client`; 1 to 4 no `pieces`; 1 to 3 have no `kinds`, `places`,
`closures`, nor a pilot's `place` and what it `holds`; 1 and 2 say
principal for account, and 1 has no `cannot`, `vacate`, `notices`, `cores_share` and `cores_running`. Times in UNIX s,
cores as the batch system gave them, memory and disk in MiB, null where not known. What is not exactly a snapshot is
refused with the place of the fault.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from operator import attrgetter
from typing import Any

from drainwise.facts.clients import PAPER, PROFILES
from drainwise.facts.errors import UsageError
from drainwise.pilotad.observation import observation_in, observation_text
from drainwise.pilotad.report import PLAIN_KINDS, PilotReport, as_plain, from_checked
from drainwise.pool.checked_json import checked, checked_object, checker
from drainwise.pool.closures import closure_as_json, closure_from_json
from drainwise.pool.facts import Account, Piece, Pilot, Snapshot
from drainwise.pool.identity import FORMER, LONGEST, as_values, identity_of
from drainwise.pool.job_kinds_json import (
    amounts_as_json,
    amounts_from_json,
    kind_as_json,
    kind_from_json,
    place_as_json,
    place_from_json,
    without_names,
)

FORMAT, VERSION = "drainwise snapshot", 6

_SINCE_NINE = {"exp_waste_curve": None, "returned_cores": None, "returned_memory": None, "returned_since": None}
"""What reports in earlier snapshots have not got."""

# The kinds of the fields; `?` = may be null.
_PILOT = {
    "run": "text",
    "name": "text",
    "node": "text",
    "account": "text",
    "user": "text",
    "cores": "int",
    "started": "int",
    "lease_end": "int?",
    "report": "object?",
    "contradictory": "bool",
    "deadline": "int?",
    "leaving": "bool",
    "cannot": "text",
    "vacate": "int?",
    "place": "text",
    "holds": "object?",
    "identity": "object?",
    "pieces": "list",
    "client": "text",
}
_SEEN = {"seen": "text?"}
"""What a pilot has where its node told of its payloads: there alone, so that other snapshots are as they were."""
_PARTS = {"returned": "int", "can_return": "int", "asked": "int"}
"""What a pilot has that can return a part of its cores; each where it is not 0, for the same reason."""
_ALL_OF_PILOT = {one.name: kind for one in fields(Pilot) if (kind := (_PILOT | _SEEN | _PARTS).get(one.name))}
"""In the order of the fields; the agent's own (heard, unanswered, reserved) are not saved."""
_DEFAULTS = {one.name: one.default for one in fields(Pilot) if one.default is not MISSING}
_ABSENT = {"seen": None, "identity": None, **dict.fromkeys(_PARTS, 0)}
_pilot_values, _report_values = checker(_ALL_OF_PILOT), checker(PLAIN_KINDS)
_PIECE = {"node": "text", "place": "text", "holds": "object"}
_MADE_OF_OTHERS = {"report", "holds", "identity", "pieces"}
_SINCE_2: dict[str, object] = {"cores_share": None, "cores_running": None}
_ACCOUNT = {one.name: "number" for one in fields(Account)} | dict.fromkeys(_SINCE_2, "number?") | {"name": "text"}
_SNAPSHOT = {
    "format": "text",
    "version": "int",
    "taken": "int",
    "pilots": "list",
    "accounts": "list",
    "free_cores": "number",
    "user_priorities": "object",
    "notices": "list",
    "kinds": "list?",
    "places": "list",
    "closures": "list",
}
_SINCE_6: dict[str, object] = {"client": PAPER.name}
_SINCE_5: dict[str, object] = {"pieces": [], **_SINCE_6}
_SINCE_4: dict[str, object] = {"place": "", "holds": None, **_SINCE_5}
_NO_KINDS: dict[str, object] = {"kinds": None, "places": [], "closures": []}
_ADDED: dict[int, tuple[dict[str, object], ...]] = {
    1: ({"notices": [], **_NO_KINDS}, {"cannot": "", "vacate": None, **_SINCE_4}, _SINCE_2),
    2: (_NO_KINDS, _SINCE_4, {}),
    3: (_NO_KINDS, _SINCE_4, {}),
    4: ({}, _SINCE_5, {}),
    5: ({}, _SINCE_6, {}),
    VERSION: ({}, {}, {}),
}
"""What a version has not got: the snapshot, each pilot, each account."""


def snapshot_as_json(snapshot: Snapshot) -> dict[str, object]:
    """Return the whole snapshot as plain values."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "taken": snapshot.taken,
        "pilots": [_pilot_as_json(pilot) for pilot in snapshot.pilots],
        "accounts": [{name: getattr(one, name) for name in _ACCOUNT} for one in snapshot.accounts],
        "free_cores": snapshot.free_cores,
        "user_priorities": dict(snapshot.user_priorities),
        "notices": list(snapshot.notices),
        "kinds": None if snapshot.kinds is None else [kind_as_json(one) for one in snapshot.kinds],
        "places": [place_as_json(one) for one in snapshot.places],
        "closures": [closure_as_json(one) for one in snapshot.closures],
    }


def snapshot_hash(snapshot: Snapshot) -> str:
    """Return the SHA-256 of all values that a decision may rest on: two with the same one stood on the same facts.

    A snapshot that was saved and read back has the same; made for 20,000 pilots in each cycle, so without their names.
    """
    import hashlib  # noqa: PLC0415 - who only looks starts without it

    facts, said = attrgetter(*(name for name in _PILOT if name not in _MADE_OF_OTHERS)), attrgetter(*PLAIN_KINDS)
    pilots = [
        (
            *(facts(one), None if one.report is None else said(one.report), one.holds and without_names(one.holds)),
            *(() if one.seen is None else (observation_text(one.seen),)),
            *((one.returned, one.can_return, one.asked) if one.returned or one.can_return or one.asked else ()),
            [(it.node, it.place, without_names(it.holds)) for it in one.pieces],
        )
        for one in snapshot.pilots
    ]
    accounts = list(map(attrgetter(*_ACCOUNT), snapshot.accounts))
    kinds = None if snapshot.kinds is None else [kind_as_json(one) for one in snapshot.kinds]
    places = [
        (
            *(one.name, one.node, one.node_class, without_names(one.free), without_names(one.total), one.divisible),
            one.unseen.cores and without_names(one.unseen),
        )
        for one in snapshot.places
    ]
    told = (snapshot.taken, pilots, accounts, snapshot.free_cores, dict(snapshot.user_priorities), snapshot.notices)
    values = (*told, kinds, places, [closure_as_json(one) for one in snapshot.closures])
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode("ascii")).hexdigest()


def _pilot_as_json(pilot: Pilot) -> dict[str, object]:
    plain: dict[str, object] = {name: getattr(pilot, name) for name in _PILOT}
    report = pilot.report
    plain["report"] = None if report is None else as_plain(report)
    plain["holds"] = None if pilot.holds is None else amounts_as_json(pilot.holds)
    if pilot.identity is None:
        del plain["identity"]
    else:
        plain["identity"] = as_values(pilot.identity)
    if pilot.seen is not None:
        plain["seen"] = observation_text(pilot.seen)
    plain.update((name, cores) for name in _PARTS if (cores := getattr(pilot, name)))
    plain["pieces"] = [
        {"node": one.node, "place": one.place, "holds": amounts_as_json(one.holds)} for one in pilot.pieces
    ]
    return plain


def snapshot_from_json(value: object) -> Snapshot:
    """Return the snapshot of plain values. Raises UsageError for what is not a snapshot of a version that is read."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise UsageError("this is not a snapshot; `drainwise snapshot` writes one")
    version = value.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version not in _ADDED:
        raise UsageError(f"a snapshot of version {version!r}: this drainwise reads versions 1 to {VERSION}")
    value = _renamed(value) if version < 3 else value
    added = _ADDED[version]
    whole = checked_object(_with(value, added[0]), _SNAPSHOT, "the snapshot")
    pilots = [_with(one, added[1]) for one in whole["pilots"]] if added[1] else whole["pilots"]
    priorities = {
        user: checked(priority, "number", f"user_priorities, {user!r}")
        for user, priority in whole["user_priorities"].items()
    }
    return Snapshot(
        whole["taken"],
        tuple([_pilot(one, f"pilot {place}") for place, one in enumerate(pilots, 1)]),
        tuple(
            Account(**checked_object(_with(one, added[2]), _ACCOUNT, f"account {place}"))
            for place, one in enumerate(whole["accounts"], 1)
        ),
        whole["free_cores"],
        priorities,
        tuple(checked(one, "text", f"notice {place}") for place, one in enumerate(whole["notices"], 1)),
        None
        if whole["kinds"] is None
        else tuple(kind_from_json(one, f"kind {place}") for place, one in enumerate(whole["kinds"], 1)),
        tuple(place_from_json(one, f"place {place}") for place, one in enumerate(whole["places"], 1)),
        tuple(closure_from_json(one, f"closure {place}") for place, one in enumerate(whole["closures"], 1)),
    )


def _renamed(value: dict[str, Any]) -> dict[str, Any]:
    """Return a snapshot of versions 1 and 2 with the names that version 3 has for the same."""
    former = {"principals": "accounts", "principal": "account"}
    now = {former.get(name, name): part for name, part in value.items()}
    pilots = now.get("pilots")
    if isinstance(pilots, list):
        now["pilots"] = [
            {former.get(name, name): part for name, part in one.items()} if isinstance(one, dict) else one
            for one in pilots
        ]
    return now


def _with(value: object, added: Mapping[str, object]) -> object:
    """Return an object of an older version with `added`, which it has not got yet."""
    if not added:
        return value
    return {**value, **added} if isinstance(value, dict) and not added.keys() & value.keys() else value


def _pilot(value: object, where: str) -> Pilot:
    if isinstance(value, dict) and len(value) < len(_ALL_OF_PILOT):
        value = {**_ABSENT, **value}
    # What the constructor does field by field takes it three times as long.
    made = Pilot.__new__(Pilot)
    found = vars(made)
    found.update(_DEFAULTS)
    found.update(zip(_ALL_OF_PILOT, _pilot_values(value, where)))
    if found["client"] not in PROFILES:
        raise UsageError(f"{where}, client: expected one of {', '.join(PROFILES)}")
    if (identity := found["identity"]) is not None:
        kept = {name: text for name, text in identity.items() if name not in FORMER}
        known = {name: "text" for name in kept if name in LONGEST}
        found["identity"] = identity_of(checked_object(kept, known, f"{where}, identity"))
    if found["report"] is not None:
        found["report"] = _report(found["report"], f"the report of {where}")
    if found["holds"] is not None:
        found["holds"] = amounts_from_json(found["holds"], f"{where}, holds")
    if found["seen"] is not None:
        found["seen"] = observation_in(found["seen"])
    if pieces := found["pieces"]:
        found["pieces"] = tuple(_piece(one, f"{where}, piece {number}") for number, one in enumerate(pieces, 1))
    else:
        found["pieces"] = ()
    return made


def _piece(value: object, where: str) -> Piece:
    values = checked_object(value, _PIECE, where)
    return Piece(values["node"], values["place"], amounts_from_json(values["holds"], f"{where}, holds"))


def _report(value: object, where: str) -> PilotReport:
    if isinstance(value, dict) and not _SINCE_NINE.keys() <= value.keys():
        value = {**_SINCE_NINE, **value}
    try:
        return from_checked(_report_values(value, where))
    except ValueError as fault:
        raise UsageError(f"{where}: {fault}") from None
