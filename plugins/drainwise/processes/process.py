"""Processes by pid and birth: a pid is given again to another process some day, the pair never while the machine is up.

Nothing here signals a pid that might be another process by now: the process is held by a descriptor first, where the
kernel has such (5.3 and later), and only then asked who it is.
"""

from __future__ import annotations

import errno
import posix

from drainwise.facts import fact

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Iterator
else:
    import _signal  # the module behind `signal`, without the time that `signal` takes to start

_READ = posix.O_RDONLY | posix.O_CLOEXEC
_PIECE = 1 << 16
_MOST_WORDS = 1 << 23
"""Bytes of the arguments or the environment that are read: the kernel lets nobody start a program with more than 6 MiB.

A process can make either as large as its memory later (PR_SET_MM_MAP); what it had at its start is lost then anyway.
"""
_DEAD = (b"Z", b"X", b"x")


@fact
class Process:
    """One process: its pid and its birth in clock ticks since the machine was started (/proc/PID/stat, field 22)."""

    pid: int
    birth: int


def birth_of(pid: int) -> int | None:
    """Return when this process was born, in ticks; None for none, and for one that is dead and not yet reaped."""
    found = _stat(pid)
    return None if found is None else found[1]


def is_alive(process: Process) -> bool:
    """Return whether this very process runs; another one with its pid is not it, a zombie is dead."""
    return birth_of(process.pid) == process.birth


def handle_of(pid: int) -> int | None:
    """Open a pidfd: readable when the process ends; None where there is no process or no such call."""
    try:
        return posix.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def send(process: Process, number: int) -> bool:
    """Send a signal to this very process and to no other that has its pid by now; False when it is dead."""
    return _send_if(process.pid, number, lambda found: found[1] == process.birth) is not None


def send_with_group(process: Process, number: int) -> None:
    """Send a signal to this very process and all its group, unless that is the caller's own group."""
    try:
        group = posix.getpgid(process.pid)
    except (ProcessLookupError, PermissionError):
        return
    if group != posix.getpgrp() and is_alive(process):
        kill_group(group, number)
    send(process, number)


def kill_group(group: int, number: int) -> bool:
    """Send signal `number` to a process group; whether anybody of it was there."""
    try:
        posix.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def send_below(pid: int, number: int, known: dict[int, int]) -> list[Process]:
    """Send a signal to every process below `pid` that is not in `known`, each at once when it is found.

    known: births by pid, of those reached before; this call adds those it reached. One look from the lowest pid up, so
    that parents mostly come before their children; what it missed the next call finds.
    """

    def is_below(found: tuple[int, int]) -> bool:
        parent = found[0]  # and still the process that we know: a dead one's pid may be another's by now
        return parent == pid or (parent in known and birth_of(parent) == known[parent])

    reached = []
    for one in sorted(_pids()):
        if one not in known or birth_of(one) != known[one]:
            found = _send_if(one, number, is_below)
            if found is not None:
                known[one] = found[1]
                reached.append(Process(one, found[1]))
    return reached


def children(pid: int | None = None) -> list[int]:
    """Return the pids whose parent is `pid` (None: this process, which has one thread), dead ones included.

    As long as this process reaps none, each of its own stays with its process, so that all can be signalled safely.
    """
    own = posix.getpid() if pid is None else pid
    try:
        return [int(word) for word in read_proc(f"/proc/{own}/task/{own}/children").split()]
    except OSError:  # a kernel built without CONFIG_PROC_CHILDREN
        return _families(with_dead=True).get(own, [])


def ancestors(pid: int) -> list[int]:
    """Return the pids above `pid`, from its parent up."""
    above: list[int] = []
    while True:
        found = _stat(pid)
        if found is None or found[0] == 0 or found[0] in above:
            return above
        pid = found[0]
        above.append(pid)


def descendants(pid: int) -> list[Process]:
    """Return the living processes below `pid` as they are found now: one that forks while we look may be missed."""
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


def marks_of(pid: int, name: str) -> list[bytes]:
    """Return the values that a process has for an environment variable: mostly none or one; none where not readable."""
    try:
        content = b"\0" + read_proc(f"/proc/{pid}/environ", _MOST_WORDS)
    except OSError:
        return []  # gone, or another user's
    return [rest.partition(b"\0")[0] for rest in content.split(b"\0%b=" % name.encode())[1:]]


def each_bearer(name: str, is_wanted: Callable[[bytes], bool]) -> Iterator[Process]:
    """Find the living processes that carry a wanted mark in their environment, whoever their parent is by now.

    Each is given when it is found: what forks fast is another process a moment later. What has thrown away its
    environment is not found, nor is what just executes another program.
    """

    def is_marked(pid: int) -> bool:
        return any(is_wanted(value) for value in marks_of(pid, name))

    for pid in _pids():
        if is_marked(pid):
            birth = birth_of(pid)
            if birth is not None and is_marked(pid):  # asked again: this birth's pid cannot have been another's
                yield Process(pid, birth)


def has_argument(pid: int, argument: bytes) -> bool:
    """Return whether this process was started with `argument` on its command line."""
    try:
        return argument in read_proc(f"/proc/{pid}/cmdline", _MOST_WORDS).split(b"\0")
    except OSError:
        return False


def read_proc(path: str, most: int | None = None) -> bytes:
    """Read the whole of one of the kernel's files. Raises OSError, also when it has more than `most` bytes."""
    descriptor = posix.open(path, _READ)
    try:
        pieces, size = [], 0
        while piece := posix.read(descriptor, _PIECE):
            pieces.append(piece)
            size += len(piece)
            if most is not None and size > most:
                raise OSError(errno.EFBIG, posix.strerror(errno.EFBIG), path)
        return b"".join(pieces)
    finally:
        posix.close(descriptor)


def _stat(pid: int, with_dead: bool = False) -> tuple[int, int] | None:
    """Read parent and birth of a process. Its own name may hold blanks and brackets: what counts is behind it."""
    try:
        fields = read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ESRCH}:
            return None
        raise
    return None if not fields or (fields[0] in _DEAD and not with_dead) else (int(fields[1]), int(fields[19]))


def _pids() -> list[int]:
    return [int(name) for name in posix.listdir("/proc") if name.isdecimal()]


def _families(with_dead: bool = False) -> dict[int, list[int]]:
    """Return the children of every process."""
    families: dict[int, list[int]] = {}
    for pid in _pids():
        found = _stat(pid, with_dead)
        if found is not None:
            families.setdefault(found[0], []).append(pid)
    return families


def _send_if(pid: int, number: int, is_chosen: Callable[[tuple[int, int]], bool]) -> tuple[int, int] | None:
    """Signal this process if its parent and birth are as wanted: these two, None when it was not signalled."""
    handle = handle_of(pid)  # without one there is a moment between the look and the signal
    try:
        found = _stat(pid)
        if found is None or not is_chosen(found):
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
