"""A snapshot as plain values for JSON and back, without loss: so that a decision can be made again elsewhere.

Version 6; a pilot has `identity`, `saved` and `next_save` only where that is known, and numbers of cores that it
returns only where it can.
Versions 1 to 5 are read too: none knows a pilot's `client`; 1 to 4 no `pieces`; 1 to 3 have no `kinds`, `places`,
`closures`, nor a pilot's `place` and what it `holds`; 1 and 2 say
principal for account, and 1 has no `cannot`, `vacate`, `notices`, `cores_share` and `cores_running`. Times in UNIX s,
cores as the batch system gave them, memory and disk in MiB, null where not known. What is not exactly a snapshot is
refused with the place of the fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from operator import attrgetter
from typing import Any

from drainwise.facts.clients import PROFILES
from drainwise.facts.errors import UsageError
from drainwise.pilotad.observation import Observation, observation_in, observation_text
from drainwise.pilotad.report import PLAIN_KINDS, PilotReport, as_plain, from_checked
from drainwise.pool.amounts import PLAIN, Amounts
from drainwise.pool.checked_json import checked, checked_object, checker
from drainwise.pool.facts import Account, Closure, Piece, Pilot, Snapshot
from drainwise.pool.identity import FORMER, LONGEST, PilotIdentity, as_values, identity_of
from drainwise.pool.job_kinds import JobKind, Place

FORMAT, VERSION = "drainwise snapshot", 6

_SINCE_NINE = dict.fromkeys(
    (
        *("exp_waste_curve", "returned_cores", "returned_memory", "returned_since"),
        *("last_checkpoint", "next_checkpoint", "checkpoint_seconds", "restart_cost"),
    )
)
"""What reports in earlier snapshots have not got."""

_KINDS = {"str": "text", "int": "int", "float": "number", "bool": "bool", "Observation": "text"}
"""Of the values of fields by their types; `?` = may be null. A tuple or a set is a list, all else an object."""
_SCALARS = frozenset((str, int, float, bool, type(None)))


class _Form:
    """How facts of one class are written: all fields, in their order, but for some that are not saved.

    absent: fields that are not written where they have their default, so that other snapshots are as they were.
    """

    def __init__(self, facts: type[Any], unsaved: str = "", absent: str = "") -> None:
        self._facts = facts
        self._defaults = {one.name: one.default for one in fields(facts) if one.default is not MISSING}
        self._absent = self.usual(absent)
        self.kinds: dict[str, str] = {}
        self._readers: dict[str, _Reader] = {}
        for one in fields(facts):
            kind, _, null = str(one.type).partition(" | ")
            if one.name not in unsaved.split():
                plain = _KINDS.get(kind, "list" if kind.startswith(("tuple[", "frozenset[")) else "object")
                self.kinds[one.name] = plain + "?" * bool(null)
                reader = _READERS.get(kind, _READERS.get(one.name))
                if reader is not None:
                    self._readers[one.name] = reader
        self._values = checker(self.kinds)

    def usual(self, names: str) -> dict[str, object]:
        """Return these fields as plain values, each with its default."""
        return {name: _plain(self._defaults[name]) for name in names.split()}

    def plain(self, facts: object) -> dict[str, object]:
        """Return facts as plain values."""
        found = {name: one if type(one := getattr(facts, name)) in _SCALARS else _plain(one) for name in self.kinds}
        for name, usual in self._absent.items():
            if found[name] == usual:
                del found[name]
        return found

    def read(self, value: object, where: str) -> Any:
        """Return the facts of plain values; `where` names them. Raises UsageError for what are none."""
        if self._absent and isinstance(value, dict) and len(value) < len(self.kinds):
            value = {**self._absent, **value}
        # What the constructor does field by field takes it three times as long.
        made = object.__new__(self._facts)
        found = vars(made)
        found.update(self._defaults)
        found.update(zip(self.kinds, self._values(value, where)))
        for name, reader in self._readers.items():
            if found[name] is not None:
                found[name] = reader(found[name], where, name)
        return made


def _plain(value: Any) -> Any:
    """Return a field as plain values."""
    kind = type(value)
    if kind is tuple:
        return [_plain(one) for one in value]
    return _PLAIN[kind](value) if kind in _PLAIN else value


def _amounts(value: object, where: str, name: str) -> Amounts:
    cores, memory, gpus, disk, others = _amounts_values(value, where := f"{where}, {name}")
    counted = {one: checked(amount, "int", f"{where}, {one}") for one, amount in others.items()}
    found = Amounts(cores, memory, gpus, disk, tuple(sorted(counted.items())))
    if any(amount < 0 for _, amount in found.named()):
        raise UsageError(f"{where}: expected amounts of 0 or more")
    return found


def _report(value: object, where: str, name: str) -> PilotReport:
    where = f"the {name} of {where}"
    if isinstance(value, dict) and not _SINCE_NINE.keys() <= value.keys():
        value = {**_SINCE_NINE, **value}
    try:
        return from_checked(_report_values(value, where))
    except ValueError as fault:
        raise UsageError(f"{where}: {fault}") from None


def _identity(value: dict[str, object], where: str, name: str) -> PilotIdentity | None:
    kept = {one: text for one, text in value.items() if one not in FORMER}
    return identity_of(checked_object(kept, {one: "text" for one in kept if one in LONGEST}, f"{where}, {name}"))


def _client(value: str, where: str, name: str) -> str:
    if value not in PROFILES:
        raise UsageError(f"{where}, {name}: expected one of {', '.join(PROFILES)}")
    return value


def _names(value: list[object], where: str, name: str) -> frozenset[str]:
    return frozenset(checked(one, "text", f"{where}, {name}") for one in value)


def _numbers(value: dict[str, object], _where: str, name: str) -> dict[str, float]:
    return {one: checked(number, "number", f"{name}, {one!r}") for one, number in value.items()}


def _each(read: Callable[[object, str], Any]) -> _Reader:
    """Return what reads a list of facts; each is called by its number, and by whose it is but for the snapshot's."""

    def reader(values: list[object], where: str, name: str) -> tuple[Any, ...]:
        if not values:
            return ()
        whose = f"{name[:-1]} " if where == _WHOLE else f"{where}, {name[:-1]} "
        return tuple([read(value, f"{whose}{number}") for number, value in enumerate(values, 1)])

    return reader


_Reader = Callable[[Any, str, str], Any]
_WHOLE = "the snapshot"
_READERS: dict[str, _Reader] = {
    "PilotReport": _report,
    "PilotIdentity": _identity,
    "Observation": lambda value, *_: observation_in(value),
    "Amounts": _amounts,
    "frozenset[str]": _names,
    "tuple[str, ...]": _each(lambda value, where: checked(value, "text", where)),
    "Mapping[str, float]": _numbers,
    "client": _client,
}
"""What makes a field of a checked value, by the field's type, else by its name: of the value, whose it is, the name."""
_PLAIN: dict[type, Callable[[Any], Any]] = {
    Amounts: lambda one: {**{name: getattr(one, name) for name in PLAIN}, "others": dict(one.others)},
    PilotReport: as_plain,
    PilotIdentity: as_values,
    Observation: observation_text,
    frozenset: sorted,
}
_amounts_values = checker({**dict.fromkeys(PLAIN, "int"), "others": "object"})
_report_values = checker(PLAIN_KINDS)


def _form(facts: type[Any], unsaved: str = "", absent: str = "") -> _Form:
    form = _Form(facts, unsaved, absent)
    _PLAIN[facts], _READERS[f"tuple[{facts.__name__}, ...]"] = form.plain, _each(form.read)
    return form


_form(Piece)
# What is the agent's own is not saved.
_AS_WITHOUT = "seen identity returned can_return asked saved next_save lead billed"
_PILOT = _form(Pilot, "heard unanswered reserved traits min_age", _AS_WITHOUT)
_ACCOUNT = _form(Account)
_form(JobKind, "barred at", "planned")
_form(Place)
_form(Closure)
_SNAPSHOT = _form(Snapshot, "versions")
_ADDED = {
    1: ("notices kinds places closures", "cannot vacate place holds pieces client", "cores_share cores_running"),
    2: ("kinds places closures", "place holds pieces client", ""),
    3: ("kinds places closures", "place holds pieces client", ""),
    4: ("", "pieces client", ""),
    5: ("", "client", ""),
    VERSION: ("", "", ""),
}
"""What a version has not got: the snapshot, each pilot, each account."""


def snapshot_as_json(snapshot: Snapshot) -> dict[str, object]:
    """Return the whole snapshot as plain values."""
    plain = _SNAPSHOT.plain(snapshot)
    return {"format": FORMAT, "version": VERSION, **plain, "user_priorities": dict(snapshot.user_priorities)}


def snapshot_hash(snapshot: Snapshot) -> str:
    """Return the SHA-256 of all values that a decision may rest on: two with the same one stood on the same facts.

    A snapshot that was saved and read back has the same; made for 20,000 pilots in each cycle, so without their names.
    """
    import hashlib  # noqa: PLC0415 - who only looks starts without it

    parts, plain = attrgetter(*PLAIN, "others"), ("text", "int", "bool")
    told = [name for name, kind in _PILOT.kinds.items() if kind.startswith(plain) and name not in _AS_WITHOUT.split()]
    facts, said = attrgetter(*told), attrgetter(*PLAIN_KINDS)
    pilots = [
        (
            *(facts(one), None if one.report is None else said(one.report), one.holds and parts(one.holds)),
            *(() if one.seen is None else (observation_text(one.seen),)),
            *((one.returned, one.can_return, one.asked) if one.returned or one.can_return or one.asked else ()),
            *(() if one.saved is None else (one.saved, one.next_save)),
            *(() if one.lead is one.billed is None else (one.lead, one.billed)),
            [(it.node, it.place, parts(it.holds)) for it in one.pieces],
        )
        for one in snapshot.pilots
    ]
    places = [
        (
            *(one.name, one.node, one.node_class, parts(one.free), parts(one.total), one.divisible),
            one.unseen.cores and parts(one.unseen),
        )
        for one in snapshot.places
    ]
    accounts = list(map(attrgetter(*_ACCOUNT.kinds), snapshot.accounts))
    whole = (snapshot.taken, pilots, accounts, snapshot.free_cores, dict(snapshot.user_priorities), snapshot.notices)
    values = (*whole, _plain(snapshot.kinds), places, _plain(snapshot.closures))
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode("ascii")).hexdigest()


def snapshot_from_json(value: object) -> Snapshot:
    """Return the snapshot of plain values. Raises UsageError for what is not a snapshot of a version that is read."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise UsageError("this is not a snapshot; `drainwise snapshot` writes one")
    version = value.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version not in _ADDED:
        raise UsageError(f"a snapshot of version {version!r}: this drainwise reads versions 1 to {VERSION}")
    whole = {name: part for name, part in value.items() if name not in {"format", "version"}}
    whole = _renamed(whole) if version < 3 else whole
    forms = zip((_SNAPSHOT, _PILOT, _ACCOUNT), _ADDED[version])
    of_snapshot, of_pilots, of_accounts = (form.usual(names) for form, names in forms)
    whole = {**whole, **of_snapshot} if not of_snapshot.keys() & whole.keys() else whole
    for name, added in (("pilots", of_pilots), ("accounts", of_accounts)):
        if added and isinstance(whole.get(name), list):
            whole[name] = [_with(one, added) for one in whole[name]]
    found: Snapshot = _SNAPSHOT.read(whole, _WHOLE)
    return found


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
