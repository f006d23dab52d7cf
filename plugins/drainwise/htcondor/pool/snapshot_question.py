"""What a snapshot asks of the daemons, three processes at once, and the answers.

HTCondor's bindings are imported in the child that asks: each question reads the configuration as it is then, and a
command that asks nothing does not need them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from drainwise.common.bounded_call import BoundedCall
from drainwise.facts.errors import PoolError
from drainwise.htcondor.ads.packed_ads import Bundle
from drainwise.htcondor.ads.values import Others, shown
from drainwise.htcondor.demand.told import Told
from drainwise.htcondor.identity.asked import Identities

_OF_ACCESS_POINTS = 0.3  # of the time of a snapshot, for one access point


class SnapshotQuestion:
    """What a snapshot asks, three processes at once: the collector for all slots, and the access points for what
    waits and, apart, for who sent what runs.
    """

    def __init__(self, seconds: float, identities: Identities) -> None:
        self.begun, self._seconds = time.monotonic(), seconds
        with ExitStack() as begun:  # what has begun ends when the next cannot begin
            self.ads: BoundedCall[Others | Bundle] = BoundedCall(seconds, _ask_collector, "the collector")
            begun.callback(self.ads.close)
            self._demand: BoundedCall[Told] = BoundedCall(seconds, partial(_ask_demand, seconds), "what jobs ask for")
            begun.callback(self._demand.close)
            self.identities = identities.ask(seconds)
            begun.pop_all()

    def told(self) -> Told | str:
        """Return which jobs wait and where they could run; why not, when that was not told in time."""
        left = self.begun + self._seconds - time.monotonic()
        try:
            return next(self._demand.values(left))
        except PoolError as fault:
            return shown(str(fault))

    def close(self) -> None:
        """End them."""
        self.ads.close()
        self._demand.close()
        self.identities.close()


@contextmanager
def without_collection() -> Iterator[None]:
    """Suspend Python's garbage collector, which would go through many new values, all in use, again and again."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _ask_collector() -> Iterable[Others | Bundle]:
    from drainwise.htcondor.pool.collector import pool_ads  # noqa: PLC0415

    return pool_ads()


def _ask_demand(seconds: float) -> Iterator[Told]:
    from drainwise.htcondor.demand.ask import ask_demand  # noqa: PLC0415

    yield ask_demand(seconds * _OF_ACCESS_POINTS)
