"""Several requests for parts of one graph that grows, fails and waits: what each needs, how urgent, what is left."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise_launch.choice.engine import Engine
from drainwise_launch.choice.resources import Resources
from drainwise_launch.choice.work import DONE, FAILED, SKIPPED, LaunchJob, Work


def needed(targets: Iterable[LaunchJob]) -> dict[int, LaunchJob]:
    """The definition: what is not done of the targets and all before them, whoever else has failed."""
    found: dict[int, LaunchJob] = {}
    left = list(targets)
    while left:
        job = left.pop()
        if job.index not in found and job.state not in {DONE, FAILED}:
            found[job.index] = job
            left += job.after
    return {index: job for index, job in found.items() if job.state != SKIPPED}


def pressures(jobs: dict[int, LaunchJob]) -> dict[int, float]:
    known: dict[int, float] = {}

    def of(job: LaunchJob) -> float:
        if job.index not in known:
            behind = [of(after) for after in job.dependants or () if after.index in jobs]
            known[job.index] = job.ete + max(behind, default=0.0)
        return known[job.index]

    return {index: of(job) for index, job in jobs.items()}


class Play:
    """An engine to which anything happens, by dice."""

    def __init__(self, dice: random.Random) -> None:
        self.dice, self.now = dice, 0.0
        self.engine = Engine()
        self.add(dice.randrange(1, 12))
        if dice.random() < 0.5:
            self.engine.request()
        else:
            for name in ("night", "lunch"):
                self.engine.request(name, [dice.choice(self.engine.graph.jobs).name])

    def add(self, count: int) -> None:
        works: list[Work] = []
        names = [job.name for job in self.engine.graph.jobs]
        for _ in range(count):
            after = tuple(self.dice.sample(names, min(len(names), self.dice.randrange(3))))
            rule, expected = self.dice.choice(["", "r", "s"]), self.dice.choice([None, 1.0, 5.0, 50.0])
            cpus = Resources(self.dice.randrange(1, 9))
            works.append(Work(f"j{len(names)}", ("true",), after, cpus, rule, expected=expected))
            names.append(works[-1].name)
        self.engine.add(works)

    def step(self) -> None:
        self.now += 1.0
        engine, dice, act = self.engine, self.dice, self.dice.random()
        if act < 0.6:
            chosen = engine.choose("local", lambda _, __: True)
            if chosen is not None:
                engine.start(chosen, dice.choice([self.now, math.inf]))
        elif act < 0.9 and engine.started:
            self.end(dice.choice(list(engine.started.values())), dice.random())
        elif engine.stale:
            engine.reckon()

    def end(self, job: LaunchJob, how: float) -> None:
        if how < 0.5:
            self.engine.succeeded(job, self.dice.choice([None, 3.0, 30.0]))
        elif how < 0.7:
            self.engine.failed(job, "ended with 1")
        elif how < 0.85:
            self.engine.again(job)
        else:
            self.engine.runs(job, self.now)


@given(st.randoms(use_true_random=False))
def test_whatever_happens_each_request_knows_what_it_needs(dice: random.Random) -> None:
    """Also after failures, and jobs that are started again; it ends when all is over."""
    play = Play(dice)
    engine = play.engine
    for _ in range(30):
        play.step()
        engine.expect(play.now)
        for request in engine.requests:
            wanted = needed(request.targets if request.targets is not None else engine.graph.jobs)
            assert set(request.needed()) == set(wanted)
            assert request._core_seconds == pytest.approx(sum(job.ete * job.reserved.cpu for job in wanted.values()))
            assert play.now <= request.eta < math.inf
            for index, pressure in pressures(wanted).items():
                known = request.pressure(wanted[index])
                assert known is not None
                # Until all is reckoned anew what came before a job that is over may seem more urgent, never less.
                assert known == pytest.approx(pressure) or (engine.stale and known > pressure)
        assert [one.eta for one in engine.requests] == sorted(one.eta for one in engine.requests)
    while engine.unfinished:
        for job in list(engine.started.values()):
            engine.succeeded(job, 1.0)
        chosen = engine.choose("local", lambda _, __: True)
        if chosen is not None:
            engine.start(chosen, play.now)
    assert all(not needed(request.targets or engine.graph.jobs) for request in engine.requests)
