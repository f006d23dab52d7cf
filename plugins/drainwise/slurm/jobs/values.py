"""The states, numbers, times, memory and lists of tasks of Slurm's jobs, as its commands write them."""

from __future__ import annotations

import functools
import re

from drainwise.facts.units import parse_amount, parse_clock

ENDLESS_MINUTES = 1 << 31
"""The least of the time limits that Slurm makes of none when a lease without end gets one: thousands of years."""

_TRES_MEMORY = re.compile(r"(?:^|,)mem=([^,]*)")
CORES, NODES, BILLING = (re.compile(rf"(?:^|,){name}=([0-9]{{1,9}})(?:,|$)") for name in ("cpu", "node", "billing"))
"""What can be counted in a list of trackable resources: cores, nodes (the fewest that will do for a job that waits),
and what Slurm bills by the weights of the partition.
"""
_TASKS = re.compile(r"(\d{1,12})(?:-(\d{1,12})(?::(\d{1,12}))?)?")
_DIGITS = 18


def whole(word: str | None, digits: int = _DIGITS) -> int | None:
    """Return the whole number that `word` is, None for anything else and for more digits."""
    return int(word) if word and word.isascii() and word.isdigit() and len(word) <= digits else None


@functools.lru_cache  # jobs have the same few limits and resources
def minutes_in(limit: str) -> int | None:
    """Return the minutes in a time limit such as `1-02:03:00` or `10:00`; None for UNLIMITED.

    squeue prints INVALID for a limit of thousands of years: that is ENDLESS_MINUTES here.
    """
    if limit == "INVALID":
        return ENDLESS_MINUTES
    found = parse_clock(limit) if ":" in limit else None
    return None if found is None else int(found // 60)


def cpu_seconds(text: str) -> float | None:
    """Return `[days-[hours:]]minutes:seconds` in s; None for another text, and for 0: then nobody measured it."""
    return (parse_clock(text) if ":" in text else None) or None


def bytes_of(text: str) -> int | None:
    """Return `500M` or `1.50G` in bytes; None for 0, which is no limit."""
    return int(parse_amount(text, 1 << 20) or 0) or None


def mebibytes_in(text: str) -> int:
    """Return `1G` in MiB, rounded up; 0 for anything else."""
    return -(-(bytes_of(text) or 0) >> 20)


@functools.lru_cache
def memory_in(resources: str) -> int | None:
    """Return the memory in a list of trackable resources (`cpu=3,mem=6G`), bytes; None without any."""
    match = _TRES_MEMORY.search(resources)
    return bytes_of(match[1]) if match else None


@functools.lru_cache(maxsize=512)
def count_in(resources: str, what: re.Pattern[str]) -> int | None:
    """Return how many of CORES, NODES or BILLING are in a list of trackable resources, None without any."""
    match = what.search(resources)
    return int(match[1]) if match else None


def waiting_tasks(text: str) -> tuple[int, int | None]:
    """Return how many tasks `1-9:2,12%4` names, and how many of the array may run at a time (None: all)."""
    tasks, _, most = text.partition("%")
    count = 0
    for first, last, step in _TASKS.findall(tasks):
        count += (int(last) - int(first)) // max(1, int(step or 1)) + 1 if last else 1
    return max(1, count), whole(most, 12) or None


RUNNING, PENDING, COMPLETING, CONFIGURING, SUSPENDED = "RUNNING", "PENDING", "COMPLETING", "CONFIGURING", "SUSPENDED"

_RUNS = frozenset({CONFIGURING, "RESIZING", "SIGNALING", "STOPPED"})
WAITS = frozenset({PENDING, "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
"""States of a job that waits, for the first time or again."""
ALIVE = frozenset({RUNNING, SUSPENDED, *_RUNS})
"""States of a run that is on its node and is not being ended. One that is suspended has given its cores to others."""
BY_ITSELF = frozenset({"COMPLETED", "FAILED"})
"""States of a run that nobody ended: its script did, well or badly."""
NODE_FAILED = frozenset({"NODE_FAIL", "BOOT_FAIL"})
LOST = NODE_FAILED | {"PREEMPTED", "REVOKED"}
"""States of a run that ended through no doing of the job's: nothing is known of how it would have ended."""
ENDED = LOST | BY_ITSELF | {"CANCELLED", "TIMEOUT", "DEADLINE", "OUT_OF_MEMORY"}

_RESOURCES = "Resources"
# Sentences in the place of a word, by how they begin. Of the nodes that would do some take no jobs, or those of a
# reservation are full: that is a lack of room.
_SENTENCES = {
    "Nodes required for job are DOWN, DRAINED or reserved": _RESOURCES,
    "ReqNodeNotAvail, May be reserved for other job": _RESOURCES,
    "Job's account not permitted": "AccountNotAllowed",
    "Job's QOS not permitted": "QOSNotAllowed",
    "User's group not permitted": "PartitionConfig",
}
_OF_A_PARTITION = ("Partition", "AccountNotAllowed", "QOSNotAllowed")
_FOR_ROOM = {_RESOURCES, "Priority"}
# Slurm's words for what is no lack of room, up to 26.05: limits by their first letters, the others as they are.
_FOR_ELSE = re.compile(
    r"(Assoc|QOS|Max|Partition|JobHeld|BurstBuffer|Reservation|Association)\w+|None|Prolog|Dependency(NeverSatisfied)?|"
    "NvidiaImexChannels|BeginTime|Licenses|ReqNodeNotAvail|SchedDefer|FrontEndDown|NodeDown|BadConstraints|"
    "SystemFailure|JobLaunchFailure|NonZeroExitCode|RaisedSignal|TimeLimit|InactiveLimit|InvalidAccount|InvalidQOS|"
    "Cleaning|AccountNotAllowed|JobHoldMaxRequeue|JobArrayTaskLimit|DeadLine|AccountingPolicy|FedJobLock|OutOfMemory|"
    "Constraints|MpiPortsBusy|"
)

_BENEATH = {**dict.fromkeys(_RUNS, RUNNING), **dict.fromkeys(WAITS, PENDING)}


@functools.lru_cache
def states_of(word: str) -> frozenset[str]:
    """Return a job's states by the only one that is shown: that one, and what the job is beneath it."""
    return frozenset({word, _BENEATH.get(word, word)})


def reason_in(text: str) -> str:
    """Return Slurm's word for why a job waits: a sentence begins with it (`ReqNodeNotAvail, …`), but for some."""
    found = (word for sentence, word in _SENTENCES.items() if text.startswith(sentence))
    return next(found, None) or text.partition(",")[0]


def waits_for_room(reason: str, planned: str, several: bool = False) -> bool | None:
    """Decide whether a job waits for room, by Slurm's word; None where that is not known.

    A sentence or a word that is not known says nothing: then it counts that the scheduler has planned the job on nodes.
    several: it is for several partitions: then a word about a partition tells of one, while another may take the job.
    """
    if reason in _FOR_ROOM or (several and reason.startswith(_OF_A_PARTITION)):
        return True
    return False if _FOR_ELSE.fullmatch(reason) else bool(planned) or None
