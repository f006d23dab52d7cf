"""What a pilot did with its lease, as JSON for programs and as one line for people."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

from drainwise.features.local_file import replace_file
from drainwise.pilot.account import CoreSeconds, Drain

REPORT = "pilot-report.json"


@dataclass(frozen=True)
class ExitReport:
    """What a pilot did with its lease.

    started, ended: UNIX s; started is the lease's start. done, failed, requeued: payloads; one that was requeued and
    taken again counts each time. published: how often the channels were written. cpu_seconds: of the pilot itself.
    drain: None when nobody asked it to leave.
    """

    pilot: str
    cores: int
    started: float
    ended: float
    why: str
    done: int
    failed: int
    requeued: int
    published: int
    cpu_seconds: float
    core_seconds: CoreSeconds
    drain: Drain | None

    def as_json(self) -> str:
        """The content of `pilot-report.json`."""
        return json.dumps(asdict(self), indent=2, allow_nan=False) + "\n"

    def as_line(self) -> str:
        """One line for a person."""
        spent = self.core_seconds
        share = f" ({100 * spent.useful / spent.lease:.1f} %)" if spent.lease > 0 else ""
        line = (
            f"{self.why}: {self.done} payloads done, {self.failed} failed, {self.requeued} requeued; "
            f"of {spent.lease:.0f} core-s {spent.useful:.0f} useful{share}, {spent.failed:.0f} failed, "
            f"{spent.lost:.0f} lost, {spent.idle:.0f} idle"
        )
        if self.drain is not None:
            line += f"; gone {self.drain.seconds:.1f} s after {self.drain.source} asked"
        return line


def write_exit_report(directory: str, report: ExitReport) -> str:
    """Put `pilot-report.json` into the startup directory; what went wrong in a few words, "" when nothing did."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            replace_file(REPORT, report.as_json().encode("ascii"), fd)
        finally:
            os.close(fd)
    except OSError as error:
        return error.strerror or "cannot be written"
    return ""
