"""Requests whose reason has gone are taken back, and no others."""

from __future__ import annotations

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from drainwise.pilotad.report import PilotReport
from drainwise.pool import Pilot, Snapshot
from drainwise.reclaim.cancel import Cancel
from drainwise.reclaim.plan import make_plan
from drainwise.reclaim.record import Record

from .facts import NOW, SETTINGS, pilot, principal, report, reports, snapshot

DEADLINE = NOW + 600


def asked(number: int, said: PilotReport | None = None, *, cores: int = 8, user: str = "alice") -> Pilot:
    return pilot(number, said, cores=cores, user=user, deadline=DEADLINE)


def taken_back(seen: Snapshot) -> tuple[Cancel, ...]:
    return make_plan(seen, NOW, SETTINGS).cancels


def runs(seen: Snapshot) -> list[str]:
    return [one.pilot.run for one in taken_back(seen)]


def test_when_bob_has_left_every_request_is_taken_back() -> None:
    pilots = [asked(n, report()) for n in range(2)]
    found = taken_back(snapshot(*pilots, pilot(3), deficit=0, surplus=24))
    assert [one.pilot for one in found] == pilots
    assert found[0].saved == 2000, "8 − 6 cores need not idle for a thousand seconds"
    assert found[0].reason == "nobody waits for these cores any more; going on saves 0.556 core-h"


def test_as_long_as_bob_waits_no_request_is_taken_back() -> None:
    assert runs(snapshot(asked(1), asked(2), deficit=16)) == []
    assert runs(snapshot(asked(1), asked(2), deficit=9)) == [], "he needs a part of both"


def test_of_several_the_one_whose_going_on_saves_most() -> None:
    cheap, dear = asked(1, report(7.9)), asked(2, report(1.0))
    assert runs(snapshot(cheap, dear, deficit=8, surplus=16)) == [dear.run]


def test_cores_that_became_free_elsewhere_are_a_reason_gone() -> None:
    assert len(runs(snapshot(asked(1), asked(2), deficit=16, free=8))) == 1


def test_an_order_that_was_not_answered_takes_back_none_that_stands() -> None:
    """It may not be carried out, and then the one that was taken back would be missing."""
    stands, doubtful = asked(1), pilot(2)
    record = Record(unanswered={doubtful.run: DEADLINE})
    assert make_plan(snapshot(stands, doubtful, deficit=8, surplus=16), NOW, SETTINGS, record).cancels == ()
    [gone] = make_plan(snapshot(stands, doubtful, deficit=0, surplus=16), NOW, SETTINGS, record).cancels
    assert gone.pilot == stands


def test_a_quota_that_was_raised_is_a_reason_gone() -> None:
    """bob still waits, but not for alice's cores: the next cycle looks at who is over quota now."""
    accounts = (principal("group_a", 16, 16), principal("group_b", 0, 16, wanted=16, per_job=1))
    found = taken_back(Snapshot(NOW, (asked(1), asked(2)), accounts))
    assert [one.reason.partition(";")[0] for one in found] == ["group_a is not over quota"] * 2


def test_the_best_priority_is_released_first() -> None:
    pilots = (asked(1, user="ann"), asked(2, user="bea"))
    seen = dataclasses.replace(snapshot(*pilots, deficit=8, surplus=16), user_priorities={"ann": 900.0, "bea": 1.0})
    assert runs(seen) == [pilots[1].run]


def test_what_the_batch_system_ends_or_has_ended_is_not_ours_to_take_back() -> None:
    ending, overdue = pilot(1, leaving=True), dataclasses.replace(asked(2), deadline=NOW)
    assert runs(snapshot(ending, overdue, deficit=0, surplus=16)) == []


claims = st.tuples(reports(), reports())
rows = st.lists(st.tuples(claims, st.sampled_from((1, 2, 4, 8, 12)), st.booleans()), max_size=8)


@settings(max_examples=80, deadline=None)
@given(rows, st.integers(0, 40), st.integers(0, 20), st.integers(0, 60))
def test_what_is_taken_back_is_not_asked_for_again(
    pilots: list[tuple[tuple[PilotReport | None, PilotReport | None], int, bool]], deficit: int, free: int, surplus: int
) -> None:
    """No flapping: after the requests are gone, the same pool asks nobody. And claims release no core more or less."""
    seen = [
        snapshot(
            *(
                pilot(n, row[0][side], cores=row[1], deadline=DEADLINE if row[2] else None)
                for n, row in enumerate(pilots)
            ),
            deficit=deficit,
            free=float(free),
            surplus=surplus,
        )
        for side in (0, 1)
    ]
    released = {one.pilot.run for one in taken_back(seen[0])}
    assert sum(one.pilot.cores for one in taken_back(seen[0])) == sum(one.pilot.cores for one in taken_back(seen[1]))
    if released:
        after = tuple(dataclasses.replace(one, deadline=None) if one.run in released else one for one in seen[0].pilots)
        assert make_plan(dataclasses.replace(seen[0], pilots=after), NOW, SETTINGS).orders == ()
