"""One run of a job: its name, and Slurm's newest word on it, read right before and right after an order.

Only fields that no user chooses are asked for, each with a sign behind it: a job's name could look like any of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from drainwise.errors import ActionRefused, PoolUnreachable
from drainwise.slurm.commands import SlurmCommands

_RUN = re.compile(r"([0-9]{1,10}(?:_[0-9]{1,10})?)@([0-9]{9,10})")
_FIELDS = (
    *("JobID", "ArrayJobID", "ArrayTaskID", "HetJobID", "State", "StartTime", "EndTime", "NumNodes", "Requeue"),
    *("BatchFlag", "RestartCnt", "PriorityLong"),
)
_GONE = "invalid job id"
RUNNING = "RUNNING"


@dataclass(frozen=True)
class RunState:
    """A job as it is now. `array`: the number of the array it belongs to, 0 for none.

    `het`: part of a heterogeneous job. `can_requeue`: a batch job that its owner lets requeue. Times are UNIX s, None
    when Slurm has none; of a job that does not run they are what the scheduler expects.
    """

    number: int
    label: str
    array: int
    het: bool
    state: str
    start: int | None
    end: int | None
    nodes: int
    can_requeue: bool
    restarts: int
    priority: int | None


def run_name(label: str, start: int) -> str:
    """The name of one run of a job, or of a task of an array (`12_3`): no other run begins at this time (UNIX s)."""
    return f"{label}@{start}"


def label_and_start(run: str) -> tuple[str, int]:
    """What names the job to Slurm's commands, and when this run of it began. Raises ActionRefused for another text."""
    match = _RUN.fullmatch(run)
    if match is None:
        raise ActionRefused(f"{run[:80]!r} is not a run of a Slurm job: expected <job>@<start>")
    return match[1], int(match[2])


def current_run(commands: SlurmCommands, label: str) -> RunState | None:
    """The job as slurmctld has it now; None when it has none. Raises PoolUnreachable when it does not answer."""
    answer = commands.start("squeue", *_options(), f"--jobs={label}").answer()
    if answer.code != 0:
        if _GONE in answer.said.lower():
            return None
        raise PoolUnreachable(f"squeue failed: {answer.said or f'code {answer.code}'}")
    states = states_in(answer.out.decode("ascii", "replace"))
    return next((state for state in states if state.label == label), None)


def running(commands: SlurmCommands, *states: str) -> list[RunState]:
    """All jobs in these states (RUNNING when none is named). Raises PoolUnreachable."""
    wanted = ",".join(states) if states else RUNNING
    return states_in(commands.ask("squeue", *_options(wanted)))


def _options(states: str = "all") -> tuple[str, ...]:
    fields = ",".join(f"{field}:|" for field in _FIELDS)
    return ("--noheader", "--all", "--array", f"--states={states}", f"--Format={fields}")


def states_in(answer: str) -> list[RunState]:
    """The jobs in squeue's lines. Raises PoolUnreachable when a line is none of them."""
    states = []
    for line in answer.splitlines():
        words = [word.strip() for word in line.split("|")]
        if len(words) != len(_FIELDS) + 1 or not words[0].isdigit():
            raise PoolUnreachable("half an answer: squeue printed a line that is no job")
        number, array, task, het, state, start, end, nodes, requeue, batch, restarts, priority = words[:-1]
        states.append(
            RunState(
                number=int(number),
                label=f"{array}_{task}" if task.isdigit() else number,
                array=int(array) if array.isdigit() and task.isdigit() else 0,
                het=het.isdigit() and het != "0",
                state=state,
                start=_moment(start),
                end=_moment(end),
                nodes=_moment(nodes) or 0,
                can_requeue=requeue == "1" and batch == "1",
                restarts=_moment(restarts) or 0,
                priority=_moment(priority),
            )
        )
    return states


def _moment(word: str) -> int | None:
    return int(word) if word.isdigit() else None
