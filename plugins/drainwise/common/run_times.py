"""Run times of jobs by kind: the one estimate of a pilot, of `estimate` and of the simulator.

Of those that come to some age the share that ends there is taken, ended or not (Kaplan and Meier's estimate): who looks
at ended jobs alone learns from the short ones first, since the long ones run still. Ages differ by a tenth or more.
Kinds lie within each other; one of which little is known follows the wider one.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence

Kind = tuple[str, ...]
"""What a job is one of many of, the widest word first: ("atlas", "user7", "task12")."""
WINDOW = 1000
"""Run times that a kind keeps; older ones are forgotten, so that memory stays flat and a task may change."""
LEAST_JOBS = 5
"""Fewer run times of the widest kind say nothing."""
QUANTILE = 0.75
"""The probability with which a job ends by the time that is expected of it.

A pilot leaves when the last of its payloads has ended: with medians that would be promised too early.
"""
MOST_WORDS = 3
MOST_KINDS = 100_000
"""Kinds that are kept; later ones are not learned, so that memory stays bounded."""

_RATIO = 1.1
_STEPS = 171  # up to four months
_WIDER = 5.0  # jobs of the wider kind that a kind's own jobs count against
_NO_WIDER = 1e-3  # the same for the widest kind
_AGED = 0.05  # share of jobs that end while their age grows by a tenth where no job ever came
_ANEW = 20  # a curve is made anew when one part in this number of what it rests on has ended since
_LOG_RATIO = math.log(_RATIO)
_BEGINS = [0.0, *(_RATIO**step for step in range(_STEPS))]
"""The age in s at which each step begins, and at which the last one ends."""


def kind_of(task: str) -> Kind:
    """Return the kind in a task's name, the wider before the narrower: `alice/sim` is one of alice's."""
    return tuple(task.split("/", MOST_WORDS - 1))


class RunTimes:
    """Run times of the jobs of each kind: the last that have ended, and those that run."""

    def __init__(self) -> None:
        self._ended: dict[Kind, _Ended] = {}
        self._running: dict[Kind, list[int]] = {}
        self._curves: dict[Kind, _Curve] = {}

    def copy(self) -> RunTimes:
        """Return what is known now, to learn on by itself."""
        other = RunTimes()
        other._ended = {kind: ended.copy() for kind, ended in self._ended.items()}
        other._running = {kind: counts[:] for kind, counts in self._running.items()}
        other._curves = self._curves.copy()
        return other

    def learn(self, kind: Kind, seconds: float) -> None:
        """Learn that a job of that kind has ended after `seconds`; every wider kind learns it, too."""
        step = _step(seconds)
        for length in range(1, len(kind) + 1):
            part = kind[:length]
            found = self._ended.get(part)
            if found is None:
                if len(self._ended) >= MOST_KINDS:
                    return
                found = self._ended[part] = _Ended()
            found.add(step)

    def watch(self, running: Iterable[tuple[Kind, float]]) -> None:
        """Replace what runs now, and for how many seconds."""
        self._running.clear()
        self._curves.clear()
        for kind, elapsed in running:
            step = _step(elapsed)
            for length in range(1, len(kind) + 1):
                part = kind[:length]
                counts = self._running.get(part)
                if counts is None:
                    counts = self._running[part] = [0] * _STEPS
                counts[step] += 1

    def expected(self, kind: Kind, elapsed: float = 0.0) -> float | None:
        """Return the seconds that a job of this kind runs in all after `elapsed`; None: nobody can tell.

        It never falls when `elapsed` grows, and is never shorter than that.
        """
        widest = self._ended.get(kind[:1])
        if widest is None or len(widest.newest) < LEAST_JOBS:
            return None
        curve = self._curve(kind)
        return curve.start if elapsed <= 0 else curve.after(elapsed)

    def still_running(self, kind: Kind, elapsed: float, ages: Sequence[float]) -> list[float] | None:
        """Return the probability that a job which has run for `elapsed` s runs still at each of these ages, in s.

        None: nobody can tell.
        """
        widest = self._ended.get(kind[:1])
        if widest is None or len(widest.newest) < LEAST_JOBS:
            return None
        curve = self._curve(kind)
        here = curve.left_at(elapsed)
        return [1.0 if age <= elapsed else min(1.0, curve.left_at(age) / here) if here > 0 else 0.0 for age in ages]

    def known(self, kind: Kind) -> int:
        """Return from how many ended jobs of that very kind an estimate is made."""
        found = self._ended.get(kind)
        return len(found.newest) if found else 0

    def _curve(self, kind: Kind) -> _Curve:
        if not kind:
            return _UNKNOWN
        wider = self._curve(kind[:-1])
        ended, running = self._ended.get(kind), self._running.get(kind)
        if ended is None and running is None:
            return wider
        curve = self._curves.get(kind)
        if curve is None or curve.wider is not wider or (ended and ended.since * _ANEW > len(ended.newest)):
            counts = _NOBODY
            if ended is not None:
                counts, ended.since = ended.counts, 0
            curve = self._curves[kind] = _Curve(counts, running or _NOBODY, wider)
        return curve


class _Ended:
    """The last jobs of one kind that have ended, by the step in which they did; since: those after its last curve."""

    __slots__ = ("counts", "newest", "since")

    def __init__(self) -> None:
        self.counts, self.since = [0] * _STEPS, 0
        self.newest: deque[int] = deque()

    def copy(self) -> _Ended:
        other = _Ended()
        other.counts, other.since, other.newest = self.counts[:], self.since, self.newest.copy()
        return other

    def add(self, step: int) -> None:
        self.counts[step] += 1
        self.since += 1
        self.newest.append(step)
        if len(self.newest) > WINDOW:
            self.counts[self.newest.popleft()] -= 1


class _Curve:
    """The share of a kind that comes to each step, below 0 so that it rises; shares: of those, how many end in it."""

    __slots__ = ("left", "shares", "start", "wider")

    def __init__(self, ended: Sequence[int], running: Sequence[int], wider: _Curve | None) -> None:
        self.wider = wider
        self.shares: list[float] = []
        if wider is None:
            self.shares = [_AGED] * _STEPS
        else:
            weight, there = _WIDER if wider.wider else _NO_WIDER, 0
            for gone, going, share in zip(reversed(ended), reversed(running), reversed(wider.shares)):
                # Who is within the step has seen half of it.
                self.shares.append((gone + weight * share) / (there + gone + going / 2 + weight))
                there += gone + going
            self.shares.reverse()
        left = 1.0
        self.left = [-left]
        for share in self.shares:
            left *= 1.0 - share
            self.left.append(-left)
        self.start = self._reached(0.0, 0, QUANTILE - 1.0)

    def after(self, elapsed: float) -> float | None:
        """Return the time by which a job that has run for `elapsed` ends with the probability of `QUANTILE`."""
        step, here = _step(elapsed), -self.left_at(elapsed)
        return self._reached(elapsed, step, here * (1.0 - QUANTILE), here)

    def left_at(self, age: float) -> float:
        """Return the share that comes to this age, from 0 to 1."""
        step = _step(age)
        here = -self.left[step]
        if age > _BEGINS[step]:
            # Of a step that is half over half of its share has ended, on the scale of ages.
            part = age if step == 0 else math.log(age / _BEGINS[step]) / _LOG_RATIO
            here *= (1.0 - self.shares[step]) ** min(1.0, part)
        return here

    def _reached(self, begin: float, first: int, wanted: float, here: float = -1.0) -> float | None:
        """Return when what is left has come down to `wanted`, from `here` at `begin`; None beyond the last step."""
        left = self.left
        step = bisect_left(left, wanted, first + 1) - 1
        if step >= _STEPS:
            return None
        low, above = (begin, here) if step == first else (_BEGINS[step], left[step])
        return low + (_BEGINS[step + 1] - low) * (wanted - above) / (left[step + 1] - above)


_NOBODY = [0] * _STEPS
_UNKNOWN = _Curve(_NOBODY, _NOBODY, None)


def _step(seconds: float) -> int:
    """Return the step that an age lies in; the first is up to a second."""
    return 0 if seconds < 1 else min(_STEPS - 1, 1 + int(math.log(seconds) / _LOG_RATIO))
