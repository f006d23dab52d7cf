"""A batch system in memory that keeps what it is told: alice holds all cores, bob waits for some in jobs of 8."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from drainwise.errors import DrainwiseError, PoolError
from drainwise.pilotad.report import PilotReport
from drainwise.pool import Ending, Pilot, Principal, Snapshot
from drainwise.reclaim.settings import Settings

NOW = 1795249000
CORES = 8
SETTINGS = Settings(
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


class MemoryPool:
    """Counts every act by run. The dials: what it fails with, when it kills its caller, how old its answers are."""

    def __init__(self, pilots: int = 4, wanted: int = 16, now: int = NOW) -> None:
        self.pilots = {one.run: one for one in (pilot(number, now) for number in range(1, pilots + 1))}
        self.wanted = wanted
        self.acts: list[tuple[str, str]] = []
        self.ended: dict[str, Ending] = {}
        self.age = 0
        self.faults: dict[str, DrainwiseError] = {}  # by method: raised at each call
        self.snapshots_left = 1 << 30  # before `snapshot` fails
        self.kill_at: int | None = None  # the number of the call, and half calls: killed before it, after it
        self.calls = 0
        self.left_to_do: list[str] = []
        self.notices: tuple[str, ...] = ()

    def _call(self, method: str) -> None:
        self.calls += 1
        if self.kill_at is not None and self.calls * 2 == self.kill_at:
            raise Killed
        if method in self.faults:
            raise self.faults[method]

    def _end_of_call(self) -> None:
        if self.kill_at is not None and self.calls * 2 + 1 == self.kill_at:
            raise Killed

    def snapshot(self, now: int) -> Snapshot:
        self._call("snapshot")
        self.snapshots_left -= 1
        if self.snapshots_left < 0:
            raise PoolError("the batch system went away")
        held = CORES * len(self.pilots)
        accounts = (
            Principal("a", held, 0.0, 0.0, 900.0),
            Principal("b", 0.0, 1000.0, float(self.wanted), 500.0, 8.0),
        )
        self._end_of_call()
        running = tuple(self.pilots.values())
        return Snapshot(now - self.age, running, accounts, 0.0, {"alice": 900.0}, self.notices)

    def ask_to_leave(self, pilot: Pilot, deadline: int, reason: str) -> None:
        self._call("ask_to_leave")
        self.acts.append(("asked", pilot.run))
        self.pilots[pilot.run] = replace(self.pilots[pilot.run], deadline=deadline)
        self._end_of_call()

    def take_back(self, pilot: Pilot, reason: str) -> None:
        self._call("take_back")
        self.acts.append(("taken back", pilot.run))
        self.pilots[pilot.run] = replace(self.pilots[pilot.run], deadline=None)
        self._end_of_call()

    def endings(self, runs: Collection[str], now: int) -> dict[str, Ending]:
        self._call("endings")
        return {run: self.ended[run] for run in runs if run in self.ended}

    def tend(self, snapshot: Snapshot) -> list[str]:
        self._call("tend")
        left, self.left_to_do = self.left_to_do, []
        return left

    def end(self, run: str, at: int) -> None:
        """This pilot leaves by itself."""
        del self.pilots[run]
        self.ended[run] = Ending(run, at, vacated=False, cpu_seconds=None)

    def asked(self) -> list[str]:
        """The runs that were asked, in the order of the acts."""
        return [run for what, run in self.acts if what == "asked"]


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
