"""Graph, pressure and choice: worked examples, and properties against plain definitions."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import UsageError
from drainwise_launch.choice.engine import Engine
from drainwise_launch.choice.resources import Resources, bucket_of
from drainwise_launch.choice.work import (
    DONE,
    FAILED,
    OVER,
    READY,
    SKIPPED,
    STARTED,
    LaunchJob,
    MovingAverage,
    Work,
)


def work(name: str, *after: str, expected: float = 1.0, cpu: int = 1, **more: object) -> Work:
    return Work(name, ("true",), after, Resources(cpu), expected=expected, **more)  # type: ignore[arg-type]


def engine_of(*works: Work) -> Engine:
    engine = Engine()
    engine.add(works)
    engine.request()
    return engine


def anything(_: Resources, __: LaunchJob) -> bool:
    return True


def next_name(engine: Engine, free: int = 1 << 30) -> str | None:
    job = engine.choose("local", lambda _, job: job.reserved.cpu <= free)
    return None if job is None else job.name


def played(engine: Engine) -> list[str]:
    """All jobs in the order in which they start, one after the other."""
    names = []
    while (job := engine.choose("local", anything)) is not None:
        names.append(job.name)
        engine.start(job, 0.0)
        engine.was_done(job)
    return names


def test_pressure_is_the_longest_chain_of_expected_times() -> None:
    engine = engine_of(
        work("a", expected=1), work("b", "a", expected=10), work("c", "a", expected=2), work("d", "c", expected=20)
    )
    [request] = engine.requests
    found = {job.name: request.pressure(job) for job in engine.graph.jobs}
    assert found == {"a": 23.0, "b": 10.0, "c": 22.0, "d": 20.0}
    assert played(engine) == ["a", "c", "d", "b"]


def test_of_those_that_fit_the_highest_pressure_starts_first() -> None:
    engine = engine_of(work("large", cpu=8, expected=100), work("small", cpu=1, expected=5), work("less", expected=4))
    assert next_name(engine, free=8) == "large"
    assert next_name(engine, free=7) == "small"


def test_the_exact_amounts_count_and_not_the_rounded_ones() -> None:
    """9 CPUs wait in the bucket of 10, and start where 9 are free."""
    engine = engine_of(work("nine", cpu=9))
    assert engine.graph.jobs[0].bucket.cpu == 10
    assert next_name(engine, free=9) == "nine" and next_name(engine, free=8) is None


def test_requests_are_served_in_the_order_of_their_eta() -> None:
    """The one that is done sooner goes first, though a job of the other has the higher pressure."""
    engine = Engine()
    engine.add([work("long", expected=1000), work("short", expected=10), work("both", expected=5)])
    engine.request("night", ["long", "both"])
    engine.request("lunch", ["short", "both"])
    engine.parallel = 4
    engine.expect(5000.0)
    assert [(request.name, request.eta) for request in engine.requests] == [("lunch", 5010.0), ("night", 6000.0)]
    assert played(engine) == ["short", "both", "long"]


def test_a_priority_is_the_date_at_which_a_job_should_start() -> None:
    """ETA − pressure, of the request that wants it soonest."""
    engine = engine_of(work("a", expected=10), work("b", "a", expected=20), work("c", expected=5))
    engine.parallel = 2
    assert engine.expect(1000.0) == 1030.0
    found = {job.name: engine.priority(job) for job in engine.graph.jobs}
    assert found == {"a": 1000.0, "b": 1010.0, "c": 1025.0}


@pytest.mark.parametrize(
    ("lunch", "night", "soonest"),
    [
        pytest.param(["l"], ["n", "later"], 5000.0, id="lunch, by the lower pressure"),
        pytest.param(["l", "later"], ["n", "latest"], 5996.0, id="night, though it is done later"),
    ],
)
def test_a_job_that_several_requests_want_has_the_date_of_the_one_that_wants_it_soonest(
    lunch: list[str], night: list[str], soonest: float
) -> None:
    """Whichever was made first."""
    for names in (("lunch", "night"), ("night", "lunch")):
        engine = Engine()
        first = [work("both", expected=5), work("l", "both", expected=10), work("n", "both", expected=1000)]
        engine.add([*first, work("later", expected=2000), work("latest", expected=2001)])
        for name in names:
            engine.request(name, lunch if name == "lunch" else night)
        engine.parallel = 4
        engine.expect(5000.0)
        assert engine.priority(engine.graph.find("both")) == soonest


def test_an_eta_knows_how_many_cores_there_are_and_what_has_run() -> None:
    engine = engine_of(*(work(f"j{n}", expected=10) for n in range(10)))
    engine.parallel = 2
    assert engine.expect(0.0) == 50.0
    first = engine.graph.jobs[0]
    engine.start(first, 0.0)
    assert engine.expect(4.0) == 4.0 + (100 - 4) / 2
    engine.succeeded(first, 10.0)
    assert engine.expect(10.0) == 10.0 + 90 / 2


def test_what_is_not_needed_for_the_targets_is_not_run() -> None:
    engine = Engine()
    engine.add([work("a"), work("b", "a"), work("c", "a"), work("d")])
    engine.request(targets=["c"])
    assert played(engine) == ["a", "c"] and not engine.unfinished


def test_a_failure_skips_what_comes_after_it_and_nothing_else() -> None:
    engine = engine_of(work("a"), work("b", "a"), work("c", "b"), work("d", "a"), work("e"))
    a = engine.graph.find("a")
    engine.start(a, 0.0)
    engine.succeeded(a, 1.0)
    b = engine.graph.find("b")
    engine.start(b, 1.0)
    assert [job.name for job in engine.failed(b, "ended with 1")] == ["c"]
    assert (b.state, engine.graph.find("c").state) == (FAILED, SKIPPED)
    assert sorted(played(engine)) == ["d", "e"] and not engine.unfinished


@pytest.mark.parametrize(
    ("works", "said"),
    [
        (
            [work("a", "b"), work("b", "c"), work("c", "a")],
            "circle.*'a' comes after 'b' comes after 'c' comes after 'a'",
        ),
        ([work("a", "a")], "circle.*'a' comes after 'a'"),
        ([work("a"), work("b", "x")], "job 'b': after = 'x': there is no such job"),
        ([work("a"), work("a")], "job 'a': stands twice"),
    ],
)
def test_what_is_no_graph_is_refused(works: Sequence[Work], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Engine().add([work("first"), *works])


def test_a_long_cycle_is_found_and_told_in_a_line() -> None:
    count = 20_000
    works = [work(f"j{n}", f"j{(n + 1) % count}") for n in range(count)]
    with pytest.raises(UsageError, match="circle") as caught:
        Engine().add(works)
    assert len(str(caught.value)) < 300


def test_a_rule_that_is_learned_makes_pressures_old() -> None:
    """Times of a rule that differ by more than a tenth from those that pressures were reckoned with."""
    engine = engine_of(work("a1", rule="a", expected=1), work("a2", rule="a", expected=1), work("b", expected=5))
    assert next_name(engine) == "b"
    first = engine.graph.find("a1")
    engine.start(first, 0.0)
    engine.succeeded(first, 50.0)
    assert engine.stale
    engine.reckon()
    assert next_name(engine) == "a2" and engine.graph.find("a2").ete == 50.0


def test_a_job_that_vanished_waits_again() -> None:
    engine = engine_of(work("a", expected=2), work("b"))
    a = engine.graph.find("a")
    engine.start(a, 0.0)
    assert next_name(engine) == "b"
    engine.again(a)
    assert next_name(engine) == "a" and not engine.started
    assert played(engine) == ["a", "b"]


def test_what_is_before_a_skipped_target_is_run_all_the_same() -> None:
    """Whether pressures are reckoned anew in between or not."""
    for reckons in (False, True):
        engine = Engine()
        engine.add([work("a"), work("b"), work("target", "a", "b"), work("other")])
        engine.request(targets=["target"])
        a = engine.graph.find("a")
        engine.start(a, 0.0)
        engine.failed(a, "ended with 1")
        if reckons:
            engine.reckon()
        assert played(engine) == ["b"] and not engine.unfinished
        assert engine.over == 3


def graphs(largest: int = 25) -> st.SearchStrategy[list[Work]]:
    """Acyclic graphs; a job comes after earlier ones."""

    def of(count: int) -> st.SearchStrategy[list[Work]]:
        rows = [
            st.tuples(
                st.lists(st.integers(0, max(0, place - 1)), max_size=3 if place else 0),
                st.integers(1, 20),
                st.floats(0.5, 100),
            )
            for place in range(count)
        ]
        return st.tuples(*rows).map(
            lambda found: [
                work(f"j{place}", *(f"j{before}" for before in after), cpu=cpu, expected=expected)
                for place, (after, cpu, expected) in enumerate(found)
            ]
        )

    return st.integers(1, largest).flatmap(of)


def plain_pressures(engine: Engine) -> dict[str, float]:
    """The definition, without memory."""

    def of(job: LaunchJob) -> float:
        later = [of(after) for after in job.dependants or () if after.state not in OVER]
        return job.ete + max(later, default=0.0)

    return {job.name: of(job) for job in engine.graph.jobs if job.state not in OVER}


@given(graphs(14), st.randoms(use_true_random=False), st.integers(1, 32))
def test_any_graph_runs_in_order_and_never_beyond_what_there_is(
    works: list[Work], dice: random.Random, cores: int
) -> None:
    """Jobs that fail, vanish and end at will: each starts after those before it, sums never overshoot,
    and each choice is the highest pressure among those that lead their buckets and fit."""
    engine = engine_of(*works)
    running: list[LaunchJob] = []
    for _ in range(20 * len(works)):
        free = cores - sum(job.reserved.cpu for job in running)
        if engine.stale:
            engine.reckon()
        known = plain_pressures(engine)
        [request] = engine.requests
        for job in engine.graph.jobs:
            if job.state not in OVER:
                assert request.pressure(job) == pytest.approx(known[job.name])
        chosen = engine.choose("local", lambda _, job, free=free: job.reserved.cpu <= free)  # type: ignore[misc]
        ready = [job for job in engine.graph.jobs if job.state == READY]
        heads: dict[Resources, LaunchJob] = {}
        for job in sorted(ready, key=lambda job: (-(request.pressure(job) or 0), job.index)):
            heads.setdefault(bucket_of(job.reserved), job)
        fitting = [job for job in heads.values() if job.reserved.cpu <= free]
        best = min(fitting, key=lambda job: (-(request.pressure(job) or 0), job.index), default=None)
        assert chosen is best
        act = dice.random()
        if chosen is not None and act < 0.6:
            assert all(before.state == DONE for before in chosen.after)
            engine.start(chosen, 0.0)
            running.append(chosen)
        elif running and act < 0.9:
            job = running.pop(dice.randrange(len(running)))
            if act < 0.8:
                engine.was_done(job)
            elif act < 0.85:
                engine.again(job)
            else:
                engine.failed(job, "ended with 1")
        assert {job.index for job in engine.graph.jobs if job.state == STARTED} == set(engine.started)
    if not running:
        assert engine.unfinished == any(job.state not in OVER for job in engine.graph.jobs)


@given(graphs(10))
def test_pressures_are_right_and_nothing_starts_before_what_it_comes_after(works: list[Work]) -> None:
    engine = engine_of(*works)
    known = plain_pressures(engine)
    [request] = engine.requests
    assert {job.name: request.pressure(job) for job in engine.graph.jobs} == pytest.approx(known)
    order = played(engine)
    assert len(order) == len(works)
    for job in engine.graph.jobs:
        assert all(order.index(before.name) < order.index(job.name) for before in job.after)


def test_rules_of_earlier_runs_are_believed() -> None:
    engine = Engine({"slow": MovingAverage(100.0, 5)})
    engine.add([work("a", rule="slow", expected=1), work("b", expected=50)])
    engine.request()
    assert next_name(engine) == "a"
