"""Run the node's agent: a small service that publishes what this host's pilots report, and brings them site notices.

It stays: nothing has to be started for a round, no two rounds overlap, and the prolog can wake it, so that a job's
limits are complete before the job runs. Root, because only root may set an AdminComment; see `as_user`.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import stat
import time
from collections.abc import Callable

from drainwise.common.printable import write_line
from drainwise.common.process_lock import try_lock
from drainwise.common.service import Faults, Notifier, delay
from drainwise.common.wake import Wake
from drainwise.facts.errors import FeatureError, PoolUnreachable
from drainwise.node.hook import settings_or_defaults
from drainwise.node.settings import NodeSettings, SettingsFile
from drainwise.slurm import AGENT_FIFO
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.node_agent.round import NodeAgent

LONGEST_PAUSE = 300.0
"""Seconds; the longest pause while slurmctld does not answer, unless the period is longer."""

_MODE = 0o755
_LONGEST_SLEEP = 60.0
_LINES_AN_HOUR = 20  # of one place, such as a job
_CONTROLLER = "slurmctld"


class RoundSchedule:
    """The time of the agent's next round, in seconds of the monotonic clock: each period, with a back-off.

    Thousands of agents ask one slurmctld: each has its own phase (`chance`: a number in [0, 1) for each agent and
    round), so they do not ask at the same moment, and when slurmctld comes back they come back one after the other.

    due: when the next round is. greet_due: from when on a new job may be asked for out of turn: always, unless
    slurmctld has just not answered.
    """

    def __init__(self, period: float, now: float, chance: float) -> None:
        self._period, self._failures = period, 0
        self.due = now + chance * period
        self.greet_due = now

    def succeeded(self, now: float, is_round: bool = True) -> None:
        """Note that slurmctld answered, or was not needed. The next round is due a period after this one was due.

        Rounds that could not be done in time are left out. After anything else only an end of the silence counts.
        """
        if is_round:
            self.due = max(self.due, now - self._period) + self._period
        elif self._failures:
            self.due = now
        self._failures, self.greet_due = 0, now

    def failed(self, now: float, chance: float) -> None:
        """Note that slurmctld did not answer: the next try comes after a pause that is never the same."""
        self._failures += 1
        pause = delay(self._failures, self._period, LONGEST_PAUSE)
        self.due = now + pause * (0.75 + 0.5 * chance)
        self.greet_due = now + min(self._period, pause)


def main(settings_path: str) -> int:
    """Run until somebody ends it; 1 when there is another agent, or no place for the jobs' trees."""
    faults = Faults(lambda text: write_line(f"drainwise: {text}"), _LINES_AN_HOUR)
    os.umask(0o022)
    settings = settings_or_defaults(settings_path)
    try:
        wake = listen(settings.runtime_dir)
    except (FeatureError, OSError) as error:
        faults.say(f"the agent does not run: {error}")
        return 1
    notifier = Notifier(os.environ)
    commands = SlurmCommands(settings.bin_dir, settings.command_timeout)
    host = os.uname().nodename.partition(".")[0]
    agent = NodeAgent(SettingsFile(settings_path, settings), commands, faults, (wake.fileno(), notifier.fileno()), host)
    started = f"the agent looks after {settings.runtime_dir}, every {settings.agent_period} s"
    faults.say(started)
    notifier.ready(started)
    serve(agent, settings, faults, wake, notifier)
    return 0


def listen(runtime_dir: str) -> Wake:
    """Make the directory of all trees where it is missing, and be its only agent; return what prologs wake.

    Raises FeatureError when others may write to that directory or it has an agent already, OSError.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(runtime_dir, _MODE)
    status = os.stat(runtime_dir)
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise FeatureError(f"{runtime_dir}: others may write there; expected root's directory with mode 0755")
    wake = Wake(f"{runtime_dir}/{AGENT_FIFO}")
    if not try_lock(wake.fileno()):
        wake.close()
        raise FeatureError(f"{runtime_dir} has an agent already")
    return wake


def serve(
    agent: NodeAgent,
    settings: NodeSettings,
    faults: Faults,
    wake: Wake,
    notifier: Notifier,
    goes_on: Callable[[], bool] = lambda: True,
) -> None:
    """Do a round whenever one is due, and greet new jobs whenever a prolog calls, as long as it `goes_on`.

    systemd hears a sign of life before each of them and at least twice in its limit.
    """
    longest = _LONGEST_SLEEP if notifier.watchdog is None else min(_LONGEST_SLEEP, notifier.watchdog / 2)
    schedule = RoundSchedule(settings.agent_period, time.monotonic(), random.random())  # noqa: S311 - no secret
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    called = True  # jobs may have started before this agent did
    while goes_on():
        notifier.alive()
        now = time.monotonic()
        if now >= schedule.due:
            attempt(agent.round, schedule, faults, is_round=True)
            called = False
        elif called and now >= schedule.greet_due:
            attempt(agent.greet, schedule, faults, is_round=False)
            called = False
        until = min(schedule.due, schedule.greet_due) if called else schedule.due
        if poll.poll(max(0.0, min(until - time.monotonic(), longest)) * 1000):
            called = wake.clear() or called


def attempt(step: Callable[[int], bool], schedule: RoundSchedule, faults: Faults, is_round: bool) -> None:
    """Take a step and schedule the next one by how it ended. Whatever goes wrong in it, the next one is tried."""
    has_asked = False
    try:
        has_asked = step(int(time.time()))
    except PoolUnreachable as error:
        faults.set(_CONTROLLER, f"no answer: {error}; tried again later and later")
        schedule.failed(time.monotonic(), random.random())  # noqa: S311
        return
    except Exception as error:  # a service for all jobs must outlive what one of them does to it
        faults.set("agent", f"{type(error).__name__}: {error}")
    else:
        faults.set("agent", "")
    if has_asked:
        faults.set(_CONTROLLER, "", "answers again")
    if is_round or has_asked:
        schedule.succeeded(time.monotonic(), is_round)
