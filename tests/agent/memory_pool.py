"""A batch system in memory that keeps what it is told: alice holds all cores, bob waits for some in jobs of 8."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from drainwise.facts.errors import DrainwiseError, PoolError
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Account, Ending, Pilot, Snapshot
from drainwise.reclaim.settings import ReclaimSettings
from memory_pool import MemoryPool

NOW = 1795249000
CORES = 8
SETTINGS = ReclaimSettings(
    policy="least-waste",
    horizon=7200,
    grace=7200,
    max_grace=86400,
    heartbeat_limit=3600,
    max_cores=1000,
    max_cores_per_user=1000,
    max_cores_per_user_hour=1000,
    min_age=0,
)


def pilot(number: int, now: int) -> Pilot:
    """A pilot of alice's that would be gone in 1000 s; a higher number wastes more."""
    started = now - 20_000
    said = PilotReport(
        now - 60,
        used_cpu=7.0 - number / 10,
        last_job_start=now - 500,
        first_exp_job_end=now + 1000,
        last_exp_job_end=now + 1000,
        add_uncom_time=0.0,
        add_final_exp_waste=0.0,
    )
    return Pilot(
        f"ce#{number}.0#{started}@{started}", f"slot1_{number}@n", "n", "a", "alice", CORES, started, None, said
    )


class Killed(BaseException):
    """What kill -9 does: no code of the agent runs after it."""


class AlicesPool(MemoryPool):
    """Its pilots by run. The dials: when it kills its caller, how old its answers are, when it goes away."""

    def __init__(self, pilots: int = 4, wanted: int = 16, now: int = NOW) -> None:
        super().__init__()
        self.pilots = {one.run: one for one in (pilot(number, now) for number in range(1, pilots + 1))}
        self.wanted = wanted
        self.age = 0
        self.snapshots_left = 1 << 30  # before `snapshot` fails
        self.kill_at: int | None = None  # the number of the call, and half calls: killed before it, after it
        self.calls = 0
        self.notices: tuple[str, ...] = ()

    def called(self, method: str, run: str = "") -> None:
        self.calls += 1
        if self.kill_at is not None and self.calls * 2 == self.kill_at:
            raise Killed
        super().called(method, run)

    def _end_of_call(self) -> None:
        if self.kill_at is not None and self.calls * 2 + 1 == self.kill_at:
            raise Killed

    def snapshot(self, now: int) -> Snapshot:
        self.called("snapshot")
        self.snapshots_left -= 1
        if self.snapshots_left < 0:
            raise PoolError("the batch system went away")
        held = CORES * len(self.pilots)
        accounts = (
            Account("a", held, 0.0, 0.0, 900.0),
            Account("b", 0.0, 1000.0, float(self.wanted), 500.0, 8.0),
        )
        self._end_of_call()
        running = tuple(self.pilots.values())
        return Snapshot(now - self.age, running, accounts, 0.0, {"alice": 900.0}, self.notices)

    def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:
        super().give_order(pilot, deadline, reason)
        self.pilots[pilot.run] = replace(self.pilots[pilot.run], deadline=deadline)
        self._end_of_call()

    def withdraw_order(self, pilot: Pilot, reason: str) -> None:
        super().withdraw_order(pilot, reason)
        self.pilots[pilot.run] = replace(self.pilots[pilot.run], deadline=None)
        self._end_of_call()

    def end(self, run: str, at: int) -> None:
        """This pilot leaves by itself."""
        del self.pilots[run]
        self.ended[run] = Ending(run, at, vacated=False, cpu_seconds=None)


class Lines:
    """A journal in memory with room for so many lines."""

    def __init__(self, room: int = 1000) -> None:
        self.events: list[Mapping[str, object]] = []
        self.room = room

    def write(self, event: Mapping[str, object]) -> None:
        if len(self.events) >= self.room:
            raise DrainwiseError("the journal cannot be written (No space left on device): no further order is given")
        self.events.append(event)

    def kinds(self) -> list[object]:
        """What kinds of event were written."""
        return [event["event"] for event in self.events]
