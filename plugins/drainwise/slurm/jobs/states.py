"""The states of Slurm's jobs, by what they mean to a reader."""

from __future__ import annotations

import functools

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
# The sentence that stands in the place of Resources while some of the nodes that would do take no jobs.
_NODES_TAKEN = "Nodes required for job are DOWN, DRAINED or reserved"

_BENEATH = {**dict.fromkeys(_RUNS, RUNNING), **dict.fromkeys(WAITS, PENDING)}


@functools.lru_cache
def states_of(word: str) -> frozenset[str]:
    """Return a job's states by the only one that is shown: that one, and what the job is beneath it."""
    return frozenset({word, _BENEATH.get(word, word)})


def reason_in(text: str) -> str:
    """Return Slurm's word for why a job waits: a sentence begins with it (`ReqNodeNotAvail, …`), but for one."""
    return _RESOURCES if text.startswith(_NODES_TAKEN) else text.partition(",")[0]
