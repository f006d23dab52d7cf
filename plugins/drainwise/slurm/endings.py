"""How runs have ended, by Slurm's accounting: state, end and CPU time of each run of a job, requeued ones too."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from drainwise.errors import ActionRefused, PoolUnreachable
from drainwise.pool import Ending
from drainwise.slurm.commands import SlurmCommands
from drainwise.slurm.run import label_and_start, run_name, running

BY_ITSELF = frozenset({"COMPLETED", "FAILED"})
"""States of a run that nobody ended: its script did, well or badly."""

_NODE_FAILED = frozenset({"NODE_FAIL", "BOOT_FAIL"})

_TOGETHER = 500  # jobs in one question
_FIELDS = ("JobID", "Start", "End", "State", "TotalCPU", "UID", "User")
_NOT_ENDED = frozenset({"RUNNING", "PENDING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STAGE_OUT", "SIGNALING"})
_ROOT = "0"
_CPU = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+(?:\.\d+)?)")


def endings_in(answer: str) -> dict[str, Ending]:
    """The runs that have ended in sacct's lines, by run; their steps are passed over.

    Raises PoolUnreachable when a line is none of a job.
    """
    endings = {}
    for line in answer.splitlines():
        words = line.split("|")
        if len(words) != len(_FIELDS):
            raise PoolUnreachable("half an answer: sacct printed a line that is no job")
        label, start, end, said, used, uid, user = words
        state, *by = said.split(" ")  # `CANCELLED by 0`
        if "." in label or not start.isdigit() or not end.isdigit() or state in _NOT_ENDED:
            continue
        run = run_name(label, int(start))
        cancelled_by = by[-1] if by[:1] == ["by"] else ""
        by_others = state in _NODE_FAILED or _is_other(cancelled_by, uid, user)
        endings[run] = Ending(run, int(end), state not in BY_ITSELF, cpu_seconds(used), by_others)
    return endings


def _is_other(number: str, uid: str, user: str) -> bool:
    """Whether the user of that number is surely not the job's own; sacct of 22.05 prints UID 0 for an unknown name."""
    if number == _ROOT:
        return user != "root"
    return number.isdigit() and uid.isdigit() and uid not in {_ROOT, number}


def cpu_seconds(text: str) -> float | None:
    """`[days-[hours:]]minutes:seconds` in s; None for another text, and for 0: then nobody measured it."""
    match = _CPU.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = match.groups()
    return int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds) or None


class Records:
    """Asks for how runs have ended."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands

    def endings(self, runs: Collection[str]) -> dict[str, Ending]:
        """Those of `runs` that are known to have ended. Raises PoolUnreachable when no records can be had."""
        labels = sorted({label for label in map(_label, runs) if label})
        found: dict[str, Ending] = {}
        try:
            for first in range(0, len(labels), _TOGETHER):
                found.update(self._accounted(labels[first : first + _TOGETHER]))
        except PoolUnreachable:
            found = self._remembered()
        wanted = set(runs)
        return {run: ending for run, ending in found.items() if run in wanted}

    def _accounted(self, labels: Iterable[str]) -> dict[str, Ending]:
        answer = self._commands.ask(
            *("sacct", "--duplicates", "--noheader", "--parsable2"),
            *(f"--jobs={','.join(labels)}", f"--format={','.join(_FIELDS)}"),
        )
        return endings_in(answer)

    def _remembered(self) -> dict[str, Ending]:
        """By slurmctld's own memory, where there is no accounting or it does not answer: no CPU time."""
        endings = {}
        for state in running(self._commands, "all"):
            if state.state in _NOT_ENDED or state.start is None or state.end is None:
                continue
            run = run_name(state.label, state.start)
            failed = state.state in _NODE_FAILED
            endings[run] = Ending(run, state.end, state.state not in BY_ITSELF, by_others=failed)
        return endings


def _label(run: str) -> str:
    """What names its job; "" for what is no run."""
    try:
        return label_and_start(run)[0]
    except ActionRefused:
        return ""
