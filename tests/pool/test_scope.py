"""Which running jobs may be ordered: by user, account and what a batch system tells beside them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drainwise.facts.scope_rules import Scope, ScopeRules, fits
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.pool.scope import in_scope, job_facts, with_scope

PILOT = Pilot("17@1795270000", "17", "n1", "atlas", "alice@site", 8, 1795270000)
SCAVENGER = replace(PILOT, traits=(("partition", ("scavenge",)), ("qos", ("low",)), ("licence", ("matlab", "ansys"))))


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (ScopeRules(), ""),
        (ScopeRules(preemptible="partition=scavenge"), ""),
        (ScopeRules(preemptible="partition=main or qos=low"), ""),
        (
            ScopeRules(preemptible="partition=scavenge qos=high"),
            "of [reclaim] preemptible = partition=scavenge qos=high",
        ),
        (ScopeRules(preemptible="name=*"), "of [reclaim] preemptible = name=*"),
        (ScopeRules(exempt="user=alice"), "by [reclaim] exempt = user=alice"),
        (ScopeRules(exempt="licence=ansys"), "by [reclaim] exempt = licence=ansys"),
        (ScopeRules(exempt="account=cms"), ""),
        (ScopeRules("partition=scavenge", "account=atlas"), "by [reclaim] exempt = account=atlas"),
    ],
)
def test_which_jobs_may_be_ordered(rules: ScopeRules, why: str) -> None:
    """`exempt` wins; a fact that is not there fits no condition; the reason names the key."""
    [found] = in_scope([SCAVENGER], rules)
    assert found.cannot == (f"out of scope {why}" if why else "")
    assert replace(found, cannot="") == SCAVENGER


def test_the_first_scope_that_fits_counts() -> None:
    """Its least age holds for its jobs; that of [reclaim] for all others."""
    scopes = Scope("low", "qos=low", 600), Scope("all", "user=*", 5), Scope("never", "qos=low", 7)
    rules = ScopeRules(scopes=scopes)
    assert [one.min_age for one in in_scope([SCAVENGER, PILOT], rules)] == [600, 5]
    assert in_scope([PILOT], ScopeRules(scopes=scopes[:1])) == (PILOT,)


def test_a_snapshot_without_a_scope_stays_as_it_is() -> None:
    snapshot = Snapshot(1795270000, (PILOT,), (Account("atlas", 8, 8, 0, 1),))
    assert with_scope(snapshot, ScopeRules()) is snapshot
    assert with_scope(snapshot, ScopeRules(exempt="user=alice")).pilots[0].cannot.startswith("out of scope by")


def test_what_the_conditions_ask_for() -> None:
    rules = ScopeRules("qos=low", "user=root or name=x", (Scope("a", "partition=p"),))
    assert rules.keys() == {"qos", "user", "name", "partition"}
    assert list(rules.rows()) == ["[reclaim] preemptible", "[reclaim] exempt", "[scope a] jobs"]


def test_no_text_of_a_user_is_a_pattern() -> None:
    """HOSTILE: a job that calls itself `*` fits what names `*` alone."""
    assert fits("name=*", {"name": ("*",)})
    assert not fits("name=prod*", {"name": ("*",)})
    assert not fits("name=prod*", {"name": ("",)})


def test_what_check_remarks_on() -> None:
    """Without a finding: no scope, conditions on what users set themselves, and conditions that fit no running job."""
    [none] = ScopeRules(scopes=(Scope("a", "user=*"),)).remarks(None)
    assert none.startswith("no scope: each running job")
    jobs = [job_facts(SCAVENGER)]
    assert ScopeRules("partition=scavenge").remarks(jobs) == []
    rules = ScopeRules("partition=scavenge or name=x*", "account=cms")
    assert rules.remarks(jobs) == [
        "[reclaim] preemptible = partition=scavenge or name=x*: users set name of their jobs themselves",
        "[reclaim] exempt = account=cms: no running job fits",
    ]
    assert len(rules.remarks(None)) == 1
