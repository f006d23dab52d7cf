"""A stepwise policy: it is asked again and again until the horizon is over, and may change what it ordered.

It keeps nothing between two steps: all that it may know of earlier ones is in the view that it gets. Every policy
begins from the same state, and nothing of one demand is carried over to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.history import History
from drainwise.reclaim.settings import ReclaimSettings
from drainwise_simulate.policies.clairvoyant import Truth


@dataclass(frozen=True)
class Foreseen:
    """What a pilot will really do when nobody orders anything else.

    payloads: those that run now and those that it will start. gone: when it ends by itself, UNIX s; None: not until
    the moment that was asked for.
    """

    payloads: Sequence[Truth]
    gone: float | None


@dataclass(frozen=True)
class StepOrder:
    """A pilot, by its run, is to be gone by `deadline` (UNIX s); at once when that is now.

    waste: expected of it, in core-seconds.
    """

    run: str
    deadline: int
    waste: int


@dataclass(frozen=True)
class StepDecision:
    """What is decided at one step; a second order to a run replaces its first.

    returns: cores that each pilot is asked to give back from now on, by run; no other one is asked any more.
    withdrawn: runs whose orders are withdrawn: they go on as if there had been none. again: when to ask next, UNIX s;
    None: after the usual time. Whatever is said, the last step is when the horizon is over.
    """

    orders: tuple[StepOrder, ...] = ()
    withdrawn: tuple[str, ...] = ()
    again: int | None = None
    returns: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StepView:
    """What a policy sees at one step; times in UNIX s.

    begun: when the demand came. due: when the horizon is over; there is no step after that. wanted: cores that the
    demand wants in all. back: those of them that it has: a pilot that ends by itself before `due` gives it its cores
    when they fit in what is still wanted, and so does one that was ordered to end. earlier: when each earlier step was,
    and what it decided. settings: the agent's, the horizon as at `begun`. usual: s between two steps.
    default: the settings with the bounds of a site that sets nothing.
    snapshot: returns what the batch system and the pilots report now, which costs time; a pilot with an order has its
    `deadline`, and the demand's account wants what it does not have yet. history: returns what an agent knows that has
    been there before the demand came.
    Only a clairvoyant may ask what is to come. foreseen: returns by run what each pilot of now will really do until a
    moment (UNIX s). tried: returns how many cores another policy will really leave missing, and the core-seconds that
    it will waste; it decides from `begun` on, so this is to be asked at the first step.
    """

    now: int
    begun: int
    due: int
    wanted: int
    back: int
    earlier: Sequence[tuple[int, StepDecision]]
    settings: ReclaimSettings
    default: ReclaimSettings
    usual: int
    snapshot: Callable[[], Snapshot]
    history: Callable[[], History]
    foreseen: Callable[[int], Mapping[str, Foreseen]]
    tried: Callable[[StepwisePolicy], tuple[int, float]]

    @property
    def open(self) -> int:
        """Cores that the demand has not got yet."""
        return max(0, self.wanted - self.back)

    @property
    def is_last(self) -> bool:
        """Whether nobody is asked again."""
        return self.now >= self.due

    def left(self, pilots: Sequence[Pilot]) -> int:
        """Return the cores that are neither back nor on their way, of these `pilots` of the snapshot."""
        return max(0, self.open - sum(one.cores for one in pilots if one.deadline is not None))


class StepwisePolicy(Protocol):
    """A rule that decides at each step. Pure: the same view gives the same answer."""

    def step(self, view: StepView) -> StepDecision:
        """Return what to do now. No pilot may get a deadline before `now`, or be named that is not there."""
