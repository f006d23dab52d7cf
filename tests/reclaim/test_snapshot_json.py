"""A snapshot survives the way to JSON and back exactly, and nothing else is taken for one."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import UsageError
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Account, Closure, Piece, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place
from drainwise.pool.snapshot_json import snapshot_as_json, snapshot_from_json, snapshot_hash
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.plan_json import as_json

from .facts import NOW, SETTINGS, pilot, report, reports, snapshot

names = st.text(max_size=12)
moments = st.integers(0, 2**40)
amounts = st.floats(0, 1e12) | st.integers(0, 10**6)
few = st.integers(0, 10**6)
countables = st.dictionaries(names, few, max_size=2).map(lambda others: tuple(sorted(others.items())))
held_amounts = st.builds(Amounts, few, few, few, few, countables)
classes = st.frozensets(names, max_size=2)
kinds = st.builds(JobKind, names, names, few, held_amounts, classes, st.integers(1, 9), st.booleans(), names, names)
places = st.builds(Place, names, names, names, held_amounts, held_amounts, st.booleans())
names_of = st.frozensets(names, max_size=2)
closures = st.builds(Closure, names, names_of, moments, st.none() | moments, names)
snapshots = st.builds(
    Snapshot,
    moments,
    st.lists(
        st.builds(
            Pilot,
            names,
            names,
            names,
            names,
            names,
            st.integers(1, 512),
            moments,
            st.none() | moments,
            reports(),
            st.booleans(),
            st.none() | moments,
            st.booleans(),
            names,
            st.none() | st.integers(0, 10**6),
            place=names,
            holds=st.none() | held_amounts,
        ),
        max_size=4,
    ).map(tuple),
    st.lists(st.builds(Account, names, *[amounts] * 5), max_size=3).map(tuple),
    amounts,
    st.dictionaries(names, amounts, max_size=3),
    st.lists(names, max_size=3).map(tuple),
    st.none() | st.lists(kinds, max_size=2).map(tuple),
    st.lists(places, max_size=2).map(tuple),
    st.lists(closures, max_size=2).map(tuple),
)


@given(snapshots)
def test_the_round_trip_is_exact(seen: Snapshot) -> None:
    """Every name, every float to its last bit, and what is not known."""
    text = json.dumps(snapshot_as_json(seen), allow_nan=False)
    again = snapshot_from_json(json.loads(text))
    assert again == seen
    assert json.dumps(snapshot_as_json(again)) == text


def test_the_same_decision_can_be_made_elsewhere() -> None:
    seen = snapshot(pilot(1, report()), pilot(2), pilot(3, report(1.0), lease_end=NOW + 99), deficit=16)
    elsewhere = snapshot_from_json(json.loads(json.dumps(snapshot_as_json(seen))))
    assert as_json(make_plan(elsewhere, NOW, SETTINGS)) == as_json(make_plan(seen, NOW, SETTINGS))


def test_a_snapshot_of_version_1_is_still_read() -> None:
    """It was saved before pilots that cannot be asked, notices and own shares were known."""
    seen = snapshot(pilot(1, report()), pilot(2), deficit=8)
    old = version_2(seen)
    old["version"] = 1
    del old["notices"]
    for one in old["pilots"]:
        del one["cannot"], one["vacate"]
    for one in old["principals"]:
        del one["cores_share"], one["cores_running"]
    assert snapshot_from_json(old) == seen


def version_2(seen: Snapshot) -> Any:
    """The snapshot as version 2 had it."""
    old = {**version_3(seen), "version": 2}
    old["principals"] = old.pop("accounts")
    for one in old["pilots"]:
        one["principal"] = one.pop("account")
    return old


def version_3(seen: Snapshot) -> Any:
    """The snapshot as version 3 had it."""
    old: Any = {**version_5(seen), "version": 3}
    del old["kinds"], old["places"], old["closures"]
    for one in old["pilots"]:
        del one["place"], one["holds"], one["pieces"]
    return old


def version_5(seen: Snapshot) -> Any:
    """The snapshot as version 5 had it."""
    old: Any = {**snapshot_as_json(seen), "version": 5}
    for one in old["pilots"]:
        del one["client"]
    return old


def test_a_snapshot_of_version_5_is_still_read() -> None:
    """It knows no kinds of client."""
    seen = snapshot(pilot(1, report()), pilot(2), deficit=8)
    assert snapshot_from_json(version_5(seen)) == seen


def test_a_snapshot_of_version_4_is_still_read() -> None:
    """Its pilots have one node each."""
    seen = snapshot(pilot(1, report()), pilot(2), deficit=8)
    old: Any = {**version_5(seen), "version": 4}
    for one in old["pilots"]:
        del one["pieces"]
    assert snapshot_from_json(old) == seen


def test_the_pieces_of_a_pilot_of_several_nodes_come_back() -> None:
    """And are part of the hash."""
    pieces = (Piece("n1", "n1", Amounts(4, 1024)), Piece("n2", "", Amounts(4, 0, 2)))
    seen = snapshot(replace(pilot(1, report()), pieces=pieces), pilot(2), deficit=8)
    again = snapshot_from_json(json.loads(json.dumps(snapshot_as_json(seen))))
    assert again == seen and snapshot_hash(again) == snapshot_hash(seen)
    assert snapshot_hash(seen) != snapshot_hash(snapshot(pilot(1, report()), pilot(2), deficit=8))


def test_a_snapshot_of_version_3_is_still_read() -> None:
    """It knows neither what waits by kind nor where."""
    seen = snapshot(pilot(1, report()), pilot(2), deficit=8)
    assert snapshot_from_json(version_3(seen)) == seen


def test_a_snapshot_of_version_2_is_still_read() -> None:
    """It says principal for account."""
    seen = snapshot(pilot(1, report()), pilot(2), deficit=8)
    assert snapshot_from_json(version_2(seen)) == seen


ROOM = Amounts(8, 1024)
SOUND: Any = snapshot_as_json(
    replace(
        snapshot(pilot(1, report()), deficit=8),
        kinds=(JobKind("bob:8c", "bob", 1, ROOM, frozenset({"a"})),),
        places=(Place("n1", "n1", "a", ROOM, ROOM),),
        closures=(Closure("maint", frozenset({"n1"}), 1, None, "maintenance"),),
    )
)


def changed(*path: Any, to: Any) -> Any:
    value = copy.deepcopy(SOUND)
    inner = value
    for step in path[:-1]:
        inner = inner[step]
    if to is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = to
    return value


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (None, "not a snapshot"),
        ([], "not a snapshot"),
        ({}, "not a snapshot"),
        (changed("version", to=7), "version 7: this drainwise reads versions 1 to 6"),
        (changed("pilots", 0, "client", to="pand"), "pilot 1, client: expected one of none, alice, panda"),
        (changed("version", to=True), "version True"),
        (changed("version", to=[1]), "version [1]"),
        (changed("notices", to=[1]), "notice 1: expected text"),
        (changed("version", to=None), "version None"),
        (changed("taken", to="now"), "the snapshot, taken: expected int"),
        (changed("taken", to=True), "the snapshot, taken: expected int"),
        (changed("taken", to=10**400), "the snapshot, taken: expected int"),
        (changed("pilots", 0, "cores", to=8.0), "pilot 1, cores: expected int"),
        (changed("pilots", 0, "cores", to=None), "pilot 1: 'cores' is missing"),
        (changed("pilots", 0, "core", to=1), "pilot 1: 'core' is not known"),
        (changed("pilots", 0, "lease_end", to="x"), "pilot 1, lease_end: expected int or null"),
        (
            changed("pilots", 0, "report", "used_cpu", to=float("nan")),
            "the report of pilot 1, used_cpu: expected number",
        ),
        (changed("pilots", 0, "report", to=[]), "pilot 1, report: expected object or null"),
        (changed("pilots", to=[1]), "pilot 1: expected an object"),
        (changed("accounts", 1, "priority", to="bad"), "account 2, priority: expected number"),
        (changed("user_priorities", "alice", to="bad"), "user_priorities, 'alice': expected number"),
        (changed("kinds", to=[1]), "kind 1: expected an object"),
        (changed("kinds", 0, "needs", "cores", to=-8), "kind 1, needs: expected amounts of 0 or more"),
        (changed("kinds", 0, "classes", to=[1]), "kind 1, classes: expected text"),
        (changed("places", 0, "free", to=8), "place 1, free: expected object"),
        (changed("places", 0, "total", "others", to={"gpu": 0.5}), "place 1, total, gpu: expected int"),
        (changed("closures", 0, "places", to=[1]), "closure 1, places: expected text"),
        (changed("closures", 0, "start", to="soon"), "closure 1, start: expected int"),
        (changed("free_cores", to=float("inf")), "the snapshot, free_cores: expected number"),
    ],
)
def test_what_is_not_a_snapshot_is_refused_with_the_place(value: Any, fault: str) -> None:
    with pytest.raises(UsageError) as refused:
        snapshot_from_json(value)
    assert fault in str(refused.value)
