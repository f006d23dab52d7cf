"""An agent whole, on a batch system in memory and a clock of the test: what Prometheus scrapes of it each minute."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from drainwise.agent.cycle import Cycle, NullJournal
from drainwise.agent.lock import AgentLock
from drainwise.agent.loop import Loop
from drainwise.agent.metrics import Metrics
from drainwise.agent.settings import AgentSettings
from drainwise.agent.signals import AgentSignals
from drainwise.common.service import Notifier
from drainwise.journal.memory import Memory
from drainwise.pilotad.observation import Observation
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Account, Ending, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.requests.request import RequestFiles
from memory_pool import MemoryPool

BEGIN = 1_795_249_000
"""The time of minute 0, UNIX s."""
CORES = 8
MINUTE = 60
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

Series = dict[tuple[str, tuple[tuple[str, str], ...]], list["float | None"]]
"""Name and labels, and the value of each minute; None where there was none."""


class PlayedPool(MemoryPool):
    """alice holds all cores with pilots of 8 that report each minute; bob waits for `wanted`, in jobs of `each` cores.

    ends: seconds from its order until a pilot ends, None for never. vacated: whether the batch system ends it then.
    begins: whether another pilot takes its place; else bob's jobs do. last_end: s ahead, when its last payload will end
    as a pilot says.
    """

    def __init__(self, pilots: int, wanted: int) -> None:
        super().__init__()
        self.now, self.wanted, self.used = BEGIN, wanted, 0
        self.ends: int | None = 600
        self.vacated = self.begins = False
        self.last_end, self.each = 300, CORES
        self.leaves: dict[str, int] = {}
        self.kinds: tuple[JobKind, ...] | None = None
        self.versions: tuple[tuple[str, int], ...] = (("1.0", pilots),)
        self._number = 0
        self.pilots: dict[str, Pilot] = {}
        for node in range(pilots):
            self.add(f"n{node}")

    def add(self, node: str, started: int = BEGIN - 20_000) -> None:
        """Let a pilot of alice's run there."""
        self._number += 1
        run = f"ce#{self._number}.0#{started}@{started}"
        self.pilots[run] = Pilot(run, f"slot1_{self._number}@{node}", node, "a", "alice", CORES, started)

    def change(self, **facts: object) -> None:
        """Give all pilots other facts."""
        self.pilots = {run: replace(one, **facts) for run, one in self.pilots.items()}  # type: ignore[arg-type]

    def pass_to(self, now: int) -> None:
        """Let the time pass; pilots end, and others begin."""
        self.now = now
        for run, at in list(self.leaves.items()):
            if at <= now:
                del self.leaves[run]
                gone = self.pilots.pop(run)
                self.ended[run] = Ending(run, at, self.vacated)
                if self.begins:
                    self.add(gone.node, at)
                else:
                    self.used, self.wanted = self.used + CORES, self.wanted - CORES

    def snapshot(self, now: int) -> Snapshot:
        self.called("snapshot")
        running = tuple(self._reporting(one) for one in self.pilots.values())
        accounts = (
            Account("a", float(CORES * len(running)), 0.0, 0.0, 900.0),
            Account("b", float(self.used), 1000.0, float(self.wanted), 500.0, float(self.each)),
        )
        return Snapshot(now, running, accounts, 0.0, {"alice": 900.0}, kinds=self.kinds, versions=self.versions)

    def _reporting(self, pilot: Pilot) -> Pilot:
        if pilot.seen is not None:
            idle = pilot.seen.idle + self.now - pilot.seen.at
            pilot = replace(pilot, seen=Observation(pilot.seen.client, self.now, 0, 0.0, 0, idle))
        if pilot.report is not None or pilot.client == "none":
            return pilot
        end = self.now + self.last_end
        said = PilotReport(
            self.now,
            used_cpu=7.0,
            last_job_start=max(pilot.started, self.now - 9000),
            first_exp_job_end=end,
            last_exp_job_end=end,
            add_uncom_time=0.0,
            add_final_exp_waste=0.0,
        )
        return replace(pilot, report=said)

    def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:
        super().give_order(pilot, deadline, reason)
        self.pilots[pilot.run] = replace(self.pilots[pilot.run], deadline=deadline)
        if self.ends is not None:
            self.leaves[pilot.run] = self.now + self.ends

    def withdraw_order(self, pilot: Pilot, reason: str) -> None:
        super().withdraw_order(pilot, reason)
        self.pilots[pilot.run] = replace(self.pilots[pilot.run], deadline=None)
        self.leaves.pop(pilot.run, None)

    def ask_for_part(self, pilot: Pilot, wish: PartialReturn, reason: str) -> None:
        self.called("ask_for_part", pilot.run)
        self.pilots[pilot.run] = replace(self.pilots[pilot.run], asked=wish.cores)


class Minutes(AgentSignals):
    """Sleeps that take no time: the play goes on to when they end, and stops the agent at its end."""

    def __init__(self, play: Play) -> None:
        super().__init__()
        self._play = play

    def sleep(self, seconds: float) -> bool:
        if not self._play.goes_on(seconds):
            self.stop()
        return True


class Play:
    """One play from minute 1 on; `at` changes `pool` and `setup` at a minute, before the agent's cycle then."""

    def __init__(self, place: Path, pilots: int, wanted: int, minutes: int, period: int = 5, **more: object) -> None:
        self.pool, self.minutes = PlayedPool(pilots, wanted), minutes
        self.switch = place / "kill-switch"
        settings = replace(SETTINGS, **more)  # type: ignore[arg-type]
        self.setup = AgentSettings(
            self.pool,
            settings,
            True,
            float(period * MINUTE),
            str(self.switch),
            RequestFiles(str(place / "requests")),
        )
        self._lock = AgentLock(str(place / "agent.lock"))
        self._steps: list[tuple[int, Callable[[], object]]] = []
        self._metrics = Metrics(settings.policy)
        self._minute = 1
        self.series: Series = {}

    def at(self, minute: int, step: Callable[[], object]) -> None:
        """Do this in the first cycle at this minute or later."""
        self._steps.append((minute, step))

    def run(self) -> Series:
        """Run the agent for so many minutes and return what was scraped in each.

        A time is counted from minute 0, since the clock of `promtool test rules` begins at 0.
        """
        signals, notifier = Minutes(self), Notifier({})
        self._do_steps()
        loop = Loop(
            lambda: self.setup,
            self._lock,
            Memory,
            NullJournal(),
            signals,
            notifier,
            lambda line: None,
            [self._observe],
            clock=lambda: BEGIN + self._minute * MINUTE,
        )
        try:
            loop.run()
        finally:
            self._lock.release()
            notifier.close()
            signals.close()
        return self.series

    def goes_on(self, seconds: float) -> bool:
        """Scrape each minute of a pause that is to take so long; return whether the play goes on then."""
        pause = max(1, round(seconds / MINUTE))
        shown = self._exposition()
        for minute in range(self._minute, min(self._minute + pause, self.minutes)):
            for name, value in shown.items():
                past = self.series.setdefault(name, [])
                past += [None] * (minute - len(past))
                past.append(value)
        self._minute += pause
        self.pool.pass_to(BEGIN + self._minute * MINUTE)
        self._do_steps()
        return self._minute < self.minutes

    def _do_steps(self) -> None:
        due = [step for minute, step in self._steps if minute <= self._minute]
        self._steps = [one for one in self._steps if one[0] > self._minute]
        for step in due:
            step()

    def _observe(self, cycle: Cycle) -> None:
        self._metrics.observe(cycle)

    def _exposition(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        text = generate_latest(self._metrics.served).decode()
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): _since_begin(sample.name, sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }


def _since_begin(name: str, value: float) -> float:
    return value - BEGIN if name.endswith("_timestamp_seconds") and value else value


def promtool_values(values: list[float | None]) -> str:
    """Return the values of a series in the notation of `promtool test rules`, equal ones in a row together."""
    return " ".join(_run(value, number) for value, number in _runs(values))


def _runs(values: list[float | None]) -> Iterator[tuple[float | None, int]]:
    begin = 0
    for place in range(1, len(values) + 1):
        if place == len(values) or values[place] != values[begin]:
            yield values[begin], place - begin
            begin = place


def _run(value: float | None, number: int) -> str:
    if value is None:
        return f"_x{number}"
    text = "NaN" if math.isnan(value) else repr(value)
    return f"{text}x{number - 1}"
