"""Read the processes of this machine, once for all jobs, as a user who may see them all.

One read of `/proc/<pid>/stat` for each, within bounds. Where they are hidden (hidepid), or are more than the bounds,
nothing is seen, and nothing is told.
"""

from __future__ import annotations

import posix
import time

from drainwise.common.local_file import Held

MOST_PROCESSES = 20_000
SECONDS = 1.0
"""What reading them may take."""
MOST_COMMAND_LINES = 1000
"""Command lines that are read in a round."""
MOST_GROUPS = 512
"""Control groups that are read in a round."""
TICKS = posix.sysconf("SC_CLK_TCK")
"""Ticks of a second in which the kernel counts CPU time and starts."""
_MOST_ORPHANS = 256
_STAT_LIMIT, _LINE_LIMIT, _GROUP_LIMIT, _CHECKED = 1024, 2048, 4096, 256
_READ = posix.O_RDONLY | posix.O_CLOEXEC


class SeenProcess:
    """One process: pids of its parent and its session; since boot it began at `start`, in ticks.

    cpu: ticks of CPU time that it and those of its children that have ended used; own: those without its children.
    state: one letter of the kernel's. name: at most 15 bytes, as the process wishes. Made for each process in each
    round, and so a plain class: a fact takes three times as long.
    """

    __slots__ = ("cpu", "name", "own", "parent", "session", "start", "state")

    def __init__(self, parent: int, session: int, start: int, cpu: int, own: int, state: bytes, name: bytes) -> None:
        self.parent, self.session, self.start = parent, session, start
        self.cpu, self.own, self.state, self.name = cpu, own, state, name


def process_of(stat: bytes) -> SeenProcess:
    """Return the process of one text of `/proc/<pid>/stat`. Raises ValueError or IndexError for none.

    The name may hold anything, brackets and blanks too: what follows its last bracket is the kernel's.
    """
    begin, end = stat.index(b"("), stat.rindex(b")")
    words = stat[end + 2 :].split(b" ", 20)
    own = int(words[11]) + int(words[12])
    cpu = own + int(words[13]) + int(words[14])
    return SeenProcess(int(words[1]), int(words[3]), int(words[19]), cpu, own, words[0], stat[begin + 1 : end])


class ProcessTable:
    """All processes at one time: their texts by pid, parsed when asked for; `now`: ticks since boot.

    stats: the text of each, by pid. parents: the parent of each, by pid.
    """

    def __init__(self, stats: dict[int, bytes], now: int, proc: str = "/proc") -> None:
        self._stats, self.now, self._proc = stats, now, proc
        self._lines = self._groups = 0
        by_parent: dict[bytes, list[int]] = {}
        by_session: dict[bytes, list[int]] = {}
        self.orphans: list[int] = []
        for pid, stat in stats.items():
            _, parent, _, session, _ = stat[stat.rindex(b")") + 2 :].split(b" ", 4)
            by_parent.setdefault(parent, []).append(pid)
            if session != b"0":
                by_session.setdefault(session, []).append(pid)
                if parent == b"1":
                    self.orphans.append(pid)
        self._children = {int(parent): pids for parent, pids in by_parent.items()}
        self._sessions = {int(session): pids for session, pids in by_session.items()}

    def process(self, pid: int) -> SeenProcess | None:
        """Return a process; None when there was none."""
        stat = self._stats.get(pid)
        return None if stat is None else process_of(stat)

    def named(self, name: bytes) -> list[int]:
        """Return the pids of the processes that have this name, whoever gave it to them."""
        shown = b"(%b)" % name
        return [pid for pid, stat in self._stats.items() if shown in stat]

    def children(self, pid: int) -> list[int]:
        """Return the pids of the children."""
        return self._children.get(pid, [])

    def in_session(self, session: int) -> list[int]:
        """Return the pids of the processes of a session."""
        return self._sessions.get(session, [])

    def command_line(self, pid: int) -> str:
        """Return the words of a process with a blank behind each; "" where it cannot be told, or too many were read."""
        self._lines += 1
        if self._lines > MOST_COMMAND_LINES:
            return ""
        return _read(f"{self._proc}/{pid}/cmdline", _LINE_LIMIT).replace(b"\0", b" ").decode("utf-8", "replace")

    def group(self, pid: int) -> str:
        """Return the control group of a process, the longest of its paths; "" where it has none of its own."""
        self._groups += 1
        if self._groups > MOST_GROUPS:
            return ""
        lines = _read(f"{self._proc}/{pid}/cgroup", _GROUP_LIMIT).decode("utf-8", "replace").splitlines()
        return max((line.split(":", 2)[-1] for line in lines), key=len, default="").rstrip("/")


def _read(path: str, limit: int, directory: int | None = None) -> bytes:
    """Return what one read gives, b"" for nothing: a process has just ended, or is hidden."""
    try:
        descriptor = posix.open(path, _READ, dir_fd=directory)
        try:
            return posix.read(descriptor, limit)
        finally:
            posix.close(descriptor)  # without `Held`, as there are thousands
    except OSError:
        return b""


def orphans_by_group(table: ProcessTable) -> dict[str, list[int]]:
    """Return the processes whose parents have all ended by their control group."""
    found: dict[str, list[int]] = {}
    for pid in sorted(table.orphans)[-_MOST_ORPHANS:]:
        if group := table.group(pid):
            found.setdefault(group, []).append(pid)
    return found


def read_processes(proc: str = "/proc") -> ProcessTable | None:
    """Read them all; None where they are too many, where that takes too long, or where nothing can be read."""
    end = time.monotonic() + SECONDS
    now = int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS)
    stats: dict[int, bytes] = {}
    try:
        with Held(posix.open(proc, _READ | posix.O_DIRECTORY)) as directory:
            for name in posix.listdir(directory):
                if not name.isdigit():
                    continue
                if len(stats) % _CHECKED == 0 and (len(stats) > MOST_PROCESSES or time.monotonic() > end):
                    return None
                if stat := _read(f"{name}/stat", _STAT_LIMIT, directory):
                    stats[int(name)] = stat
    except OSError:
        return None
    return ProcessTable(stats, now, proc)
