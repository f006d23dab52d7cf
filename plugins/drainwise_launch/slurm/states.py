"""Read how jobs fare out of squeue and sacct. Pure.

slurmctld's answer goes before the accounting's: that is late. A job is its number and the tag in its name: numbers are
given anew when slurmctld is restored from an older state or has come to its largest one. Names come last and end with
a bar, so that those of this user's other jobs may hold anything, and incomplete answer is seen to be one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.values import ENDED, LOST, WAITS, cpu_seconds
from drainwise_launch.backend import DONE, RUNNING, SIGNALLED, VANISHED, WAITING, JobState, tag_of

QUEUE = (
    *("squeue", "--noheader", "--all", "--me", "--states=all"),
    "--Format=JobID:|,State:|,exit_code:|,TimeUsed:|,Reason:|,Name:|",
)
ACCOUNTING = (
    *("sacct", "--noheader", "--parsable", "--allocations", "--duplicates"),
    "--format=JobIDRaw,State,ExitCode,ElapsedRaw,TotalCPU,JobName%250",
)

_BEGINNING = r"([0-9]{1,10})\|([A-Z_?]{1,40})(?: by [0-9]+)?\|([^|]*)\|([^|]*)\|"  # `CANCELLED by 0`
_JOB = re.compile(_BEGINNING + r"(.*)\|(.*)\|")
_BROKEN = re.compile(_BEGINNING + ".*")
_PAIR = re.compile(r"([0-9]{1,10}):([0-9]{1,5})")
_ORDINARY = frozenset({"None", "Priority", "Resources", "(null)", ""})
_BY_ITSELF = ("NonZeroExitCode", "RaisedSignal", "None")
_BAD_CONSTRAINTS = "BadConstraints"


def _state(state: str, ending: str, reason: str = "", wall: float | None = None, cpu: float | None = None) -> JobState:
    """Return the launcher's state of a job; one in a state that nobody knows has not ended. wall, cpu: seconds."""
    if state in WAITS:
        return JobState(WAITING, why="" if reason in _ORDINARY else reason)
    if state not in ENDED:
        return JobState(RUNNING, wall=wall)
    if state in LOST:
        return JobState(VANISHED, wall=wall, why=state)
    code, signal = _ending(ending)
    code = SIGNALLED + signal if signal else code
    if state == "COMPLETED":
        return JobState(DONE, code, wall, cpu)
    why = state
    if state == "FAILED" and reason == _BAD_CONSTRAINTS:
        why = f"no nodes as it asks for ({_BAD_CONSTRAINTS})"
    elif state == "FAILED":
        why = "" if reason.startswith(_BY_ITSELF) else reason
    return JobState(DONE, code or 1, wall, cpu, why)


def native_of(number: str, tag: str) -> str:
    """Return the id of a job for the launcher, of its number and tag."""
    return f"{number}.{tag}"


def number_of(native: str) -> str:
    """Return the number in an id."""
    return native.partition(".")[0]


def queued_in(answer: str) -> dict[str, JobState]:
    """Return the jobs in squeue's answer to QUEUE, by id. Raises PoolUnreachable for an incomplete answer."""
    return {
        native: _state(state, ending, reason, _seconds(used))
        for native, state, ending, used, reason in _jobs_in(answer, "squeue")
    }


def accounted_in(answer: str) -> dict[str, JobState]:
    """Return the jobs in sacct's answer to ACCOUNTING, by id.

    Raises PoolUnreachable for another or an incomplete answer.
    """
    return {
        native: _state(state, ending, "", float(elapsed) if elapsed.isdigit() else None, cpu_seconds(used))
        for native, state, ending, elapsed, used in _jobs_in(answer, "sacct")
    }


def by_tag(jobs: Iterable[str], tags: Collection[str]) -> dict[str, str]:
    """Return the ids that have one of these tags, by tag; of a heterogeneous job's components the first is the job."""
    found: dict[str, str] = {}
    for native in jobs:
        number, _dot, tag = native.partition(".")
        if tag in tags and (tag not in found or int(number) < int(number_of(found[tag]))):
            found[tag] = native
    return found


def merged(known: JobState | None, accounted: JobState) -> JobState:
    """Join how a job ended by slurmctld with its CPU time by the accounting, or take the accounting's alone."""
    if known is None:
        return accounted
    return replace(known, wall=known.wall if accounted.wall is None else accounted.wall, cpu=accounted.cpu)


def _jobs_in(answer: str, whose: str) -> Iterable[tuple[str, str, str, str, str]]:
    """Yield the id of each job and the four fields after it."""
    if answer and not answer.endswith("|\n"):
        raise PoolUnreachable(f"incomplete answer: {whose} ended amid a job")
    broken = False  # amid a name that is none of ours: it may have line ends
    for line in answer.splitlines():
        match = _JOB.fullmatch(line)
        if match is not None:
            number, state, code, third, fourth, name = match.groups()
            tag = tag_of(name)
            broken = not tag
            yield native_of(number, tag), state, code, third, fourth
        elif broken or _BROKEN.fullmatch(line):
            broken = True
        else:
            raise PoolUnreachable(f"incomplete answer: {whose} printed a line that is no job")


def _ending(text: str) -> tuple[int, int]:
    """Read `3:0` as code 3, `0:9` as signal 9; squeue of 22.05 has both in one number, as wait() has."""
    if match := _PAIR.fullmatch(text):
        return int(match[1]), int(match[2])
    if text.isdecimal() and len(text) <= 10:
        return int(text) >> 8, int(text) & 127
    return 0, 0


def _seconds(text: str) -> float | None:
    return 0.0 if text == "0:00" else cpu_seconds(text)
