"""Processes by pid and birth: a pid is given again to a stranger some day, the pair never while the machine is up.

Nothing here signals a pid that might be another process by now: the process is held by a descriptor first, where the
kernel has such (5.3 and later), and only then asked who it is.
"""

from __future__ import annotations

import errno
import posix

from drainwise.fact import Fact, set_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Iterator
else:
    import _signal  # the module behind `signal`, without the time that `signal` takes to start

CHILDREN = "/proc/thread-self/children"
"""The kernel's list of the children of whoever reads it."""

_READ = posix.O_RDONLY | posix.O_CLOEXEC
_PIECE = 1 << 16
_DEAD = (b"Z", b"X", b"x")


class Process(Fact):
    """One process: its pid and its birth in clock ticks since the machine was started (/proc/PID/stat, field 22)."""

    __slots__ = ("birth", "pid")
    pid: int
    birth: int

    def __init__(self, pid: int, birth: int) -> None:
        set_field(self, "pid", pid)
        set_field(self, "birth", birth)


def birth_of(pid: int) -> int | None:
    """When this process was born, in ticks; None when there is none, or one that is dead and not yet reaped."""
    found = _stat(pid)
    return None if found is None else found[1]


def is_alive(process: Process) -> bool:
    """Whether this very process still runs; another one with its pid is not it, a zombie is dead."""
    return birth_of(process.pid) == process.birth


def send(process: Process, number: int) -> bool:
    """Send signal `number` to this very process and to no other that has its pid by now; False when it is dead."""
    return _send_if(process.pid, number, lambda found: found[1] == process.birth) is not None


def send_below(pid: int, number: int, known: dict[int, int]) -> list[Process]:
    """Send a signal to every process below `pid` that is not in `known`, each at once when it is found.

    known: births by pid, of those reached before; this call adds those it reached. One look from the lowest pid up, so
    that parents mostly come before their children; what it missed the next call finds.
    """

    def is_below(found: tuple[int, int]) -> bool:
        parent = found[0]  # and still the process that we know: a dead one's pid may be a stranger's by now
        return parent == pid or (parent in known and birth_of(parent) == known[parent])

    reached = []
    for one in sorted(_pids()):
        if one not in known or birth_of(one) != known[one]:
            found = _send_if(one, number, is_below)
            if found is not None:
                known[one] = found[1]
                reached.append(Process(one, found[1]))
    return reached


def send_to_group(process: Process, number: int) -> bool:
    """Send a signal to the process group of this very process, all at once, unless that is the caller's own group."""
    try:
        group = posix.getpgid(process.pid)
        if group == posix.getpgrp() or not is_alive(process):
            return False
        posix.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def children_of_this_process() -> list[int]:
    """The pids of this process's own children, dead ones not yet reaped included; it has one thread.

    As long as it reaps none, each of these pids stays with its process, so that all can be signalled safely.
    """
    try:
        return [int(pid) for pid in read_proc(CHILDREN).split()]
    except OSError:  # a kernel built without CONFIG_PROC_CHILDREN
        me, families = posix.getpid(), _families()
        return families.get(me, [])


def ancestors(pid: int) -> list[int]:
    """The pids above `pid`, from its parent up."""
    above: list[int] = []
    while True:
        found = _stat(pid)
        if found is None or found[0] == 0 or found[0] in above:
            return above
        pid = found[0]
        above.append(pid)


def descendants(pid: int) -> list[Process]:
    """The living processes below `pid` as they are found now: one that forks while we look may be missed."""
    families = _families()
    found: list[Process] = []
    above = [pid]
    while above:
        for child in families.pop(above.pop(), ()):
            above.append(child)
            birth = birth_of(child)
            if birth is not None:
                found.append(Process(child, birth))
    return found


def bearers(variable: bytes) -> list[Process]:
    """The living processes that were started with this `NAME=value` in their environment, as far as we may look."""
    return list(each_bearer(variable))


def each_bearer(variable: bytes) -> Iterator[Process]:
    """As `bearers`, each when it is found: what forks fast is another process a moment later."""
    for pid in _pids():
        try:
            if b"\0%b\0" % variable not in b"\0%b\0" % read_proc(f"/proc/{pid}/environ"):
                continue
        except OSError:
            continue  # gone, or another user's
        birth = birth_of(pid)
        if birth is not None:
            yield Process(pid, birth)


def has_argument(pid: int, argument: bytes) -> bool:
    """Whether this process was started with `argument` on its command line."""
    try:
        return argument in read_proc(f"/proc/{pid}/cmdline").split(b"\0")
    except OSError:
        return False


def read_proc(path: str) -> bytes:
    """The whole of one of the kernel's files; raises OSError."""
    descriptor = posix.open(path, _READ)
    try:
        pieces = []
        while piece := posix.read(descriptor, _PIECE):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        posix.close(descriptor)


def _stat(pid: int) -> tuple[int, int] | None:
    """Parent and birth of a living process. Its own name may hold blanks and brackets: what counts is behind it."""
    try:
        fields = read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ESRCH}:
            return None
        raise
    return None if not fields or fields[0] in _DEAD else (int(fields[1]), int(fields[19]))


def _pids() -> list[int]:
    return [int(name) for name in posix.listdir("/proc") if name.isdigit()]


def _families() -> dict[int, list[int]]:
    """The children of every living process."""
    families: dict[int, list[int]] = {}
    for pid in _pids():
        found = _stat(pid)
        if found is not None:
            families.setdefault(found[0], []).append(pid)
    return families


def _send_if(pid: int, number: int, chosen: Callable[[tuple[int, int]], bool]) -> tuple[int, int] | None:
    """Signal this process if its parent and birth are as wanted: these two, None when it was not signalled."""
    try:
        handle = posix.pidfd_open(pid)
    except ProcessLookupError:
        return None
    except (AttributeError, OSError):
        handle = None  # an old kernel or a C library without it: there is a moment between the look and the signal
    try:
        found = _stat(pid)
        if found is None or not chosen(found):
            return None
        if handle is None:
            posix.kill(pid, number)
        else:
            _signal.pidfd_send_signal(handle, number)
    except (ProcessLookupError, PermissionError):
        return None
    finally:
        if handle is not None:
            posix.close(handle)
    return found
