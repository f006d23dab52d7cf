"""Pilots of several jobs on real pools: chunk by chunk they give cores back, and no payload is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

import chunk_pilots as pilots
from acting_agent import acting_agent
from condor_pool import CondorPool
from condor_pool.ads import Ad
from scenario import condor_site

pytestmark = [pytest.mark.play, pytest.mark.in_turn("chunks", "HTCondor")]
SUBMIT = """\
executable = /usr/bin/python3
transfer_executable = False
arguments = "{arguments}"
accounting_group = group_alice
environment = "HOME=/home/alice PATH=/usr/bin:/bin CONDOR_CONFIG={config}"
request_cpus = {cores}
request_memory = 64
request_disk = 1MB
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
transfer_output_files = ""
error = leader-{number}.err
queue
"""
DEMAND = """\
executable = /bin/sleep
transfer_executable = False
arguments = 3000
accounting_group = group_bob
request_cpus = {cores}
request_memory = 64
request_disk = 1MB
should_transfer_files = YES
queue
"""
TOKENS = "mkdir -p -m 700 $HOME/.condor/tokens.d && umask 077 && cat > $HOME/.condor/tokens.d/pool"
OF_A_CHUNK = "--chunk-option=request_disk = 1MB"
NEVER = "--chunk-option=requirements = False"


def lead(pool: CondorPool, number: int | str, *options: str, idle_limit: int = 20) -> int:
    """Submit a leader of alice's."""
    words = pilots.leader(pilots.queue_of(number), *options, OF_A_CHUNK, idle_limit=idle_limit)[1:]
    quoted = " ".join("'" + word.replace("'", "''").replace('"', '""') + "'" for word in words)
    config = pool.node(pool.node_names[0]).config_file
    return pool.submit(SUBMIT.format(arguments=quoted, cores=pilots.CORES, number=number, config=config), "alice")


def running(pool: CondorPool, user: str) -> list[Ad]:
    """The slots in which a user's jobs run, from an answer in which no core was given twice."""
    slots = pool.slots('SlotType == "Dynamic"', ["Name", "Cpus", "RemoteOwner", "JobId", "Activity"])
    assert sum(ad.integer("Cpus") for ad in slots) <= pilots.NODE_CORES
    jobs = [ad for ad in slots if "RemoteOwner" in ad and "JobId" in ad]  # a claim has none before its job starts
    return [ad for ad in jobs if ad.text("RemoteOwner").partition("@")[0].endswith(user)]


def test_chunks_give_their_cores_back_one_by_one(release: str) -> None:
    """Three pilots of 8 cores, each in four jobs: 12 of 24 cores go to bob's jobs of 4 and of 1 core."""
    half = pilots.NODE_CORES // 2
    with CondorPool(nodes=1, cpus=pilots.NODE_CORES, release=release) as pool:
        site = ["--site", condor_site.install(pool, reclaim=pilots.RECLAIM, quotas=(half, half))]
        token = pool.run(["condor_token_create", "-identity", "alice@pool.test"]).stdout
        pool.run(["sh", "-c", TOKENS], user="alice", stdin=token)

        pool.run(["mkdir", pilots.queue_of("empty")], user="alice")
        alone = lead(pool, "empty", "--chunks", "2", NEVER, idle_limit=5)
        pool.wait_for(lambda: len(pool.history('Owner == "alice"', ["JobStatus"])) == 3, 60, "a leader's end")
        ends = {ad.integer("ClusterId") == alone: ad.integer("JobStatus") for ad in pool.history('Owner == "alice"')}
        assert ends == {True: 4, False: 3}, "chunk jobs that have not started go with their leader"

        queues = [pilots.queue_of(number) for number in range(pilots.LEADERS)]
        for queue in queues:
            pool.run(["sh", "-c", pilots.filled_queue(queue)], user="alice")
        places = [Path(f"{pool.root}{queue}") for queue in queues]
        leaders = {f"{lead(pool, number, '--chunks', str(pilots.CHUNKS))}.0" for number in range(pilots.LEADERS)}
        pool.wait_for(lambda: len(running(pool, "alice")) == pilots.PILOTS, 60, "leaders and chunk jobs")
        first = {ad.text("JobId") for ad in running(pool, "alice")}
        assert leaders < first
        busy = f'PilotReportStanding == "fresh" && PilotUsedCpu == {pilots.CORES}'
        pool.wait_for(lambda: len(pool.slots(busy, ["Name"])) == pilots.PILOTS, 90, "a report of each pilot's payload")
        for cores in pilots.BOBS:
            pool.submit(DEMAND.format(cores=cores), "bob")

        with acting_agent(pool, *site):
            pool.wait_for(lambda: len(running(pool, "bob")) == len(pilots.BOBS), 180, "bob's jobs")
        left = {ad.text("JobId") for ad in running(pool, "alice")}
        assert sum(ad.integer("Cpus") for ad in running(pool, "bob")) == sum(pilots.BOBS)
        assert len(first - left) == pilots.PILOTS // 2
        for job in first - left:
            [ended] = pool.history(f'strcat(ClusterId, ".", ProcId) == "{job}"', ["JobStatus", "ExitCode"])
            assert (ended.integer("JobStatus"), ended.integer("ExitCode")) == (4, 0)
        assert all(map(pilots.kept_every_payload, places))
        assert [sorted(pilots.running_pilots(place).values()) for place in places] == [[1800, 1800]] * pilots.LEADERS
