"""A plain pilot that nobody changed, in a job of a real pool, is seen live. What a kill of it loses: `four_kinds`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acting_agent import acting_agent
from condor_jobs import TRANSFERRED, described
from condor_pool import CondorPool
from drainwise.pilotad.observation import Observation, observation_in
from plain_job import claim, plain_pilot
from real_daemons.errors import DeadlineError
from scenario.condor_site import in_pool, install

pytestmark = [pytest.mark.play, pytest.mark.in_turn("observer", "HTCondor")]
CORES, CLAIMED, SECONDS = 2, 8, 120.0
METRICS = "/var/lib/drainwise/drainwise.prom"
VALUES = ("Name", "PilotReportStanding", "PilotObserved", "PilotUsedCpu")


@pytest.fixture(scope="module")
def site(release: str) -> Iterator[tuple[CondorPool, str]]:
    """One node with drainwise as a site installs it."""
    with CondorPool(nodes=1, cpus=2 * CORES + 2 * CLAIMED, release=release) as pool:
        more = f"""\
[reclaim]
stuck_after = 20s
[observer]
contradictory_after = 20s
[metrics]
textfile = {pool.root}{METRICS}
"""
        yield pool, install(pool, reclaim=more, quotas=(2 * CORES + 2 * CLAIMED, 0))


@pytest.fixture(autouse=True)
def _empty_afterwards(site: tuple[CondorPool, str]) -> Iterator[None]:
    """Leave no job to the next test, also when one has failed."""
    yield
    remove_all(site[0])


def remove_all(pool: CondorPool) -> None:
    """Remove what is in the queue, and wait until the node is free."""
    pool.run(["condor_rm", "-all"], check=False)
    pool.wait_for(lambda: not pool.queue() and not pool.slots('State != "Unclaimed"'), SECONDS, "an empty pool")


def submit(pool: CondorPool, name: str, script: str, cores: int = CORES) -> int:
    """Submit a script as alice; its cluster."""
    place = Path(f"{pool.root}/home/alice/{name}")
    place.write_text(f"#!/bin/sh\n{script}")
    place.chmod(0o755)
    text = described("", "accounting_group = group_alice", TRANSFERRED, cores=cores, executable=name)
    return pool.submit(text.replace("transfer_executable = False", "transfer_executable = True"), user="alice")


def slot_of(pool: CondorPool, cluster: int) -> Any:
    """The slot of a job."""
    return next(iter(pool.slots(f'JobId == "{cluster}.0"', VALUES)), {})


def seen(pool: CondorPool, cluster: int, payloads: int) -> Observation:
    """What its node tells of a job, once it has so many payloads."""

    last: list[object] = []

    def found() -> Observation | None:
        slot = slot_of(pool, cluster)
        told = observation_in(slot.get("PilotObserved"))
        last[:] = [slot.get("Name"), told, time.time()]
        return told if told is not None and told.payloads == payloads else None

    try:
        told = pool.wait_for(found, SECONDS, f"{payloads} payloads")
    except DeadlineError as late:
        raise DeadlineError(f"last seen {last}; {late}") from None
    assert told is not None
    return told


def status_of(pool: CondorPool, site_file: str) -> tuple[dict[str, str], str]:
    """The standing of each pilot's slot by `drainwise status`, and all that it says for people."""
    lines = in_pool(pool, ["status", "--format", "name,standing", "--noheader", "--site", site_file]).stdout
    words = [line.split() for line in lines.splitlines()]
    return {one[0]: one[1] for one in words}, in_pool(pool, ["status", "--site", site_file]).stdout


def test_a_claim_of_cores_where_nothing_works_is_contradictory(site: tuple[CondorPool, str]) -> None:
    """The same claim where payloads work is believed."""
    pool, site_file = site
    lie = submit(pool, "lie", f"{claim(1024)}sleep 3600\n", CLAIMED)
    truth = submit(pool, "truth", f"{claim(1024)}mkdir work\n{plain_pilot('$PWD/work', 3600)}", CLAIMED)
    pool.wait_for(
        lambda: slot_of(pool, lie).get("PilotReportStanding") == "contradictory", SECONDS, "what its node found"
    )
    pool.wait_for(lambda: slot_of(pool, truth).get("PilotReportStanding") == "fresh", SECONDS, "an honest report")
    names = {cluster: slot_of(pool, cluster).text("Name") for cluster in (lie, truth)}

    def told_apart() -> bool:
        """On a slow machine a look may catch a hook of the job at work, and the claim is wrong from the next one on."""
        standings, _ = status_of(pool, site_file)
        return [standings.get(names[cluster]) for cluster in (lie, truth)] == ["contradictory", "fresh"]

    pool.wait_for(told_apart, SECONDS, "both standings in `drainwise status`")
    assert_metric(site, 'drainwise_pilots{standing="contradictory"}', 1)
    told = slot_of(pool, truth)
    assert told["PilotReportStanding"] == "fresh" and told["PilotUsedCpu"] == CLAIMED, "however long it is looked at"


def assert_metric(site: tuple[CondorPool, str], name: str, value: float) -> None:
    """An agent that begins now counts so many."""
    pool, site_file = site
    file = Path(pool.root + METRICS)

    def counts() -> bool:
        file.unlink(missing_ok=True)
        with acting_agent(pool, "--site", site_file):
            pool.wait_for(file.exists, SECONDS, "a cycle of the agent")
        return f"\n{name} {value:.1f}\n" in file.read_text()

    pool.wait_for(counts, SECONDS, f"{name} {value}")


def test_a_payload_that_ends_is_told_no_more(site: tuple[CondorPool, str]) -> None:
    """Its pilot stays, idle, and a kill would lose nothing: after a while it is stuck, and named."""
    pool, site_file = site
    cluster = submit(pool, "short", plain_pilot("/home/alice", 60))
    seen(pool, cluster, 2)
    told = seen(pool, cluster, 0)
    assert (told.cores_busy, told.cpu_seconds) == (0, 0)
    live = pool.run(["condor_status", "-constraint", f'JobId == "{cluster}.0"', "-af", "PilotKillWaste"]).stdout
    assert float(live) == 0
    name = slot_of(pool, cluster)["Name"]
    stuck = f"1 pilot is stuck ({CORES} cores): no payload for 20s or more: {name}"
    pool.wait_for(lambda: stuck in status_of(pool, site_file)[1], SECONDS, "a stuck pilot in `drainwise status`")
    assert_metric(site, "drainwise_stuck_pilots", 1)


def test_a_job_in_which_nothing_works_tells_no_figure(site: tuple[CondorPool, str]) -> None:
    """A job that only sleeps, or that cannot be seen, is as silent as before."""
    pool, _ = site
    cluster = submit(pool, "sleeps", "sleep 600\n")
    assert seen(pool, cluster, 0).client == "plain"
    assert slot_of(pool, cluster).get("PilotReportStanding") is None
