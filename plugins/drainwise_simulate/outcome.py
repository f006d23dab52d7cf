"""The outcome of one burst under one policy: an account of every core-second, and when the demand had its cores."""

from __future__ import annotations

from dataclasses import dataclass

HOUR = 3600.0


@dataclass(frozen=True)
class CoreSeconds:
    """Core-seconds of the pilots' leases; nothing is left over: total = useful + killed + draining + idle.

    useful: of payloads that ended, or run still and go on. killed: of payloads that were ended with their pilot or at
    a deadline, or hung until their maximum. draining: idle in a pilot under an order, until it was gone. idle: idle
    otherwise.
    """

    useful: float
    killed: float
    draining: float
    idle: float
    total: float


@dataclass(frozen=True)
class Outcome:
    """One decision and all that followed from it.

    policy: its name, the clairvoyant's included. replication, burst: together they name the state; outcomes with both
    the same are of the same state and may be held against each other. seed: of the replication. moment: s since the
    beginning of the trace.
    held: cores of all pilots at the moment. asked: cores that the demand lacked. given: cores of the pilots that were
    ordered to end. pilots: how many these were. ended_at_once: how many of them were killed rather than drained.
    killed: core-seconds of payloads that were destroyed by the decision. drained: core-seconds that idled in pilots
    under an order, until they were gone. predicted: what the plan said that it would waste, in core-seconds.
    restarted: payloads that had to start again. waits: (s after the moment, cores): when cores became free for the
    demand, the earliest first. core_seconds: of all pilots of the site, from the beginning of the trace until the last
    ordered one was gone (and `follow` was over).
    alone: cores of `given` that came back without an order. withdrawn: how often an order was withdrawn.
    Where the other group's own jobs are the demand, one outcome is of all decisions of a policy: `asked` are the cores
    of the jobs that came, and `waits` are those of the jobs that started.
    """

    policy: str
    replication: int
    burst: int
    seed: int
    moment: float
    held: int
    asked: int
    given: int
    pilots: int
    ended_at_once: int
    killed: float
    drained: float
    predicted: float
    restarted: int
    waits: tuple[tuple[float, int], ...]
    core_seconds: CoreSeconds
    alone: int = 0
    returned: int = 0
    withdrawn: int = 0

    @property
    def waste(self) -> float:
        """Realised waste in core-seconds: payloads destroyed and cores idle while draining."""
        return self.killed + self.drained
