"""Room that a kind of jobs does not take is made twice and no more, until something changes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from drainwise.agent.cycle import AgentCycle, Cycle
from drainwise.facts.errors import PoolUnreachable
from drainwise.journal.explain import Sought, explain, in_words
from drainwise.journal.file import JournalFile
from drainwise.journal.memory import Memory
from drainwise.journal.read import files_of
from drainwise.journal.report import ReportedJournal
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Account, Ending, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place, kind_name
from drainwise.reclaim.unmet_demand import Round, UnmetDemand, watched

from .memory_pool import NOW, SETTINGS

SITE = dataclasses.replace(SETTINGS, max_cores_per_user_hour=1_000_000, time_to_start=180)
PERIOD = 60
ROOM = Amounts(8, 16_384)


class RefilledNodes:
    """alice's next pilot takes what comes back, unless bob's job does; one pilot a node, gone 50 s after its order."""

    def __init__(self, nodes: int = 6, can_start: bool = False) -> None:
        self.now, self.number, self.can_start, self.jobs = NOW, 0, False, 3
        self.nodes = [f"n{number}" for number in range(nodes)]
        self.pilots: dict[str, Pilot] = {}
        self.ordered: list[int] = []
        self.refill()
        self.can_start = can_start

    def refill(self) -> None:
        used = {one.node for one in self.pilots.values()}
        for node in self.nodes:
            if node not in used:
                theirs = self.can_start and self.jobs > 0
                self.jobs -= theirs
                self.start(node, "bob" if theirs else "alice")

    def start(self, node: str, user: str) -> None:
        self.number += 1
        run = f"ce#{self.number}.0#{self.now}@{self.now}"
        one = Pilot(run, f"slot@{node}", node, user, user, 8, self.now - (100 if self.now == NOW else 0))
        self.pilots[run] = dataclasses.replace(one, place=node, holds=ROOM)

    def snapshot(self, now: int) -> Snapshot:
        assert now == self.now
        gone = [run for run, one in self.pilots.items() if one.deadline is not None]
        for run in gone:
            del self.pilots[run]
        self.refill()
        needs = Amounts(8, 16_384)
        waits = JobKind(kind_name("bob", needs, "HasX"), "bob", self.jobs, needs, frozenset({"a"}), example="9.0")
        uses = {user: sum(one.cores for one in self.pilots.values() if one.user == user) for user in ("alice", "bob")}
        accounts = (
            Account("alice", float(uses["alice"]), 0.0, 0.0, 1000.0),
            Account("bob", float(uses["bob"]), 100.0, 8.0 * self.jobs, 500.0, 8.0),
        )
        places = tuple(Place(node, node, "a", Amounts(), ROOM) for node in self.nodes)
        kinds = (waits,) if self.jobs else ()
        return Snapshot(now, tuple(self.pilots.values()), accounts, kinds=kinds, places=places)

    def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:
        del reason
        self.ordered.append(self.now)
        self.pilots[pilot.run] = dataclasses.replace(self.pilots[pilot.run], deadline=deadline)

    def withdraw_order(self, pilot: Pilot, reason: str) -> None:
        del reason
        self.pilots[pilot.run] = dataclasses.replace(self.pilots[pilot.run], deadline=None)

    def endings(self, runs: object, now: int) -> dict[str, Ending]:
        del runs, now
        return {}

    def follow_up(self, snapshot: Snapshot) -> list[str]:
        del snapshot
        return []


class Played:
    """An agent on such a pool, with its journal."""

    def __init__(self, directory: Path, pool: RefilledNodes) -> None:
        self.pool, self.path = pool, str(directory / "journal")
        self.journal, self.memory = JournalFile(self.path, 1 << 30, 3), Memory()

    def cycles(self, number: int) -> list[Cycle]:
        done = []
        for _ in range(number):
            self.pool.now += PERIOD
            done.append(
                AgentCycle(self.pool, SITE, self.memory, self.journal, lambda: self.pool.now, acting=True).run()
            )
            assert not done[-1].fault
        return done


@pytest.fixture
def played(tmp_path: Path) -> Played:
    return Played(tmp_path, RefilledNodes())


def test_room_that_is_not_taken_twice_is_made_no_more_and_the_reason_is_named(played: Played) -> None:
    """An hour of cycles: two rounds at first, then one after each pause, which doubles."""
    done = played.cycles(60)
    assert 2 * 3 <= len(played.pool.ordered) <= 5 * 3
    (paused,) = done[20].plan.paused if done[20].plan else ()
    assert paused.asks == "8 cores, 16 GiB memory"
    assert any("do not count" in notice for notice in (done[20].plan.notices if done[20].plan else ()))


def test_what_was_freed_in_vain_is_counted_and_reported(played: Played) -> None:
    done = played.cycles(20)
    unused = sum(one.unused for one in done)
    assert unused == 8 * len(played.pool.ordered)
    assert ReportedJournal.read([played.path], NOW, played.pool.now).unused == unused


def test_jobs_that_start_pause_nothing(tmp_path: Path) -> None:
    played = Played(tmp_path, RefilledNodes(can_start=True))
    done = played.cycles(30)
    assert played.pool.jobs == 0
    assert len(played.pool.ordered) == 3
    assert not any(one.unused or (one.plan and one.plan.paused) for one in done)


class TellsShortJobs(RefilledNodes):
    """Its jobs come and go between two looks, or it cannot tell (None)."""

    def __init__(self, told: float | None) -> None:
        super().__init__()
        self.told, self.asked = told, list[tuple[str, tuple[str, ...], int]]()

    def cores_of_ended(self, account: str, nodes: tuple[str, ...], since: int, now: int) -> float:
        assert since <= now == self.now
        self.asked.append((account, nodes, since))
        if self.told is None:
            raise PoolUnreachable("nobody tells")
        return self.told


@pytest.mark.daemons
@pytest.mark.parametrize(("told", "paused"), [(24.0, False), (12.0, False), (8.0, True), (None, False)])
def test_jobs_that_come_and_go_between_two_looks_have_started(told: float | None, paused: bool, tmp_path: Path) -> None:
    """Half of the 24 cores that came back are enough; a round of which nobody tells counts for nothing."""
    pool = TellsShortJobs(told)
    played = Played(tmp_path, pool)
    done = played.cycles(25)
    assert any(one.plan and one.plan.paused for one in done) == paused
    account, nodes, since = pool.asked[0]
    assert (account, set(nodes) <= set(pool.nodes), since >= NOW) == ("bob", True, True)
    assert len(pool.asked) <= 6, "it is asked at the end of a round alone"


def test_a_new_node_where_the_jobs_could_run_ends_the_pause(played: Played) -> None:
    played.cycles(20)
    before = len(played.pool.ordered)
    assert not [cycle for cycle in played.cycles(2) if cycle.plan and cycle.plan.orders]
    played.pool.nodes.append("new")
    played.cycles(2)
    assert len(played.pool.ordered) > before


def test_another_agent_on_the_same_journal_remembers_the_pause(played: Played) -> None:
    played.cycles(20)
    played.memory = Memory.load(files_of(played.path), played.pool.now)
    assert not [cycle for cycle in played.cycles(2) if cycle.plan and cycle.plan.orders]


def test_explain_names_the_jobs_that_the_pilot_made_room_for(played: Played) -> None:
    played.cycles(3)
    explained = [one for node in played.pool.nodes for one in explain([played.path], Sought(f"slot@{node}"))]
    text = "\n".join(line for one in explained for line in in_words(one))
    assert "for 1 of bob (8 cores, 16 GiB memory) such as 9.0" in text


def test_a_piece_that_idled_until_its_room_was_whole_was_used_in_the_end() -> None:
    """Two pilots of 4 cores for a job of 8: the second left well after the first."""
    needs = Amounts(8, 16_384)
    name = kind_name("bob", needs, "")
    came = Round(settled=4.0, wasted=4.0, back=4.0, whole=4.0, nodes=("n0",), left=NOW - 60, first=NOW - 60)
    seen = UnmetDemand("bob", kind=name, round=dataclasses.replace(came, last=NOW - 60), looked=NOW - 10)
    its = Pilot("ce#9.0#1@1", "slot1_1@n0", "n0", "bob", "bob", 8, NOW - 30)
    accounts = (Account("bob", 8.0, 100.0, 0.0, 500.0, 8.0),)
    after = watched({name: seen}, Snapshot(NOW, (its,), accounts, kinds=()), NOW, SITE)
    assert not after, "it served the job, so nothing need be remembered"
    idle = watched({name: seen}, Snapshot(NOW + 999, (), accounts, kinds=()), NOW + 999, SITE)
    assert idle[name].unused == 8.0
