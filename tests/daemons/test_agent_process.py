"""The agent as a process of its own, on the local batch system: signals, systemd's socket, kill switch and takeover."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from drainwise.local.job import RUNNING
from drainwise.local.store import LocalStore
from local_batch import ENVIRONMENT, PLUGINS, Batch
from real_daemons.waiting import wait_for

SITE = "[reclaim]\nmin_age = 0s\n[agent]\nperiod = 1s\nkill_switch = {0}/kill-switch\n{1}"
PILOTS, CORES = 4, 4


class Agent:
    """A process that runs `drainwise reclaim --loop`, and what it says to systemd and to its log."""

    def __init__(self, play: Play, name: str, words: tuple[str, ...]) -> None:
        self.heard: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(play.place / f"{name}.socket"))
        self._socket.setblocking(False)
        self._log = play.place / f"{name}.log"
        command = [sys.executable, "-m", "drainwise", "reclaim", "--loop", "--directory", play.batch.directory]
        environment = {
            **ENVIRONMENT,
            "NOTIFY_SOCKET": str(play.place / f"{name}.socket"),
            "WATCHDOG_USEC": "600000",
            "JOURNAL_STREAM": "8:1",
        }
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, "--site", str(play.site), "--journal", str(play.place / "journal"), *words],
                env=environment,
                stderr=log,
            )

    def told(self) -> list[str]:
        """All that systemd was told."""
        while True:
            try:
                self.heard.append(self._socket.recv(4096).decode("ascii"))
            except BlockingIOError:
                return self.heard

    def said(self) -> str:
        """The lines of its log."""
        return self._log.read_text()

    def await_said(self, text: str, times: int = 1) -> None:
        """Wait until its log has this text so many times."""
        wait_for(lambda: self.said().count(text) >= times, what=f"{text!r} in its log:\n{self.said()}")

    def await_told(self, text: str) -> None:
        """Wait until systemd was told this."""
        wait_for(lambda: any(text in message for message in self.told()), what=f"{text!r} to systemd: {self.heard}")

    def ends(self, number: signal.Signals) -> int:
        """Send the signal; the exit code, which must come soon."""
        self.process.send_signal(number)
        return self.process.wait(60)

    def close(self) -> None:
        """Leave nothing."""
        self.process.kill()
        self.process.wait()
        self._socket.close()


class Play:
    """Alice's pilots on all cores; bob may come and go."""

    def __init__(self, batch: Batch, place: Path) -> None:
        self.batch, self.place, self.site = batch, place, place / "site.ini"
        self.settle("")
        batch.account("alice", 0)
        batch.account("bob", PILOTS * CORES)
        batch.start(cores=PILOTS * CORES)
        self.pilots = batch.submit("exec sleep 10000", cores=CORES, count=PILOTS, wall=36000)
        batch.await_state(RUNNING, *self.pilots)
        self.agents: list[Agent] = []

    def settle(self, more: str) -> None:
        """Write the site file; `more` are further keys of [agent]."""
        self.site.write_text(SITE.format(self.place, more))

    def agent(self, name: str, *words: str) -> Agent:
        """Start an agent."""
        self.agents.append(Agent(self, name, words))
        return self.agents[-1]

    def bob_waits(self, jobs: int = 2) -> list[int]:
        """Let bob wait for the cores of so many pilots."""
        return self.batch.submit("true", "bob", cores=CORES, count=jobs)

    def bob_leaves(self, jobs: list[int]) -> None:
        """He needs nothing any more."""
        with LocalStore(self.batch.directory) as store:
            store.remove(jobs, time.time())

    def under_order(self) -> set[int]:
        """The pilots that are under order."""
        return {job_id for job_id in self.pilots if self.batch.job(job_id).deadline is not None}

    def told_to_go(self) -> set[int]:
        """The pilots that find the order in their directory."""
        return {job_id for job_id in self.pilots if (self.batch.work(job_id) / ".site.ad").exists()}


P = TypeVar("P", bound=Play)


def closed(made: P) -> Iterator[P]:
    """Give a scene; agents that are left are killed."""
    try:
        yield made
    finally:
        for agent in made.agents:
            agent.close()


@pytest.fixture
def play(batch: Batch, tmp_path: Path) -> Iterator[Play]:
    """The scene."""
    yield from closed(Play(batch, tmp_path))


def test_it_serves_until_term_and_tells_systemd(play: Play) -> None:
    """Asks when bob comes, takes back when he has left, gives signs of life in time, and ends with 0."""
    agent = play.agent("a", "--act")
    agent.await_told("READY=1")
    jobs = play.bob_waits()
    wait_for(
        lambda: len(play.under_order()) == 2 and play.told_to_go() == play.under_order(),
        what="two pilots that are told",
    )
    agent.await_told("STATUS=ok: ")
    play.bob_leaves(jobs)
    wait_for(lambda: not play.under_order() and not play.told_to_go(), what="pilots that may go on")
    began = len([message for message in agent.told() if "WATCHDOG=1" in message])
    wait_for(lambda: sum("WATCHDOG=1" in message for message in agent.told()) > began + 5, what="signs of life")
    assert agent.ends(signal.SIGTERM) == 0
    assert agent.told()[-1].startswith("STOPPING=1")
    events = [json.loads(line) for line in (play.place / "journal").read_text().splitlines()]
    kinds = [event["event"] for event in events]
    assert (kinds.count("order"), kinds.count("withdrawal"), kinds.count("state")) == (2, 2, 1)


def test_hup_takes_new_settings_and_refuses_broken_ones(play: Play) -> None:
    agent = play.agent("a")
    agent.await_said("dry run: no order is given")
    play.settle("act = yes\nperiode = 1s\n")
    agent.process.send_signal(signal.SIGHUP)
    agent.await_said("the new settings are refused and the old ones stay:")
    assert "[agent] periode = '1s': expected a known key, perhaps period" in agent.said()
    play.bob_waits()
    agent.await_told("give back 8 of 8 cores")
    assert not play.under_order(), "the old settings hold: a dry run"
    play.settle("act = yes\n")
    agent.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(play.under_order()) == 2, what="the new settings act")
    agent.await_told("RELOADING=1")
    assert agent.said().count("refused") == 1 and agent.ends(signal.SIGINT) == 0


def test_the_kill_switch_stops_the_acts_while_it_is_there(play: Play) -> None:
    switch = play.place / "kill-switch"
    switch.touch()
    agent = play.agent("a", "--act")
    agent.await_said(f"paused by kill switch: no order is given while {switch} is there")
    play.bob_waits()
    agent.await_told("paused by kill switch: 2 pilots give back 8 of 8 cores")
    assert not play.under_order()
    switch.unlink()
    wait_for(lambda: len(play.under_order()) == 2, what="it acts again")
    assert agent.said().count("paused") == 1


def test_when_it_is_killed_another_takes_over_at_once_and_orders_nobody_twice(play: Play) -> None:
    """HOSTILE 51; a third one, which does not stand by, is refused all the while."""
    first = play.agent("first", "--act")
    first.await_told("STATUS=ok")
    second = play.agent("second", "--act", "--standby")
    second.await_said(f"stands by: another agent acts (pid {first.process.pid})")
    play.bob_waits()
    wait_for(lambda: len(play.under_order()) == 2, what="the first one acts")
    before = play.under_order()
    third = play.agent("third", "--act")
    assert third.process.wait(30) == 1
    assert f"another agent acts on this pool (pid {first.process.pid})" in third.said()
    first.process.kill()
    second.await_said("begins: a cycle every 1s")
    second.await_told("STATUS=ok: enough cores are free or on their way out")
    assert play.under_order() == before
    play.bob_waits(1)
    wait_for(lambda: len(play.under_order()) == 3, what="the second one acts")
    assert before < play.under_order()


def test_it_backs_off_while_the_batch_system_is_down_and_goes_on_by_itself(play: Play) -> None:
    """HOSTILE 54: one line when it begins, one when it has ended."""
    agent = play.agent("a", "--act")
    agent.await_said("ok: ")
    play.batch.kill_daemon()
    agent.await_said("backing off: no daemon serves the local batch system")
    agent.await_told("next in 2s")
    play.bob_waits()
    assert not play.under_order()
    play.batch.start(cores=PILOTS * CORES)
    wait_for(lambda: len(play.under_order()) == 2, what="it acts again")
    agent.await_said("ok: ", times=2)
    assert agent.said().count("backing off") == 1


def test_nothing_of_it_is_left_where_it_was_not_asked_to_write(play: Play) -> None:
    """Its lock lies with the local batch system, and a state is no file."""
    agent = play.agent("a", "--act")
    agent.await_told("STATUS=ok")
    assert agent.ends(signal.SIGTERM) == 0
    [lock] = [name for name in os.listdir(play.batch.directory) if name.startswith("agent")]
    assert lock.endswith(".lock") and (Path(play.batch.directory) / lock).read_text() == ""
    assert {path.name for path in play.place.iterdir()} == {"a.log", "a.socket", "journal", "site.ini"}


class Shrinking(Play):
    """Two pilots of alice's with payloads of one core, each of which ends when it is told to; bob is owed half."""

    def __init__(self, batch: Batch, place: Path) -> None:
        self.batch, self.place, self.site, self.agents = batch, place, place / "site.ini", []
        self.settle("[local]\npartial_return = yes\n")
        batch.start(cores=16)
        self.queues = [place / "first", place / "second"]
        for queue in self.queues:
            queue.mkdir()
            for number in range(90):
                waits = f"until [ -e {queue}/end-{number:02} ]; do sleep 0.2; done"
                payload = {"command": waits, "expected": 3000, "maximum": 30000, "priority": -number}
                (queue / f"p{number:02}.json").write_text(json.dumps(payload))
        program = f"PYTHONPATH={PLUGINS} exec {sys.executable} -B -m drainwise pilot run --poll 0.2"
        self.pilots = [batch.submit(f"{program} --queue {queue}", cores=8, wall=36000)[0] for queue in self.queues]

    def cores(self) -> list[tuple[int, float | None]]:
        """The cores that each pilot of alice's holds, and those that it uses by its report."""
        pilots = self.batch.pool.snapshot(int(time.time())).pilots
        found = {one.name: (one.cores, None if one.report is None else one.report.used_cpu) for one in pilots}
        return [found[str(job_id)] for job_id in self.pilots]

    def payloads(self, queue: Path) -> Counter[str]:
        """How many payloads of a queue have started, and what became of those that are over."""
        return Counter(json.loads(line)["event"] for line in (queue / "records.jsonl").read_text().splitlines())

    def end_one(self) -> None:
        """End a payload of the pilot that runs the most, while more than eight run.

        A pilot that does not know of its wish yet fills that core again.
        """
        runs = {
            queue: 2 * seen["started"] - sum(seen.values()) for queue in self.queues for seen in [self.payloads(queue)]
        }
        if sum(runs.values()) > 8:
            queue = max(runs, key=runs.__getitem__)
            done = self.payloads(queue)["done"]
            (queue / f"end-{done:02}").touch()
            wait_for(lambda: self.payloads(queue)["done"] > done, what="the end of a payload")

    def wishes(self) -> list[int]:
        """The cores that are asked of each pilot."""
        with LocalStore(self.batch.directory) as store:
            parts = store.state(time.time()).parts
        runs = [self.batch.job(job_id).run for job_id in self.pilots]
        return [parts[run].cores if run in parts else 0 for run in runs]

    def events(self) -> list[dict[str, Any]]:
        """The agent's journal, as far as it is written."""
        lines = (self.place / "journal").read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def returned(self) -> dict[str, int]:
        """The cores that pilots have returned, as the journal has it last."""
        seen = [one for event in self.events() if event["event"] == "returned" for one in event["pilots"]]
        return {one["name"]: one["returned"] for one in seen}


@pytest.fixture
def shrinking(batch: Batch, tmp_path: Path) -> Iterator[Shrinking]:
    """The scene."""
    yield from closed(Shrinking(batch, tmp_path))


def test_by_itself_it_gives_bob_his_cores_from_pilots_that_go_on(shrinking: Shrinking) -> None:
    """Each core when its payload has ended, and nobody is ordered; when bob has left, the pilots have them again."""
    batch = shrinking.batch
    batch.await_state(RUNNING, *shrinking.pilots)
    wait_for(lambda: shrinking.cores() == [(8, 8.0)] * 2, what="all cores in use")
    agent = shrinking.agent("a", "--act")
    agent.await_told("STATUS=ok")
    bobs = batch.submit("exec sleep 3000", "bob", cores=1, count=8)
    wait_for(lambda: min(shrinking.wishes()) > 0, what="a wish for cores of each")

    def is_served() -> bool:
        shrinking.end_one()
        return all(batch.job(job_id).state == RUNNING for job_id in bobs)

    wait_for(is_served, what="all of bob's jobs run")
    wait_for(lambda: shrinking.wishes() == [0, 0], what="no wish when nobody waits any more")
    wait_for(lambda: sum(used or 0 for _, used in shrinking.cores()) == 8, what="the others in use")
    assert sum(held for held, _ in shrinking.cores()) == 8, "what bob has stays his"
    wait_for(lambda: sum(shrinking.returned().values()) == 8, what="the journal knows of it")
    for job_id in bobs:
        batch.said("local", "remove", str(job_id))
    wait_for(lambda: shrinking.cores() == [(8, 8.0)] * 2, what="all cores in use again")
    wait_for(lambda: sum(shrinking.returned().values()) == 0, what="the end of it in the journal")
    assert agent.ends(signal.SIGTERM) == 0
    assert {event["event"] for event in shrinking.events()} & {"order", "withdrawal"} == set()
    for job_id, queue in zip(shrinking.pilots, shrinking.queues):
        assert batch.job(job_id).state == RUNNING
        assert set(shrinking.payloads(queue)) <= {"started", "done"}
    command = [sys.executable, "-m", "drainwise", "report", "--json", "--journal", str(shrinking.place / "journal")]
    ran = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True, timeout=60)
    parts = json.loads(ran.stdout)["parts"]["total"]
    assert parts["cores_returned"] >= 8 and parts["core_seconds_returned"] > 0
