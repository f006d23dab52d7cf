"""Who waits by kind, where each kind could start, what runs hold, and what reservations take: of a recorded cluster."""

from __future__ import annotations

import pytest

from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Closure, Snapshot
from drainwise.pool.job_kinds import JobKind
from drainwise.reclaim.quota import require_whole
from drainwise.slurm.jobs.written import Written
from drainwise.slurm.pool.old_release import texts_in

from .recorded_cluster import VERSIONS
from .recorded_room import recorded, snapshot

GIB = 1024


def nodes_of(seen: Snapshot, kind: JobKind) -> set[str]:
    """The last letters of the nodes of a kind's classes."""
    return {place.name for place in seen.places if place.node_class in kind.classes}


def by_example(seen: Snapshot) -> dict[str, JobKind]:
    return {kind.example: kind for kind in seen.kinds or ()}


@pytest.mark.parametrize("version", VERSIONS)
def test_what_nodes_have_and_what_is_free(version: str) -> None:
    """Without the memory that the system keeps; GPUs by their types as well."""
    seen = snapshot(version)
    require_whole(seen)
    full = {place.name: place.total for place in seen.places}
    assert full == {
        "node1": Amounts(8, 16 * GIB),
        "node2": Amounts(8, 4 * GIB - 512),
        "node3": Amounts(8, 16 * GIB, 3, 0, (("fpga", 3), ("gpu:a100", 2), ("gpu:t4", 1))),
        "node4": Amounts(8, 16 * GIB),
        "node5": Amounts(8, 16 * GIB),
    }
    free = {place.name: place.free for place in seen.places}
    assert free["node2"] == Amounts(0, 4 * GIB - 512 - 1000)
    assert free["node3"] == Amounts(0, 0, 1, 0, (("fpga", 2), ("gpu:t4", 1)))
    assert free["node1"] == free["node5"] == Amounts()
    assert len({place.node_class for place in seen.places}) == 5


@pytest.mark.parametrize("version", VERSIONS)
def test_what_runs_hold(version: str) -> None:
    """Of who asked for a GPU of any type the one that it has, as no other is in use."""
    holds = {pilot.name: (pilot.place, pilot.holds) for pilot in snapshot(version).pilots}
    assert holds["1"] == ("node1", Amounts(8, 16 * GIB))
    assert holds["2"] == ("node2", Amounts(8, 1000))
    assert holds["3"] == ("node3", Amounts(4, 8 * GIB, 1, 0, (("fpga", 1), ("gpu:a100", 1))))
    assert holds["4"] == ("node3", Amounts(2, 4 * GIB, 1, 0, (("gpu:a100", 1),)))
    assert holds["7"] == ("node3", Amounts(2, 4 * GIB))


@pytest.mark.parametrize("version", VERSIONS)
def test_where_each_kind_could_start(version: str) -> None:
    """By partition and account, features, GPUs, memory, lists of nodes, limits and reservations."""
    seen = snapshot(version)
    found = by_example(seen)
    array = {"22.05": "29", "24.11": "28"}[version]
    exclusive, spread, floats = {"22.05": ("20", "21", "23"), "24.11": ("19", "20", "22")}[version]
    nodes = {example: nodes_of(seen, kind) for example, kind in found.items()}
    assert nodes["10"] == {"node1", "node3", "node5"}
    assert nodes["13"] == {"node3"}  # --nodelist=node3, in main or gpu
    assert nodes["16"] == {"node3", "node5"}  # [rack1|rack2], and the float reservation keeps it from node2
    assert nodes[array] == {"node3"}
    assert nodes[floats] == set()  # node2 alone would do, in the half hour before the reservation
    assert found[array].needs == Amounts(4, 8 * GIB, 1)
    assert found[array].jobs == 2  # of five tasks two at a time
    assert (found["10"].needs, found["10"].places) == (Amounts(8, 4000), 2)  # 16 tasks, which no node has room for
    assert (found[spread].needs, found[spread].places) == (Amounts(4, 8 * GIB), 2)
    assert (found[exclusive].whole, found[exclusive].needs) == (True, Amounts(8, 2 * GIB))
    assert "reservation float1" in found[floats].asks
    assert all(kind.account == "cms" for kind in found.values())
    (notice,) = seen.notices
    assert notice.startswith("1 waiting job is no demand") and notice.endswith(f" {floats}")


def test_nodes_that_a_job_will_not_have() -> None:
    """Since 23.02 plain squeue says them; before, scontrol's lines do."""
    seen = snapshot("24.11")
    assert nodes_of(seen, by_example(seen)["14"]) == {"node3", "node5"}
    assert texts_in(recorded("22.05", "jobs.txt"), ())[0] == {14: Written(excluded="node[1-2]")}


def test_nobody_spells_in_a_name_what_others_will_not_have() -> None:
    """HOSTILE 43: a forged line makes its victim have none; so does one's own name."""
    true = b"JobId=17 JobName=a ExcNodeList=n1 NodeList=\n"
    assert texts_in(true, ())[0] == {17: Written(excluded="n1")}
    assert texts_in(true + b"JobId=17 JobName=x ExcNodeList=n[1-9] NodeList=\n", ())[0] == {}
    assert texts_in(b"JobId=17 JobName=a ExcNodeList=n9 ExcNodeList=n1 NodeList=\n", ())[0] == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_that_wait_for_something_else_are_no_kind(version: str) -> None:
    """A partition that is not for their account, one that takes no jobs of two nodes."""
    examples = set(by_example(snapshot(version)))
    assert not examples & {"8", "26"}


@pytest.mark.parametrize("version", VERSIONS)
def test_kinds_and_accounts_agree(version: str) -> None:
    """Cores that are wanted are those of the kinds, but where memory makes a job count for more."""
    seen = snapshot(version)
    kinds = [kind for kind in seen.kinds or () if kind.classes]
    (cms,) = (one for one in seen.accounts if one.name == "cms")
    assert cms.cores_wanted == sum(kind.jobs * kind.cores for kind in kinds) + 7  # a job of one core has all memory
    assert len({kind.name for kind in kinds}) == len(kinds)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_maintenance_ahead_is_a_closure(version: str) -> None:
    """Neither the reservation of two cores, nor the one that never begins, nor the one that has begun for a user."""
    start = {"22.05": 1795372876, "24.11": 1795372879}[version]
    reason = "maintenance: Slurm's reservation maint1"
    assert snapshot(version).closures == (Closure("maint1", frozenset({"node5"}), start, start + 3600, reason),)
