"""What the cron sees of the payloads of each slot's job, as HTCondor's own user, and what it remembers of it.

A slot's job is what runs below its starter, the process that its directory is named after. That starter must be a
child of our startd, so a directory that an earlier run left behind never leads to another's processes.
"""

from __future__ import annotations

import posix
import time

from drainwise.htcondor.node.cron_record import replace_file
from drainwise.htcondor.node.job_directories import is_starter
from drainwise.node.hook import read_bounded
from drainwise.node.payloads.observer import LONGEST_PAUSE, look_at, next_look, seen_in, seen_line
from drainwise.node.payloads.payload_profiles import PROFILES
from drainwise.node.payloads.payload_trees import job_processes, orphans_by_group
from drainwise.node.payloads.process_table import read_processes
from drainwise.node.settings import DEFAULT_CONTRADICTORY_AFTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from drainwise.htcondor.node.job_directories import JobSandbox
    from drainwise.node.payloads.claims import KeptCores
    from drainwise.node.payloads.observer import SeenJob
    from drainwise.node.payloads.payload_profiles import PayloadProfile
    from drainwise.node.payloads.process_table import ProcessTable

_LIMIT, _DIGITS = 1 << 22, 10


class ObservedSlots:
    """One round's look at the processes; `file` keeps what it leaves to the next.

    profiles: the site's rows and the built-in ones. startd: the pid of our startd. contradictory_after: seconds for
    which a claim must be wrong.
    """

    def __init__(
        self,
        file: str,
        startd: int,
        profiles: Sequence[PayloadProfile] = PROFILES,
        contradictory_after: int = DEFAULT_CONTRADICTORY_AFTER,
    ) -> None:
        self._file, self._startd, self._profiles = file, startd, profiles
        self.contradictory_after = contradictory_after
        self._next, self._before = _remembered(file)
        self._begun: float | None = None
        self._seen: dict[str, SeenJob] = {}
        self._table: ProcessTable | None = None
        self._orphans: dict[str, list[int]] = {}
        self._is_read, self._now = False, 0

    def of(
        self, job: JobSandbox, now: int, claimed: float | None = None, kept: KeptCores | None = None
    ) -> SeenJob | None:
        """Return what is seen of a job at `now` (UNIX s), with what is to be told; None where nothing is.

        claimed: cores in use by its own report, None without a fresh one. kept: those that it has not returned.
        """
        if now < self._next <= now + LONGEST_PAUSE:
            before = self._before.get(job.job)
            if before is not None:
                self._seen[job.job] = before
            return before
        self._now = now
        table = self._processes()
        if table is None or job.started is None or not self._is_its_starter(table, job.starter):
            return None
        processes = job_processes(table, (job.starter,), self._orphans)
        if processes is None:
            return None
        before = self._before.get(job.job)
        seen = look_at(processes, table, self._profiles, before, job.cores, job.started, now, claimed, kept)
        self._seen[job.job] = seen
        return seen

    def remember(self) -> None:
        """Keep what was seen for the next round, as a whole or not at all; raises OSError."""
        if self._begun is not None:
            self._next = next_look(self._now, time.process_time() - self._begun)
        elif self._seen == self._before:
            return
        lines = [f"{self._next}\n", *(seen_line(job, seen) + "\n" for job, seen in self._seen.items())]
        replace_file(self._file, "".join(lines))

    def _processes(self) -> ProcessTable | None:
        if not self._is_read:
            self._is_read, self._begun = True, time.process_time()
            self._table = read_processes()
            self._orphans = {} if self._table is None else orphans_by_group(self._table)
        return self._table

    def _is_its_starter(self, table: ProcessTable, pid: int) -> bool:
        starter = table.process(pid)
        if starter is None or starter.parent != self._startd:
            return False
        try:
            return is_starter(str(pid), self._startd, posix.geteuid())
        except OSError:
            return False


def _remembered(file: str) -> tuple[int, dict[str, SeenJob]]:
    try:
        lines = read_bounded(file, _LIMIT).decode("ascii", "replace").splitlines()
    except OSError:
        return 0, {}
    next_one = int(lines[0]) if lines and lines[0].isdigit() and len(lines[0]) <= _DIGITS else 0
    return next_one, dict(found for line in lines if (found := seen_in(line)) is not None)
