"""Payloads, leases and workloads for the tests, made up and by chance; and a clock-free drive of the decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from drainwise.pilot.decide.decision import Decision, decide
from drainwise.pilot.decide.estimates import move_overdue
from drainwise.pilot.decide.lease import Lease, SiteOrders, orders_from
from drainwise.pilot.decide.payload import Backlog, Payload
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilot.decide.workload import RunningPayload, Workload, running_since
from drainwise.pilotad.site_ad import SiteAd

T0 = 1_795_249_000
"""When the pilots of the tests begin, UNIX s."""


def payload(name: str, cores: int = 1, maximum: float = 1000, expected: float = 0, priority: float = 0) -> Payload:
    """A payload that is expected to run for its maximum unless told otherwise."""
    return Payload(name, cores, ("true",), expected or maximum, maximum, priority)


def workload_of(*running: RunningPayload, start: float = T0) -> Workload:
    """What runs in a pilot that began at `start`."""
    workload = Workload(start)
    for each in running:
        workload.add(each)
    return workload


def uncommitted(workload: Workload) -> float:
    """SPEC §2 add_uncom_time: core-seconds run until the last start."""
    return workload.run_until(workload.last_start)


def final_waste(workload: Workload, cores: int) -> float:
    """SPEC §2 add_final_exp_waste: core-seconds that idle between the first and the last expected end."""
    first, last = workload.first_end or 0.0, workload.last_end or 0.0
    return cores * (last - first) - workload.run_after(first, first, last)


def no_orders(lease: Lease, settings: PilotSettings, now: float) -> SiteOrders:
    """Nobody asks for anything."""
    return orders_from(None, None, None, None, lease, settings, now)


@dataclass(frozen=True)
class Job:
    """A payload that arrives at `arrival` and really takes `seconds`, which nobody knows before."""

    payload: Payload
    arrival: int
    seconds: int


@dataclass
class Played:
    """What happened: starts and stops as (time, name), ends by name, and when and why the pilot was gone."""

    started: dict[str, float] = field(default_factory=dict)
    stopped: dict[str, tuple[float, str]] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    most_used: int = 0
    departure: float = 0.0
    why: str = ""


def play(jobs: Sequence[Job], lease: Lease, settings: PilotSettings, asked: int, deadline: int) -> Played:
    """Drive the decision from `lease.start` until the pilot is gone; it is asked at `asked` to be gone by `deadline`.

    Between two events the decision is asked again and must want nothing: the pilot could have slept.
    """
    played, workload, now = Played(), Workload(lease.start), float(lease.start)
    left = {job.payload.name: job for job in jobs}
    for _ in range(100 * len(jobs) + 100):
        for name in [name for name in workload.running if _real_end(workload.running[name], jobs) <= now]:
            workload.remove(name)
            played.ended[name] = now
        orders = orders_from(SiteAd(True, deadline) if now >= asked else None, None, None, None, lease, settings, now)
        move_overdue(workload, now)
        waiting = [job.payload for job in left.values() if job.arrival <= now]
        more = any(job.arrival > now for job in left.values())
        decision = decide(workload, Backlog(waiting), lease, orders, settings, now, more)
        for name, reason in decision.stop:
            played.stopped[name] = (now, reason)
            played.ended[name] = now
            workload.remove(name)
        for chosen in decision.start:
            workload.add(running_since(chosen, now))
            played.started[chosen.name] = now
            del left[chosen.name]
        played.most_used = max(played.most_used, workload.used)
        if decision.done:
            played.departure, played.why = now, decision.why_done
            return played
        if decision.stop:
            continue
        events = [_real_end(running, jobs) for running in workload.running.values()]
        events += [job.arrival for job in left.values() if job.arrival > now] + [asked] * (asked > now)
        following = _next_moment(decision, events)
        waiting = [job.payload for job in left.values() if job.arrival <= now]
        for moment in ((now + following) / 2, following - 0.001):
            if moment > now:
                asleep = decide(workload, Backlog(waiting), lease, orders, settings, moment, more)
                assert (asleep.start, asleep.stop, asleep.done) == ((), (), False)
                assert asleep.wake == decision.wake
        if following == decision.wake:
            _something_is_due(workload, waiting, lease, orders, settings, following)
        now = following
    raise AssertionError("the pilot never leaves")


def _next_moment(decision: Decision, events: Sequence[float]) -> float:
    return min([*events, *([] if decision.wake is None else [decision.wake])])


def _something_is_due(
    workload: Workload,
    waiting: Sequence[Payload],
    lease: Lease,
    orders: SiteOrders,
    settings: PilotSettings,
    now: float,
) -> None:
    """Waking up had a reason."""
    then = decide(workload, Backlog(waiting), lease, orders, settings, now, True)
    over = orders.deadline is not None and now == orders.deadline - settings.margin
    assert then.stop or then.done or workload.past_estimate(now) or over


def _real_end(running: RunningPayload, jobs: Sequence[Job]) -> float:
    return running.start + next(job.seconds for job in jobs if job.payload.name == running.payload.name)


seconds = st.integers(1, 5000)


@st.composite
def payloads(draw: st.DrawFn, name: str, largest: int = 10) -> Payload:
    """Any payload of that name."""
    maximum = draw(seconds)
    expected = draw(st.integers(1, maximum))
    return Payload(name, draw(st.integers(1, largest)), ("true",), expected, maximum, draw(st.integers(-2, 2)))


@st.composite
def jobs(draw: st.DrawFn, faithful: bool = False) -> list[Job]:
    """Up to ten payloads with arrivals; `faithful`: each takes exactly as long as expected, else at most 6,000 s."""
    made = []
    for number in range(draw(st.integers(0, 10))):
        one = draw(payloads(f"p{number}"))
        really = int(one.expected) if faithful else draw(st.integers(1, 6000))
        made.append(Job(one, T0 + draw(st.integers(0, 3000)), really))
    return made


@st.composite
def workloads(draw: st.DrawFn, whole: bool = True, largest: int = 10) -> Workload:
    """What is left after random starts, ends and new estimates, in whole seconds or not."""
    moment = st.integers(0, 5000) if whole else st.floats(0, 5000)
    workload = Workload(T0)
    for number in range(draw(st.integers(0, 12))):
        action = draw(st.sampled_from(("add", "add", "add", "remove", "move")))
        names = sorted(workload.running)
        if action == "add":
            one = draw(payloads(f"p{number}", largest))
            workload.add(running_since(one, T0 + draw(moment)))
        elif names and action == "remove":
            workload.remove(draw(st.sampled_from(names)))
        elif names:
            name = draw(st.sampled_from(names))
            workload.move(name, workload.running[name].start + draw(moment))
    return workload
