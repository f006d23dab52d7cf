"""Whole processes against the bare start of the interpreter: the hooks, and the cron with 64 slots.

Everything is run in turn inside one run, as the user who runs it on a node, so that a busy machine slows all alike.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.figures import Figure
from made_up_node import PYTHON, Job, Node, Programs, pilot_ad, write

SLOTS = 64
JOB_USER, DAEMON_USER = 54321, 54322
FLOOR = (PYTHON, "-I", "-S", "-c", "pass")


@dataclass(frozen=True)
class Command:
    """A program to be timed: `before` is called outside the measurement; `stdin` is a file."""

    what: str
    argv: tuple[str, ...]
    target: float | None = None
    environment: dict[str, str] | None = None
    stdin: str = "/dev/null"
    before: Callable[[], object] | None = None


def seconds(command: Command) -> float:
    """How long one run takes, from the spawn to its end with all its output read."""
    if command.before is not None:
        command.before()
    read_end, write_end = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, command.stdin, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, write_end, 1),
    ]
    begin = time.perf_counter()
    pid = os.posix_spawn(command.argv[0], command.argv, command.environment or {}, file_actions=actions)
    os.close(write_end)
    while os.read(read_end, 1 << 16):
        pass
    _, status = os.waitpid(pid, 0)
    spent = time.perf_counter() - begin
    os.close(read_end)
    if status != 0:
        raise RuntimeError(f"{command.what}: ended with status {status}")
    return spent


def medians(commands: Sequence[Command], runs: int) -> list[float]:
    """Median seconds of each command, all run in turn `runs` times after two rounds that do not count."""
    spent: list[list[float]] = [[] for _ in commands]
    for turn in range(runs + 2):
        for command, times in zip(commands, spent):
            once = seconds(command)
            if turn >= 2:
                times.append(once)
    return [statistics.median(times) for times in spent]


def against_floor(commands: Sequence[Command], runs: int) -> list[Figure]:
    """Each command's median and its ratio to the bare start of the interpreter."""
    floor, *others = medians([Command("floor", FLOOR), *commands], runs)
    label = " ".join(FLOOR)
    figures = [Figure(label, floor, 1.0, None)]
    return figures + [Figure(c.what, spent, spent / floor, c.target) for c, spent in zip(commands, others)]


def _set_aside(job: Job) -> None:
    """Move what the last run made out of the way. Not deleted: ext4 is slow to give out inodes that were just freed."""
    aside = f"{job.scratch}/aside{time.monotonic_ns()}"
    os.mkdir(aside)
    for name in (".machinefeatures", ".jobfeatures", ".jobstatus"):
        if os.path.isdir(f"{job.scratch}/{name}"):
            os.rename(f"{job.scratch}/{name}", f"{aside}/{name}")


def hooks(job: Job, programs: Programs, stdin: str, where: str, runs: int) -> list[Figure]:
    """Both hooks, run as the job's user (this process already is); `where` says what its directory lies on."""
    prepare = Command(
        f"prepare hook: three directories made, variables printed; sandbox {where}",
        (f"{programs.directory}/prepare-hook",),
        1.6,
        job.environment(),
        stdin,
        lambda: _set_aside(job),
    )
    update = Command(
        f"update hook: nothing new; sandbox {where}",
        (f"{programs.directory}/update-hook",),
        None,
        job.environment(),
        stdin,
    )
    return against_floor([prepare, update], runs)


def cron(node: Node, programs: Programs, layout: str, runs: int) -> list[Figure]:
    """A round of the cron with a report in each of 64 slots (this process plays the startd and is HTCondor's user)."""
    argv = (f"{programs.directory}/pilot-cron", *node.cron_arguments(programs.settings))
    command = Command(f"cron round: {SLOTS} slots that report; directories {layout}", argv, 2.0)
    return against_floor([command], runs)[1:]


def fill(node: Node, programs: Programs, now: int) -> None:
    """A job that reports in each slot, all of them children of this process."""
    for number in range(1, SLOTS + 1):
        job = node.start(f"slot1_{number}", JOB_USER, now - 6000)
        ran = programs.prepare(job)
        if ran.returncode != 0 or b"JOBFEATURES" not in ran.stdout:
            raise RuntimeError(f"the prepare hook failed: {ran.stderr!r}")
        write(f"{job.scratch}/.pilot.ad", pilot_ad(now), JOB_USER)
