"""What becomes of a payload that has ended: useful, failed, or lost and put back; queue, account and log are told."""

from __future__ import annotations

from collections.abc import Callable

from drainwise.pilot.account import FAILED, LOST, USEFUL, Account
from drainwise.pilot.decide import BY_MAXIMUM
from drainwise.pilot.payload_queue import PayloadQueue
from drainwise.pilot.processes import Ended


class Endings:
    """Whom to tell of one that ended."""

    def __init__(self, queue: PayloadQueue, account: Account, log: Callable[[str], None]) -> None:
        self._queue, self._account, self._log = queue, account, log

    def book(self, ended: Ended, now: float) -> None:
        """Take in an end at `now` (UNIX s). What the pilot stopped goes back, unless it ran past its own maximum."""
        payload, seconds = ended.payload, now - ended.start
        if ended.stopped and ended.stopped != BY_MAXIMUM:
            kind = LOST
            self._log(f"payload {payload.name} stopped after {seconds:.0f} s and requeued: {ended.stopped}")
            self._queue.requeue(payload, ended.stopped, seconds, now)
        else:
            kind = FAILED if ended.code or ended.stopped else USEFUL
            if ended.stopped:
                self._log(f"payload {payload.name} failed: it ran past its maximum of {payload.maximum:.0f} s")
            elif ended.code:
                how = f"with {ended.code}" if ended.code > 0 else f"by signal {-ended.code}"
                self._log(f"payload {payload.name} failed: it ended {how} after {seconds:.0f} s")
            self._queue.finished(payload, ended.code, seconds, now, ended.stopped, ended.usage)
        self._account.add(kind, payload.cores, ended.start, now)
