"""Which kind of client a pilot is, by the site's rows; and what each kind is shown."""

from __future__ import annotations

import pytest

from drainwise.facts.client_rules import ClientRules, alternatives, user_texts
from drainwise.facts.clients import PAPER, PROFILES


def test_a_row_is_conditions_that_hold_together_between_or() -> None:
    row = "user=atlas*,usatlas* or account=group_panda.[1-3],group_us job.GLIDEIN_Factory=*"
    assert alternatives(row) == (
        (("user", "atlas*,usatlas*"),),
        (("account", "group_panda.[1-3],group_us"), ("job.GLIDEIN_Factory", "*")),
    )


@pytest.mark.parametrize(
    "row",
    [
        "",
        "or",
        "user",
        "user=",
        "user=,",
        "usr=a",
        "user=a or",
        "or user=a",
        "user=a or or user=b",
        "job.=a",
        "job.1x=a",
        "job.a-b=c",
        "Owner=a",
        "user=a and account=b",
    ],
)
def test_what_is_no_row_is_refused(row: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        alternatives(row)


RULES = ClientRules(
    {
        "panda": "user=atlas* or job.x509UserProxyVOName=ATLAS",
        "alice": "user=alice* account=group_grid.*",
        "none": "partition=local",
    }
)


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"user": ("atlas07@site", "atlas07")}, "panda"),
        ({"user": ("pilot",), "job.x509UserProxyVOName": ("atlas",)}, "panda"),
        ({"user": ("alice1",), "account": ("group_grid.x",)}, "alice"),
        ({"user": ("alice1",), "account": ("group_local",)}, "paper"),
        ({"user": ("alice1",)}, "paper"),
        ({"user": ("atlas1",), "partition": ("short", "local")}, "none"),
        ({}, "paper"),
    ],
)
def test_a_pilot_is_of_the_first_row_that_fits(facts: dict[str, tuple[str, ...]], name: str) -> None:
    """All conditions of one alternative hold, without case; a fact that is not there fits nothing."""
    assert RULES.profile_of(facts).name == name
    assert RULES.profile_of(facts) is PROFILES[name], "and so when it is asked again"


def test_who_must_not_see_a_file_comes_before_who_may() -> None:
    """A pilot that is ALICE's and somebody else's is ALICE's."""
    names = list(PROFILES)
    hidden = [name for name in names if not PROFILES[name].shutdown_files]
    assert hidden == names[: len(hidden)] == ["none", "alice"]
    assert ClientRules(dict.fromkeys(names, "user=x")).profile_of({"user": ("x",)}).name == "none"
    assert ClientRules({"paper": "user=x", "alice": "user=x"}).profile_of({"user": ("x",)}).name == "alice"


def test_what_no_row_fits_is_as_the_site_says() -> None:
    assert not ClientRules()
    assert ClientRules().profile_of({"user": ("x",)}) is PAPER
    assert ClientRules(default="alice")
    assert ClientRules(default="alice").profile_of({}).name == "alice"


def test_rows_say_which_facts_they_need() -> None:
    assert RULES.keys() == ("partition", "user", "account", "job.x509UserProxyVOName")
    assert RULES.attributes() == ("x509UserProxyVOName",)


def test_a_user_is_known_with_and_without_its_domain() -> None:
    assert user_texts(("bob@pool.test", None, "bob", "")) == ("bob@pool.test", "bob")


def test_what_a_node_found_counts_for_attributes_alone() -> None:
    """Users and accounts are known to the agent: there no node, and so no user, is believed."""
    rules = ClientRules({"alice": "user=alice*", "panda": "user=p* job.Kind=x or job.VO=atlas"})
    names = {
        (user, told): rules.profile_of({"user": (user,)}, told).name
        for user in ("alice1", "pp", "bob")
        for told in ("", "panda", "alice", "paper", "no such")
    }
    assert {key for key, name in names.items() if name == "panda"} == {("pp", "panda"), ("bob", "panda")}
    assert {key[0] for key, name in names.items() if name == "alice"} == {"alice1"}
    assert {name for key, name in names.items() if key[0] != "alice1" and key[1] != "panda"} == {"paper"}
