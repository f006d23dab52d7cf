"""The site as it goes: places that hold pilots, payloads that come, start and end; one heap of what lies ahead.

Pilots come as payloads need them and go as the pilot library has it. A copy goes on by itself, so that what follows
from different decisions on the same state can be compared.
"""

from __future__ import annotations

import copy
import random
from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from math import inf

from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.decide.workload import RunningPayload
from drainwise.reclaim.seen_pilots import WINDOW, EndsSeen
from drainwise_simulate.policies.clairvoyant import Truth
from drainwise_simulate.sim_pilot import SimPilot
from drainwise_simulate.waiting import WaitingPayloads
from drainwise_simulate.workload import BEGIN, SimulatedEstimates, SiteWorkload

ENDED, FAILED = 1, 2
"""What became of a payload: it ended by itself; it hung until its maximum."""
_END, _OVER, _IDLE = 0, 1, 2  # at one moment payloads end first


class Site:
    """State at `now` (UNIX s). ordered: runs of pilots that were ordered to end and have not.

    done: by a payload's place in the trace, what became of it.
    Core-seconds: useful, lost; of pilots that have gone: idle, drained, held. gone: (UNIX s, cores) of the pilots
    that were ordered to end and have; freed: their places. stopped: payloads ended with their pilot; destroyed: their
    core-seconds. kept: by a payload's place, seconds of its run that were saved when it was stopped.
    open_need: cores that a demand still wants, None where no pilot that ends by itself serves it. serve_alone: whether
    one does. alone: cores that came back so. returned: of pilots that went on.
    """

    def __init__(self, workload: SiteWorkload, estimates: SimulatedEstimates | None = None) -> None:
        self.workload, self.estimates = workload, estimates
        self.now = float(BEGIN)
        self.arrived = self.runs = self.stopped = 0
        self.useful = self.lost = self.destroyed = self.idle = self.drained = self.held = 0.0
        self.done = bytearray(len(workload.payloads))
        self.kept: dict[int, float] = {}
        self.waiting = WaitingPayloads()
        self.pilots: dict[int, SimPilot] = {}
        self.ordered: set[int] = set()
        self.gone: list[tuple[float, int]] = []
        self.freed: list[int] = []
        self.open_need: int | None = None
        self.serve_alone, self.alone, self.returned = True, 0, 0
        self.watch(None, None)
        self._vacant = dict.fromkeys(range(len(workload.sizes)), True)  # by place: whether no pilot was ever there
        self._room: dict[int, int] = {}  # place → run of a pilot with free cores
        self._ahead: list[tuple[float, int, int, str]] = []
        # By themselves: start, end (UNIX s), cores, whether before the lease ended.
        self._gone_alone: deque[tuple[float, float, int, bool]] = deque()

    def copy(self, estimates: SimulatedEstimates | None = None) -> Site:
        """Return the same state, to go on by itself; without its own `estimates` it learns no more run times."""
        other = copy.copy(self)
        for name in ("done", "kept", "ordered", "gone", "freed", "_vacant", "_room", "_ahead", "_gone_alone"):
            setattr(other, name, copy.copy(getattr(self, name)))
        other.estimates, other.waiting = estimates, self.waiting.copy()
        other.pilots = {run: pilot.copy() for run, pilot in self.pilots.items()}
        other.watch(None, None)
        return other

    def advance(self, until: float) -> None:
        """Let happen all that happens up to `until` (UNIX s)."""
        while self._next() <= until:
            self.step()
        self.now = max(self.now, until)

    def step(self) -> bool:
        """Let the next thing happen; False when nothing lies ahead."""
        now = self._next()
        if now == inf:
            return False
        self.now = now
        if self._ahead and self._ahead[0][0] == now:
            self._happen(*heappop(self._ahead)[1:])
        else:
            turn, self.arrived = self.arrived, self.arrived + 1
            self.waiting.add(turn, self.workload.payloads[turn])
            self._seek(self.workload.payloads[turn])
        return True

    def give_order(self, run: int, deadline: int) -> None:
        """Order a pilot to end by `deadline` (UNIX s), when it is ended; at once when that is now."""
        pilot = self.pilots[run]
        self.ordered.add(run)
        pilot.give_order(deadline, self.workload.pilot, self.now)
        if deadline <= self.now:
            self._leave(pilot)
            return
        heappush(self._ahead, (deadline, _OVER, run, ""))
        self._offer(pilot)

    def withdraw_order(self, run: int) -> None:
        """Let a pilot that was ordered to end go on."""
        pilot = self.pilots[run]
        self.ordered.remove(run)
        pilot.withdraw_order(self.now)
        self._offer(pilot)

    def ask(self, run: int, cores: int) -> None:
        """Ask a pilot for a part of its cores: it returns what idles now, and each chunk that comes to idle."""
        pilot = self.pilots[run]
        if pilot.can_return and pilot.asked != cores:
            pilot.ask(cores, self.now)
            self._take_back(pilot)
            self._offer(pilot)

    def _take_back(self, pilot: SimPilot) -> None:
        """Let the demand have what a pilot returns, as far as it is still wanted."""
        if pilot.asked <= pilot.returned or self.open_need is None:
            return
        given = pilot.give_back(self.workload.scenario.chunk, self.open_need, self.now)
        if given:
            self.returned += given
            self.open_need -= given
            self.gone.append((self.now, given))

    def watch(self, started: Callable[[int, Truth], None] | None, left: Callable[[int, float], None] | None) -> None:
        """Tell of each payload that starts in a pilot, and when each pilot is gone: by its run."""
        self._started, self._left = started, left

    def true_seconds(self, pilot: SimPilot, payload: Payload) -> float:
        """Return how long a payload really runs in a pilot."""
        turn = int(payload.name)
        return payload.maximum if pilot.stuck else self.workload.runs[turn] - self.kept.get(turn, 0.0)

    def next_vacant(self) -> int | None:
        """Return the first place that neither a pilot nor the other group has."""
        return min(self._vacant, default=None)

    def claim(self, place: int) -> None:
        """Give a vacant place to the other group."""
        del self._vacant[place]
        self.freed.append(place)

    def give_back(self, place: int) -> None:
        """Let pilots come again to a place that the other group needs no more."""
        self._vacant[place] = False
        self._settle_in(place)

    @property
    def next_event(self) -> float:
        """The time of the next event, UNIX s; infinite when nothing lies ahead."""
        return self._next()

    def running_time(self) -> float:
        """Return the core-seconds that the running payloads have run."""
        return sum(pilot.workload.run_until(self.now) for pilot in self.pilots.values())

    def _next(self) -> float:
        ahead = self._ahead[0][0] if self._ahead else inf
        submits = self.workload.submits
        return min(ahead, submits[self.arrived]) if self.arrived < len(submits) else ahead

    def _happen(self, kind: int, run: int, name: str) -> None:
        pilot = self.pilots.get(run)
        if pilot is None:
            return
        if kind == _END:
            self._ended(pilot, pilot.end(name, self.now))
            self._take_back(pilot)
            self._offer(pilot)
        elif kind == _OVER:
            if pilot.orders.deadline is not None and pilot.orders.deadline <= self.now:
                self._leave(pilot)
        elif not pilot.workload.running and self.now - pilot.empty_since >= self.workload.pilot.idle_limit:
            self._leave(pilot)

    def _ended(self, pilot: SimPilot, running: RunningPayload) -> None:
        turn, seconds = int(running.payload.name), self.now - running.start
        if pilot.stuck and self.workload.runs[turn] < running.payload.maximum:
            self.lost += running.payload.cores * seconds
            self.done[turn] = FAILED
        else:
            self.useful += running.payload.cores * seconds
            self.done[turn] = ENDED
        if self.estimates is not None:
            self.estimates.learn(turn, seconds + self.kept.get(turn, 0.0))

    def _seek(self, payload: Payload) -> None:
        """Find the first place for a payload that has just come: a pilot with room, else a new pilot."""
        cores, needs, now, settings = payload.cores, payload.maximum, self.now, self.workload.pilot
        for place in sorted(self._room):
            pilot = self.pilots[self._room[place]]
            if pilot.free(settings) >= cores and pilot.seconds_left(settings, now) >= needs:
                waited = len(self.waiting)
                self._offer(pilot)
                if len(self.waiting) < waited:
                    return
        for place in sorted(self._vacant):
            if self.workload.sizes[place] >= cores and self._settle_in(place):
                return

    def ends_seen(self) -> EndsSeen:
        """Return what was seen of pilots that ended by themselves, or have not ended, until now."""
        begin = self.now - WINDOW
        gone = [(start, end, cores) for start, end, cores, _ in self._gone_alone if end > begin]
        there = [(one.lease.start, self.now, one.lease.cores) for one in self.pilots.values()]
        seen = sum(cores * (end - max(start, begin)) for start, end, cores in (*gone, *there))
        early = sum(cores for _, end, cores, is_early in self._gone_alone if is_early and end > begin)
        return EndsSeen(early, seen)

    def _note_end(self, lease: Lease) -> None:
        while self._gone_alone and self._gone_alone[0][1] <= self.now - WINDOW:
            self._gone_alone.popleft()
        is_early = lease.end is None or self.now < lease.end
        self._gone_alone.append((lease.start, self.now, lease.cores, is_early))

    def _offer(self, pilot: SimPilot) -> None:
        """Let a pilot decide what to start, and whether to go."""
        workload, now = self.workload, self.now
        free = pilot.free(workload.pilot)
        waiting = self.waiting.first(free, pilot.seconds_left(workload.pilot, now)) if free else ()
        if waiting or not pilot.workload.running:
            decision = pilot.decide(waiting, workload.pilot, now)
            for payload in decision.start:
                self._start(pilot, payload)
            if decision.done:
                self._leave(pilot)
                return
            if not pilot.workload.running:
                pilot.empty_since = now
                heappush(self._ahead, (now + workload.pilot.idle_limit, _IDLE, pilot.run, ""))
        if pilot.free(workload.pilot):
            self._room[pilot.place] = pilot.run
        else:
            self._room.pop(pilot.place, None)

    def _start(self, pilot: SimPilot, payload: Payload) -> None:
        self.waiting.take(payload)
        pilot.start(payload, self.now)
        end = self.now + self.true_seconds(pilot, payload)
        heappush(self._ahead, (end, _END, pilot.run, payload.name))
        if self._started is not None:
            self._started(pilot.run, (payload.cores, self.now, end))

    def _settle_in(self, place: int) -> bool:
        """Start a new pilot in a vacant place, if anything that waits could start there."""
        workload, size = self.workload, self.workload.sizes[place]
        scenario, run = workload.scenario, self.runs
        dice = random.Random(f"{workload.dice}/{run}")  # noqa: S311 - drawn lots of a simulation
        share, first = dice.random(), self._vacant[place]
        seconds = int(scenario.lease)
        if first and self._could_start(size, int(share * scenario.lease)):
            seconds = int(share * scenario.lease)
        elif not self._could_start(size, seconds):
            return False
        lease = Lease(size, self.now, self.now + seconds)
        odds = [dice.random() for _ in range(6)]
        pilot = self.new_pilot(run, place, lease, odds)
        self.runs += 1
        self.pilots[run] = pilot
        del self._vacant[place]
        heappush(self._ahead, (self.now + seconds, _OVER, run, ""))
        self._offer(pilot)
        return True

    def _serves(self, pilot: SimPilot) -> bool:
        """Decide whether the place of a pilot that has gone is the demand's, and count its cores."""
        cores, ordered = pilot.cores, pilot.run in self.ordered
        self.ordered.discard(pilot.run)
        if self.open_need is None:
            if ordered:
                self.gone.append((self.now, cores))
            return ordered
        if ordered:
            cores = min(cores, self.open_need)
        elif cores > self.open_need or not self.serve_alone:
            return False
        else:
            self.alone += cores
        if cores:
            self.gone.append((self.now, cores))
            self.open_need -= cores
        return cores > 0

    def new_pilot(self, run: int, place: int, lease: Lease, odds: Sequence[float]) -> SimPilot:
        """Return the pilot that starts in a place; odds: lots from 0 to 1 by which it is stuck, a liar and so on."""
        scenario = self.workload.scenario
        saves = scenario.checkpoints
        does_save = saves is not None and odds[4] < saves.share
        return SimPilot(
            run,
            place,
            lease,
            stuck=odds[0] < scenario.stuck,
            liar=odds[1] < scenario.liars,
            silent=odds[2] < scenario.silent,
            can_return=odds[3] < scenario.shrinking,
            saves=saves if does_save else None,
            saves_since=0.0 if saves is None else lease.start - int(odds[5] * saves.interval),
        )

    def _could_start(self, cores: int, seconds: int) -> bool:
        """Decide whether anything that waits would fit a new lease."""
        return any(one.maximum <= seconds for one in self.waiting.first(cores, seconds))

    def _leave(self, pilot: SimPilot) -> None:
        """Remove a pilot; what still runs in it is lost and comes back into its turn."""
        back: list[Payload] = []
        for name in list(pilot.workload.running):
            running = pilot.end(name, self.now)
            saved = pilot.saved(running, self.now)
            gone = running.payload.cores * (self.now - saved)
            if saved > running.start:
                self.useful += running.payload.cores * (saved - running.start)
                self.kept[int(name)] = self.kept.get(int(name), 0.0) + saved - running.start
            self.lost += gone
            self.stopped += 1
            self.destroyed += gone
            self.waiting.add(int(name), running.payload)
            back.append(running.payload)
        pilot.settle(self.now)
        self.idle += pilot.idle
        self.drained += pilot.drained
        self.held += pilot.lease.cores * (self.now - pilot.lease.start) - pilot.lent
        del self.pilots[pilot.run]
        self._room.pop(pilot.place, None)
        if self._left is not None:
            self._left(pilot.run, self.now)
        if pilot.run not in self.ordered:
            self._note_end(pilot.lease)
        if self._serves(pilot):
            self.freed.append(pilot.place)
        else:
            self._vacant[pilot.place] = False
            self._settle_in(pilot.place)
        for payload in back:
            self._seek(payload)
