"""The payloads that run in one pilot, with the sums of SPEC §2 kept up to date, and the report they make.

The sums are whole numbers of core-microseconds, so that a million starts and ends leave no error behind, and an event
costs the same for ten payloads as for a thousand.

After CAN_POSTPONE_LAST_JOB went back from False to True, the other values rest for a while. A site that has counted on
the cores of a draining pilot decides again; meanwhile figures that move at each event would have it decide on another
pilot each time. Source: draft row 3.8.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from drainwise.facts.errors import UsageError
from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.payload import Payload
from drainwise.pilotad.partial_return import NOTHING_RETURNED, ReturnedPart
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.values import LATEST

_MICRO = 1_000_000


@dataclass(frozen=True)
class Checkpoint:
    """What a payload has saved, at a time (UNIX s).

    following: when it saves next, UNIX s, None where that is not known. seconds: to save on demand, None where it saves
    only at times of its own. restart: core-seconds to begin again from there.
    """

    at: float
    following: float | None = None
    seconds: float | None = None
    restart: float = 0.0


@dataclass(frozen=True)
class RunningPayload:
    """A payload since `start`, with its end in good faith and the last moment it may run; UNIX s; what it has saved."""

    payload: Payload
    start: float
    expected_end: float
    maximum_end: float
    saved: Checkpoint | None = None

    @property
    def unsaved_since(self) -> float:
        """Since when its work would be lost, UNIX s."""
        return self.start if self.saved is None else max(self.start, self.saved.at)


def running_since(payload: Payload, start: float) -> RunningPayload:
    """Return a payload that begins at `start` (UNIX s); one with a command that saves its work has saved all of it."""
    saved = Checkpoint(start, None, payload.checkpoint_seconds) if payload.checkpoint else None
    return RunningPayload(payload, start, start + payload.expected, start + payload.maximum, saved)


class Workload:
    """The payloads that run now. `start` is when the pilot itself began, UNIX s.

    running: by name, in the order they started; a view that follows the changes. used: cores in use. last_start: when
    any payload started or saved here last, ended ones included; the pilot's own start before the first. UNIX s.
    """

    def __init__(self, start: float) -> None:
        self._running: dict[str, RunningPayload] = {}
        self.running: Mapping[str, RunningPayload] = MappingProxyType(self._running)
        # Sorted lists: finding a place takes log n steps, making room moves a few kB at once.
        self._expected_ends: list[tuple[float, str]] = []
        self._maximum_ends: list[tuple[float, str]] = []
        self.used = 0
        self.last_start = start
        self._starts = 0
        self._ends = 0

    @property
    def first_end(self) -> float | None:
        """The first expected end (h), UNIX s; None when nothing runs."""
        return self._expected_ends[0][0] if self._expected_ends else None

    @property
    def last_end(self) -> float | None:
        """The last expected end (g in good faith), UNIX s; None when nothing runs."""
        return self._expected_ends[-1][0] if self._expected_ends else None

    @property
    def last_max_end(self) -> float | None:
        """The last maximum end (g guaranteed), UNIX s; None when nothing runs."""
        return self._maximum_ends[-1][0] if self._maximum_ends else None

    def add(self, running: RunningPayload) -> None:
        """Add a payload that has started. Raises UsageError when one of its name runs already."""
        name, cores = running.payload.name, running.payload.cores
        if name in self._running:
            raise UsageError(f"payload {name!a} runs already: give each payload a name of its own")
        self._starts += cores * _micro(running.unsaved_since)
        self._ends += cores * _micro(running.expected_end)
        self._running[name] = running
        self.used += cores
        self.last_start = max(self.last_start, running.unsaved_since)
        insort(self._expected_ends, (running.expected_end, name))
        insort(self._maximum_ends, (running.maximum_end, name))

    def remove(self, name: str) -> RunningPayload:
        """Remove a payload that has ended. Raises UsageError when none of that name runs."""
        running = self._find(name)
        cores = running.payload.cores
        del self._running[name]
        self.used -= cores
        self._starts -= cores * _micro(running.unsaved_since)
        self._ends -= cores * _micro(running.expected_end)
        _take_out(self._expected_ends, (running.expected_end, name))
        _take_out(self._maximum_ends, (running.maximum_end, name))
        return running

    def move(self, name: str, expected_end: float) -> None:
        """Move the expected end of a payload, UNIX s. Raises UsageError when none of that name runs."""
        old = self._find(name)
        self._ends += old.payload.cores * (_micro(expected_end) - _micro(old.expected_end))
        self._running[name] = replace(old, expected_end=expected_end)
        _take_out(self._expected_ends, (old.expected_end, name))
        insort(self._expected_ends, (expected_end, name))

    def save(self, name: str, saved: Checkpoint) -> None:
        """Note what a payload has saved: it loses no more than what it does since. Raises UsageError as `move`."""
        self.add(replace(self.remove(name), saved=saved))

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """What each payload has saved; () where one of them has saved nothing."""
        found = tuple(one.saved for one in self.running.values() if one.saved is not None)
        return found if len(found) == len(self.running) else ()

    def moved(self, seconds: float) -> Workload:
        """Return it by a clock that was set by so much: each payload has run as long as before, and may run as long."""
        moved = Workload(self.last_start + seconds)
        for each in self._running.values():
            ends = each.expected_end + seconds, each.maximum_end + seconds
            saved = None if each.saved is None else replace(each.saved, at=each.saved.at + seconds, following=None)
            moved.add(RunningPayload(each.payload, each.start + seconds, *ends, saved))
        return moved

    def past_estimate(self, now: float) -> tuple[RunningPayload, ...]:
        """Return those whose expected end has come, the earliest first."""
        return tuple(self._running[name] for _, name in self._expected_ends[: _until(self._expected_ends, now)])

    def past_maximum(self, now: float) -> tuple[RunningPayload, ...]:
        """Return those whose maximum end has come, the earliest first."""
        return tuple(self._running[name] for _, name in self._maximum_ends[: _until(self._maximum_ends, now)])

    def next_maximum_end(self, now: float) -> float | None:
        """Return the next maximum end after `now`, UNIX s; None when there is none."""
        at = _until(self._maximum_ends, now)
        return self._maximum_ends[at][0] if at < len(self._maximum_ends) else None

    def run_until(self, moment: float) -> float:
        """Σ cores·(moment − start): core-seconds that what runs now has run at `moment`, UNIX s."""
        return (self.used * _micro(moment) - self._starts) / _MICRO

    def run_after(self, moment: float, earliest: float, latest: float) -> float:
        """Σ cores·(expected end − moment) with every expected end taken to lie within `earliest` and `latest`, UNIX s.

        Costs a step for each end that does not lie there, so none when the estimates are kept.
        """
        total = self._ends - self.used * _micro(moment)
        for end, name in self._expected_ends:
            if end >= earliest:
                break
            total += self._running[name].payload.cores * (_micro(earliest) - _micro(end))
        for end, name in reversed(self._expected_ends):
            if end <= latest:
                break
            total -= self._running[name].payload.cores * (_micro(end) - _micro(latest))
        return total / _MICRO

    def _find(self, name: str) -> RunningPayload:
        try:
            return self._running[name]
        except KeyError:
            raise UsageError(f"payload {name!a} does not run here") from None


def report_of(
    workload: Workload,
    lease: Lease,
    can_postpone: bool,
    priority_factor: int,
    now: float,
    last_max_limit: float | None = None,
    kill_wait: float = 0.0,
    exp_waste_curve: str | None = None,
    part: ReturnedPart | None = None,
) -> PilotReport:
    """Report all attributes at `now`, UNIX s: never incomplete, never against each other, no estimate in the past.

    last_max_limit: when the pilot itself stops whatever runs, UNIX s; no end is stated after it, nor after the lease's,
    nor after the last time that readers take for one.
    A caller that runs more than the lease has states the whole lease, and its work as if each core did one part of it.
    exp_waste_curve: see `pilotad.waste_curve`.
    part: what is returned; None of a pilot that cannot return a part.
    kill_wait: seconds a payload that ran for its maximum takes to be stopped, so that LAST_MAX_JOB_END is kept.
    Ends are rounded up and the last start down to whole seconds; both sums belong to the rounded times, so that the
    metrics that a reader computes from them are right.
    Source: SPEC §2; nothing running: no cores used, nothing to lose, and all ends are now.
    """
    latest = max(now, min(_or_never(lease.end), _or_never(last_max_limit), LATEST))

    def stated(end: float | None) -> int:
        return math.ceil(min(latest, max(now, now if end is None else end)))

    first, last = stated(workload.first_end), stated(workload.last_end)
    last_max = workload.last_max_end
    last_start = math.floor(min(now, workload.last_start))
    share = min(1.0, lease.cores / max(1, workload.used))
    held = lease.cores - (part or NOTHING_RETURNED).cores
    busy = share * workload.run_after(first, now, latest)
    saved = workload.checkpoints
    following = [one.following for one in saved if one.following is not None]
    on_demand = [one.seconds for one in saved if one.seconds is not None]
    return PilotReport(  # by place, as names take twice as long
        math.floor(now),
        float(min(workload.used, lease.cores)),
        last_start,
        first,
        last,
        max(last, stated(None if last_max is None else last_max + kill_wait)),
        # Rounding, or a clock that was set back, may put a start behind the last one that is stated.
        max(0.0, share * workload.run_until(last_start)),
        max(0.0, held * (last - first) - busy),
        priority_factor,
        can_postpone,
        exp_waste_curve,
        returned_cores=None if part is None else part.cores,
        returned_memory=None if part is None or not part.memory else part.memory,
        returned_since=None if part is None else part.since,
        last_checkpoint=math.floor(min(one.at for one in saved)) if saved else None,
        next_checkpoint=stated(max(following)) if saved and len(following) == len(saved) else None,
        checkpoint_seconds=math.ceil(max(on_demand)) if saved and len(on_demand) == len(saved) else None,
        restart_cost=math.ceil(share * sum(one.restart for one in saved)) if saved else None,
    )


def _or_never(moment: float | None) -> float:
    return math.inf if moment is None else moment


def _micro(seconds: float) -> int:
    return round(seconds * _MICRO)


def _until(ends: list[tuple[float, str]], now: float) -> int:
    """Return how many of the ends have come."""
    return bisect_left(ends, (math.nextafter(now, math.inf), ""))


def _take_out(ends: list[tuple[float, str]], entry: tuple[float, str]) -> None:
    del ends[bisect_left(ends, entry)]


_NEVER = float("-inf")


class RestingValues:
    """The values of one pilot's reports. `rest`: how long they rest, in seconds."""

    def __init__(self, rest: float) -> None:
        self._rest = rest
        self._stated: PilotReport | None = None
        self.until = _NEVER
        """When a rest is over, UNIX s; a time that is past for none."""

    def stated(self, report: PilotReport, now: float) -> PilotReport:
        """Return what is to be stated at `now` (UNIX s) where `report` is how it is.

        A pilot that drains, again or still, states everything as it is: its cores come back sooner than was said. So
        does one that has returned other cores than before.
        """
        before = self._stated
        if not report.can_postpone_last_job:
            self.until = _NEVER
        elif before is not None and before.can_postpone_last_job is False:
            self.until = now + self._rest
        if before is not None and report.returned_since != before.returned_since:
            self.until = _NEVER  # cores have come back: what is in use fits no more what was said
        if before is not None and now < self.until:
            moving = {"heartbeat", "can_postpone_last_job", "source"}
            names = PilotReport.__match_args__
            stated: list[Any] = [getattr(report if name in moving else before, name) for name in names]
            report = PilotReport(*stated)
        self._stated = report
        return report

    def end(self) -> None:
        """End a rest: the clock was set, and the times that are stated belong to another one."""
        self.until = _NEVER
