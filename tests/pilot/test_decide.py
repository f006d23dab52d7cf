"""The decision: never too much, never too long, never in the way of leaving, and asleep in between."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilot.decide.decision import BY_DEADLINE, BY_MAXIMUM, Decision, decide
from drainwise.pilot.decide.lease import Lease, SiteOrders
from drainwise.pilot.decide.payload import Backlog, Payload
from drainwise.pilot.decide.settings import DEADLINE, HOLES, NOTHING, WHILE_DRAINING, PilotSettings
from drainwise.pilot.decide.workload import RunningPayload, Workload, running_since

from .work import T0, Job, jobs, no_orders, payload, payloads, play, workload_of, workloads

LEASE = Lease(8, T0, T0 + 10_000)
SETTINGS = PilotSettings(margin=10)
FREE = no_orders(LEASE, SETTINGS, T0)
LEAVE = SiteOrders(leave=True, deadline=T0 + 5000, draining=True, source=".site.ad")
SHORTER = SiteOrders(leave=False, deadline=T0 + 5000, draining=True, source="shutdowntime_job")


def decided(
    workload: Workload,
    *waiting: Payload,
    orders: SiteOrders = FREE,
    settings: PilotSettings = SETTINGS,
    now: float = T0,
    more: bool = True,
) -> Decision:
    """The decision for the lease of these tests."""
    return decide(workload, Backlog(waiting), LEASE, orders, settings, now, more)


def names(decision: Decision) -> list[str]:
    """Who starts."""
    return [each.name for each in decision.start]


def test_the_highest_priority_that_fits_starts() -> None:
    """Priority first, then the order given; who does not fit is passed over by who does."""
    chosen = decided(
        Workload(T0),
        payload("low", 2),
        payload("high", 4, priority=5),
        payload("too wide now", 5, priority=4),
        payload("same", 2),
        payload("third", 1),
    )
    assert names(chosen) == ["high", "low", "same"]
    assert chosen.unfit == () and not chosen.done


def test_nothing_starts_that_does_not_fit_the_rest_of_the_lease() -> None:
    """The maximum counts, not the estimate, and the margin is kept: to the second."""
    chosen = decided(Workload(T0), payload("fits", maximum=9990), payload("not", maximum=9991, expected=1))
    assert names(chosen) == ["fits"]


def test_a_payload_larger_than_the_lease_is_handed_back() -> None:
    """It is named with a reason, and the pilot goes on."""
    chosen = decided(Workload(T0), payload("huge", 9))
    assert chosen.unfit == (("huge", "needs 9 cores, the lease has 8"),)
    assert not chosen.start and not chosen.done


def test_two_payloads_of_one_name_run_one_after_the_other() -> None:
    """Records and directories go by name, so the second waits for the first."""
    chosen = decided(Workload(T0), payload("p", 4), payload("p", 3), payload("q", 4))
    assert [(each.name, each.cores) for each in chosen.start] == [("p", 4), ("q", 4)]
    assert names(decided(workload_of(running_since(payload("p"), T0)), payload("p"))) == []


def test_holes_are_filled_while_leaving() -> None:
    """Until the last running payload ends others may run on the free cores, but none that would end after it."""
    workload = workload_of(running_since(payload("long", 6, maximum=4000, expected=2000), T0))
    chosen = decided(workload, payload("fits", 1, maximum=2000), payload("later", 1, maximum=2001), orders=LEAVE)
    assert names(chosen) == ["fits"] and not chosen.can_postpone


def test_until_the_deadline_while_leaving() -> None:
    """Told so, the pilot uses its whole time."""
    chosen = decided(
        Workload(T0),
        payload("fits", 1, maximum=4990),
        payload("later", 1, maximum=4991),
        orders=LEAVE,
        settings=PilotSettings(margin=10, while_draining=DEADLINE),
    )
    assert names(chosen) == ["fits"]


@pytest.mark.parametrize("orders", [LEAVE, SHORTER])
def test_nothing_while_draining(orders: SiteOrders) -> None:
    """Told so, the pilot starts nothing whatever the reason it drains for."""
    workload = workload_of(running_since(payload("long", 6, maximum=4000), T0))
    told = PilotSettings(while_draining=NOTHING)
    assert names(decided(workload, payload("fits", 1, maximum=1), orders=orders, settings=told)) == []


def test_a_shorter_lease_is_used_to_its_end() -> None:
    """A shutdown without an order to leave: whatever surely ends before it may start, also in an empty pilot."""
    chosen = decided(Workload(T0), payload("fits", maximum=4990), payload("later", maximum=4991), orders=SHORTER)
    assert names(chosen) == ["fits"] and not chosen.can_postpone and not chosen.done


def test_at_the_deadline_everything_is_stopped() -> None:
    """Not a second before deadline − margin, and then all; one that used up its maximum failed, the others are lost."""
    workload = workload_of(
        RunningPayload(payload("a"), T0, T0 + 6000, T0 + 7000), RunningPayload(payload("b"), T0, T0 + 4000, T0 + 4990)
    )
    assert decided(workload, orders=LEAVE, now=T0 + 4989.9).stop == ()
    stopped = decided(workload, payload("short", maximum=1), orders=LEAVE, now=T0 + 4990)
    assert dict(stopped.stop) == {"a": BY_DEADLINE, "b": BY_MAXIMUM}
    assert not stopped.start and not stopped.done


def test_a_maximum_is_a_promise() -> None:
    """Whoever ran for its maximum is stopped then, and only that one."""
    workload = workload_of(
        running_since(payload("a", maximum=100, expected=50), T0), running_since(payload("b", maximum=101), T0)
    )
    assert decided(workload, now=T0 + 99.9).stop == ()
    assert decided(workload, now=T0 + 100).stop == (("a", BY_MAXIMUM),)


@pytest.mark.parametrize(
    ("orders", "now", "more", "waiting", "why"),
    [
        (LEAVE, T0, True, [payload("p")], "ordered to leave (.site.ad)"),
        (SHORTER, T0, True, [], "draining (shutdowntime_job)"),
        (FREE, T0 + 9990, True, [], "the lease is over"),
        (FREE, T0 + 9000, True, [payload("p")], "1000 s needed, 990 s left"),
        (FREE, T0, False, [], "no payload waits and none will come"),
        (FREE, T0, False, [payload("huge", 9)], "no payload waits and none will come"),
    ],
)
def test_why_a_pilot_ends(orders: SiteOrders, now: float, more: bool, waiting: list[Payload], why: str) -> None:
    """An empty pilot with no future says why; one in which something runs never ends."""
    found = decided(Workload(T0), *waiting, orders=orders, now=now, more=more)
    assert found.done and why in found.why_done and found.wake is None
    busy = workload_of(running_since(payload("runs", 8, maximum=20_000), T0))
    assert not decided(busy, *waiting, orders=orders, now=now, more=more).done


def test_an_idle_pilot_waits_for_more() -> None:
    """While payloads may come, it sleeps until none could run any more."""
    found = decided(Workload(T0))
    assert not found.done and found.wake == T0 + 9990 and found.can_postpone


def test_a_pilot_with_an_empty_queue_cannot_postpone() -> None:
    """Nothing waits, nothing will come: its cores come back anyway, and the site is told so."""
    workload = workload_of(running_since(payload("last", 4), T0))
    assert not decided(workload, more=False).can_postpone
    assert not decided(workload, payload("starts now", 4), more=False).can_postpone
    assert decided(workload, payload("starts later", 8), more=False).can_postpone
    assert decided(workload, now=T0 + 9989).can_postpone
    assert not decided(workload, now=T0 + 9990).can_postpone
    assert not decided(workload, payload("never", 8, maximum=9991), more=False).can_postpone


def test_wake_is_the_next_thing_to_decide() -> None:
    """The next estimate that passes, the next maximum, the deadline less the margin, whichever is first."""
    runs = RunningPayload(payload("p"), T0, T0 + 100, T0 + 300)
    assert decided(workload_of(runs)).wake == T0 + 100
    assert decided(workload_of(runs), now=T0 + 100).wake == T0 + 100  # an estimate that was not moved yet
    moved = workload_of(RunningPayload(payload("p"), T0, T0 + 400, T0 + 300))
    assert decided(moved, now=T0 + 100).wake == T0 + 300
    assert decided(moved, now=T0 + 350).wake == T0 + 400  # it is being stopped: its maximum wakes nobody again
    long = workload_of(RunningPayload(payload("p"), T0, T0 + 20_000, T0 + 30_000))
    assert decided(long).wake == T0 + 9990
    assert decided(long, orders=LEAVE).wake == T0 + 4990
    assert decided(Workload(T0), payload("starts", maximum=50, expected=20)).wake == T0 + 20
    open_end = Lease(8, T0, None)
    nobody = no_orders(open_end, SETTINGS, T0)
    assert decide(Workload(T0), Backlog(), open_end, nobody, SETTINGS, T0, True).wake is None


any_orders = st.builds(
    lambda said, deadline: SiteOrders(said == "leave", deadline, said != "", "somebody"),
    st.sampled_from(("leave", "", "drain", "leave")),
    st.none() | st.integers(T0, T0 + 20_000),
)
any_settings = st.builds(
    PilotSettings, margin=st.floats(0, 100), while_draining=st.sampled_from((HOLES, *WHILE_DRAINING, HOLES))
)
queues = st.integers(0, 8).flatmap(lambda count: st.tuples(*(payloads(f"w{number}", 12) for number in range(count))))


@given(
    workloads(whole=False), queues, any_orders, any_settings, st.floats(0, 12_000), st.integers(0, 12), st.booleans()
)
def test_every_decision_keeps_the_rules(
    workload: Workload,
    queue: tuple[Payload, ...],
    orders: SiteOrders,
    told: PilotSettings,
    later: float,
    spare: int,
    more: bool,
) -> None:
    """Whatever runs, waits and is ordered: no core is given twice, nothing starts that may end too late, no maximum and
    no deadline is passed over, holes never postpone the departure, and the next look lies ahead."""
    lease, now = Lease(max(1, workload.used + spare), T0, T0 + 10_000), T0 + later
    found = decide(workload, Backlog(queue), lease, orders, told, now, more)
    assert found == decide(workload, Backlog(queue), lease, orders, told, now, more)
    assert workload.used + sum(each.cores for each in found.start) <= lease.cores
    end = min(T0 + 10_000, orders.deadline or T0 + 10_000) - told.margin
    assert all(now + each.maximum <= end for each in found.start)
    if orders.leave and told.while_draining == HOLES:
        assert all(now + each.maximum <= (workload.last_end or 0) for each in found.start)
    assert {each.name for each in found.start}.isdisjoint(name for name, _ in found.unfit)
    stop = dict(found.stop)
    assert len(stop) == len(found.stop)
    for name, running in workload.running.items():
        assert stop.get(name) == (BY_MAXIMUM if running.maximum_end <= now else BY_DEADLINE if now >= end else None)
    assert not (found.done and (workload.running or found.start)) and found.done == bool(found.why_done)
    assert found.wake is None or found.wake >= now
    # Greed: none that could have started was left, unless one of at least its priority took the cores.
    if not orders.draining:
        free = lease.cores - workload.used - sum(each.cores for each in found.start)
        left = [each for each in queue if each not in found.start and now + each.maximum <= end]
        assert all(each.cores > free for each in left)
        for one in left:
            rivals = [each for each in found.start if each.priority >= one.priority]
            assert one.cores > lease.cores - workload.used - sum(each.cores for each in rivals)


@given(jobs(), any_settings, st.integers(0, 6000), st.integers(0, 6000), st.integers(10, 16))
def test_a_whole_life(work: list[Job], told: PilotSettings, asked: int, grace: int, cores: int) -> None:
    """With payloads that come and end as they like: never oversubscribed, all gone by deadline − margin, no maximum
    passed, nothing forgotten without a reason, and between two events the pilot may sleep."""
    deadline = T0 + min(10_000, asked + grace)
    played = play(work, Lease(cores, T0, T0 + 10_000), told, T0 + asked, deadline)
    assert played.most_used <= cores
    assert played.started.keys() == played.ended.keys()
    for name, start in played.started.items():
        one = next(each.payload for each in work if each.payload.name == name)
        assert played.ended[name] <= max(T0 + asked, deadline - told.margin)
        assert played.ended[name] <= start + one.maximum
    for name, (moment, reason) in played.stopped.items():
        assert reason == BY_MAXIMUM or moment >= deadline - told.margin, name
    waited = {each.payload.name for each in work} - played.started.keys()
    assert not waited or "ordered to leave" in played.why or "lease" in played.why


@given(jobs(faithful=True), st.integers(0, 4000), st.integers(10, 16))
def test_holes_never_prolong_a_drain(work: list[Job], asked: int, cores: int) -> None:
    """With estimates that come true a pilot that fills holes is gone exactly when one that starts nothing is."""
    lease = Lease(cores, T0, T0 + 10_000)
    gone = {
        way: play(work, lease, PilotSettings(while_draining=way), T0 + asked, T0 + 9000).departure
        for way in (HOLES, NOTHING)
    }
    assert gone[HOLES] == gone[NOTHING]


def seconds_to_decide(count: int, free: int) -> float:
    """With `count` payloads waiting, of which the first starts and others end and come; the best of some."""
    queue = [payload(f"w{n}", 1 + n % 8, maximum=1 + n * 7 % 9000, priority=n % 5) for n in range(count)]
    workload = workload_of(running_since(payload("p", 8 - free), T0))
    backlog = Backlog(queue)
    best = 1.0
    for turn in range(20):
        begin = time.perf_counter()
        decide(workload, backlog, LEASE, FREE, SETTINGS, T0, more_may_come=True)
        best = min(best, time.perf_counter() - begin)
        backlog.remove(turn)
        backlog.add(payload(f"n{turn}", 1 + turn % 8), count + turn)
    return best


@pytest.mark.parametrize("free", [0, 4])
def test_a_decision_costs_the_same_however_many_wait(free: int) -> None:
    """A hundred times as many cost about as much: only the first of each size is looked at."""
    assert seconds_to_decide(20_000, free) < 5 * seconds_to_decide(200, free)
