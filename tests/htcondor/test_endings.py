"""How runs have ended, out of what startds of both releases kept: of runs that were asked, vacated, removed, killed."""

from __future__ import annotations

import pytest

from drainwise.htcondor.ads.values import Ad
from drainwise.htcondor.pool.endings import OrderedNode, endings_in, in_question, places_of, with_who_ended
from drainwise.htcondor.pool.knobs import OrderEntry
from drainwise.pool.facts import Ending

JOB, START, DEADLINE, VACATE = "central.pool.test#7.0#1795280229", 1795280231, 1795280263, 3
RUN = f"{JOB}@{START}"
ORDER = OrderEntry(RUN, DEADLINE)


def kept(ended: int, preempted: bool = True, **more: object) -> Ad:
    """A line of a startd's history; it has no word for the run's start."""
    ad: dict[str, object] = {"GlobalJobId": JOB, "CompletionDate": ended, "RemoteWallClockTime": ended - START}
    return {**ad, "RemoteUserCpu": 0.0, "RemoteSysCpu": 0.0, "BadputCausedByPreemption": preempted, **more}


def ending(*ads: Ad, order: OrderEntry = ORDER) -> Ending | None:
    return endings_in(ads, OrderedNode("node1", "<127.0.0.1:9618>", VACATE, (order,))).get(RUN)


@pytest.mark.parametrize(
    ("ad", "vacated"),
    [
        # 23.9.6, which does not say why: left by itself; ended itself when it was told to; was killed.
        (kept(1795280254, ExitBySignal=False), False),
        (kept(1795280261, ExitBySignal=False), True),
        (kept(1795280261, preempted=False, ExitBySignal=False), False),
        (kept(1795280273, ExitBySignal=True), True),
        # 25.14.1, the same, and removed by its owner.
        (kept(1795280253, ExitBySignal=False), False),
        (kept(1795280257, ExitBySignal=False, VacateReason="PREEMPT expression evaluated to True"), True),
        (kept(1795280277, ExitBySignal=True, VacateReason="PREEMPT expression evaluated to True"), True),
        (kept(1795280249, preempted=False, ExitBySignal=True, VacateReason="Claim deactivated"), True),
    ],
)
def test_who_ended_a_run(ad: Ad, vacated: bool) -> None:
    found = ending(ad)
    assert found == Ending(RUN, int(str(ad["CompletionDate"])), vacated, None)


@pytest.mark.parametrize(
    ("ad", "by_others"),
    [
        # Of 25.14.1: condor_vacate, condor_drain -fast, the order itself, removed; of 23.9.6: condor_drain -fast.
        (kept(1795280249, ExitBySignal=True, VacateReason="by the administrator", VacateReasonCode=1010), True),
        (kept(1795280249, ExitBySignal=True, VacateReason="draining", VacateReasonCode=1014), True),
        (kept(1795280261, ExitBySignal=True, VacateReason="draining", VacateReasonCode=1014), False),
        (kept(1795280262, ExitBySignal=True, VacateReason="PREEMPT", VacateReasonCode=1011), False),
        (kept(1795280249, ExitBySignal=True, VacateReason="deactivated", VacateReasonCode=1009), False),
        (kept(1795280249, ExitBySignal=True, BadputCausedByDraining=True), True),
    ],
)
def test_who_is_ended_by_an_administrator_before_its_time_was_not_ended_by_its_order(ad: Ad, by_others: bool) -> None:
    found = ending(ad)
    assert found is not None and (found.vacated, found.by_others) == (True, by_others)


WHEN = 1795280249


@pytest.mark.parametrize(
    ("job", "by_others"),
    [
        ({"RemoveReason": "via condor_rm (by user condor)"}, True),
        ({"RemoveReason": "via condor_rm (by user root@pool.test)"}, True),
        ({"RemoveReason": "via condor_rm (by user alice)"}, False),
        ({"RemoveReason": "via condor_rm (by user alice@pool.test)"}, False),
        ({"RemoveReason": "so (by user root) that (by user alice)"}, False),
        ({"RemoveReason": "The job attribute PeriodicRemove expression evaluated to TRUE"}, False),
        ({"HoldReason": "via condor_hold (by user condor)", "HoldReasonCode": 1}, True),
        ({"HoldReason": "my own policy (by user condor)", "HoldReasonCode": 3}, False),
        ({"HoldReason": "via condor_hold (by user alice)", "HoldReasonCode": 1}, False),
        ({"RemoveReason": "via condor_rm (by user condor)", "EnteredCurrentStatus": WHEN - 1000}, False),
        ({"RemoveReason": "via condor_rm (by user condor)", "GlobalJobId": JOB.replace("7.0", "7.1")}, False),
        ({"RemoveReason": 7}, False),
        ({}, False),
    ],
)
def test_who_had_a_job_removed_or_held_tells_its_access_point(job: dict[str, object], by_others: bool) -> None:
    """A user's own removal is the user's own doing: it counts as before."""
    ad: Ad = {"GlobalJobId": JOB, "Owner": "alice", "EnteredCurrentStatus": WHEN - 2, **job}
    ended = Ending(RUN, WHEN, True)
    assert with_who_ended(ended, [ad]).by_others is by_others


def test_only_who_was_ended_before_its_time_by_nobody_known_is_asked_for() -> None:
    place = OrderedNode("node1", "<127.0.0.1:9618>", VACATE, (ORDER,))
    early, due = Ending(RUN, WHEN, True), Ending(RUN, DEADLINE - VACATE, True)
    assert in_question([early], [place]) == [early]
    for other in (due, Ending(RUN, WHEN, False), Ending(RUN, WHEN, True, by_others=True)):
        assert in_question([other], [place]) == []


def test_the_cpu_time_is_that_of_user_and_system() -> None:
    """Exactly 0 is what stands there when nothing could measure it."""
    found = ending(kept(1795280254, RemoteUserCpu=12.5, RemoteSysCpu=0.25))
    assert found is not None and found.cpu_seconds == 12.75


def test_another_run_of_the_job_and_another_job_are_passed_over() -> None:
    assert ending(kept(1795280254, RemoteWallClockTime=10)) is None
    assert ending(kept(1795280254, GlobalJobId=JOB.replace("7.0", "7.1"))) is None
    assert ending(kept(1795280254, CompletionDate="soon"), kept(1795280254, RemoteWallClockTime=-5)) is None


def test_an_order_that_was_withdrawn_has_no_deadline_to_have_been_ended_by() -> None:
    found = ending(kept(1795280261, ExitBySignal=False), order=OrderEntry(RUN, 0))
    assert found is not None and not found.vacated


def test_a_node_is_found_by_its_orders() -> None:
    """Only for runs that are asked about and that it has no more; what runs on has no ending."""
    other = RUN.replace("7.0", "8.0")
    here = {
        "Machine": "node1",
        "MyAddress": "<1>",
        "PilotReclaimOrders": f"{RUN}=5 {RUN}={DEADLINE} {other}={DEADLINE}",
    }
    slots: list[Ad] = [
        {**here, "MachineMaxVacateTime": VACATE},
        {**here, "MachineMaxVacateTime": VACATE, "GlobalJobId": other.partition("@")[0], "JobStart": START},
        {"Machine": "node2", "MyAddress": "<2>", "PilotReclaimOrders": ""},
        {"Machine": 7, "PilotReclaimOrders": f"{RUN}={DEADLINE}"},
    ]
    assert places_of(slots, [RUN, other]) == (OrderedNode("node1", "<1>", VACATE, (ORDER,)),)
    assert places_of(slots, [other]) == ()
    assert places_of(slots, []) == ()
