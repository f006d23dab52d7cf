"""Many replications of many cases, in several processes; the same outcomes by the same seed however many there are.

A worker tells how far it is as often as the engine says so. It leaves the keyboard's interrupt to its parent, stops in
the middle of a task when the parent says so, and ends when the parent is gone.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import sharedctypes
from typing import TYPE_CHECKING

from drainwise.facts.errors import DrainwiseError
from drainwise_simulate.engine import run_all
from drainwise_simulate.outcome import Outcome
from drainwise_simulate.scenario import Scenario
from drainwise_simulate.trace import TraceJob

if TYPE_CHECKING:
    import ctypes
    from ctypes import Array

_LOOK = 0.1  # s between two looks at how far the workers are


@dataclass(frozen=True)
class Case:
    """One scenario on one of the lists of jobs, by its place among them."""

    scenario: Scenario
    jobs: int = 0


Watch = Callable[[float], None]
"""Receives how much is done, from 0 to 1."""


@dataclass(frozen=True)
class _SharedWork:
    """Data that all processes share from their start. done: how far each task is; stop: not 0 when all is to end."""

    lists: Sequence[Sequence[TraceJob]]
    cases: Sequence[Case]
    policies: Sequence[str]
    done: Array[ctypes.c_double]
    stop: ctypes.c_byte


def run_cases(
    lists: Sequence[Sequence[TraceJob]],
    cases: Sequence[Case],
    policies: Sequence[str],
    replications: int = 1,
    processes: int = 1,
    watch: Watch | None = None,
) -> tuple[tuple[Outcome, ...], ...]:
    """Return the outcomes of each case: of every replication, burst and policy, in this order.

    Raises DrainwiseError when a process dies, and what the engine raises. Whatever ends it early, no process is left.
    """
    tasks = [(case, replication) for case in range(len(cases)) for replication in range(replications)]
    done = sharedctypes.RawArray("d", len(tasks))
    work = _SharedWork(lists, cases, policies, done, sharedctypes.RawValue("b"))
    look = watch or (lambda _: None)
    if min(processes, len(tasks)) <= 1:
        found = [_run(work, task, *one, look) for task, one in enumerate(tasks)]
    else:
        found = _together(work, tasks, min(processes, len(tasks)), look)
    look(1.0)
    by_case: list[list[Outcome]] = [[] for _ in cases]
    for (case, _), outcomes in zip(tasks, found):
        by_case[case] += outcomes
    return tuple(map(tuple, by_case))


def _together(
    work: _SharedWork, tasks: Sequence[tuple[int, int]], processes: int, look: Watch
) -> list[tuple[Outcome, ...]]:
    pool = concurrent.futures.ProcessPoolExecutor(processes, initializer=_begin, initargs=(work,))
    with _interrupts_noted() as interrupts, pool as executor:
        try:
            futures = [executor.submit(_work_on, task, *one) for task, one in enumerate(tasks)]
            running: set[concurrent.futures.Future[tuple[Outcome, ...]]] = set(futures)
            while running:
                ended, running = concurrent.futures.wait(running, _LOOK, concurrent.futures.FIRST_EXCEPTION)
                for one in ended:
                    one.result()
                if interrupts:
                    raise KeyboardInterrupt
                look(_share(work))
            return [one.result() for one in futures]
        except BrokenProcessPool:
            raise DrainwiseError("a process of the simulation died; was there memory for all of them?") from None
        except BaseException:
            work.stop.value = 1
            executor.shutdown(wait=True, cancel_futures=True)
            raise


@contextlib.contextmanager
def _interrupts_noted() -> Iterator[list[int]]:
    """Collect the interrupts that come; as exceptions they would be lost where Python swallows these, as in a fork."""
    found: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    before = signal.signal(signal.SIGINT, lambda number, _: found.append(number))
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)


def _share(work: _SharedWork) -> float:
    return sum(work.done) / len(work.done)


def _run(work: _SharedWork, task: int, case: int, replication: int, look: Watch) -> tuple[Outcome, ...]:
    def tell(share: float) -> None:
        work.done[task] = share
        look(_share(work))

    one = work.cases[case]
    return run_all(work.lists[one.jobs], one.scenario, work.policies, replication, tell)


_HERE: list[_SharedWork] = []


def _begin(work: _SharedWork) -> None:
    """Start a worker."""
    _HERE.append(work)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_parent, args=(work,), daemon=True).start()


def _end_with_the_parent(work: _SharedWork) -> None:
    """End the worker when its parent is gone or says so, amid a task, too; runs in a thread of its own."""
    parent = multiprocessing.parent_process()
    while parent is not None and not work.stop.value:
        if multiprocessing.connection.wait([parent.sentinel], _LOOK):
            break
    os._exit(1)


def _work_on(task: int, case: int, replication: int) -> tuple[Outcome, ...]:
    return _run(_HERE[0], task, case, replication, lambda _: None)
