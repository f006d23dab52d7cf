"""Find the runs on this host that have no tree: they started before the installation, or their prolog failed.

They receive no order, so their node publishes that in place of a report. slurmd itself says which runs are here
(`scontrol listpids`, which asks slurmctld nothing).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from drainwise.facts.errors import PoolError
from drainwise.slurm.jobs.admin_comment import without_directories_text
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.publish import is_foreign, is_publishable, publish
from drainwise.slurm.jobs.scontrol_jobs import ask

FIRST_LOOKS = 3
LOOK_ROUNDS = 20
"""Rounds from one look to the next, after the first few: a prolog seldom fails."""
MOST = 64
"""Runs that are asked for and published in one round."""

_LINE = re.compile(r"^ *-?\d+ +(\d{1,10}) ", re.MULTILINE)


def listed_jobs(answer: str) -> set[str]:
    """Return the jobs in the output of `scontrol listpids`."""
    return set(_LINE.findall(answer))


class RunsWithoutTree:
    """The runs without a tree on this host. fault: called with a job's name and what is wrong, "" for nothing."""

    def __init__(self, commands: SlurmCommands, fault: Callable[[str, str], None]) -> None:
        self._commands, self._fault = commands, fault
        self._round = 0
        self._suspects: set[str] = set()
        self._done: set[str] = set()

    def round(self, has_tree: Callable[[], Collection[str]]) -> None:
        """Publish what runs here and has no tree, in two looks: its prolog may just be making one.

        has_tree: the jobs that have one, as they are when it is called. Raises PoolUnreachable, ActionRefused.
        """
        self._round += 1
        if self._round > FIRST_LOOKS and self._round % LOOK_ROUNDS > 1:
            return
        try:
            listed = listed_jobs(self._commands.ask("scontrol", "listpids"))
        except PoolError:
            return  # no slurmd, so nothing is known
        without = listed - set(has_tree())
        self._done &= without
        sure, self._suspects = without & self._suspects, without
        new = sorted(sure - self._done, key=int)[:MOST]
        if not new:
            return
        answer = ask(self._commands, {job: job for job in new})
        comments = {}
        for job, facts in answer.jobs.items():
            if not is_publishable(facts):
                continue
            if is_foreign(facts):
                why = "it has no directories of ours, and its AdminComment is somebody else's: it gets orders in vain"
                self._fault(f"job {job}", why)
                continue
            comment = without_directories_text(facts.number, facts.start or 0, facts.node)
            if comment not in facts.comments:
                comments[facts.label] = comment
        if comments:
            publish(self._commands, comments)
        self._done.update(new)
