"""From one round to the next: what is seen of a job's payloads, and when that is worth telling. Pure.

How many cores a payload keeps busy is the CPU time since the round before; of a payload that was not there then, since
it began.
"""

from __future__ import annotations

from drainwise.facts import fact
from drainwise.node.payloads.claims import Working, is_over, is_wrong, wrong_since
from drainwise.node.payloads.payload_profiles import PLAIN
from drainwise.node.payloads.payload_trees import PayloadTree, payload_trees
from drainwise.node.payloads.process_table import TICKS
from drainwise.pilotad.observation import MOST_BEGINS, Observation, observation_in, observation_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from drainwise.node.payloads.claims import KeptCores
    from drainwise.node.payloads.payload_profiles import PayloadProfile
    from drainwise.node.payloads.payload_trees import JobProcesses, Mark, PayloadTrees
    from drainwise.node.payloads.process_table import ProcessTable

CPU_OF_A_MINUTE = 0.040
"""Seconds of CPU time that looking at a node's processes may take in a minute; with many it is done less often."""
LONGEST_PAUSE = 3600
"""Seconds between two looks that no cost makes longer."""
ANEW = 600
"""Seconds after which what is seen is told again, though it is what was to be expected."""
_CORES, _SHARE = 0.5, 0.05
"""Cores, and shares of a figure, by which it must differ to be told before."""
_SECONDS = 60


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


def next_look(now: int, spent: float) -> int:
    """Return when to look again after a look at `now` (UNIX s) that took `spent` seconds of CPU time."""
    return now + min(LONGEST_PAUSE, 1 + int(60 * spent / CPU_OF_A_MINUTE))


def look_at(
    processes: JobProcesses,
    table: ProcessTable,
    profiles: Sequence[PayloadProfile],
    before: SeenJob | None,
    cores: int,
    begun: int,
    now: int,
    claimed: float | None = None,
    kept: KeptCores | None = None,
) -> SeenJob:
    """Return what is seen of a job whose processes these are. Others as for `observe`."""
    client, marks, looked = (before.client, before.marks, before.looked) if before is not None else (PLAIN, (), 0)
    found = payload_trees(processes, table, profiles, client, marks, looked)
    return observe(found, before, cores, begun, table.now, now, claimed, kept)


def observe(
    found: PayloadTrees,
    before: SeenJob | None,
    cores: int,
    begun: int,
    looked: int,
    now: int,
    claimed: float | None = None,
    kept: KeptCores | None = None,
) -> SeenJob:
    """Return what is seen of a job of so many cores that has begun at `begun`, at `now` (UNIX s).

    looked: the same time in ticks since boot. before: what the last round left, None for nothing. `told` of the result
    is what is to be told from now on: what is seen, or what was told last where that still says the same. Nothing
    counts beyond the cores and the time of the job. claimed: cores in use by its own report, None without a fresh one.
    kept: the cores that it has not returned, None where it has returned none.
    """
    run = max(0, now - begun)
    last = {(one.pid, one.start): one.cpu for one in before.payloads} if before is not None else {}
    busy, total = 0.0, 0
    for one in found.payloads:
        total += one.cpu
        ticks, cpu = looked - one.start, one.cpu
        if before is not None and (was := last.get((one.pid, one.start))) is not None:
            ticks, cpu = looked - before.looked, one.cpu - was
        busy += max(0, cpu) / ticks if ticks > 0 else 0.0
    begins = [max(begun, now - (looked - one.start) // TICKS) for one in found.payloads[:MOST_BEGINS]]
    idle = 0 if found.payloads else now if before is None or not before.idle else min(before.idle, now)
    seen = Observation(
        found.client,
        now,
        len(found.payloads),
        min(float(cores), busy),
        min(cores * run, total // TICKS),
        now - idle if idle else 0,
        tuple(begins),
    )
    told = before.told if before is not None else None
    if told is None or _says_other(seen, told, cores):
        told = seen
    has_worked = bool(found.payloads) or (before is not None and before.has_worked)
    wrong = over = 0
    if before is not None and looked > before.looked:
        works = max(0, found.total - before.total) / (looked - before.looked)
        working = Working(works, found.is_active, found.elsewhere)
        if claimed is not None:
            wrong = wrong_since(is_wrong(claimed, working, cores), before.wrong, now)
        if kept is not None and is_over(kept, working, now - (looked - before.looked) / TICKS):
            over = before.over + 1
    return SeenJob(looked, found.client, found.marks, found.payloads, idle, told, has_worked, found.total, wrong, over)


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
