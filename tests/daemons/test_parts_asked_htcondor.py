"""The agent on real daemons with `partial_return`: three pilots give back half of their node, and go on."""

from __future__ import annotations

import json
import shlex
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from acting_agent import acting_agent, journal_events
from condor_pool import CondorPool
from drainwise.pool.snapshot_json import snapshot_from_json
from scenario import condor_site

pytestmark = [pytest.mark.play, pytest.mark.in_turn("parts", "parts asked")]
CORES, PILOTS, NODE_CORES, MEMORY = 8, 3, 24, 256
BOBS = (1, 1, 1, 1, 4, 4)
"""The cores of bob's jobs: half of the node."""
PAYLOADS, LONG, SHORT = 200, 4, 60
LONG_SECONDS = 4000  # beyond the horizon: nobody may go at the end of these alone, and a whole pilot is dear
RECLAIM = """\
period = 2s
[reclaim]
policy = least-waste
drain_only = yes
horizon = 40m
grace = 40m
min_grace = 40m
margin = 20s
min_age = 0s
"""
LIBRARY = "/usr/share/drainwise"
PROGRAM = f"import sys; sys.path.append({LIBRARY!r}); from drainwise.cli.main import main; sys.exit(main())"
SUBMIT = """\
executable = {executable}
transfer_executable = False
arguments = "{arguments}"
accounting_group = group_{user}
environment = "PATH=/usr/bin:/bin"
request_cpus = {cores}
request_memory = {memory}
request_disk = 1MB
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
transfer_output_files = ""
queue {count}
"""


class Sample(NamedTuple):
    """What the startd has at one moment: alice's runs, the cores that they use, what they lend, the cores of bob's."""

    runs: frozenset[str]
    used: float
    lent: int
    others: tuple[int, ...]


class Startd:
    """The pool's one startd; each look at it is one that must not show a core too many."""

    def __init__(self, pool: CondorPool) -> None:
        self._pool, self.looks, self.most = pool, 0, 0.0

    def look(self) -> Sample:
        """Ask the startd."""
        query = ["condor_status", "-direct", "node1.pool.test", "-constraint", "DynamicSlot =?= true", "-af"]
        ran = self._pool.run([*query, "RemoteOwner", "GlobalJobId", "Cpus", "PilotLentCpus", "PilotUsedCpu ?: Cpus"])
        rows = [line.split() for line in ran.stdout.splitlines()]
        alices = [row for row in rows if row[0].partition("@")[0].endswith("alice")]
        others = tuple(sorted(int(row[2]) for row in rows if row not in alices))
        runs = frozenset(row[1] for row in alices)
        used = sum(float(row[4]) for row in alices)
        found = Sample(runs, used, sum(int(row[3]) for row in alices), others)
        self.looks += 1
        self.most = max(self.most, used + sum(others))
        # A pilot that wants cores back lends them no more at once, and uses none before it is free.
        assert self.most <= NODE_CORES, "a core was given twice"
        return found

    def until(self, condition: Callable[[Sample], bool], seconds: float, what: str) -> Sample:
        """Look until a condition holds."""
        last = [self.look()]

        def holds() -> bool:
            last[0] = self.look()
            return condition(last[0])

        self._pool.wait_for(holds, seconds, what)
        return last[0]


def queue_of(number: int) -> str:
    """The directory of payloads of a pilot."""
    return f"/home/alice/queue-{number}"


def fill(pool: CondorPool, number: int) -> None:
    """Give a pilot payloads of one core: first those that run long, then many short ones."""
    lines = [f"mkdir -p {queue_of(number)}"]
    for one in range(PAYLOADS):
        seconds, priority = (LONG_SECONDS, 1) if one < LONG else (15 + one % 7, 0)
        payload = {"cores": 1, "command": ["sleep", str(seconds)], "expected": seconds, "maximum": seconds + 60}
        text = shlex.quote(json.dumps({**payload, "priority": priority}))
        lines.append(f"echo {text} > {queue_of(number)}/{one:03}.json")
    pool.run(["sh", "-c", "\n".join(lines)], user="alice")


def start_pilot(pool: CondorPool, number: int) -> int:
    """Submit a reference pilot as alice."""
    words = ["-I", "-S", "-c", PROGRAM, "pilot", "run", "--queue", queue_of(number), "--seconds", "7200"]
    words += ["--poll", "0.5", "--heartbeat", "10", "--margin", "5", "--idle-limit", "3600"]
    words += ["--cores", str(CORES), "--return-memory", str(MEMORY)]
    quoted = " ".join("'" + word.replace("'", "''") + "'" for word in words)
    text = SUBMIT.format(
        executable="/usr/bin/python3", arguments=quoted, user="alice", cores=CORES, memory=CORES * MEMORY, count=1
    )
    return pool.submit(text, "alice")


def for_bob(pool: CondorPool, cores: int, count: int, seconds: int) -> int:
    """Submit jobs of bob's that sleep; return their cluster."""
    more = {"user": "bob", "cores": cores, "memory": 64, "count": count}
    return pool.submit(SUBMIT.format(executable="/bin/sleep", arguments=str(seconds), **more), "bob")


def kept_every_payload(queue: Path) -> bool:
    """Whether each payload waits, runs or is done, and none was started twice."""
    events = [json.loads(line) for line in (queue / "records.jsonl").read_text().splitlines()]
    started = Counter(one["payload"] for one in events if one["event"] == "started")
    # In the order in which a payload moves on: one that does so meanwhile is seen twice, and none is missed.
    there = {file.name for place in ("*.json", "running/*/*.json", "done/*.json") for file in queue.glob(place)}
    kinds = {one["event"] for one in events}
    return kinds <= {"started", "done"} and max(started.values()) == 1 and len(there) == PAYLOADS


def parts(state: Path) -> list[dict[str, Any]]:
    """What the agent asked pilots for, by its journal."""
    return journal_events(state, "part")


def held(pool: CondorPool, site: list[str]) -> dict[str, tuple[float, float]]:
    """What the runs of each account hold as the agent sees it, and what the account is charged for."""
    seen = snapshot_from_json(json.loads(condor_site.in_pool(pool, ["snapshot", *site]).stdout))
    cores = Counter[str]()
    for pilot in seen.pilots:
        cores[pilot.account] += pilot.cores
    return {one.name: (cores[one.name], one.cores_in_use) for one in seen.accounts}


def test_three_pilots_give_back_half_of_the_node_and_go_on(release: str) -> None:
    """12 of 24 cores for bob's jobs of 4 cores and of 1; no payload is lost, no pilot goes, and all is taken back."""
    half = NODE_CORES // 2
    with CondorPool(nodes=1, cpus=NODE_CORES, release=release) as pool:
        pool.configure("execute", "30-memory.conf", "MEMORY = 8192\n")
        more = "partial_return = yes\n"
        site = ["--site", condor_site.install(pool, reclaim=RECLAIM, quotas=(half, half), more=more)]
        state, startd = Path(f"{pool.root}/var/lib/drainwise"), Startd(pool)
        for number in range(PILOTS):
            fill(pool, number)
            start_pilot(pool, number)
        begun = startd.until(lambda one: len(one.runs) == PILOTS, 60, "three pilots")
        states = 'PilotReportStanding == "fresh" && PilotReturnedCpus is 0 && PilotUsedCpu == 8'
        pool.wait_for(lambda: len(pool.slots(states, ["Name"])) == PILOTS, 90, "reports that state what is returned")
        for cores in sorted(set(BOBS), reverse=True):
            for_bob(pool, cores, BOBS.count(cores), 3000)
        with acting_agent(pool, *site):
            asked = time.monotonic()
            full = startd.until(lambda one: one.others == BOBS, 240, "bob's jobs of 4 cores and of 1")
            print(f"{release}: bob has his cores after {time.monotonic() - asked:.0f} s, {startd.looks} looks")
            assert full.runs == begun.runs and sum(full.others) == half
            # Nobody waits any more, so nobody is asked; what bob's jobs hold stays returned until they end.
            pool.wait_for(lambda: parts(state)[-1]["asked"] == 0, 60, "wishes that are withdrawn")
            lent, end = startd.look().lent, time.monotonic() + 12
            while time.monotonic() < end:
                assert startd.look().lent == lent > 0
            kept = NODE_CORES - lent
            assert held(pool, site) == {"group_alice": (kept, kept), "group_bob": (half, half)}
            # Many short jobs on what is lent, then nobody.
            first = for_bob(pool, 1, SHORT, 2)
            pool.run(["condor_rm", "-constraint", f'Owner == "bob" && ClusterId < {first}'], user="bob")
            pool.wait_for(lambda: startd.look() and condor_site.finished(pool, first) == SHORT, 240, "the short jobs")
            after = startd.until(lambda one: one.others == () and one.lent == 0, 120, "the end of what is lent")
            pool.wait_for(lambda: len(pool.slots(states, ["Name"])) == PILOTS, 120, "pilots that use all cores again")
        assert after.runs == begun.runs
        assert {one["outcome"] for one in parts(state)} <= {"done", "skipped", "unanswered"}
        assert all(kept_every_payload(Path(f"{pool.root}{queue_of(number)}")) for number in range(PILOTS))
        assert journal_events(state, "order") == []
        print(f"{release}: {startd.looks} looks, at the most {startd.most} cores in use")
        assert startd.looks > 30
