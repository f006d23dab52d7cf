"""The node's agent: a small service that publishes what this host's pilots report, and tells them what the site wants.

It stays: nothing has to be started for a round, no two rounds overlap, and the prolog can wake it, so that a job's
limits are complete before the job runs. Root, because only root may set an AdminComment; see `agent_user`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import select
import stat
import time
from collections.abc import Callable

from drainwise.errors import FeatureError, PoolUnreachable
from drainwise.node.hook import settings_or_defaults
from drainwise.node.settings import NodeSettings
from drainwise.slurm.agent_log import Faults
from drainwise.slurm.agent_pace import Pace
from drainwise.slurm.agent_round import NodeAgent
from drainwise.slurm.commands import SlurmCommands
from drainwise.slurm.wake import open_wake

_MODE = 0o755
_CALLS = 4096
_LONGEST_SLEEP = 60.0
_CONTROLLER = "slurmctld"


def main(settings_path: str) -> int:
    """Run until somebody ends it; 1 when there is another agent, or no place for the jobs' trees."""
    faults = Faults()
    os.umask(0o022)
    settings = settings_or_defaults(settings_path)
    try:
        wake = listen(settings.runtime_dir)
    except (FeatureError, OSError) as error:
        faults.say(f"the agent does not run: {error}")
        return 1
    commands = SlurmCommands(settings.bin_dir, settings.command_timeout)
    agent = NodeAgent(settings, commands, faults, (wake,))
    faults.say(f"the agent looks after {settings.runtime_dir}, every {settings.agent_period} s")
    serve(agent, settings, faults, wake)
    return 0


def listen(runtime_dir: str) -> int:
    """Make the directory of all trees where it is missing, and be its only agent: a descriptor to poll for calls.

    Raises FeatureError when others may write to that directory or it has an agent already, OSError.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(runtime_dir, _MODE)
    status = os.stat(runtime_dir)
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise FeatureError(f"{runtime_dir}: others may write there; expected root's directory with mode 0755")
    wake = open_wake(runtime_dir)
    try:
        fcntl.flock(wake, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(wake)
        raise FeatureError(f"{runtime_dir} has an agent already") from None
    return wake


def serve(
    agent: NodeAgent,
    settings: NodeSettings,
    faults: Faults,
    wake: int,
    goes_on: Callable[[], bool] = lambda: True,
) -> None:
    """Do a round whenever one is due, and greet new jobs whenever a prolog calls, as long as it `goes_on`."""
    pace = Pace(settings.agent_period, time.monotonic(), random.random())  # noqa: S311 - no secret
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    called = True  # jobs may have started before this agent did
    while goes_on():
        now = time.monotonic()
        if now >= pace.due:
            attempt(agent.round, pace, faults, is_round=True)
            called = False
        elif called and now >= pace.greet_due:
            attempt(agent.greet, pace, faults, is_round=False)
            called = False
        until = min(pace.due, pace.greet_due) if called else pace.due
        if poll.poll(max(0.0, min(until - time.monotonic(), _LONGEST_SLEEP)) * 1000):
            empty(wake)
            called = True


def attempt(step: Callable[[int], bool], pace: Pace, faults: Faults, is_round: bool) -> None:
    """Take a step and set the pace by how it ended. Whatever goes wrong in it, the next one is tried."""
    has_asked = False
    try:
        has_asked = step(int(time.time()))
    except PoolUnreachable as error:
        faults.set(_CONTROLLER, f"no answer: {error}; tried again later and later")
        pace.failed(time.monotonic(), random.random())  # noqa: S311
        return
    except Exception as error:  # a service for all jobs must outlive what one of them does to it
        faults.set("agent", f"{type(error).__name__}: {error}")
    else:
        faults.set("agent", "")
    if has_asked:
        faults.set(_CONTROLLER, "", "answers again")
    if is_round or has_asked:
        pace.succeeded(time.monotonic(), is_round)


def empty(wake: int) -> None:
    """Take all calls out of the FIFO."""
    try:
        while len(os.read(wake, _CALLS)) == _CALLS:
            pass
    except BlockingIOError:
        return
