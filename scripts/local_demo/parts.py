"""The same scene with parts: alice's pilots give back cores as their payloads end, and none of them goes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from drainwise.pilotad.partial_return import PartialReturn
from local_demo.demo import ALICE, BOB, PATIENCE, PAUSE, Demo
from local_demo.demo_pool import DemoPoolError
from local_demo.interrupts import Late
from local_demo.spent import Spent


@dataclass(frozen=True)
class PartsOutcome:
    """How it went. returned: cores that each of alice's pilots gave back. gone: pilots that ended."""

    spent: Spent
    returned: dict[str, int]
    gone: int


class PartsDemo(Demo):
    """Run one workload; what is asked for follows what has come back, so no more is asked than bob still waits for.

    Each pilot is asked for as many cores as some of its payloads use, and keeps one payload at least.
    """

    def run_parts(self) -> PartsOutcome:
        """Run from the first pilot to the last sum. Raises Interrupted, Late, DemoPoolError, DrainwiseError."""
        most = sum(part.cores - part.width for part in self._workload.pilots)
        if most < self._needed:
            raise DemoPoolError(
                f"{ALICE}'s pilots can return {most} cores, {BOB} is owed {self._needed}: choose another --seed"
            )
        self._open()
        self._fill()
        self._arrive()
        self._title = "pilots give back each core when its payload has ended, and go on with the others"
        self._decided = time.time()
        widths = {part.name: part.width for part in self._workload.pilots}
        sizes = {part.name: part.cores for part in self._workload.pilots}
        asked: dict[str, int] = {}
        by = int(self._decided) + self._workload.grace
        self._say(f"all of {ALICE}'s pilots are asked for cores, whichever come first; none is asked to leave")
        latest = time.monotonic() + self._workload.grace + PATIENCE
        returned: dict[str, int] = {}
        while len(self._started) < len(self._bobs):
            if time.monotonic() > latest:
                raise Late("bob's cores did not come back in time")
            names, pilots = self._names(), self._system.pool.snapshot(int(time.time())).pilots
            mine = {names[one.run]: one for one in pilots if one.run in names}
            back = {name: sizes[name] - one.cores for name, one in mine.items()}
            for name in sorted(back):
                if back[name] > returned.get(name, 0):
                    self._say(f"{name} has given back {back[name]} of {sizes[name]} cores and goes on")
            returned = back
            left = max(0, self._needed - sum(returned.values()))
            for name, one in mine.items():
                width = widths[name]
                wish = min(sizes[name] - width, returned[name] + -(-left // width) * width)
                if wish != asked.get(name, 0):
                    asked[name] = wish
                    self._system.pool.ask_for_part(one, PartialReturn(wish, by, width), f"{BOB} waits")
            self._bobs_start()
            self._look()
            self._interrupts.wait(PAUSE)
        gone = sum(self._system.has_ended(job_id) for job_id in self._jobs)
        return PartsOutcome(self._spent(), {name: cores for name, cores in returned.items() if cores}, gone)
