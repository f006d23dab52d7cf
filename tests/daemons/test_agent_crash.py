"""The agent killed again and again on the local batch system: no pilot gets two orders for one reason, none is lost.

The demand goes up and down; each change of it is one reason. While it stands the agent is killed at random points of
its cycles, at a line of its own code or at a moment. What it did is read from the batch system's own record.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drainwise.local.job import RUNNING
from drainwise.local.store import LocalStore
from killed_command import Killer
from local_batch import Batch
from real_daemons.waiting import wait_for

pytestmark = pytest.mark.in_turn("killed at every moment", "agent")
KILLS, KILLS_OF_THE_LOOP, PILOTS, CORES = 200, 20, 16, 2
SEED = 20261121
LEFT_HALF_DONE = 2
KILLS_FOR_ONE_REASON = 10
EVERY_LINE = 1 << 30  # counts the lines, kills at none
ORDERED, WITHDRAWN = "ordered to end by", "order withdrawn"
SITE = """\
[reclaim]
policy = least-waste
min_age = 0s
max_cores_per_user_per_hour = 10000000
[agent]
state_dir = {0}/agent
kill_switch = {0}/kill-switch
"""


class Play:
    """Alice's pilots on all cores, bob's jobs that wait for them, and what the batch system saw of the agent."""

    def __init__(self, batch: Batch, place: Path) -> None:
        self.batch, self.place, self.chance = batch, place, random.Random(SEED)
        batch.account("alice", 0)
        batch.account("bob", PILOTS * CORES)
        batch.start(cores=PILOTS * CORES)
        self.pilots = batch.submit("exec sleep 10000", cores=CORES, count=PILOTS, wall=36000)
        batch.await_state(RUNNING, *self.pilots)
        (place / "agent").mkdir()
        (place / "site.ini").write_text(SITE.format(place))
        self.waiting: list[int] = []
        self.lines, self.seconds = 0, 0.0  # of the longest cycle
        self.kills, self.halves, self.journals = 0, 0, 0  # halves: deaths that left a part of the acts undone

    def words(self, *mode: str) -> list[str]:
        """The agent's command line."""
        pool = ["--pool", "local", "--directory", self.batch.directory, "--site", str(self.place / "site.ini")]
        return ["reclaim", *mode, *pool]

    def acting(self) -> list[str]:
        """One cycle that acts."""
        return self.words("--once", "--act", "--json", "--journal", str(self.place / "journal"))

    def demand(self, jobs: int) -> None:
        """Let bob wait for so many jobs as large as a pilot; one such number is one reason to ask, or to take back."""
        if jobs < len(self.waiting):
            with LocalStore(self.batch.directory) as store:
                store.remove(self.waiting[jobs:], time.time())
            self.waiting = self.waiting[:jobs]
        elif jobs > len(self.waiting):
            more = jobs - len(self.waiting)
            self.waiting += self.batch.submit("true", "bob", cores=CORES, count=more)

    def under_order(self) -> set[int]:
        """The pilots whose lease is shortened."""
        return {job_id for job_id in self.pilots if self.batch.job(job_id).deadline is not None}

    def record(self) -> list[tuple[int, str]]:
        """What was done to which pilot, by the batch system's own record."""
        with LocalStore(self.batch.directory) as store:
            events = [event for job_id in self.pilots for event in store.events(job_id)]
        known = [(event, act) for event in events for act in (ORDERED, WITHDRAWN) if event.text.startswith(act)]
        return [(event.job_id, act) for event, act in known]

    def forget(self) -> None:
        """Lose the journal."""
        journal = self.place / "journal"
        if journal.exists():
            self.journals += 1
            journal.rename(self.place / f"journal-lost-{self.journals}")

    def kill_one(self, killer: Killer) -> None:
        """A cycle that is killed at a random point, unless it is over sooner."""
        if self.chance.random() < 0.5:
            ran = killer.run(self.acting(), line=self.chance.randint(1, self.lines))
        else:
            ran = killer.run(self.acting(), after=self.chance.uniform(0, self.seconds))
        self.kills += ran.killed
        assert ran.killed or ran.code == 0, ran.said

    def kill_loop(self, killer: Killer) -> None:
        """An agent that is killed at a random point of its first two cycles, or of the pause between them."""
        words = self.words("--loop", "--act", "--period", "1", "--journal", str(self.place / "journal"))
        if self.chance.random() < 0.7:
            ran = killer.run(words, line=self.chance.randint(1, 2 * self.lines))
        else:
            ran = killer.run(words, after=self.chance.uniform(0, 1.5))
        self.kills += ran.killed
        assert ran.killed, ran.said

    def whole_cycle(self, killer: Killer) -> None:
        """A cycle that nobody kills; how long it is, when it had the most to do, bounds where others are killed."""
        counted = killer.run(self.acting(), line=EVERY_LINE)
        assert counted.code == 0, counted.said
        self.lines = max(self.lines, counted.lines)


@pytest.fixture
def play(batch: Batch, tmp_path: Path) -> Play:
    """The scene before anybody waits."""
    return Play(batch, tmp_path)


@pytest.fixture
def killer(play: Play) -> Iterator[Killer]:
    """Runs the agent; it has measured how long a cycle is that asks for half of the pilots."""
    with Killer(play.words("--once", "--json")) as made:
        play.demand(PILOTS // 2)
        play.seconds = made.run(play.words("--once", "--json")).seconds
        play.whole_cycle(made)
        play.demand(0)
        yield made


def settle(play: Play, killer: Killer) -> None:
    """Cycles to the end, until one finds nothing more to do."""
    for _ in range(3):
        before = len(play.record())
        play.whole_cycle(killer)
        if len(play.record()) == before:
            return
    pytest.fail("a whole cycle still acts after three others have")


def one_reason(play: Play, killer: Killer, jobs: int, cycle: Callable[[], object]) -> None:
    """The demand becomes `jobs`; killed cycles, then whole ones. Checked after each death and at the end."""
    before, seen = play.under_order(), Counter(play.record())
    wanted = jobs - len(before)
    play.demand(jobs)

    def done() -> Counter[tuple[int, str]]:
        new = Counter(play.record()) - seen
        assert all(times == 1 for times in new.values()), f"twice for one reason: {new}"
        acts = {act for _, act in new}
        assert acts <= {ORDERED if wanted > 0 else WITHDRAWN}, f"{wanted} more were wanted: {new}"
        assert len(new) <= abs(wanted), f"{wanted} more were wanted: {new}"
        assert all((job_id in before) == (act == WITHDRAWN) for job_id, act in new)
        return new

    acts_before = 0
    for _ in range(KILLS_FOR_ONE_REASON):
        cycle()
        acts = len(done())
        play.halves += acts_before < acts < abs(wanted)
        acts_before = acts
    settle(play, killer)
    assert len(done()) == abs(wanted), "somebody was forgotten"
    assert len(play.under_order()) == jobs


def every_pilot_knows(play: Play) -> bool:
    """Whether each pilot that is under order was told so, and no other."""
    told = {job_id for job_id in play.pilots if says_go(play.batch.work(job_id) / ".site.ad")}
    return told == play.under_order()


def says_go(site_ad: Path) -> bool:
    return site_ad.exists() and "VACATE_DESIRED = True" in site_ad.read_text()


def written(play: Play, event: str) -> Counter[int]:
    """What was done to which pilot as the journals tell it, by the name of the event."""
    entries = (json.loads(line) for journal in play.place.glob("journal*") for line in journal.read_text().splitlines())
    return Counter(int(one["name"]) for one in entries if one["event"] == event and one["outcome"] == "done")


def journal_is_true(play: Play) -> None:
    """Every order stands in the journal once, also where the agent died before it could write it down.

    What was withdrawn does so, too, unless the journal with its order was lost.
    """
    record = play.record()
    assert written(play, "order") == Counter(job_id for job_id, act in record if act == ORDERED)
    withdrawn = Counter(job_id for job_id, act in record if act == WITHDRAWN)
    assert not written(play, "withdrawal") - withdrawn
    assert play.journals or written(play, "withdrawal") == withdrawn


def test_an_agent_killed_at_200_points_orders_nobody_twice_and_forgets_nobody(play: Play, killer: Killer) -> None:
    """The journal is lost now and then, too: it is no more than the memory of limits and of trust."""
    settle(play, killer)
    while play.kills < KILLS:
        if play.chance.random() < 0.2:
            play.forget()
        one_reason(play, killer, another_demand(play), lambda: play.kill_one(killer))
        wait_for(lambda: every_pilot_knows(play), what="the pilots know")
    journal_is_true(play)
    assert play.halves >= LEFT_HALF_DONE, "hardly one kill came between two acts: the test shows less than it says"


def test_a_loop_killed_again_and_again_orders_nobody_twice_and_forgets_nobody(play: Play, killer: Killer) -> None:
    """The next one takes over at once; a request is withdrawn when two of its cycles found the reason gone."""
    settle(play, killer)
    while play.kills < KILLS_OF_THE_LOOP:
        one_reason(play, killer, another_demand(play), lambda: play.kill_loop(killer))
    wait_for(lambda: every_pilot_knows(play), what="the pilots know")
    journal_is_true(play)


def another_demand(play: Play) -> int:
    """Some other number of jobs than now."""
    return play.chance.choice([number for number in range(PILOTS + 1) if number != len(play.waiting)])
