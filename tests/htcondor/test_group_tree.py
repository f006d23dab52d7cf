"""A tree of accounting groups shares what it is owed within itself."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.pool.shares import owed_in_trees

# As a real negotiator (25.14.1) told it: two static quotas, one dynamic one of a half, and another tree.
QUOTAS = {"group_alice": 100.0, "group_alice.prod": 30.0, "group_alice.prod.deep": 15.0, "group_bob": 20.0}


def test_quotas_without_a_tree_are_what_is_owed() -> None:
    assert owed_in_trees({"a": 5.0, "b": 7.0}, {"a": 100.0}) == {"a": 5.0, "b": 7.0}


def test_a_quota_is_not_counted_once_more_for_each_group_below() -> None:
    busy = dict.fromkeys(QUOTAS, 1000.0)
    assert owed_in_trees(QUOTAS, busy) == {
        "group_alice": 70.0,
        "group_alice.prod": 15.0,
        "group_alice.prod.deep": 15.0,
        "group_bob": 20.0,
    }


def test_what_a_relative_leaves_unused_is_no_surplus() -> None:
    """deep uses 40 where it has 15: prod leaves 15 unused, alice 70, and bob may not ask for any of that."""
    owed = owed_in_trees(QUOTAS, {"group_alice.prod.deep": 40.0, "group_bob": 500.0})
    assert owed["group_alice.prod.deep"] == pytest.approx(40.0)
    assert owed["group_bob"] == 20.0


def test_what_is_lent_by_a_relative_that_does_nothing_stays_lent() -> None:
    """With demand without end in two of three groups each has its own part, and its part of the third's."""
    quotas = {"g": 30.0, "g.a": 10.0, "g.b": 10.0, "g.c": 10.0}
    assert owed_in_trees(quotas, {"g.a": math.inf, "g.b": math.inf}) == {
        "g": 0.0,
        "g.a": 15.0,
        "g.b": 15.0,
        "g.c": 10.0,
    }
    assert owed_in_trees(quotas, {"g.a": 30.0, "g.b": 4.0}) == {"g": 0.0, "g.a": 26.0, "g.b": 10.0, "g.c": 10.0}


def test_a_relative_that_wants_its_own_again_gets_it() -> None:
    owed = owed_in_trees(QUOTAS, {"group_alice.prod.deep": 40.0, "group_alice": 70.0, "group_alice.prod": 15.0})
    assert owed["group_alice.prod.deep"] == 15.0


def test_a_level_without_a_quota_of_its_own_is_passed_over() -> None:
    assert owed_in_trees({"g": 10.0, "G.x.Y": 4.0}, {"g": 10.0, "G.x.Y": 9.0}) == {"g": 6.0, "G.x.Y": 4.0}


def test_a_group_without_quota_has_what_the_others_leave() -> None:
    assert owed_in_trees({"g": 10.0, "g.a": 10.0, "g.b": 0.0}, {"g.a": 4.0, "g.b": 50.0})["g.b"] == pytest.approx(6.0)


NAMES = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4).map(".".join)


@given(
    st.dictionaries(NAMES, st.floats(0, 1000), min_size=1, max_size=8),
    st.dictionaries(NAMES, st.floats(0, 1000), max_size=8),
)
def test_a_tree_is_never_owed_more_than_it_has_and_is_not_over_before_that_is_used(
    quotas: dict[str, float], demands: dict[str, float]
) -> None:
    roots = {name for name in quotas if not any(name.startswith(f"{other}.") for other in quotas)}
    # What the negotiator publishes: the parts of a quota never make more than the quota.
    fitting = {name: 0.0 if name not in roots else quota for name, quota in quotas.items()}
    for name in sorted(quotas, key=lambda one: one.count(".")):
        if name not in roots:
            parent = max((other for other in quotas if name.startswith(f"{other}.")), key=len)
            taken = sum(fitting[one] for one in quotas if one.startswith(f"{parent}.") and one != name)
            fitting[name] = max(0.0, min(quotas[name], fitting[parent] - taken))
    owed = owed_in_trees(fitting, demands)
    assert owed.keys() == fitting.keys()
    for root in roots:
        tree = [name for name in fitting if name == root or name.startswith(f"{root}.")]
        used = sum(min(owed[name], demands.get(name, 0.0)) for name in tree)
        wanted = sum(demands.get(name, 0.0) for name in tree)
        assert used <= fitting[root] + 1e-6
        assert used == pytest.approx(min(fitting[root], wanted), abs=1e-6)


def test_a_group_that_accepts_no_surplus_is_owed_its_quota_alone() -> None:
    """GROUP_ACCEPT_SURPLUS = False: what it waits for beyond cannot start, whatever its relatives leave."""
    demands = {"group_alice.prod.deep": 40.0, "group_bob": 500.0}
    owed = owed_in_trees(QUOTAS, demands, fixed={"group_alice.prod.deep"})
    assert owed["group_alice.prod.deep"] == 15.0
