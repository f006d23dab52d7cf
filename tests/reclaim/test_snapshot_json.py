"""A snapshot survives the way to JSON and back exactly, and nothing else is taken for one."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drainwise.errors import UsageError
from drainwise.pool import Pilot, Principal, Snapshot
from drainwise.reclaim.plan import make_plan
from drainwise.reclaim.plan_json import as_json
from drainwise.reclaim.snapshot_json import snapshot_as_json, snapshot_from_json

from .facts import NOW, SETTINGS, pilot, report, reports, snapshot

names = st.text(max_size=12)
moments = st.integers(0, 2**40)
amounts = st.floats(0, 1e12) | st.integers(0, 10**6)
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
        ),
        max_size=4,
    ).map(tuple),
    st.lists(st.builds(Principal, names, *[amounts] * 5), max_size=3).map(tuple),
    amounts,
    st.dictionaries(names, amounts, max_size=3),
    st.lists(names, max_size=3).map(tuple),
)


@settings(max_examples=80)
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
    old: Any = {**snapshot_as_json(seen), "version": 1}
    del old["notices"]
    for one in old["pilots"]:
        del one["cannot"], one["vacate"]
    for one in old["principals"]:
        del one["cores_share"], one["cores_running"]
    assert snapshot_from_json(old) == seen


SOUND: Any = snapshot_as_json(snapshot(pilot(1, report()), deficit=8))


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
        (changed("version", to=3), "version 3: this drainwise reads versions 1 and 2"),
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
        (changed("principals", 1, "priority", to="bad"), "principal 2, priority: expected number"),
        (changed("user_priorities", "alice", to="bad"), "user_priorities, 'alice': expected number"),
        (changed("free_cores", to=float("inf")), "the snapshot, free_cores: expected number"),
    ],
)
def test_what_is_not_a_snapshot_is_refused_with_the_place(value: Any, fault: str) -> None:
    with pytest.raises(UsageError) as refused:
        snapshot_from_json(value)
    assert fault in str(refused.value)
