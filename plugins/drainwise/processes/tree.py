"""All that this process started, and an end for all of it, wherever it hid.

A child may leave its process group and its session, and outlive its parent. The kernel hands such orphans to the
nearest child subreaper instead of to init. Once it has no child left, all is gone.
"""

from __future__ import annotations

import ctypes
import posix
import time

from drainwise.processes.process import Process, children, kill_group, send, send_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
else:
    import _signal  # the module behind `signal`, without the time that `signal` takes to start

WAIT_ALL = 0x40000000
"""__WALL: waits for children that were cloned with another signal than SIGCHLD, too."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_FREEZES = 10
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 1.0  # seconds between looks at what does not die at once

_call = ctypes.CDLL(None).prctl
_call.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]


def adopt_orphans() -> bool:
    """Make this process the child subreaper of all below it; whether the kernel agreed."""
    return bool(_call(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def die_with_parent() -> bool:
    """Have the kernel kill this process when its parent ends, for a child before exec; whether the kernel agreed."""
    return bool(_call(_PR_SET_PDEATHSIG, _signal.SIGKILL, 0, 0, 0) == 0)


def lead_group() -> None:
    """Lead a process group of its own, and die with the parent; for a child before exec."""
    posix.setpgid(0, 0)
    die_with_parent()


def reap_all(take: Callable[[int, int], object] = lambda _pid, _status: None) -> bool:
    """Reap the children that have ended; True when this process has no children left at all.

    take: gets the pid and the status of each, as wait() has them.
    """
    try:
        while (found := posix.waitpid(-1, posix.WNOHANG | WAIT_ALL))[0]:
            take(*found)
    except ChildProcessError:
        return True
    return False


def kill_all_below(
    seconds: float,
    reap: Callable[[], bool] = reap_all,
    wait: Callable[[float], object] = time.sleep,
    complain: Callable[[str], None] = lambda _: None,
) -> list[int]:
    """Kill every process below this one within `seconds`; the children left then: the kernel does not let go of them.

    A child is killed with its group, its orphans become children and are next. Every other round goes through all
    descendants at once, as it takes one round for each link of a long line. wait: sleeps for at most that many seconds;
    true when a child has ended meanwhile.
    """
    ends = time.monotonic() + seconds
    pause, rounds = _FIRST_PAUSE, 0
    while True:
        try:
            for pid in children():
                _kill_child(pid)
            if rounds % 2 == 1:
                _freeze_and_kill()
        except OSError as error:  # such as no free descriptors
            complain(f"some processes could not be looked at yet: {error}")
        if reap():
            return []
        left = ends - time.monotonic()
        if left <= 0:
            return children()
        rounds += 1
        pause = _FIRST_PAUSE if wait(min(pause, left)) else min(pause * 2, _LONGEST_PAUSE)


def _kill_child(pid: int) -> None:
    """Kill a child of ours, and its group: one call ends all of it, however fast it forks.

    Nobody can enter a session from outside, so a group in another one than ours is below us as a whole.
    """
    try:
        if posix.getsid(pid) != posix.getsid(0):
            kill_group(posix.getpgid(pid), _signal.SIGKILL)
        posix.kill(pid, _signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # dead, or a set-user-id program, which only root could end


def _freeze_and_kill() -> None:
    """Stop all below this process until nothing new is found, then kill it.

    What is only stopped forks no more, frees no place for another, and leaves the processors to this process, which
    otherwise waits for its turn among hundreds.
    """
    known: dict[int, int] = {}
    frozen: list[Process] = []
    for _ in range(_FREEZES):
        new = send_below(posix.getpid(), _signal.SIGSTOP, known)
        frozen += new
        if not new:
            break
    for member in frozen:
        send(member, _signal.SIGKILL)
