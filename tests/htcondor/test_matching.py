"""Jobs and places are matched as the negotiator does it, and no expression of a user holds anybody up."""

from __future__ import annotations

import json
import signal

import pytest

from drainwise.htcondor.ads.query import classad2
from drainwise.htcondor.demand import matching
from drainwise.htcondor.demand.ask import _described, _fitting, value_in
from drainwise.htcondor.demand.demand import IdleJobs
from drainwise.htcondor.demand.matching import flattened, matched, may_run, parsed, references
from drainwise.htcondor.demand.place_ads import PlaceAd, as_if_empty, read_places, unresolved
from drainwise.pool.amounts import Amounts
from drainwise.pool.job_kinds import Place

JOB = '[Owner = "bob"; RequestCpus = 4; RequestMemory = 3000; Requirements = {}]'
# A partitionable slot of which nothing is left, as 25.14.1 shows it.
PLACE = {
    "Name": "slot1@n1",
    "Machine": "n1",
    "State": "Unclaimed",
    "PartitionableSlot": True,
    "Cpus": 0,
    "Memory": 128,
    "Disk": 8_384_156,
    "TotalSlotCpus": 8,
    "TotalSlotMemory": 16_384,
    "TotalSlotDisk": 8_388_252.0,
    "Start": True,
    "LastHeardFrom": 1_795_249_000,
}


def job(requirements: str = "true") -> object:
    return parsed(JOB.format(requirements))


def place_ad(**more: object) -> object:
    ad = classad2.ClassAd()
    for name, value in {**PLACE, **more}.items():
        ad[name] = classad2.ExprTree(value[1:]) if isinstance(value, str) and value.startswith("=") else value
    return ad


def read(**more: object) -> PlaceAd | None:
    found = read_places([place_ad(**more)], ("GPUs",))
    return found[0] if found else None


def empty(**more: object) -> object:
    found = read(**more)
    assert found is not None
    return as_if_empty(found, ("GPUs",))


@pytest.mark.parametrize(
    ("requirements", "runs"),
    [
        ("true", True),
        ("TARGET.Cpus >= RequestCpus && TARGET.Memory >= RequestMemory", True),
        ("TARGET.Memory > 20000", False),
        ("TARGET.HasNone == true", False),
        ("TARGET.HasNone =!= true", True),
        ("TARGET.HasNone", False),
        ('Machine == "N1"', True),
        ("1", True),
        ('"yes"', False),
        ("error", False),
        ("(1/0) > 3", False),
    ],
)
def test_requirements_see_all_that_a_place_has(requirements: str, runs: bool) -> None:
    """Nothing is left of it now; undefined and error are no match."""
    assert may_run(job(requirements), empty(), ()) == runs


@pytest.mark.parametrize(
    ("start", "runs"),
    [
        ('=TARGET.Owner =!= "bob"', False),
        ('=regexp("^b", Owner)', True),
        ("=TARGET.WantsThis", False),
        ("=TARGET.RequestMemory <= Memory", True),
        ("=noSuchFunction(1)", False),
        ("=1/0", False),
    ],
)
def test_start_of_the_place_must_hold_too(start: str, runs: bool) -> None:
    assert may_run(job(), empty(Start=start), ()) == runs


def test_what_is_not_known_is_taken_as_met() -> None:
    assert may_run(job("TARGET.Rack == 7 && TARGET.Cpus > 2"), empty(), {"rack"})
    assert not may_run(job("TARGET.Rack == 7 && TARGET.Cpus > 20"), empty(), {"rack"})
    assert may_run(job(), empty(Start="=TARGET.Project"), {"project"})
    free_gpus = "countMatches(TARGET.AvailableGPUs, true) >= 1"
    assert may_run(job(free_gpus), empty(), {"availablegpus"})


@pytest.mark.parametrize(
    "more",
    [
        {"State": "Drained"},
        {"State": "Owner"},
        {"Start": False},
        {"Requirements": False},
        {"TotalSlotCpus": 0},
        {"TotalSlotCpus": "8"},
        {"Name": 7},
    ],
)
def test_a_slot_that_takes_no_jobs_is_no_place(more: dict[str, object]) -> None:
    """Drained by condor_drain; `Requirements = false` after condor_off -peaceful, on 23.9.6 and 25.14.1."""
    assert read() is not None
    assert read(**more) is None


def test_a_static_slot_in_use_has_nothing_free_and_all_in_total() -> None:
    found = read(PartitionableSlot=False, State="Claimed", Cpus=8, GPUs=1, TotalSlotGPUs=1)
    assert found is not None
    assert found.place == Place("slot1@n1", "n1", "", Amounts(), found.place.total, divisible=False)
    assert (found.place.total.cores, found.place.total.gpus) == (8, 1)


def test_names_that_expressions_of_a_place_refer_to_are_asked_for() -> None:
    found = read(Healthy="=LastCheck > 5 && MY.Disk > 3")
    assert found is not None
    assert unresolved([found], ["Disk"]) == {"lastcheck"}


def test_references_are_names_outside_of_the_ad() -> None:
    ad = job('TARGET.Cpus >= RequestCpus && Foo =?= 1 && regexp("a", TARGET.Machine)')
    assert references(ad, "Requirements") == {"cpus", "foo", "machine"}
    assert references(ad, "None") == frozenset()
    assert references(job(), "Requirements") == frozenset()


def test_a_condition_reads_the_same_at_any_time() -> None:
    assert flattened(job("TARGET.Memory >= RequestMemory"), "Requirements") == "TARGET.Memory >= 3000"
    assert "time()" in flattened(job("TARGET.Since < time() - 60"), "Requirements")


def bomb() -> object:
    """HOSTILE 33: 12^12 evaluations, if anybody made them."""
    sums = "; ".join(f"A{step} = {' + '.join([f'A{step + 1}'] * 12)}" for step in range(12))
    return parsed(f"[{sums}; A12 = 1; Requirements = A0 > 0]")


@pytest.mark.daemons
def test_an_expression_without_end_holds_up_its_own_job_alone() -> None:
    first, endless, third, none = matched([job(), bomb(), job(), None], {"class": empty()}, (), seconds=2)
    assert first == third == {"class": None} and none is None
    assert not endless, "it may run nowhere that is known"


@pytest.mark.daemons  # it waits for three of them
def test_after_three_matches_without_end_no_more_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_end(job: object, place: object, unknown: object) -> bool:
        if job == "endless":
            signal.pause()
        return True

    monkeypatch.setattr(matching, "may_run", without_end)
    monkeypatch.setattr(matching, "asks_of_place", lambda job, names: frozenset())
    jobs: list[object] = ["first", "endless", "second", "endless", "endless", "endless", "third"]
    there = {"class": None}
    assert matched(jobs, {"class": empty()}, (), seconds=1) == [there, None, there, None, None, None, None]


@pytest.mark.parametrize("text", ["", "[", "x", "[A = ]", "[" + "(" * 20_000 + "]"])
def test_what_is_no_ad_is_none(text: str) -> None:
    assert parsed(text) is None


@pytest.mark.parametrize("value", ["4", "1/0", "undefined", "A", "{1}", "[x = 1]", '"\xe9"'])
def test_a_value_is_plain_or_none(value: str) -> None:
    ad = classad2.ClassAd()
    ad["A"] = classad2.ExprTree(value)
    found = value_in(ad, "A")
    assert found is None or json.dumps(found)
    assert value_in(ad, "B") is None


CE = """RequestCpus = ifThenElse(WantWholeNode =?= true, !isUndefined(TotalCpus) ? TotalCpus : JobCpus, OriginalCpus);
WantWholeNode = true; JobCpus = 1; OriginalCpus = 1; Requirements = TARGET.Cpus >= RequestCpus && TARGET.Memory >= 1"""


@pytest.mark.parametrize(
    ("ad", "memory", "cores", "whole"),
    [
        (f"[{CE}; RequestMemory = 1024]", 1024, 8, True),  # as HTCondor-CE routes it
        (f"[{CE}; RequestMemory = TARGET.TotalMemory * 95 / 100]", 15_616, 8, True),
        ("[RequestCpus = 2; RequestMemory = 2 * TARGET.TotalMemory / TARGET.TotalCpus]", 7680, 2, False),
        ("[RequestCpus = 2; RequestMemory = MemoryUsage =!= undefined ? MemoryUsage : 900]", 1024, 2, False),
    ],
)
def test_what_a_job_asks_as_a_part_of_a_node_is_asked_of_each_class(
    ad: str, memory: int, cores: int, whole: bool
) -> None:
    """All cores of it is the whole place, however large: else the largest ask, so that room for it serves anywhere."""
    names = ("TotalCpus", "TotalMemory")
    sizes = {"small": (8, 16_384), "large": (16, 61_440)}
    examples = {
        name: empty(**dict(zip(names, size)), TotalSlotCpus=size[0], TotalSlotMemory=size[1])
        for name, size in sizes.items()
    }
    totals = {name: Amounts(*size) for name, size in sizes.items()}
    job, group = parsed(ad), IdleJobs("ce1", "bob@pool.test", 1, Amounts(2, 1024))
    (run_on,) = matched([job], examples, (), names)
    assert run_on is not None
    found = _fitting(group, run_on, totals)
    assert (found.needs.cores, found.needs.memory, found.whole) == (cores, memory, whole)
    assert found.classes is not None and set(found.classes) == {"small", "large"}


def test_jobs_with_a_concurrency_limit_are_of_another_kind() -> None:
    """A pause of those, while the limit is used up, does not hold up jobs that need nothing of it."""
    group = IdleJobs("ce1", "bob@pool.test", 1, Amounts(8))
    ads = ("[Requirements = true]", '[Requirements = true; ConcurrencyLimits = "spent"]')
    free, limited = (_described(group, parsed(text), (), ()) for text in ads)
    assert free.key != limited.key
    assert "spent" in limited.asks
