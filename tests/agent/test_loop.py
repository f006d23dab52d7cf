"""The loop: its pace, its lock, its reloads, and that nothing which goes wrong makes it act."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.agent.cycle import AgentCycle, Cycle
from drainwise.agent.lock import AgentLock
from drainwise.agent.loop import Loop
from drainwise.agent.settings import AgentSettings
from drainwise.agent.signals import AgentSignals
from drainwise.common.service import Notifier
from drainwise.facts.errors import ConfigurationError, PoolError, PoolUnreachable, RightsRefused, UsageError
from drainwise.journal.memory import Memory
from drainwise.journal.remembered import unmet_event
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.reclaim import history
from drainwise.reclaim.unmet_demand import UnmetDemand
from drainwise.requests.request import RequestFiles

from .memory_pool import NOW, SETTINGS, AlicesPool, Lines

FAULT = PoolUnreachable("the collector did not answer within 8 s")


class Steps(AgentSignals):
    """Sleeps that take no time: before each next cycle one step is done, and after the last step it ends."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        super().__init__()
        self._steps = list(steps)

    def sleep(self, seconds: float) -> bool:
        if self._steps:
            self._steps.pop(0)()
        else:
            self.stop()
        return True


def nothing() -> None:
    """A step in which nothing happens."""


class Play:
    """A pool, what the site says, and everything the agent says and shows."""

    def __init__(self, directory: Path) -> None:
        self.pool, self.journal = AlicesPool(), Lines()
        self.switch, self.requests = directory / "kill-switch", RequestFiles(str(directory / "requests"))
        self.setup = AgentSettings(self.pool, SETTINGS, True, 60.0, str(self.switch), self.requests)
        self.fault: Exception | None = None
        self.said: list[str] = []
        self.cycles: list[Cycle] = []
        self.lock = AgentLock(str(directory / "agent.lock"))

    def read(self) -> AgentSettings:
        if self.fault is not None:
            raise self.fault
        return self.setup

    def remember(self) -> Memory:
        """The journal read back."""
        memory = Memory()
        for event in self.journal.events:
            memory.note(event)
        return memory

    def run(
        self, *steps: Callable[[], object], signals: AgentSignals | None = None, standby: bool = False
    ) -> list[Cycle]:
        """One cycle more than there are steps; the cycles."""
        seen = self.cycles.append
        heard, notifier = signals or Steps(*steps), Notifier({})
        say = self.said.append

        def remember() -> Memory:
            return self.remember()  # as it is then

        loop = Loop(self.read, self.lock, remember, self.journal, heard, notifier, say, [seen], clock=lambda: NOW)
        try:
            loop.run(standby)
        finally:
            notifier.close()
            heard.close()
        return self.cycles


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    made = Play(tmp_path)
    yield made
    made.lock.release()


def test_it_acts_once_says_so_and_says_no_state_twice(play: Play) -> None:
    play.run(nothing, nothing)
    assert len(play.cycles) == 3 and len(play.pool.acts) == 2
    assert [line for line in play.said if line.startswith("ok")] == ["ok: gives the orders of each plan"]
    assert sum("8 cores: done: ordered to end by" in line for line in play.said) == 2
    assert all(50 < cycle.next_in <= 60 for cycle in play.cycles)


def test_a_notice_is_logged_once_while_it_lasts_and_again_when_it_comes_back(play: Play) -> None:
    def noticed(*notices: str) -> None:
        play.pool.notices = notices

    noticed("3 slots are left out")
    play.run(lambda: noticed("4 slots are left out"), noticed, lambda: noticed("5 slots are left out"))
    assert [line for line in play.said if "left out" in line] == ["3 slots are left out", "5 slots are left out"]


def test_a_pause_is_logged_for_each_account_also_where_a_figure_tells_them_apart(play: Play) -> None:
    for name in ("group1", "group2"):
        known = UnmetDemand(name, failed=2, vain=16.0, since=NOW, until=NOW + 900, held=8.0, held_jobs=1.0)
        play.journal.write(unmet_event(known, NOW))
    look = play.pool.snapshot

    def waiting(now: int) -> Snapshot:
        seen = look(now)
        more = (Account(f"group{number}", 0.0, 24.0, 8.0, 500.0, 8.0) for number in (1, 2))
        return replace(seen, accounts=(*seen.accounts, *more))

    play.pool.snapshot = waiting  # type: ignore[method-assign]
    play.run(nothing)
    paused = [line.split()[0] for line in play.said if "cores that do not count" in line]
    assert paused == ["group1", "group2"], "in the order of the plan"


def test_a_dry_run_orders_nobody_and_needs_no_lock(play: Play) -> None:
    play.setup = replace(play.setup, acting=False)
    play.run(nothing)
    assert play.pool.acts == [] and not os.path.exists(play.lock.path)
    assert [line.partition(":")[0] for line in play.said] == ["begins", "dry run", "ends"]
    assert play.journal.kinds() == ["state", "decision"] or play.journal.kinds() == ["decision", "state"]


def test_while_the_kill_switch_is_there_it_decides_and_orders_nobody(play: Play) -> None:
    play.switch.touch()
    play.run(nothing, play.switch.unlink)
    assert [cycle.acting for cycle in play.cycles] == [False, False, True]
    assert all(cycle.plan is not None for cycle in play.cycles) and len(play.pool.acts) == 2
    assert [line.partition(":")[0] for line in play.said if line[:2] in {"pa", "ok"}] == ["paused by kill switch", "ok"]


def test_a_kill_switch_that_is_thrown_in_the_midst_of_a_cycle_stops_the_next_act(play: Play) -> None:
    ask = play.pool.give_order

    def ask_and_throw(pilot: Pilot, deadline: int, reason: str) -> None:
        ask(pilot, deadline, reason)
        play.switch.touch()

    play.pool.give_order = ask_and_throw  # type: ignore[method-assign]
    play.run(nothing)
    assert len(play.pool.acts) == 1


def test_it_backs_off_while_nobody_answers_and_comes_back(play: Play) -> None:
    play.pool.faults["snapshot"] = FAULT
    play.run(nothing, nothing, nothing, play.pool.faults.clear)
    assert [cycle.next_in for cycle in play.cycles[:4]] == [60, 120, 240, 480]
    assert play.cycles[4].next_in <= 60 and len(play.pool.acts) == 2
    states = [line for line in play.said if line.startswith(("backing off", "ok"))]
    assert states == [f"backing off: {FAULT}", "ok: gives the orders of each plan"]
    assert [event["state"] for event in play.journal.events if event["event"] == "state"] == ["backing off", "ok"]


def test_a_fault_of_our_own_is_said_with_its_place_and_orders_nobody(play: Play) -> None:
    play.pool.faults["snapshot"] = ValueError("surprise")  # type: ignore[assignment]
    play.run(nothing)
    [line] = [line for line in play.said if line.startswith("backing off")]
    assert "a fault of drainwise itself: ValueError('surprise') (memory_pool.py:" in line
    assert play.pool.acts == [] and [cycle.next_in for cycle in play.cycles] == [60, 120]


def test_an_order_that_fails_in_each_cycle_is_tried_again_and_said_once(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "RETRY_AFTER", 0)
    play.pool.faults["give_order"] = PoolUnreachable("node n did not answer within 30 s", "n")
    play.run(nothing, nothing, play.pool.faults.clear)
    failed = [line for line in play.said if "unreachable: node n did not answer" in line]
    assert len(failed) == len(set(failed)) == 1 and len(play.pool.acts) == 2
    assert [cycle.fault for cycle in play.cycles] == [""] * 4, "one node that does not answer is no reason to wait"
    assert {cycle.next_in // 30 for cycle in play.cycles} == {1}


@pytest.mark.parametrize(
    "fault",
    [RightsRefused("Access/permission denied"), PoolUnreachable("squeue did not answer within 5 s")],
)
def test_while_nobody_takes_orders_it_waits_longer_and_then_asks_the_same_pilots(play: Play, fault: PoolError) -> None:
    """One order is tried in each cycle; it is no fault of the pilots: the cheapest go as soon as orders are taken."""
    play.pool.faults["give_order"] = fault
    play.run(nothing, nothing, play.pool.faults.clear)
    assert play.said.count(f"backing off: {fault}") == 1
    assert [round(cycle.next_in) for cycle in play.cycles[:3]] == [60, 120, 240]
    tried = [event["run"] for event in play.journal.events if event["event"] == "order"]
    assert tried[:4] == [tried[0]] * 4 and play.pool.runs() == [tried[0], tried[4]]
    assert play.pool.runs() == sorted(play.pool.pilots)[:2], "those that waste least"


def test_a_wrong_site_file_ends_it_at_the_start(play: Play) -> None:
    play.fault = ConfigurationError("site.ini", "agent", "period", "0s", "more")
    with pytest.raises(ConfigurationError):
        play.run()
    assert play.cycles == []


def test_hup_reads_the_settings_again_and_a_broken_file_changes_nothing(play: Play) -> None:
    signals = Steps()

    def breaks() -> None:
        play.fault = ConfigurationError("site.ini", "agent", "period", "0s", "more")
        signals.reload()

    def mends() -> None:
        play.fault, play.setup = None, replace(play.setup, period=10.0)
        signals.reload()

    signals._steps = [breaks, nothing, mends]
    play.run(signals=signals)
    assert [round(cycle.next_in, -1) for cycle in play.cycles] == [60, 60, 60, 10]
    refused = [line for line in play.said if "refused" in line]
    assert len(refused) == 1 and "[agent] period = '0s': expected more" in refused[0]
    assert sum("were read again" in line for line in play.said) == 1


def test_acting_begins_with_a_reload_only_if_no_other_agent_acts(play: Play) -> None:
    play.setup = replace(play.setup, acting=False)
    other, signals = AgentLock(play.lock.path), Steps()

    def wants() -> None:
        assert other.take()
        play.setup = replace(play.setup, acting=True)
        signals.reload()

    def other_ends() -> None:
        other.release()
        signals.reload()

    signals._steps = [wants, other_ends]
    play.run(signals=signals)
    assert [cycle.acting for cycle in play.cycles] == [False, False, True]
    assert sum(f"another agent acts on this pool (pid {os.getpid()})" in line for line in play.said) == 1


def test_acting_never_begins_with_a_reload_without_its_memory(play: Play) -> None:
    """The journal cannot be read when the lock has been taken; it can at the next HUP, and its limits hold."""
    play.setup = replace(play.setup, acting=False, settings=replace(SETTINGS, max_cores_per_user_hour=8))
    signals, remember, journal = Steps(), play.remember, Lines()
    AgentCycle(play.pool, play.setup.settings, Memory(), journal, lambda: NOW, acting=True).run()

    def wants() -> None:
        def unreadable() -> Memory:
            raise UsageError("the journal 'j' cannot be read: Permission denied")

        play.remember = unreadable  # type: ignore[method-assign]
        play.setup = replace(play.setup, acting=True)
        signals.reload()

    def mends() -> None:
        play.journal.events[:0] = journal.events
        play.remember = remember  # type: ignore[method-assign]
        signals.reload()

    signals._steps = [wants, mends]
    play.run(signals=signals)
    assert [cycle.acting for cycle in play.cycles] == [False, False, True]
    assert len(play.pool.acts) == 1, "what was ordered in this hour counts"


def test_a_second_agent_ends_or_stands_by(play: Play) -> None:
    other = AgentLock(play.lock.path)
    other.must_take()
    with pytest.raises(PoolError, match=f"pid {os.getpid()}"):
        play.run()
    assert play.cycles == []
    play.run(nothing, other.release, nothing, nothing, standby=True)
    assert [line for line in play.said if "stands by" in line] == [
        f"stands by: another agent acts (pid {os.getpid()})",
    ]
    assert len(play.cycles) == 3 and len(play.pool.acts) == 2


def test_one_that_stands_by_knows_what_the_other_did_meanwhile(play: Play) -> None:
    """The journal is read when the lock has been taken: an hour's limit holds across the two."""
    play.setup = replace(play.setup, settings=replace(SETTINGS, max_cores_per_user_hour=8))
    other = AgentLock(play.lock.path)
    other.must_take()

    def acts_and_ends() -> None:
        AgentCycle(play.pool, play.setup.settings, Memory(), play.journal, lambda: NOW, acting=True).run()
        other.release()

    play.run(acts_and_ends, nothing, standby=True)
    assert len(play.pool.acts) == 1 and len(play.cycles) == 2


def test_one_that_stands_by_can_be_ended(play: Play) -> None:
    other = AgentLock(play.lock.path)
    other.must_take()
    play.run(nothing, standby=True)
    assert play.cycles == []
    other.release()


def test_an_agent_whose_lock_was_taken_away_ends(play: Play) -> None:
    def take_away() -> None:
        os.unlink(play.lock.path)
        play.pool.wanted = 32

    with pytest.raises(PoolError, match="removed or replaced"):
        play.run(take_away, nothing)
    assert len(play.pool.acts) == 2


def test_a_second_look_after_an_outage_is_a_first_one(play: Play) -> None:
    """An access point and then the collector restart: who waited is not told yet when it answers again."""

    def leaves() -> None:
        play.pool.wanted = 0

    def goes_down() -> None:
        play.pool.faults["snapshot"] = FAULT

    play.run(leaves, goes_down, play.pool.faults.clear)
    assert len(play.cycles) == 4 and [what for what, _ in play.pool.acts] == ["ordered", "ordered"]


def test_what_is_needed_no_more_is_withdrawn_after_a_second_look(play: Play) -> None:
    def leaves() -> None:
        play.pool.wanted = 0

    play.run(leaves, nothing)
    assert [what for what, _ in play.pool.acts] == ["ordered", "ordered", "withdrawn", "withdrawn"]
    assert sum("its order is withdrawn" in line for line in play.said) == 2
