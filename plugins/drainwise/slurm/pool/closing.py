"""Close nodes by a reservation: slurmctld starts no job that its time limit would let run into it, nor any later.

It is made at once, however far ahead its time lies, for a year, and is of nobody's but root's jobs. IGNORE_JOBS: who
runs there now does not keep it from being made; MAINT: it may lie over other reservations. One that somebody deletes is
made again, as long as the request is there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from drainwise.facts.errors import PoolError
from drainwise.facts.units import clock
from drainwise.pool.closing import PREFIX, Closing, carried_out
from drainwise.slurm.jobs.commands import SlurmCommands

_OURS = re.compile(rf"^ReservationName=({PREFIX}\S+)", re.MULTILINE)
_PLAIN = re.compile(r"[^A-Za-z0-9._-]")


class SlurmClosings:
    """The reservations of drainwise in one cluster; to make them needs root, SlurmUser or AdminLevel Operator."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands
        self._is_settled = False
        """Nothing of ours was there when we last looked, and nothing was made since."""

    def close_nodes(self, closings: Sequence[Closing]) -> list[str]:
        """See `ClosesNodes`. What fails is raised once nothing else is left to be done."""
        if self._is_settled and not closings:
            return []
        answer = self._commands.ask("scontrol", "--oneliner", "show", "reservation")
        present = set(_OURS.findall(answer))
        done: list[tuple[str, PoolError | bool]] = []
        wanted = {f"{PREFIX}{_PLAIN.sub('-', one.name)}": one for one in closings}
        for name in sorted(present - wanted.keys()):
            done.append((f"reservation {name} is deleted", self._ordered("delete", f"ReservationName={name}")))
        for name in sorted(wanted.keys() - present):
            one = wanted[name]
            nodes = ",".join(sorted(one.nodes))
            made = self._ordered(
                *("create", "reservation", f"ReservationName={name}", f"StartTime=uts{one.by}", "Duration=infinite"),
                *(f"Nodes={nodes}", "Users=root", "Flags=maint,ignore_jobs"),
            )
            words = f"reservation {name} is made: its nodes start nothing that could run beyond {clock(one.by)}"
            done.append((words, made))
        self._is_settled = not wanted and all(answer is True for _, answer in done)
        return carried_out(done)

    def _ordered(self, *arguments: str) -> PoolError | bool:
        try:
            self._commands.order("scontrol", *arguments)
        except PoolError as fault:
            return fault
        return True
