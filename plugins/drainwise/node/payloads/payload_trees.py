"""Which process trees of a job are payloads, and what they have used. Pure, but for command lines that are asked for.

The processes of a job are those below the batch system's own process for it. One whose parents have all ended is of
the job whose session or control group it is in: a process is born into both, and no user gets into another's.

THE table of how the payloads of each kind of pilots are known by their processes is PROFILES; a site adds its own rows.
A pattern is a part of a command line. It is the user's own text: who makes a process look like a payload changes
the figures of that pilot alone, and those are bounded by the cores and the time that it has.

Source: pilot.py of PanDA's pilot 3 and JobAgent.java of JAliEn, read; createJobWrapper of DIRAC
(job/Wrapper/Wrapper_<job>), run.
"""

from __future__ import annotations

from drainwise.facts import fact
from drainwise.node.payloads.process_table import TICKS, ProcessTable, SeenProcess
from drainwise.pilotad.observation import is_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    Mark = tuple[int, int]  # pid and start of a process: no later process has both

PLAIN = "plain"
"""The client of a pilot that no profile knows: what works below it."""
_LEAST_PATTERN, _LONGEST_PATTERN, _MOST_PATTERNS = 3, 60, 16
MOST_MEMBERS = 2000
"""Processes of a job; of one with more nothing is told."""
MOST_PAYLOADS = 256
"""Payloads of a job that are counted, the oldest first."""
LEAST_AGE = 20
"""Seconds that a process must have run to be a payload."""
SETTLING = 60
"""Seconds within which a plain pilot's scripts have started each other."""
LEAST_SHARE = 0.02
"""Part of a core that a tree must have used since it began, to be a payload where no pattern says so."""
MOST_MARKS = 64
_MOST_DEPTH = 12
_ACTIVE = frozenset({b"R", b"D"})
_CONTAINERS = frozenset({b"docker", b"podman", b"conmon"})


@fact
class PayloadProfile:
    """The processes of one client: `pilot`, whose children are payloads, or `payload`, which is one itself.

    starter: what starts payloads that come and go: a job in which it is seen is of this client while it has none. All
    are parts of a command line with blanks between its words; "" where a profile has none. helpers: the names of the
    pilot's children that are no payloads. commands: how the names of those processes begin; () for any.
    """

    client: str
    pilot: str = ""
    payload: str = ""
    starter: str = ""
    helpers: tuple[bytes, ...] = ()
    commands: tuple[bytes, ...] = ()


_TOOLS = (b"prmon", b"MemoryMonitor", b"rucio", b"xrdcp", b"gfal-copy", b"gfal", b"sleep", b"curl")

PROFILES = (
    PayloadProfile("panda", pilot="pilot.py ", helpers=_TOOLS, commands=(b"python",)),
    PayloadProfile(
        "dirac", payload="/Wrapper_", starter="WorkloadManagement/JobAgent ", commands=(b"python", b"dirac-agent")
    ),
    PayloadProfile("alice", payload="alien.site.JobWrapper", commands=(b"java",)),
    PayloadProfile("glideinwms", payload="condor_starter ", commands=(b"condor_starter",)),
)
"""The built-in rows, in the order in which they are tried."""


def site_rows(text: str | None) -> tuple[PayloadProfile, ...]:
    """Return the site's own rows, `name=part of a command line, …`, and the built-in ones after them.

    A name is a client's. What is none is passed over: the site file was checked when it was rendered.
    """
    own = []
    for row in (text or "").split(","):
        name, part = (word.strip() for word in row.partition("=")[::2])
        if is_client(name) and _LEAST_PATTERN <= len(part) <= _LONGEST_PATTERN and part.isprintable():
            own.append(PayloadProfile(name, payload=part))
    return (*own[:_MOST_PATTERNS], *PROFILES)


@fact
class PayloadTree:
    """One payload: pid and start (ticks since boot) of its first process, and the CPU time of its tree in ticks."""

    pid: int
    start: int
    cpu: int


@fact
class JobProcesses:
    """The processes of one job by pid. roots: what the batch system started; escaped: whose parents have all ended.

    forked: roots in which the batch system's own program runs still, as it transfers files or is about to start a job.
    """

    members: dict[int, SeenProcess]
    roots: tuple[int, ...]
    escaped: tuple[int, ...] = ()
    forked: tuple[int, ...] = ()


@fact
class PayloadTrees:
    """The payloads of a job, its client, and the processes that a pattern told, for the next look.

    total: CPU time of all its processes, ticks. is_active: whether one runs or waits for a disk. elsewhere: whether its
    payloads may be below the daemon of a container, where they are not seen.
    """

    client: str
    marks: tuple[Mark, ...]
    payloads: tuple[PayloadTree, ...]
    total: int = 0
    is_active: bool = False
    elsewhere: bool = False


def job_processes(
    table: ProcessTable, supervisors: Collection[int], orphans: dict[str, list[int]] | None = None
) -> JobProcesses | None:
    """Return what runs below the batch system's own processes of one job; None when that is nothing, or too much.

    orphans: see `orphans_by_group`.
    """
    roots = [child for pid in supervisors for child in table.children(pid) if child not in supervisors]
    members: dict[int, SeenProcess] = {}
    if not _below(table, roots, members):
        return None
    own = {one.session for pid in supervisors if (one := table.process(pid)) is not None}
    # Born into the session of a process that is the job's, whatever has become of its parents.
    born = [pid for session in {one.session for one in members.values()} - own for pid in table.in_session(session)]
    born += _same_group(table, supervisors, roots, orphans or {})
    others = [pid for pid in dict.fromkeys(born) if pid not in members and pid not in supervisors]
    if not _below(table, others, members):
        return None
    escaped = [pid for pid in others if members[pid].parent not in members]
    forked = [pid for pid in roots if pid in members and _is_forked(pid, members[pid], table)]
    known = (tuple(pid for pid in pids if pid in members) for pids in (roots, escaped, forked))
    return JobProcesses(members, *known) if members else None


def _is_forked(pid: int, one: SeenProcess, table: ProcessTable) -> bool:
    above = table.process(one.parent)
    same = above is not None and one.name == above.name
    return same and table.command_line(pid) == table.command_line(one.parent)


def _below(table: ProcessTable, roots: Iterable[int], members: dict[int, SeenProcess]) -> bool:
    """Add these processes and all below them; False when they are too many."""
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid in members or (one := table.process(pid)) is None:
            continue
        members[pid] = one
        if len(members) > MOST_MEMBERS:
            return False
        waiting += table.children(pid)
    return True


def _same_group(
    table: ProcessTable, supervisors: Collection[int], roots: Sequence[int], orphans: dict[str, list[int]]
) -> list[int]:
    if not orphans or not roots:
        return []
    group = job_group(table.group(roots[0]))
    is_shared = "/job_" not in group and any(table.group(pid) == group for pid in supervisors)
    if not group or is_shared:
        return []  # jobs have none of their own
    return [pid for path, pids in orphans.items() if f"{path}/".startswith(f"{group}/") for pid in pids]


def job_group(path: str) -> str:
    """Return a job's part of a control group's path: Slurm has others below it."""
    parts = path.split("/")
    for place, part in enumerate(parts):
        if part.startswith("job_") and part[4:].isdigit():
            return "/".join(parts[: place + 1])
    return path


def payload_trees(
    job: JobProcesses,
    table: ProcessTable,
    profiles: Sequence[PayloadProfile] = PROFILES,
    client: str = PLAIN,
    marks: Sequence[Mark] = (),
    looked: int = 0,
) -> PayloadTrees:
    """Return the payloads of a job.

    client, marks: what the last look found, at `looked` in ticks since boot (0: there was none). Command lines are read
    of those alone that have begun since, or right before.
    """
    profile = next((one for one in profiles if one.client == client), None)
    members = job.members
    found = sorted({pid for pid, start in marks if pid in members and members[pid].start == start})
    if profile is not None and not found and not profile.payload:
        profile = None  # its pilot has gone; payloads that are known by themselves come and go
    if profile is None:
        found = []
    oldest = looked - 2 * SETTLING * TICKS if looked else -1
    is_new = any(one.start >= oldest for one in members.values())
    for pid in _from_above(job, table) if is_new else ():
        one = members[pid]
        if one.start < oldest or pid in found or any(_is_above(mark, one, members) for mark in found):
            continue
        line = None
        for row in profiles if profile is None else (profile,):
            if row.commands and not one.name.startswith(row.commands):
                continue
            line = table.command_line(pid) if line is None else line
            if (row.pilot or row.payload) in line:
                profile = row
                found.append(pid)
                break
            if row.starter and row.starter in line:
                profile = row
                break
    found = [pid for pid in found if not any(_is_above(mark, members[pid], members) for mark in found)]
    named = tuple((pid, job.members[pid].start) for pid in found[:MOST_MARKS])
    alone: int | None = None
    if profile is None:
        leaders, alone = _plain(job, table)
    elif profile.pilot:
        below = [child for pid in found for child in table.children(pid) if child in job.members]
        leaders = [pid for pid in below if not job.members[pid].name.startswith(profile.helpers)]
    else:
        leaders = found
    trees = [_tree(pid, members, table) for pid in leaders]
    if alone is not None:
        trees.append(PayloadTree(alone, members[alone].start, members[alone].own))
    trees.sort(key=lambda tree: (tree.start, tree.pid))
    least = 0.0 if profile is not None and profile.payload else LEAST_SHARE
    aged = [(one, table.now - one.start) for one in trees]
    payloads = [one for one, age in aged if age >= LEAST_AGE * TICKS and one.cpu >= least * age]
    everything = members.values()
    return PayloadTrees(
        PLAIN if profile is None else profile.client,
        named,
        tuple(payloads[:MOST_PAYLOADS]),
        sum(one.cpu for one in everything),
        any(one.state in _ACTIVE for one in everything),
        any(one.name in _CONTAINERS for one in everything),
    )


def _from_above(job: JobProcesses, table: ProcessTable) -> Iterable[int]:
    """Return the processes of a job but the forked ones, a parent before its children, down to some depth."""
    level = [pid for pid in (*job.roots, *job.escaped) if pid not in job.forked]
    for _ in range(_MOST_DEPTH):
        yield from level
        level = [child for pid in level for child in table.children(pid) if child in job.members]


def _is_above(pid: int, below: SeenProcess, members: dict[int, SeenProcess]) -> bool:
    for _ in range(_MOST_DEPTH):
        if below.parent == pid:
            return True
        above = members.get(below.parent)
        if above is None:
            return False
        below = above
    return False


def _tree(pid: int, members: dict[int, SeenProcess], table: ProcessTable) -> PayloadTree:
    cpu, waiting, seen = 0, [pid], set()
    while waiting:
        here = waiting.pop()
        if here in seen or here not in members:
            continue
        seen.add(here)
        cpu += members[here].cpu
        waiting += table.children(here)
    return PayloadTree(pid, members[pid].start, cpu)


def _plain(job: JobProcesses, table: ProcessTable) -> tuple[list[int], int | None]:
    """Return what runs side by side below the scripts that have started each other, and what has escaped from below
    them; and the process that is alone, if there is one.

    A process that is alone and has started nothing is a payload by its own work only: what has ended below it was
    one before, and its results are out.
    """
    members, least = job.members, table.now - LEAST_AGE * TICKS

    def lasting(pids: Iterable[int]) -> list[int]:
        return [pid for pid in pids if pid in members and members[pid].start <= least]

    level, escaped = lasting(job.roots), lasting(job.escaped)
    for _ in range(_MOST_DEPTH):
        if len(level) != 1:
            break
        [only] = level
        below = lasting(table.children(only))
        if not below:
            return escaped, only
        if len(below) == 1:
            soon = members[below[0]].start - members[only].start <= SETTLING * TICKS
            if not (soon and lasting(table.children(below[0]))):
                return below + escaped, None
        level = below
    return level + escaped, None
