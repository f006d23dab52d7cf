"""The state shown at one moment of the demonstration: facts alone, for the screen as for the plain lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from drainwise.pool.facts import Account
from drainwise.reclaim.candidates import CUT, LEAVE, Candidate
from drainwise.reclaim.plan import Order, Plan
from local_demo.sums import Leave
from local_demo.timeline import Freed

RUNS, ORDERED, SPARED, RELEASED, GONE, WAITS = "runs", "ordered", "spared", "released", "gone", "waits"


@dataclass(frozen=True)
class Row:
    """One pilot of alice's or one job of bob's. Times in seconds, wastes in core-seconds; None = not known."""

    name: str
    user: str
    cores: int
    used: float | None = None
    left: int | None = None
    drain: int | None = None
    kill: int | None = None
    mood: str = RUNS
    word: str = ""


@dataclass(frozen=True)
class Frame:
    """One moment. elapsed: seconds since the start; since: seconds since the decision, None before it.

    needed: cores that were to come back; horizon: seconds until the deadline of those ordered.
    """

    title: str
    elapsed: float
    cores: int
    accounts: tuple[Account, ...]
    rows: tuple[Row, ...]
    freed: tuple[Freed, ...] = ()
    needed: int = 0
    since: float | None = None
    horizon: float = 0.0


def pilot_row(name: str, one: Candidate, plan: Plan | None, now: float) -> Row:
    """A running pilot as the batch system and its report have it, and what the agent said of it."""
    report = one.pilot.report
    mood, word = _said_of(one, plan, now)
    return Row(
        name,
        one.pilot.user,
        one.pilot.cores,
        None if report is None else report.used_cpu,
        one.remaining,
        one.draining_waste,
        one.kill_waste,
        mood,
        word,
    )


def _said_of(one: Candidate, plan: Plan | None, now: float) -> tuple[str, str]:
    if plan is None:
        return RUNS, ""
    for user in plan.users:
        for order in user.orders:
            if order.pilot.run == one.pilot.run:
                return ORDERED, f"{expected_of(order)}; {max(0, round(order.deadline - now))} s to go"
        for spared in user.spared:
            if spared.candidate.pilot.run == one.pilot.run:
                return SPARED, f"spared: draining would waste {spared.candidate.drained.waste}"
    return RUNS, ""


def expected_of(order: Order) -> str:
    """The figures that an order stands on."""
    expected = {LEAVE: "gone by itself", CUT: "cut at the deadline"}.get(order.kind, order.kind)
    return f"ordered: {expected}, would waste {order.waste}"


def gone_row(name: str, user: str, cores: int, leave: Leave, after: float) -> Row:
    """A pilot that has left."""
    word = (
        f"gone after {after:.0f} s, wasted {leave.wasted:.0f}: {leave.drain_idle:.0f} idle, {leave.drain_lost:.0f} lost"
    )
    return Row(name, user, cores, mood=GONE, word=word)


def released_row(row: Row) -> Row:
    """The row of a pilot whose order was withdrawn: it goes on."""
    return replace(row, mood=RELEASED, word="released: its order was withdrawn, it goes on")


def job_row(name: str, user: str, cores: int, started: Mapping[str, float], now: float, room: int = 0) -> Row:
    """One of bob's jobs; `started` has those that run, in UNIX s. room: cores that are free for it while it waits."""
    if name not in started:
        word = f"waits: {room} of {cores} cores are free for it" if room else "waits for its cores"
        return Row(name, user, cores, mood=WAITS, word=word)
    return Row(name, user, cores, float(cores), mood=RUNS, word=f"runs for {max(0.0, now - started[name]):.0f} s")
