"""A snapshot as plain values for JSON and back, without loss: so that a decision can be made again elsewhere.

Version 2; version 1, which has no `cannot`, `vacate`, `notices`, `cores_share` and `cores_running`, is read too. Times
in UNIX s, cores as the batch system gave them, null where not known. What is not exactly a snapshot is refused with the
place of the fault.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any, cast

from drainwise.errors import UsageError
from drainwise.pilotad.report import PilotReport
from drainwise.pool import Pilot, Principal, Snapshot

FORMAT, VERSION = "drainwise snapshot", 2

_LARGEST = 1 << 63

# The kinds of the fields; `?` = may be null.
_REPORT = {
    "heartbeat": "int",
    "used_cpu": "number?",
    "last_job_start": "int?",
    "first_exp_job_end": "int?",
    "last_exp_job_end": "int?",
    "last_max_job_end": "int?",
    "add_uncom_time": "number?",
    "add_final_exp_waste": "number?",
    "priority_factor": "int?",
    "can_postpone_last_job": "bool?",
    "source": "text",
}
_PILOT = {
    "run": "text",
    "name": "text",
    "node": "text",
    "principal": "text",
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
}
_SINCE_2: dict[str, object] = {"cores_share": None, "cores_running": None}
_PRINCIPAL = {one.name: "number" for one in fields(Principal)} | dict.fromkeys(_SINCE_2, "number?") | {"name": "text"}
_SNAPSHOT = {
    "format": "text",
    "version": "int",
    "taken": "int",
    "pilots": "list",
    "principals": "list",
    "free_cores": "number",
    "user_priorities": "object",
    "notices": "list",
}
_ADDED: tuple[dict[str, object], ...] = ({"notices": []}, {"cannot": "", "vacate": None}, _SINCE_2)
"""What version 1 has not got: the snapshot, each pilot, each principal."""
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "number": (int, float),
    "text": (str,),
    "bool": (bool,),
    "list": (list,),
    "object": (dict,),
}


def snapshot_as_json(snapshot: Snapshot) -> dict[str, object]:
    """The whole snapshot as plain values."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "taken": snapshot.taken,
        "pilots": [_pilot_as_json(pilot) for pilot in snapshot.pilots],
        "principals": [{name: getattr(one, name) for name in _PRINCIPAL} for one in snapshot.principals],
        "free_cores": snapshot.free_cores,
        "user_priorities": dict(snapshot.user_priorities),
        "notices": list(snapshot.notices),
    }


def snapshot_hash(snapshot: Snapshot) -> str:
    """The SHA-256 of all of a snapshot's values: two decisions with the same one stood on the same facts.

    A snapshot that was saved and read back has the same; made for 20,000 pilots in each cycle, so without their names.
    """
    facts, said = attrgetter(*(name for name in _PILOT if name != "report")), attrgetter(*_REPORT)
    pilots = [(facts(one), None if one.report is None else said(one.report)) for one in snapshot.pilots]
    accounts = list(map(attrgetter(*_PRINCIPAL), snapshot.principals))
    values = (snapshot.taken, pilots, accounts, snapshot.free_cores, dict(snapshot.user_priorities), snapshot.notices)
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode("ascii")).hexdigest()


def _pilot_as_json(pilot: Pilot) -> dict[str, object]:
    plain: dict[str, object] = {name: getattr(pilot, name) for name in _PILOT}
    report = pilot.report
    plain["report"] = None if report is None else {name: getattr(report, name) for name in _REPORT}
    return plain


def snapshot_from_json(value: object) -> Snapshot:
    """The inverse of `snapshot_as_json`. Raises UsageError for what is not a snapshot of a version that is read."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise UsageError("this is not a snapshot; `drainwise snapshot` writes one")
    version = value.get("version")
    if isinstance(version, bool) or version not in (1, VERSION):
        raise UsageError(f"a snapshot of version {version!r}: this drainwise reads versions 1 and {VERSION}")
    added = _ADDED if version == 1 else ({}, {}, {})
    whole = _object(_with(value, added[0]), _SNAPSHOT, "the snapshot")
    priorities = {
        user: _checked(priority, "number", f"user_priorities, {user!r}")
        for user, priority in whole["user_priorities"].items()
    }
    return Snapshot(
        whole["taken"],
        tuple(_pilot(_with(one, added[1]), f"pilot {place}") for place, one in enumerate(whole["pilots"], 1)),
        tuple(
            Principal(**_object(_with(one, added[2]), _PRINCIPAL, f"principal {place}"))
            for place, one in enumerate(whole["principals"], 1)
        ),
        whole["free_cores"],
        priorities,
        tuple(_checked(one, "text", f"notice {place}") for place, one in enumerate(whole["notices"], 1)),
    )


def _with(value: object, added: Mapping[str, object]) -> object:
    """An object of an older version, with what it has not got yet."""
    return {**value, **added} if isinstance(value, dict) and not added.keys() & value.keys() else value


def _pilot(value: object, where: str) -> Pilot:
    values = _object(value, _PILOT, where)
    if values["report"] is not None:
        said = _object(values["report"], _REPORT, f"the report of {where}")
        values["report"] = PilotReport.from_values(said["heartbeat"], said["source"], said)
    return Pilot(**values)


def _object(value: object, kinds: Mapping[str, str], where: str) -> dict[str, Any]:
    """The values of an object that has exactly these names, each of its kind."""
    if not isinstance(value, dict):
        raise UsageError(f"{where}: expected an object")
    odd = sorted(set(kinds) ^ set(cast("dict[str, object]", value)))
    if odd:
        raise UsageError(f"{where}: {odd[0]!r} is {'missing' if odd[0] in kinds else 'not known'}")
    return {name: _checked(value[name], kind, f"{where}, {name}") for name, kind in kinds.items()}


def _checked(value: Any, kind: str, where: str) -> Any:
    if value is None and kind.endswith("?"):
        return None
    plain = kind.rstrip("?")
    sound = isinstance(value, _TYPES[plain]) and (plain == "bool" or not isinstance(value, bool))
    if sound and isinstance(value, (int, float)):
        sound = abs(value) < _LARGEST  # which NaN is not
    if not sound:
        raise UsageError(f"{where}: expected {plain}" + (" or null" if kind.endswith("?") else ""))
    return value
