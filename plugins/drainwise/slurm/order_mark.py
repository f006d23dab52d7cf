"""The mark of orders on a node: which of its jobs' leases were changed, in the node's Extra in slurmctld.

    Extra=drainwise:17=1795249999,18=1795334400

Who changes the end of a run writes the job's number and the new end there; the newest stands last. The node's agent
reads this one record each period and asks for a job only when its entry has changed: one question for a node in place
of one for each job. The lease itself is the truth, and a mark that is missing costs nothing but time. An Extra that is
somebody else's stays; its node's agent then asks for every job.
"""

from __future__ import annotations

import re

from drainwise.errors import PoolError
from drainwise.slurm.commands import SlurmCommands

MOST = 32
"""Entries that a node's mark has: older ones were read long ago."""

_PREFIX = "drainwise:"
_ENTRIES = re.compile(r"(?:\d{1,10}=\d{1,12}(?:,\d{1,10}=\d{1,12})*)?")


def extra_in(block: str) -> str | None:
    """A node's Extra, up to a blank, in the output of `scontrol --oneliner show node`; None when it is not sure."""
    if "NodeName=" not in block:
        return None
    parts = block.split(" Extra=")
    if len(parts) > 2:  # in a comment, say
        return None
    return "" if len(parts) == 1 else parts[1].split(None, 1)[0] if parts[1].strip() else ""


def entries_in(extra: str | None) -> dict[str, str] | None:
    """The ends by job; None when the Extra is somebody else's or not known."""
    if not extra:
        return None if extra is None else {}
    text = extra[len(_PREFIX) :]
    if not extra.startswith(_PREFIX) or _ENTRIES.fullmatch(text) is None:
        return None
    return {entry.partition("=")[0]: entry.partition("=")[2] for entry in text.split(",") if entry}


def mark_text(entries: dict[str, str], job: int, end: int) -> str:
    """The Extra that says that this job's lease ends at `end` (UNIX s) now, 0 for a lease without end."""
    kept = [(name, value) for name, value in entries.items() if name != str(job)][-(MOST - 1) :]
    return _PREFIX + ",".join(f"{name}={value}" for name, value in [*kept, (str(job), str(end))])


class OrderMarks:
    """Marks nodes by Slurm's commands; needs root or SlurmUser."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands

    def write(self, node: str, job: int, end: int) -> str:
        """Have the agent of `node` look at `job`; why it cannot, "" when it will. It always does so some time later."""
        try:
            entries = entries_in(extra_in(self._commands.ask("scontrol", "--oneliner", "show", "node", node)))
            if entries is not None:
                text = mark_text(entries, job, end)
                self._commands.order("scontrol", "update", f"NodeName={node}", f"Extra={text}")
        except PoolError as fault:
            return f"{node} is not marked: {fault}"
        return ""
