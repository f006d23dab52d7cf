"""A plain pilot that nobody changed, in a job of a real pool, is seen live; what a kill then loses is what was told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from condor_jobs import TRANSFERRED, described
from condor_pool import CondorPool
from drainwise.pilotad.observation import Observation, observation_in
from plain_job import plain_pilot, used
from scenario.condor_site import in_pool, install

CORES, SECONDS = 2, 120.0
INTERVAL = 15  # seconds: the cron's period, the startd's and the collector's
VALUES = ("PilotReportStanding", "PilotObserved", "PilotUsedCpu")


@pytest.fixture(scope="module")
def site(release: str) -> Iterator[tuple[CondorPool, str]]:
    """One node with drainwise as a site installs it."""
    with CondorPool(nodes=1, cpus=2 * CORES, release=release) as pool:
        yield pool, install(pool, quotas=(0, 2 * CORES))


def submit(pool: CondorPool, name: str, script: str) -> int:
    """Submit a script as alice; its cluster."""
    place = Path(f"{pool.root}/home/alice/{name}")
    place.write_text(f"#!/bin/sh\n{script}")
    place.chmod(0o755)
    text = described("", "accounting_group = group_alice", TRANSFERRED, cores=CORES, executable=name)
    return pool.submit(text.replace("transfer_executable = False", "transfer_executable = True"), user="alice")


def slot_of(pool: CondorPool, cluster: int) -> Any:
    """The slot of a job."""
    return next(iter(pool.slots(f'JobId == "{cluster}.0"', VALUES)), {})


def seen(pool: CondorPool, cluster: int, payloads: int) -> Observation:
    """What its node tells of a job, once it has so many payloads."""

    def found() -> Observation | None:
        told = observation_in(slot_of(pool, cluster).get("PilotObserved"))
        return told if told is not None and told.payloads == payloads else None

    told = pool.wait_for(found, SECONDS, f"{payloads} payloads")
    assert told is not None
    return told


def test_what_a_kill_loses_is_what_was_told(site: tuple[CondorPool, str]) -> None:
    """To a tenth, or what is used between two reports."""
    pool, site_file = site
    work = Path(f"{pool.root}/home/alice")
    cluster = submit(pool, "plain", plain_pilot("/home/alice", 600, between=10))
    told = seen(pool, cluster, 2)
    assert told.client == "plain" and 8 <= told.begins[1] - told.begins[0] <= 20
    pool.wait_for(lambda: used(work) > 12, SECONDS, "some work")
    status = in_pool(pool, ["status", "--format", "name,standing", "--site", site_file]).stdout
    assert "observed" in status and slot_of(pool, cluster)["PilotReportStanding"] == "observed"
    live = pool.run(["condor_status", "-constraint", f'JobId == "{cluster}.0"', "-af", "PilotKillWaste"]).stdout
    pool.run(["condor_rm", str(cluster)])
    pool.wait_for(lambda: not pool.queue() and not pool.slots('State != "Unclaimed"'), SECONDS, "an empty pool")
    lost = used(work)
    print(f"{pool.release}: kill waste {float(live):.1f}, lost {lost:.1f} core-seconds")
    assert float(live) == pytest.approx(lost, rel=0.1, abs=told.cores_busy * INTERVAL)


def test_a_payload_that_ends_is_told_no_more(site: tuple[CondorPool, str]) -> None:
    """Its pilot stays, idle, and a kill would lose nothing."""
    pool, _ = site
    cluster = submit(pool, "short", plain_pilot("/home/alice", 90))
    seen(pool, cluster, 2)
    told = seen(pool, cluster, 0)
    assert (told.cores_busy, told.cpu_seconds) == (0, 0)
    live = pool.run(["condor_status", "-constraint", f'JobId == "{cluster}.0"', "-af", "PilotKillWaste"]).stdout
    assert float(live) == 0
    pool.run(["condor_rm", str(cluster)])
    pool.wait_for(lambda: not pool.queue(), SECONDS, "an empty queue")


def test_a_job_in_which_nothing_works_tells_no_figure(site: tuple[CondorPool, str]) -> None:
    """A job that only sleeps, or that cannot be seen, is as silent as before."""
    pool, _ = site
    cluster = submit(pool, "sleeps", "sleep 600\n")
    assert seen(pool, cluster, 0).client == "plain"
    assert slot_of(pool, cluster).get("PilotReportStanding") is None
    pool.run(["condor_rm", str(cluster)])
