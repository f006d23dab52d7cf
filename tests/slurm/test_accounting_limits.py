"""What limits of the accounting leave to who waits; lines as 22.05, 24.11 and 26.05 print them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from drainwise.slurm.pool.limits import Allowance, Asked, Holder, limits_in

CMS: Holder = ("cms", "", "")
BOB: Holder = ("cms", "bob", "")
ASSOCIATIONS = """\
Current Association Manager state
Association Records
ClusterName=test Account=cms UserName= Partition= Priority=0 ID=6 ParentAccount=root(1) Lineage=/cms/ \
DefAssoc=No GrpJobs=7(1) GrpSubmitJobs=N(8) GrpTRES=cpu=6(2),mem=N(2048),gres/gpu=N(0) GrpTRESMins=cpu=N(0) \
GrpTRESRunMins=cpu=600(120) MaxJobs=5(1) \
MaxTRESPJ=cpu=4 MaxTRESPN= Comment=(null)
ClusterName=test Account=cms UserName=bob(1002) Partition= Priority=0 ID=7 ParentAccount= Lineage=/cms/0-bob/ \
DefAssoc=Yes GrpJobs=N(1) \
GrpTRES=cpu=N(2),mem=N(2048) MaxJobs=5(1) MaxSubmitJobs= MaxTRESPJ=cpu=4 MaxTRESPN= Comment=(null)
"""
QOS = """\
QOS=small(2) UsageRaw=0.000000 GrpJobs=N(0) GrpTRES=cpu=16(0),mem=N(0) MaxWallPJ= MaxTRESPJ=cpu=8 PreemptMode=OFF \
Priority=0 Account Limits= cms={MaxJobsPA=N(0) MaxTRESPA=cpu=N(0)} \
User Limits= {user}={{MaxJobsPU=3(0) MaxTRESPU=cpu=4(0),mem=N(0)}}
""".replace("cms={", "cms={{").replace("N(0)} User", "N(0)}} User")
HOUR = Asked(60, {"cpu": 1})


def test_which_limits_there_are_and_what_they_leave() -> None:
    """Of an account's record those that all its users share; what has no limit is none."""
    found = limits_in(ASSOCIATIONS + QOS.format(user="bob(1002)"))
    assert found[CMS] == {("jobs", "all", ""): 6, ("amounts", "all", "cpu"): 4, ("minutes", "all", "cpu"): 480}
    assert found[BOB] == {("jobs", "user", ""): 4, ("job", "job", "cpu"): 4}
    assert found["qos", "small"] == {("amounts", "all", "cpu"): 16, ("job", "job", "cpu"): 8}
    assert found["qos", "small", "user", "bob"] == {("jobs", "user", ""): 3, ("amounts", "user", "cpu"): 4}
    assert len(found) == 4


def test_22_05_names_a_user_by_the_number_alone() -> None:
    found = limits_in(ASSOCIATIONS + QOS.format(user="1002"))
    assert ("qos", "small", "user", "bob") in found


def taken(allowance: Allowance, tasks: int, asked: Asked, holders: Iterable[Holder]) -> int:
    """How many of a job's tasks the limits of these allow."""
    return allowance.take(tasks, allowance.bounds(asked, holders))


def test_jobs_take_of_the_limits_one_after_the_other() -> None:
    """Four cores are left to the account: who comes later gets none, and the limit is named."""
    allowance = Allowance(limits_in(ASSOCIATIONS))
    holders = [CMS]
    assert taken(allowance, 3, HOUR, holders) == 3
    assert taken(allowance, 3, HOUR, holders) == 1
    assert taken(allowance, 1, HOUR, holders) == 0
    assert taken(allowance, 9, HOUR, [("atlas", "", "")]) == 9
    assert allowance.held_back == {"cpu of cms": 3}


def test_minutes_bind_by_the_time_limit() -> None:
    """480 core-minutes are left: one core for eight hours, or none for who has no limit."""
    holders = [CMS]
    assert taken(Allowance(limits_in(ASSOCIATIONS)), 5, Asked(480, {"cpu": 1}), holders) == 1
    assert taken(Allowance(limits_in(ASSOCIATIONS)), 5, Asked(math.inf, {"cpu": 1}), holders) == 0


def test_a_job_that_asks_for_more_than_one_may_have_never_starts() -> None:
    """It takes nothing from others."""
    allowance = Allowance(limits_in(ASSOCIATIONS))
    assert taken(allowance, 2, Asked(60, {"cpu": 5}), [BOB]) == 0
    assert taken(allowance, 2, Asked(60, {"cpu": 4}), [BOB]) == 2


def test_a_limit_of_the_quality_of_service_takes_the_place_of_the_associations() -> None:
    """Eight cores a job, and sixteen together, in place of four and six; its users' own limit binds beside them."""
    limits = limits_in(ASSOCIATIONS + QOS.format(user="bob(1002)"))
    both = [("qos", "small"), ("qos", "small", "user", "bob"), BOB, CMS]
    assert taken(Allowance(limits), 3, Asked(60, {"cpu": 5}), [("qos", "small"), BOB, CMS]) == 1  # by minutes
    assert taken(Allowance(limits), 3, Asked(6, {"cpu": 8}), [("qos", "small"), BOB, CMS]) == 2
    assert taken(Allowance(limits), 3, Asked(6, {"cpu": 2}), both) == 2


def test_without_limits_all_may_start() -> None:
    allowance = Allowance(limits_in("Current Association Manager state\n"))
    assert (taken(allowance, 7, HOUR, [CMS]), allowance.held_back) == (7, {})
