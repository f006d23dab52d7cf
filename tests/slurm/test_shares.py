"""Who is owed how many cores by Slurm's tree of shares."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.pool.shares import WORST, shares_in

from .recorded_cluster import VERSIONS, shares

TWO = "root|||300\n root|root|1|0\n atlas||2|200\n  atlas|alice|1|200\n cms||1|100\n  cms|bob|1|100\n"


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_tree(version: str) -> None:
    """root's own users have a part, too; cms-old's users share in cms itself, beside cms-prod and cms-users."""
    tree = shares(version)
    names = ("atlas", "cms-prod", "cms-users", "cms-old", "physics")
    assert [tree.sharing_account(name) for name in names] == ["atlas", "cms-prod", "cms-users", "cms", "physics"]
    owed = tree.owed(60, dict.fromkeys(("atlas", "cms", "cms-prod", "cms-users"), 1000.0))
    assert owed == pytest.approx({"atlas": 40, "cms": 4, "cms-prod": 12, "cms-users": 4})
    # atlas has used 91 % and has half of the shares.
    assert tree.priority_of("atlas") == pytest.approx(1.82, abs=0.01)
    assert tree.priority_of("cms-prod") == 0
    assert set(tree.user_priorities()) == {"alice", "bob", "root"}


def test_cores_go_by_shares_when_both_want_all() -> None:
    """What root's own share leaves unused goes to the others."""
    assert shares_in(TWO).owed(24, {"atlas": 100, "cms": 100}) == pytest.approx({"atlas": 16, "cms": 8})


def test_who_needs_less_leaves_the_rest_to_others() -> None:
    assert shares_in(TWO).owed(24, {"atlas": 100, "cms": 2}) == pytest.approx({"atlas": 22, "cms": 2})


def test_an_own_share_is_what_is_owed_when_nobody_leaves_anything() -> None:
    """An account without jobs, here root's own, has none; one that Slurm does not know keeps what it has."""
    needs = {"atlas": 24.0, "cms": 2.0, "unknown": 3.0}
    assert shares_in(TWO).owed(27, needs) == pytest.approx({"atlas": 22, "cms": 2, "unknown": 3})
    assert shares_in(TWO).own(27, needs) == pytest.approx({"atlas": 16, "cms": 8, "unknown": 3})


def test_what_a_child_leaves_goes_to_its_siblings_first() -> None:
    """As in Slurm's Fair Tree: cms's other child has the whole of cms's part, before atlas has any of it."""
    tree = "root|||0\n atlas||1|0\n cms||1|0\n  prod||9|0\n  users||1|0\n"
    assert shares_in(tree).owed(20, {"atlas": 50, "prod": 1, "users": 50}) == pytest.approx(
        {"atlas": 10, "prod": 1, "users": 9}
    )


def test_an_account_that_slurm_does_not_know_keeps_what_it_has() -> None:
    """It is owed what it uses and wants: nobody gives back for it, and it gives nothing back."""
    owed = shares_in(TWO).owed(24, {"atlas": 100, "cms": 100, "": 3, "gone": 3})
    assert owed == pytest.approx({"atlas": 12, "cms": 6, "": 3, "gone": 3})


def test_an_account_without_shares_has_what_nobody_else_can_use() -> None:
    tree = shares_in("root|||10\n atlas||0|10\n cms||1|0\n")
    assert tree.owed(24, {"atlas": 100, "cms": 100})["atlas"] < 0.01
    assert tree.owed(24, {"atlas": 100, "cms": 4})["atlas"] == pytest.approx(20)
    assert tree.priority_of("atlas") == WORST


def test_priority_is_usage_over_share() -> None:
    tree = shares_in(TWO)
    assert tree.priority_of("atlas") == pytest.approx(200 / 300 / (2 / 4))
    assert tree.priority_of("cms") == pytest.approx(100 / 300 / (1 / 4))
    assert tree.priority_of("gone") == 0


def test_users_of_an_account_by_their_own_use() -> None:
    tree = shares_in("root|||100\n atlas||1|100\n  atlas|alice|1|75\n  atlas|carol|1|25\n  atlas|dave|parent|0\n")
    priorities = tree.user_priorities()
    assert priorities["alice"] > priorities["carol"] > priorities["dave"] == 0


def test_a_user_with_several_associations_has_used_all_of_them() -> None:
    """One for each partition: sshare prints a line for each."""
    lines = "root|||100\n atlas||1|100\n  atlas|alice|1|75\n  atlas|alice|1|0\n  atlas|carol|2|25\n"
    priorities = shares_in(lines).user_priorities()
    assert (priorities["alice"], priorities["carol"]) == pytest.approx((1.5, 0.5))


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "You are not running a supported accounting_storage plugin\n",
        "root|||x\n",
        " atlas|alice|1|0\n",
        "root|||0\n  atlas||1|0\n",
        "root|||0\nother||1|0\n",
        "root|||0\n atlas|alice|1|0\n",
    ],
)
def test_an_incomplete_answer_is_none(answer: str) -> None:
    """HOSTILE 54."""
    with pytest.raises(PoolUnreachable):
        shares_in(answer)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(0, 100), st.booleans()), min_size=1, max_size=8),
    st.floats(0, 500),
)
def test_no_more_is_owed_than_there_is_and_nobody_more_than_it_needs(
    accounts: list[tuple[int, float, bool]], cores: float
) -> None:
    lines, needs, before = ["root|||0"], {}, ""
    for number, (share, need, below) in enumerate(accounts):
        name, depth = f"a{number}", 2 if below and before else 1
        lines.append(f"{' ' * depth}{name}||{share}|0")
        before = before or name
        needs[name] = need
    owed = shares_in("\n".join(lines)).owed(cores, needs)
    assert math.fsum(owed.values()) <= cores * (1 + 1e-9) + 1e-6
    assert all(-1e-9 <= owed[name] <= need + 1e-6 for name, need in needs.items())
    if math.fsum(needs.values()) <= cores:
        assert owed == pytest.approx(needs, abs=1e-6)


def test_odd_numbers_end_no_cycle() -> None:
    """Usage and shares of 1e308: their sums and ratios are numbers, and the cores are shared out."""
    huge = "root|||1e308\n a||1e308|1e308\n  a|alice|1e308|1e308\n b||1e308|1e308\n  b|bob|1e308|1e308\n"
    found = shares_in(huge)
    assert found.owed(10, {"a": 10, "b": 10}) == {"a": 5, "b": 5}
    assert all(math.isfinite(priority) for priority in (*found.user_priorities().values(), found.priority_of("a")))
