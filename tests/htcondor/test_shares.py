"""Who is owed how much: group quotas and fair shares."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.pool.shares import (
    Accountant,
    AccountingRecord,
    Use,
    accounting_record,
    endless,
    fair_shares,
)


def account(name: str, quota: float = 0.0, is_group: bool = True, factor: float = 1000.0) -> AccountingRecord:
    return AccountingRecord(name, is_group, quota, 500.0, factor, 0.0, 0.0)


GROUPS = Accountant(
    [account("<none>", 8), account("group_a", 30), account("group_a.sub", 6), account("bob@x", is_group=False)]
)


@pytest.mark.parametrize(
    ("submitter", "name"),
    [
        ("group_a.alice@pool", "group_a"),
        ("group_a.sub.alice@pool", "group_a.sub"),
        ("group_a.john.doe@pool", "group_a"),
        ("GROUP_A.Alice@pool", "group_a"),
        ("group_ab.alice@pool", "group_ab.alice@pool"),
        ("alice@pool", "alice@pool"),
        ("group_a", "group_a"),
    ],
)
def test_a_submitter_belongs_to_its_longest_group_or_to_itself(submitter: str, name: str) -> None:
    assert GROUPS.account_of(submitter) == name


def test_groups_without_any_quota_are_no_accounts() -> None:
    """The pool then shares by priority among users, as the negotiator does."""
    assert Accountant([account("<none>"), account("group_a"), account("group_b")]).groups == {}


def test_the_root_group_is_not_one() -> None:
    assert set(GROUPS.groups) == {"group_a", "group_a.sub"}


def test_who_is_new_has_the_best_priority_there_is() -> None:
    assert Accountant([account("<none>", factor=100.0)]).new_user_priority == 50.0
    assert Accountant([]).new_user_priority == 500.0


def use(in_use: float, wanted: float = 0.0, priority: float = 500.0) -> Use:
    return Use(in_use, wanted, 0.0, 0.0, priority)


def test_equal_users_share_equally() -> None:
    assert fair_shares(72, {"a": use(72), "b": use(0, 100)}) == {"a": 36, "b": 36}


def test_twice_the_priority_value_is_half_the_share() -> None:
    assert fair_shares(72, {"a": use(72, priority=1000), "b": use(0, 100)}) == pytest.approx({"a": 24, "b": 48})


def test_what_one_does_not_want_is_shared_among_the_others() -> None:
    """carol wants 4 cores of her 24: alice and bob share the other 68."""
    assert fair_shares(72, {"a": use(72), "b": use(0, 100), "carol": use(0, 4)}) == pytest.approx(
        {"a": 34, "b": 34, "carol": 4}
    )


uses = st.dictionaries(
    st.sampled_from("abcdefg"),
    st.builds(use, st.floats(0, 1000), st.floats(0, 1000), st.floats(0.0, 1e6)),
    max_size=7,
)


@given(st.floats(0, 5000), uses)
def test_shares_add_up_to_the_cores_or_to_what_is_wanted(cores: float, wanted: dict[str, Use]) -> None:
    owed = fair_shares(cores, wanted)
    everything = math.fsum(one.in_use + one.wanted for one in wanted.values())
    assert set(owed) == set(wanted)
    assert math.fsum(owed.values()) == pytest.approx(min(cores, everything), abs=1e-6)
    for name, one in wanted.items():
        assert -1e-9 <= owed[name] <= one.in_use + one.wanted + 1e-6


def test_ones_own_share_is_what_one_is_owed_when_nobody_leaves_anything() -> None:
    """carol is there and does nothing: her part is shared out for good."""
    there = {"a": use(72), "b": use(0, 4), "carol": use(0)}
    assert fair_shares(72, there) == {"a": 68, "b": 4, "carol": 0}
    assert fair_shares(72, endless(there)) == {"a": 36, "b": 36, "carol": 0}


@given(st.floats(0, 5000), uses)
def test_nobody_is_owed_less_than_its_own_share_or_its_need(cores: float, wanted: dict[str, Use]) -> None:
    owed, own = fair_shares(cores, wanted), fair_shares(cores, endless(wanted))
    assert math.fsum(own.values()) <= cores + 1e-6
    for name, one in wanted.items():
        assert owed[name] >= min(own[name], one.in_use + one.wanted) - 1e-6


@pytest.mark.parametrize("ad", [{}, {"Name": "x"}, {"Name": 7, "Priority": 1.0}])
def test_an_ad_without_name_or_priority_is_no_account(ad: dict[str, object]) -> None:
    assert accounting_record(ad) is None


@pytest.mark.parametrize("group", [True, False])
@pytest.mark.parametrize(
    ("name", "value", "unsure"),
    [
        ("Priority", -1, "user"),
        ("Priority", math.nan, "user"),
        ("EffectiveQuota", "9", "group"),
        ("SubtreeQuota", math.nan, "group"),
        ("SubtreeQuota", math.inf, "group"),
        ("ResourcesUsed", -1, ""),
        ("WeightedResourcesUsed", math.inf, ""),
        ("PriorityFactor", True, ""),
    ],
)
def test_a_number_that_cannot_be_is_none(name: str, value: object, unsure: str, group: bool) -> None:
    """Without its quota nobody can say what a group is owed, nor without its priority what a user is."""
    account = accounting_record({"Name": "g", "Priority": 5, "IsAccountingGroup": group, name: value})
    priority = 500.0 if name == "Priority" else 5
    kind = "group" if group else "user"
    assert account == AccountingRecord("g", group, 0.0, priority, 1000.0, 0.0, 0.0, odd=name, unsure=kind == unsure)


@pytest.mark.parametrize("priority", [math.inf, 1e308])
def test_a_priority_worse_than_all_is_the_worst(priority: float) -> None:
    """As a negotiator makes it for whoever uses slots of an endless weight."""
    account = accounting_record({"Name": "alice@pool.test", "Priority": priority})
    assert account is not None
    assert (account.priority, account.odd) == (1e15, "")


def test_a_quota_beyond_all_pools_is_a_whole_pool() -> None:
    """A site may say so of a group that shall have no limit."""
    account = accounting_record({"Name": "g", "Priority": 5, "EffectiveQuota": 1e300})
    assert account is not None
    assert (account.quota, account.odd) == (1e9, "")


@pytest.mark.parametrize(("policy", "surplus"), [("no", False), ("byquota", True), ("regroup", True), (None, True)])
def test_whether_a_group_is_given_more_than_its_quota(policy: object, surplus: bool) -> None:
    account = accounting_record({"Name": "g", "Priority": 5, "SurplusPolicy": policy})
    assert account is not None
    assert account.surplus is surplus


@pytest.mark.parametrize(("ceiling", "most"), [(2, 2), (0, 0), (-1, None), (None, None)])
def test_a_submitter_may_have_a_ceiling(ceiling: object, most: float | None) -> None:
    """-1 is HTCondor's word for none."""
    account = accounting_record({"Name": "alice@pool.test", "Priority": 5, "Ceiling": ceiling})
    assert account is not None
    assert account.ceiling == most
