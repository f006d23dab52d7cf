"""The launcher: choosing the next job among many, the memory of a million, and what a job costs on this machine."""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator

from benchmarks.figures import Figure
from drainwise_launch.choice.engine import Engine
from drainwise_launch.choice.resources import Resources
from drainwise_launch.choice.work import LaunchJob, Work
from drainwise_launch.run.runner import LaunchRunner
from drainwise_launch.run.starts import Starts
from drainwise_launch.run.store import Store
from drainwise_launch.this_machine.backend import LocalBackend

JOBS, FEW_JOBS, BUCKETS = 1_000_000, 10_000, 50
CHOICES, SORTS, LOCAL_JOBS = 2000, 3, 200
FREE_CPUS = 16
TRUE = "/bin/true"


def works(count: int) -> Iterator[Work]:
    """Jobs of 1 to 10 CPUs and five sizes of memory, each with a time of its own, no two alike but for their bucket."""
    dice = random.Random(20261121)  # noqa: S311 - made-up jobs, the same in every run
    needs = [Resources(cpu, 1024 << mem) for cpu in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12) for mem in range(5)]
    for number in range(count):
        yield Work(
            f"simulate-{number}",
            ("/usr/bin/simulate", "--seed", str(number)),
            resources=needs[number % BUCKETS],
            rule=f"rule{number % 20}",
            cwd="/tmp",  # noqa: S108 - nothing is started
            expected=dice.lognormvariate(5, 1),
        )


def engine_of(count: int) -> Engine:
    """All of them wait."""
    engine = Engine()
    engine.add(works(count))
    engine.request()
    return engine


def seconds_to_choose(engine: Engine, choices: int = CHOICES) -> list[float]:
    """Choose and start, again and again, among jobs of which some are too large for what is free."""
    times = []
    for _ in range(choices):
        begin = time.perf_counter()
        job = engine.choose("local", _fits)
        if job is None:
            raise RuntimeError("nothing was chosen")
        engine.start(job, 0.0)
        times.append(time.perf_counter() - begin)
    return times


def _fits(_: Resources, job: LaunchJob) -> bool:
    return job.reserved.cpu <= FREE_CPUS


def seconds_to_sort(engine: Engine) -> float:
    """The same choice by a plain sort of all that wait; it must find the same job."""
    [request] = engine.requests
    times = []
    for _ in range(SORTS):
        begin = time.perf_counter()
        waiting = [job for job in engine.graph.jobs if job.state == "ready"]
        waiting.sort(key=lambda job: -(request.pressure(job) or 0.0))
        first = next(job for job in waiting if _fits(job.bucket, job))
        times.append(time.perf_counter() - begin)
        if first is not engine.choose("local", _fits):
            raise RuntimeError("the engine chose another job than a sort")
    return statistics.median(times)


def choosing() -> list[Figure]:
    """A million against ten thousand, and against sorting."""
    few, many = engine_of(FEW_JOBS), engine_of(JOBS)
    few_seconds, many_seconds = (statistics.median(seconds_to_choose(engine)) for engine in (few, many))
    sort = seconds_to_sort(many)
    return [
        Figure(f"the next of {FEW_JOBS:,} waiting jobs in {BUCKETS} buckets", few_seconds, 1.0, None),
        Figure(f"the next of {JOBS:,}", many_seconds, many_seconds / few_seconds, 3.0),
        Figure(f"by a plain sort of the {JOBS:,}", sort, sort / few_seconds, None),
        Figure(f"the next of {JOBS:,}, against that sort", many_seconds, many_seconds / sort, 0.01),
    ]


def in_child(step: Callable[[], object]) -> int:
    """Largest resident memory in bytes of a process of its own that does this."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            step()
            os.write(writer, str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader, "rb") as stream:
        answer = stream.read()
    if os.waitpid(pid, 0)[1] != 0:
        raise SystemExit("the measurement failed")
    return int(answer)


def memory(count: int = JOBS) -> int:
    """Largest memory in bytes with so many jobs, chains of ten, names, commands and the first choices made."""

    def build() -> None:
        engine = Engine()
        engine.add(
            work._replace(after=() if number % 10 == 0 else (f"simulate-{number - 1}",))
            for number, work in enumerate(works(count))
        )
        engine.request()
        seconds_to_choose(engine, min(CHOICES, count // 20))

    return in_child(build)


def bare(count: int) -> None:
    """What anybody must do."""
    for _ in range(count):
        subprocess.Popen([TRUE]).wait()


def launched(count: int) -> None:
    """The same one after the other by the launcher: choice, start, end, result kept in SQLite."""
    with tempfile.TemporaryDirectory() as base:
        state = f"bench{os.getpid()}"
        os.mkdir(f"{base}/out")
        engine = Engine()
        engine.add(Work(f"job{number}", (TRUE,), cwd=base, rule="true") for number in range(count))
        engine.request()
        backend = LocalBackend({"cpu": 1, "mem": 1000, "tmp": 1000}, f"{base}/scratch", state)
        store = Store(base)
        LaunchRunner(engine, {"local": backend}, store, Starts(os.environ, f"{base}/out"), state, print).run()
        backend.close()
        store.close()
        if any(job.state != "done" for job in engine.graph.jobs):
            raise RuntimeError("not every job was done")


def starting(runs: int, count: int = LOCAL_JOBS) -> list[Figure]:
    """Medians of `runs` in turn, of a job each."""
    rounds = [[_seconds(step, count) for step in (bare, launched)] for _ in range(runs)]
    plain, ours = (statistics.median(times) / count for times in zip(*rounds))
    return [
        Figure(f"`subprocess.Popen([{TRUE!r}]).wait()`", plain, 1.0, None),
        Figure("the same as a job of the local backend, one at a time", ours, ours / plain, 2.0),
    ]


def _seconds(step: Callable[[int], object], count: int) -> float:
    begin = time.perf_counter()
    step(count)
    return time.perf_counter() - begin
