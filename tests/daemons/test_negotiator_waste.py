"""The negotiator's policy: what it expects to waste by a preemption is what is wasted, in twenty of them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from condor_jobs import TRANSFERRED, described
from condor_pool import CondorPool
from scenario import condor_site

pytestmark = [pytest.mark.play, pytest.mark.in_turn("negotiator", "expected waste")]
NODES, CPUS, TAKEN = 3, 8, 20
QUOTAS = (NODES * CPUS - TAKEN, TAKEN)
MAX_GRACE = 120
# A pilot of one core whose only payload ends so many seconds after its start; it ends with it.
PILOT = """\
#!/bin/sh
cd "$_CONDOR_SCRATCH_DIR"
now=$(date +%s)
cat > .pilot.ad.new <<END
LAST_JOB_START = $now
FIRST_EXP_JOB_END = $((now + $1))
LAST_EXP_JOB_END = $((now + $1))
LAST_MAX_JOB_END = $((now + $1))
USED_FRACTION1k = 1024
ADD_UNCOM_TIME1k = 0
ADD_FINAL_EXP_WASTE1k = 0
PRIORITY_FACTOR = 0
CAN_POSTPONE_LAST_JOB = True
END
mv .pilot.ad.new .pilot.ad
exec sleep $1
"""
FIGURES = ("PilotRemaining", "PilotDrainingWaste", "PilotKillWaste")
LONG = 36_000
ENDS = [150 + 5 * number for number in range(10)] + [LONG] * (NODES * CPUS - 10)
"""When each pilot's payload ends: the first within what a preempted pilot may take, those behind it by far not."""


@dataclass
class Seen:
    """A run when its preemption began, or when it was seen last (UNIX s); what was expected then. goes: it retires."""

    at: float
    remaining: float
    expected: float
    started: float
    goes: bool


@pytest.fixture
def pool(release: str) -> Iterator[CondorPool]:
    """Three nodes of 8 cores, each full of pilots of one core; bob's group is owed twenty of them."""
    with CondorPool(nodes=NODES, cpus=CPUS, release=release) as running:
        reclaim = f"{condor_site.RECLAIM}max_grace = {MAX_GRACE}s\n"
        condor_site.install(running, "least-waste", reclaim, QUOTAS)
        path = f"{running.root}/ends"
        with open(path, "w", encoding="ascii") as stream:
            stream.write(PILOT)
        os.chmod(path, 0o755)
        running.copy_in(path, "/usr/share/drainwise/ends")
        yield running


def runs(pool: CondorPool) -> dict[str, dict[str, str]]:
    """alice's runs by their job, as any user's condor_status shows them."""
    names = ("GlobalJobId", "Activity", "JobStart", *FIGURES)
    text = pool.run(["condor_status", "-constraint", 'RemoteOwner == "alice@pool.test"', "-af:t", *names]).stdout
    return {row[0]: dict(zip(names, row)) for line in text.splitlines() if len(row := line.split("\t")) == len(names)}


def test_what_twenty_preemptions_were_expected_to_waste_is_what_they_wasted(pool: CondorPool) -> None:
    """Who says that it ends within max_grace ends by itself and loses nothing; of the others some are killed."""
    for ends in ENDS:
        more = (TRANSFERRED, "accounting_group = group_alice", "periodic_remove = NumJobStarts >= 1 && JobStatus == 1")
        pool.submit(described(ends, *more, cores=1, executable="/usr/share/drainwise/ends"), user="alice")

    def are_near_their_ends() -> bool:
        left = [float(run["PilotRemaining"]) for run in runs(pool).values() if run["PilotRemaining"] != "undefined"]
        return len(left) == len(ENDS) and sum(one < MAX_GRACE - 5 for one in left) == sum(one < LONG for one in ENDS)

    pool.wait_for(are_near_their_ends, 240, "all pilots to report, and some to end within max_grace")
    pool.submit(described(900, "accounting_group = group_bob", cores=1, count=TAKEN), user="bob")
    seen: dict[str, Seen] = {}
    ended: dict[str, float] = {}

    def all_ended() -> bool:
        now, there = time.time(), runs(pool)
        for job in seen.keys() - there.keys() - ended.keys():
            ended[job] = now
        for job, run in there.items():
            is_told = "undefined" not in run.values()  # a run that was just killed tells nothing more
            if is_told and not (job in seen and seen[job].goes):
                remaining, draining, kill = (float(run[name]) for name in FIGURES)
                expected = draining if 0 <= remaining <= MAX_GRACE else kill
                seen[job] = Seen(now, remaining, expected, float(run["JobStart"]), run["Activity"] == "Retiring")
        return len(ended) >= TAKEN

    pool.wait_for(all_ended, MAX_GRACE, "twenty preemptions to their end")
    taken = {job: one for job, one in seen.items() if job in ended}
    by_itself = {job: one for job, one in taken.items() if one.remaining <= MAX_GRACE}
    assert len(by_itself) == sum(ends < LONG for ends in ENDS)
    for job, one in by_itself.items():
        assert ended[job] >= one.at + one.remaining - 5, "its payload had its time"
    lost = sum(ended[job] - one.started for job, one in taken.items() if job not in by_itself)
    expected = sum(one.expected for one in taken.values())
    print(f"expected {expected:.0f} core-s of {len(taken)} preemptions, lost {lost:.0f}")
    assert expected == pytest.approx(lost, rel=0.25)
