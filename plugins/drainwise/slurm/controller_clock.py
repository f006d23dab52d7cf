"""What time slurmctld says it is: held against this machine's clock before anything is decided."""

from __future__ import annotations

import re
import time

from drainwise.clocks import require_same_clock
from drainwise.errors import PoolUnreachable
from drainwise.slurm.commands import SlurmCommands

_SAID = re.compile(rb"^sdiag output at .*\(([0-9]{9,10})\)\s*$", re.MULTILINE)


class ControllerClock:
    """The question, which has been asked: `sdiag` prints slurmctld's own time in its second line."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._begun = time.time()
        self._running = commands.start("sdiag")

    def require_same(self) -> None:
        """Raise PoolUnreachable when there is no answer, or the clocks differ by too much."""
        answer = self._running.output()
        match = _SAID.search(answer)
        if match is None:
            raise PoolUnreachable("half an answer: sdiag does not tell slurmctld's time")
        require_same_clock(int(match[1]), self._begun, time.time(), "slurmctld's")

    def end(self) -> None:
        """Have whoever was asked gone."""
        self._running.end()
