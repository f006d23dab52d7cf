"""What is seen of the payloads of a machine's jobs from one round to the next, and when that is worth telling.

How many cores a payload keeps busy is the CPU time since the round before; of a payload that was not there then, since
it began.

A pilot's claim of the cores in use, and of those that it keeps, is held against that. Two claims cannot be so: cores in
use where for minutes nothing works, nothing waits for a disk and no CPU time is used; and none in use where half of the
cores or more work. What lies between is nobody's lie: payloads begin, copy and wait.
"""

from __future__ import annotations

import time

from drainwise.facts import fact
from drainwise.node.payloads.payload_trees import PLAIN, PayloadTree, job_processes, payload_trees, site_rows
from drainwise.node.payloads.process_table import TICKS, orphans_by_group, read_processes
from drainwise.pilotad.attributes import GLIDEIN_AD
from drainwise.pilotad.observation import MOST_BEGINS, Observation, observation_in, observation_text
from drainwise.pilotad.report import INCOMPLETE, STALE, standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from drainwise.node.payloads.payload_trees import Mark, PayloadTrees
    from drainwise.node.payloads.process_table import ProcessTable
    from drainwise.pilotad.report import PilotReport

    Supervisors = Callable[[ProcessTable], tuple[Mapping[str, Collection[int]], Collection[int]]]
    """The batch system's own processes of each job, and all of them."""

CPU_OF_A_MINUTE = 0.040
"""Seconds of CPU time that looking at a node's processes may take in a minute; with many it is done less often."""
LONGEST_PAUSE = 3600
"""Seconds between two looks that no cost makes longer."""
ANEW = 600
"""Seconds after which what is seen is told again, though it is what was to be expected."""
_CORES, _SHARE = 0.5, 0.05
"""Cores, and shares of a figure, by which it must differ to be told before."""
_SECONDS, _DIGITS = 60, 10

_CLAIMED = 0.25  # part of the cores that must be claimed for nothing to be too little
_NOTHING = 0.01  # part of the claimed cores whose work counts as nothing
_MORE_CORES, _MORE_SHARE = 0.5, 0.1  # cores, and part of the kept ones, by which more may work than were kept
_BUSY, _NONE = 0.5, 0.05  # parts of the cores: that work though none is claimed


@fact
class KeptCores:
    """What a job has not returned, by its own statement, and the time of that statement, UNIX s."""

    cores: int
    since: int


@fact
class ObservedRun:
    """A run as its node knows it: its cores, and when it began, UNIX s.

    claimed: cores in use by its own report, None without a fresh one. kept: the cores that it has not returned, None
    where it has returned none.
    """

    cores: int
    begun: int
    claimed: float | None = None
    kept: KeptCores | None = None


@fact
class SeenJob:
    """What a round leaves to the next about one job.

    looked: when it was seen, in ticks since boot. client, marks: see `PayloadTrees`. payloads: their trees then.
    idle: since when there is no payload, UNIX s, or 0. told: what was told last. has_worked: whether it ever had a
    payload that was seen: of a job that never had one nothing says that a kill would lose nothing.
    total: CPU time of all its processes, ticks. wrong: since when what it claims cannot be so, UNIX s, or 0.
    over: looks in a row at which it had worked on more cores than it kept.
    """

    looked: int
    client: str = PLAIN
    marks: tuple[Mark, ...] = ()
    payloads: tuple[PayloadTree, ...] = ()
    idle: int = 0
    told: Observation | None = None
    has_worked: bool = False
    total: int = 0
    wrong: int = 0
    over: int = 0

    def contradicts(self, now: int, after: int) -> bool:
        """Decide whether its claim has been wrong for `after` seconds at `now` (UNIX s), at each look, two at least."""
        return bool(self.wrong) and now - self.wrong >= after


def is_weak(report: PilotReport | None, cores: int, begun: int | None, now: int, heartbeat_limit: int) -> bool:
    """Decide whether what the node saw comes before a report: there is none, it is old, or it lacks a figure."""
    return report is None or standing(report, now, heartbeat_limit, begun, cores) in {STALE, INCOMPLETE}


def claimed_cores(
    report: PilotReport | None, cores: int, begun: int | None, now: int, heartbeat_limit: int
) -> float | None:
    """Return the cores in use that a pilot's own report claims; None without a fresh one."""
    if report is None or report.source == GLIDEIN_AD or is_weak(report, cores, begun, now, heartbeat_limit):
        return None
    return report.used_cpu


class Observer:
    """Looks at the processes of a machine's jobs, once in a while. seen: each job as it was seen last; `has_looked`.

    record: what an earlier one has left. least: seconds between two looks at least.
    """

    def __init__(self, record: Sequence[str] = (), least: int = 0) -> None:
        first = record[0] if record else ""
        self._due = int(first) if first.isdigit() and len(first) <= _DIGITS else 0
        self._least, self.has_looked = least, False
        self.seen = dict(found for line in record if (found := seen_in(line)) is not None)

    def record(self) -> list[str]:
        """Return what another one needs to go on; none of the jobs' names has a blank."""
        return [str(self._due), *(seen_line(job, seen) for job, seen in self.seen.items())]

    def look(self, runs: Mapping[str, ObservedRun], supervisors: Supervisors, patterns: str | None, now: int) -> None:
        """See these jobs at `now` (UNIX s), if a look is due.

        supervisors: which of the processes are the batch system's own. patterns: the site's own of its payloads.
        """
        if self._due - LONGEST_PAUSE <= now < self._due:
            return
        begun, profiles = time.process_time(), site_rows(patterns)
        before, self.seen = self.seen, {}
        table = read_processes() if runs else None
        if table is not None:
            above, own = supervisors(table)
            orphans = {path: [pid for pid in pids if pid not in own] for path, pids in orphans_by_group(table).items()}
            for job, run in runs.items():
                processes = job_processes(table, above.get(job, ()), orphans)
                if processes is None:
                    continue
                last = before.get(job)
                known = (PLAIN, (), 0) if last is None else (last.client, last.marks, last.looked)
                trees = payload_trees(processes, table, profiles, *known)
                self.seen[job] = observe(trees, last, run, table.now, now)
        self.has_looked, self._due = True, max(now + self._least, next_look(now, time.process_time() - begun))


def next_look(now: int, spent: float) -> int:
    """Return when to look again after a look at `now` (UNIX s) that took `spent` seconds of CPU time."""
    return now + min(LONGEST_PAUSE, 1 + int(60 * spent / CPU_OF_A_MINUTE))


def observe(found: PayloadTrees, before: SeenJob | None, run: ObservedRun, looked: int, now: int) -> SeenJob:
    """Return what is seen of a run at `now` (UNIX s), by its payloads. Pure.

    looked: the same time in ticks since boot. before: what the last round left, None for nothing. `told` of the result
    is what is to be told from now on: what is seen, or what was told last where that still says the same. Nothing
    counts beyond the cores and the time of the run.
    """
    last = {(one.pid, one.start): one.cpu for one in before.payloads} if before is not None else {}
    busy, total = 0.0, 0
    for one in found.payloads:
        total += one.cpu
        ticks, cpu = looked - one.start, one.cpu
        if before is not None and (was := last.get((one.pid, one.start))) is not None:
            ticks, cpu = looked - before.looked, one.cpu - was
        busy += max(0, cpu) / ticks if ticks > 0 else 0.0
    idle = 0 if found.payloads else now if before is None or not before.idle else min(before.idle, now)
    seen = Observation(
        found.client,
        now,
        len(found.payloads),
        min(float(run.cores), busy),
        min(run.cores * max(0, now - run.begun), total // TICKS),
        now - idle if idle else 0,
        tuple(max(run.begun, now - (looked - one.start) // TICKS) for one in found.payloads[:MOST_BEGINS]),
    )
    told = before.told if before is not None else None
    if told is None or _says_other(seen, told, run.cores):
        told = seen
    has_worked = bool(found.payloads) or (before is not None and before.has_worked)
    wrong = over = 0
    if before is not None and looked > before.looked and not found.elsewhere:
        works = max(0, found.total - before.total) / (looked - before.looked)
        if run.claimed is not None and is_wrong(run.claimed, works, found.is_active, run.cores):
            wrong = min(before.wrong or now, now)
        # Only what was stated for the whole time that is measured counts.
        if run.kept is not None and run.kept.since <= now - (looked - before.looked) / TICKS:
            kept = run.kept.cores
            over = before.over + 1 if works > kept + max(_MORE_CORES, _MORE_SHARE * kept) else 0
    return SeenJob(looked, found.client, found.marks, found.payloads, idle, told, has_worked, found.total, wrong, over)


def is_wrong(claimed: float, works: float, is_active: bool, cores: int) -> bool:
    """Decide whether a claim of so many of a job's `cores` in use cannot be so while it `works` on so many.

    is_active: whether a process of its runs or waits for a disk.
    """
    if claimed >= max(1.0, _CLAIMED * cores):
        return not is_active and works < _NOTHING * claimed
    return claimed <= _NONE * cores and works >= max(1.0, _BUSY * cores)


def _says_other(seen: Observation, told: Observation, cores: int) -> bool:
    """Decide whether who reads what was told last would calculate with other figures than those seen."""
    passed = seen.at - told.at
    if passed < 0 or passed >= ANEW or (seen.client, seen.payloads) != (told.client, told.payloads):
        return True
    if any(abs(one - other) > 2 for one, other in zip(seen.begins, told.begins)):
        return True
    if abs(seen.cores_busy - told.cores_busy) > max(_CORES, _SHARE * cores):
        return True
    expected = told.cpu_seconds + told.cores_busy * passed
    return abs(seen.cpu_seconds - expected) > _SHARE * max(seen.cpu_seconds, cores * _SECONDS)


def seen_line(job: str, seen: SeenJob) -> str:
    """Write it as one line; `job` has no blank."""
    marks = ",".join(f"{pid}.{start}" for pid, start in seen.marks)
    payloads = ",".join(f"{one.pid}.{one.start}.{one.cpu}" for one in seen.payloads)
    told = "-" if seen.told is None else observation_text(seen.told)
    more = f"{int(seen.has_worked)} {seen.total} {seen.wrong} {seen.over}"
    return f"{job} {seen.looked} {seen.client} {marks or '-'} {payloads or '-'} {seen.idle} {told} {more}"


def seen_in(line: str) -> tuple[str, SeenJob] | None:
    """Read a line; None for anything else."""
    words = line.split(" ")
    if len(words) != 11:
        return None
    try:
        marks = [tuple(map(int, one.split("."))) for one in words[3].split(",") if one != "-"]
        trees = [PayloadTree(*map(int, one.split("."))) for one in words[4].split(",") if one != "-"]
        known = tuple((pid, start) for pid, start in marks)
        told, has_worked = observation_in(words[6]), words[7] == "1"
        more = int(words[8]), int(words[9]), int(words[10])
        return words[0], SeenJob(int(words[1]), words[2], known, tuple(trees), int(words[5]), told, has_worked, *more)
    except (TypeError, ValueError):
        return None
