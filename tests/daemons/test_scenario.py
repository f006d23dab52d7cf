"""The main job on a real pool: the group over quota gives back the cores that cost least, nobody else is touched."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial

import pytest

from condor_pool import CondorPool
from scenario import condor_site

pytestmark = pytest.mark.play


def told(pool: CondorPool, name: str) -> dict[str, str]:
    """What stood in the site's channels when a pilot left."""
    return {file: condor_site.brought_back(pool, name, file) for file in condor_site.NOTICES}


def starts(pool: CondorPool, cluster: int) -> int:
    """The start of the run of a pilot that is running now, UNIX seconds; 0 when it does not run."""
    found = pool.queue(f"ClusterId == {cluster} && JobStatus == 2", ["JobCurrentStartDate"])
    return found[0].integer("JobCurrentStartDate") if found else 0


@pytest.mark.in_turn("the main job on a pool", "tests")
def test_the_cheapest_pilots_give_their_cores_back(release: str) -> None:
    """Nine pilots of alice, three jobs of bob: exactly the three that cost least leave, bob runs, old orders die.

    Her tenth pilot, which waits all the time, gets none of the cores that bob was owed.
    """
    with CondorPool(nodes=condor_site.NODES, cpus=condor_site.CPUS, release=release) as pool:
        site = ["--site", condor_site.install(pool)]
        clusters = condor_site.submit_pilots(pool)
        pool.wait_for(lambda: condor_site.all_pilots_report(pool, len(clusters)), 90, "nine pilots that report")
        growing = waste_by_slot(pool)
        pool.wait_for(lambda: all(waste_by_slot(pool)[slot] > lost for slot, lost in growing.items()), 20, "live waste")

        [queued] = condor_site.submit_pilots(pool, {"queued": "8x1500"}).values()

        assert condor_site.planned(pool, site) == {}, "nobody under quota waits yet, so nobody is ordered"
        demand = condor_site.submit_demand(pool)
        pool.wait_for(lambda: len(condor_site.planned(pool, site)) == 3, 120, "a plan for three pilots")
        mixes = condor_site.mix_in_slot(pool, clusters)
        first_runs = {name: starts(pool, cluster) for name, cluster in clusters.items()}

        dry = condor_site.in_pool_json(pool, ["reclaim", "--once", *site])
        assert not condor_site.under_order(pool), f"a dry run acted: {dry}"

        acted = condor_site.in_pool_json(pool, ["reclaim", "--once", "--act", *site])
        ordered = condor_site.orders(acted)
        assert {mixes[slot] for slot in ordered} == condor_site.CHEAPEST, acted
        assert [act["outcome"] for act in acted["acts"]] == ["done"] * 3
        assert condor_site.planned(pool, site) == {}, "what is on its way out is not ordered again"

        deaf_deadline = ordered[next(slot for slot in ordered if mixes[slot] == "ignores-orders")]
        gone = pool.wait_for(
            lambda: starts(pool, clusters["ignores-orders"]) != first_runs["ignores-orders"] and int(time.time()),
            150,
            "the last one's end",
        )
        assert gone <= deaf_deadline + 30
        pool.wait_for(lambda: condor_site.finished(pool, demand) == 3, 180, "bob's three jobs")

        served = pool.history(f"ClusterId == {demand}", ["JobCurrentStartDate"])
        last = max(ad.integer("JobCurrentStartDate") for ad in served)
        again = starts(pool, queued)
        assert not again or again >= last, "what alice gave back went to her own next pilot, not to bob"

        for name in ("short-1", "short-2"):
            cluster = clusters[name]
            pool.wait_for(partial(condor_site.finished, pool, cluster), 30, f"{name}'s end by itself")
            seen = told(pool, name)
            deadline = ordered[next(slot for slot in ordered if mixes[slot] == name)]
            assert seen[".site.ad"].splitlines() == ["VACATE_DESIRED = True", f"PAYLOAD_DEADLINE = {deadline}"]
            assert seen["shutdowntime_job"] == seen["shutdowntime"] == f"{deadline}\n"
            account = json.loads(condor_site.brought_back(pool, name, condor_site.REPORT))
            assert ".site.ad" in account["drain"]["source"]
            assert account["core_seconds"]["lost"] == account["core_seconds"]["failed"] == 0
            assert account["requeued"] == 0
            assert account["done"] >= 1
        for name in set(clusters) - condor_site.CHEAPEST:
            assert starts(pool, clusters[name]) == first_runs[name], f"{name} was touched"

        # It runs again on the cores that bob has left; the old order names its first run and must not hit.
        again = pool.wait_for(lambda: starts(pool, clusters["ignores-orders"]), 120, "the last one's next run")
        pool.wait_for(lambda: time.time() > again + 30, 40, "thirty seconds of it")
        assert starts(pool, clusters["ignores-orders"]) == again
        assert not condor_site.under_order(pool)


def waste_by_slot(pool: CondorPool) -> dict[str, float]:
    """The live kill waste of every slot that has one, as any user's condor_status shows it."""
    rows = pool.run(["condor_status", "-af", "Name", "PilotKillWaste"], user="bob").stdout.splitlines()
    pairs = (row.split() for row in rows)
    return {name: float(waste) for name, waste in pairs if waste != "undefined"}


@pytest.fixture
def negotiating_pool(release: str) -> Iterator[CondorPool]:
    """A pool whose negotiator takes the least wasteful slots by configuration alone."""
    with CondorPool(nodes=condor_site.NODES, cpus=condor_site.CPUS, release=release) as pool:
        condor_site.install(pool, negotiator_policy="least-waste")
        yield pool


@pytest.mark.in_turn("negotiator", "whose slots")
def test_the_negotiator_takes_the_least_wasteful_slots(negotiating_pool: CondorPool) -> None:
    """With the pure-configuration policy the under-quota group gets its quota from the slots of least draining waste.

    Two pilots with a payload of fifteen minutes each would lose less if they were killed; those that leave within three
    minutes go, end by themselves, and lose nothing: what was expected is what became of them.
    """
    pool = negotiating_pool
    clusters = condor_site.submit_pilots(pool, condor_site.MIXES_BY_DRAIN)
    pool.wait_for(lambda: condor_site.all_pilots_report(pool, len(clusters)), 90, "nine pilots that report")
    first_runs = {name: starts(pool, cluster) for name, cluster in clusters.items()}
    demand = condor_site.submit_demand(pool, seconds=300)
    pool.wait_for(lambda: len(pool.queue(f"ClusterId == {demand} && JobStatus == 2", ["ProcId"])) == 3, 300, "bob runs")
    ended = {name for name, cluster in clusters.items() if not pool.queue(f"ClusterId == {cluster}", ["ProcId"])}
    assert ended == condor_site.CHEAPEST_TO_DRAIN
    others = clusters.keys() - ended
    assert {name: starts(pool, clusters[name]) for name in others} == {name: first_runs[name] for name in others}
