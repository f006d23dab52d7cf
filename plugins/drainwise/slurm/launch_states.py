"""How jobs fare, out of squeue and sacct. Pure.

Only what no user chooses is asked for, but for `names_in`. slurmctld's word goes before the accounting's: that is late.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from drainwise.errors import PoolUnreachable
from drainwise.launch.backend import DONE, RUNNING, SIGNALLED, WAITING, State
from drainwise.slurm.endings import cpu_seconds

QUEUE = ("squeue", "--noheader", "--all", "--states=all")
QUEUE_FORMAT = "JobID:|,State:|,exit_code:|,Reason:|,StartTime:|,EndTime:|"
QUEUE_NAMES = "--format=%A|%j"
ACCOUNTING = ("sacct", "--noheader", "--parsable2", "--allocations")
ACCOUNTING_FORMAT = "JobIDRaw,State,ExitCode,ElapsedRaw,TotalCPU"
ACCOUNTING_NAMES = "JobIDRaw,JobName%250"

_NUMBER = re.compile(r"[0-9]{1,10}")
_STATE = re.compile(r"[A-Z_]{3,40}")
_PAIR = re.compile(r"([0-9]{1,10}):([0-9]{1,5})")
_WAITS = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
_RUNS = frozenset(
    {"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "STAGE_OUT", "SIGNALING", "RESIZING"}
)
_BY_ITSELF = frozenset({"COMPLETED", "FAILED"})
_ORDINARY = frozenset({"None", "Priority", "Resources", "(null)", ""})


@dataclass(frozen=True)
class Sighting:
    """One job in an answer. code, signal: how it ended."""

    number: str
    state: str
    code: int = 0
    signal: int = 0
    reason: str = ""
    wall: float | None = None
    cpu: float | None = None

    @property
    def ended(self) -> bool:
        """Whether it has ended, for good."""
        return self.state not in _WAITS and self.state not in _RUNS

    def as_state(self) -> State:
        """In the launcher's words."""
        if self.state in _WAITS:
            return State(WAITING, why="" if self.reason in _ORDINARY else self.reason)
        if self.state in _RUNS:
            return State(RUNNING)
        code = SIGNALLED + self.signal if self.signal else self.code
        if self.state == "COMPLETED":
            return State(DONE, code, self.wall, self.cpu)
        why = "" if self.state in _BY_ITSELF else self.state
        if self.state == "FAILED" and self.reason == "BadConstraints":
            why = "no nodes as it asks for (BadConstraints)"
        return State(DONE, code or 1, self.wall, self.cpu, why)


def queued_in(answer: str) -> dict[str, Sighting]:
    """The jobs in squeue's answer with QUEUE_FORMAT, by number. Raises PoolUnreachable when a line is none."""
    jobs = {}
    for line in answer.splitlines():
        words = [word.strip() for word in line.split("|")]
        if len(words) != 7 or not _NUMBER.fullmatch(words[0]) or not _STATE.fullmatch(words[1]):
            raise PoolUnreachable("half an answer: squeue printed a line that is no job")
        number, state, code, reason, start, end = words[:6]
        wall = float(max(0, int(end) - int(start))) if start.isdigit() and end.isdigit() else None
        jobs[number] = Sighting(number, state, *_ending(code), reason, wall)
    return jobs


def accounted_in(answer: str) -> dict[str, Sighting]:
    """The jobs in sacct's answer with ACCOUNTING_FORMAT, by number. Raises PoolUnreachable when a line is none."""
    jobs = {}
    for line in answer.splitlines():
        words = line.split("|")
        if len(words) != 5:
            raise PoolUnreachable("half an answer: sacct printed a line that is no job")
        number, state, code, elapsed, used = words
        state = state.partition(" ")[0]  # `CANCELLED by 0`
        if not _NUMBER.fullmatch(number) or not _STATE.fullmatch(state):
            raise PoolUnreachable("half an answer: sacct printed a line that is no job")
        wall = float(elapsed) if elapsed.isdigit() else None
        jobs[number] = Sighting(number, state, *_ending(code), "", wall, cpu_seconds(used))
    return jobs


def names_in(answer: str) -> list[tuple[str, str]]:
    """Number and name of each job in lines `number|name`; lines of others' making are passed over."""
    pairs = (line.partition("|")[::2] for line in answer.splitlines())
    return [(number, name) for number, name in pairs if _NUMBER.fullmatch(number)]


def joined(numbers: Sequence[str]) -> str:
    """Numbers for --jobs."""
    return ",".join(numbers)


def _ending(text: str) -> tuple[int, int]:
    """`3:0` is code 3, `0:9` signal 9; squeue of 22.05 has both in one number, as wait() has."""
    if match := _PAIR.fullmatch(text):
        return int(match[1]), int(match[2])
    if _NUMBER.fullmatch(text):
        return int(text) >> 8, int(text) & 127
    return 0, 0
