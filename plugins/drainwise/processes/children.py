"""The children of this process: reaped with what is left of their groups; what they and all below them used."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from drainwise.processes.process import kill_group, read_proc

_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Ended(NamedTuple):
    """A child that has been reaped, with its status as wait() has it.

    cpu_seconds: its own and of what it waited for; peak_bytes: the largest resident memory of any one of these.
    read_bytes, written_bytes: of theirs from storage and to it, of one that leads its group; None: not known.
    """

    pid: int
    status: int
    cpu_seconds: float
    peak_bytes: int
    read_bytes: int | None = None
    written_bytes: int | None = None

    @property
    def code(self) -> int:
        """Its exit code, or −N when signal N ended it."""
        return os.waitstatus_to_exitcode(self.status)


def isolated_program(function: str, *words: str) -> list[str]:
    """Return the command that runs `module:function` of this package, with these words, in an isolated interpreter."""
    module, _, name = function.partition(":")
    quiet = ["-B"] if sys.dont_write_bytecode else []
    program = f"import sys; sys.path.append({_PACKAGES!r}); from {module} import {name}; sys.exit({name}())"
    return [sys.executable, "-I", "-S", *quiet, "-c", program, *words]


def ended_children(leads_group: Callable[[int], bool], wait: bool = False) -> Iterator[Ended]:
    """Reap the children that have ended; those for which `leads_group` holds with what is left of their groups.

    A child is looked at first and reaped last: until then its pid cannot belong to anybody else. wait: go on until
    there is no child left.
    """
    options = os.WEXITED | os.WNOWAIT | (0 if wait else os.WNOHANG)
    with suppress(ChildProcessError):
        while (found := os.waitid(os.P_ALL, 0, options)) is not None:
            storage: tuple[int, ...] = ()
            if leads_group(found.si_pid):
                kill_group(found.si_pid, signal.SIGKILL)
                storage = _storage_of(found.si_pid)
            pid, status, used = os.wait4(found.si_pid, 0)
            yield Ended(pid, status, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, *storage)


def _storage_of(pid: int) -> tuple[int, ...]:
    """Return the bytes that a process and what it waited for read from storage and wrote there; () if not known."""
    try:
        rows = dict(row.split(b": ") for row in read_proc(f"/proc/{pid}/io").splitlines())
        return int(rows[b"read_bytes"]), int(rows[b"write_bytes"])
    except (OSError, ValueError, KeyError):
        return ()


def memory_of_trees(pids: Iterable[int], proportional: bool) -> int:
    """Return the bytes that these processes and all below them have together, whichever of their threads started what.

    proportional: what several share counts once (PSS); else in each of them (RSS).
    """
    total, left = 0, list(pids)
    while left:
        pid = left.pop()
        with suppress(OSError, ValueError, IndexError):  # it has gone
            for thread in os.listdir(f"/proc/{pid}/task"):
                left += map(int, read_proc(f"/proc/{pid}/task/{thread}/children").split())
            if proportional:
                rows = read_proc(f"/proc/{pid}/smaps_rollup").splitlines()
                total += sum(int(row.split()[1]) << 10 for row in rows if row.startswith(b"Pss:"))
            else:
                total += int(read_proc(f"/proc/{pid}/statm").split()[1]) * _PAGE
    return total
