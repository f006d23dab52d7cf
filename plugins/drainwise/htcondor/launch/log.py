"""The event log of the launcher's jobs: HTCondor writes into it as the user, whoever reads it needs no daemon."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

import htcondor2

from drainwise.facts.errors import PoolUnreachable
from drainwise.htcondor.launch.states import Event

# 23.9 raises RuntimeError and OSError, 25.x a class of its own.
_FAULTS = (getattr(htcondor2, "HTCondorException", RuntimeError), RuntimeError, OSError)


class EventLog:
    """The log at `path`, which is made if it is missing; what it has of earlier launches is read first."""

    def __init__(self, path: str) -> None:
        try:
            # Without O_NONBLOCK a FIFO would hold us for ever.
            made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
            is_file = stat.S_ISREG(os.fstat(made).st_mode)
            os.close(made)
            if not is_file:
                raise PoolUnreachable(f"the event log {path} cannot be used: it is no file")
            self._log = htcondor2.JobEventLog(path)
        except _FAULTS as fault:
            raise PoolUnreachable(f"the event log {path} cannot be used: {fault}") from None

    def news(self) -> Iterator[Event]:
        """Yield the new events. An event that cannot be read ends them; the queue is queried for the rest."""
        # Half an event, or one that nobody knows: it is read again with the next news, or left out.
        with contextlib.suppress(*_FAULTS):
            # With 0 the bindings wait a second where the daemons' clock is a tick behind Python's.
            for event in self._log.events(stop_after=-1):
                values = {name: event[name] for name in event.keys()}  # noqa: SIM118 - no Mapping in 23.9
                yield Event(f"{event.cluster}.{event.proc}", event.type.name, float(event.timestamp), values)

    def close(self) -> None:
        """Close the file."""
        self._log.close()
