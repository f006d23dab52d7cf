"""The states of Slurm's jobs, by what they mean to a reader."""

from __future__ import annotations

import functools
import re

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
