"""A control group for each job with `mem`: the kernel holds all processes of the job together to its memory.

A launch has a group of its own, below or beside the group of the launcher, and in it one for each job. No process may
be in a group that counts for those below it, so the launcher goes into one of its own first. Where nothing of that is
delegated to this user, or the kernel counts memory in groups of version 1, each process is limited alone.
"""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

from drainwise.processes.control_groups import (
    PROCESSES,
    SUBTREE,
    Hierarchy,
    kill_all,
    number_of,
    remove,
    words_of,
    write,
)

CONTROLLER = "memory"
_PREFIX, _LAUNCHER, _TRIED = "drainwise-", ".launcher", "tried"
_RECORD = "memory-group"
"""The file in a launch's directory that says where its group was: what a killed launcher left is found there."""
LIMITS: tuple[tuple[str, str | None], ...] = (("memory.max", None), ("memory.swap.max", "0"), ("memory.oom.group", "1"))
"""The files of a group that limit it, with the value; None: the bytes. A kernel may lack all but the first."""
KILLS = (("memory.events.local", "oom"), ("memory.events", "oom"))
"""The file and its field that counts where a limit was reached; the first that is there. The kernel's 5.1 lacks one."""
_MOST = 1 << 62  # bytes; the kernel's numbers end there
_TRIED_BYTES = 1 << 26
_ENTER = 'echo 0 > "$1"'
_SECONDS, _GOES_SECONDS, _PAUSE = 10.0, 3.0, 0.01


class MemoryGroup:
    """The group of one job in `directory`."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    @property
    def entry(self) -> str:
        """The file by which a process enters."""
        return f"{self.directory}/{PROCESSES}"

    def limit(self, most: int) -> None:
        """Set its memory in bytes, swap included. Raises OSError."""
        for number, (name, value) in enumerate(LIMITS):
            if number == 0 or os.path.exists(f"{self.directory}/{name}"):
                write(self.directory, name, str(min(most, _MOST)) if value is None else value)

    def kills(self) -> int | None:
        """Return how often it had used its memory and was to be killed; None: the kernel does not count that."""
        counts = (number_of(self.directory, name, field) for name, field in KILLS)
        return next((count for count in counts if count is not None), None)

    def kill(self) -> None:
        """Kill all that is in it."""
        kill_all(self.directory)


class MemoryGroups:
    """The groups of the jobs of one launch.

    directory: the launch's own. state: its name, [A-Za-z0-9_-]+. say: tells the user, once, that there are none.
    What a killed launcher of this launch left is ended and taken away first.
    """

    def __init__(self, directory: str, state: str, say: Callable[[str], object], hierarchy: Hierarchy | None) -> None:
        self._name, self._record, self._say = _PREFIX + state, f"{directory}/{_RECORD}", say
        self._base, self._launcher, self._why = "", "", ""
        self._left: list[str] = []
        self._sweep()
        if hierarchy is None:
            self._why = "no control group of version 2 counts memory on this machine"
            return
        for begin in (self._below, self._beside):
            try:
                begin(hierarchy)
                self._try()
                break
            except OSError as fault:
                self._why = self._why or f"{fault.filename}: {fault.strerror}"
                self._forget_base()

    def make(self, tag: str, megabytes: int) -> MemoryGroup | None:
        """Make the group of a job; None where there are no groups. Raises OSError."""
        if not self._base:
            if self._why:
                self._say(f"memory is limited for each process of a job, not for all of them together: {self._why}")
                self._why = ""
            return None
        return self._made(tag, megabytes << 20)

    def _made(self, name: str, most: int) -> MemoryGroup:
        group = MemoryGroup(f"{self._base}/{name}")
        os.mkdir(group.directory)
        try:
            group.limit(most)
        except OSError:
            remove(group.directory)
            raise
        return group

    def remove(self, group: MemoryGroup) -> None:
        """End all that is left in the group of a job that is over, and take it away."""
        self._left.append(group.directory)
        self.tidy()

    def tidy(self) -> None:
        """Go on with what could not be taken away so far."""
        left = []
        for directory in self._left:
            if not remove(directory):
                kill_all(directory)
                if not remove(directory):
                    left.append(directory)
        self._left = left

    def close(self) -> None:
        """Take all away that can be; what was killed has a moment to go."""
        self._tidy_all()
        self._forget_base()

    def _tidy_all(self) -> None:
        end = time.monotonic() + _GOES_SECONDS
        self.tidy()
        while self._left and time.monotonic() < end:
            time.sleep(_PAUSE)
            self.tidy()

    def _sweep(self) -> None:
        """Take away what a killed launcher of this launch left, wherever it ran; later calls go on with what resists.

        Not the group of the launch itself, where it is not empty: it may be used again. Nothing is killed in that of
        the launcher, where its supervisor may still write down what has succeeded.
        """
        with suppress(OSError, UnicodeError), open(self._record, encoding="utf-8") as file:
            base = file.read().strip()
            if os.path.isabs(base) and os.path.basename(base) == self._name:
                with suppress(FileNotFoundError), os.scandir(base) as entries:
                    self._left = [entry.path for entry in entries if entry.is_dir()]
                self._tidy_all()
                remove(base)
                remove(base + _LAUNCHER)

    def _remember(self, base: str) -> None:
        """Write down where the groups will be, then make theirs. Raises OSError."""
        with open(self._record, "w", encoding="utf-8") as file:
            file.write(base)
        with suppress(FileExistsError):
            os.mkdir(base)
        self._base = base
        _count_below(base)

    def _below(self, hierarchy: Hierarchy) -> None:
        """Make the groups below our own. Raises OSError."""
        try:
            _count_below(hierarchy.own)
        except OSError as fault:
            if fault.errno != errno.EBUSY:
                raise
            self._leave(hierarchy.own)
        self._remember(f"{hierarchy.own}/{self._name}")

    def _leave(self, own: str) -> None:
        """Leave our own group for one below it, so that it may count. Raises OSError where others are in it."""
        launcher = f"{own}/{self._name}{_LAUNCHER}"
        with suppress(FileExistsError):
            os.mkdir(launcher)
        self._launcher = launcher
        write(launcher, PROCESSES, "0")
        _count_below(own)

    def _beside(self, hierarchy: Hierarchy) -> None:
        """Make the groups beside our own, where its parent counts. Raises OSError.

        Never beside the group of a job of another launch: its own limit would not hold there.
        """
        parent = os.path.dirname(hierarchy.own)
        if hierarchy.own == hierarchy.top or os.path.basename(parent).startswith(_PREFIX):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), hierarchy.own)
        if CONTROLLER not in words_of(parent, SUBTREE):
            raise PermissionError(errno.EPERM, f"counts no {CONTROLLER} below it", parent)
        self._remember(f"{parent}/{self._name}")

    def _try(self) -> None:
        """Limit a group and enter it, as a job does. Raises OSError."""
        group = self._made(_TRIED, _TRIED_BYTES)
        try:
            if group.kills() is None:
                raise OSError(errno.ENOTSUP, "the kernel counts no kills", group.directory)
            entered = subprocess.run(
                ["/bin/sh", "-c", _ENTER, "sh", group.entry],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_SECONDS,
                check=False,
            )
            if entered.returncode:
                raise PermissionError(errno.EACCES, "no process may enter", group.directory)
        except subprocess.TimeoutExpired:
            raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), group.directory) from None
        finally:
            self.remove(group)

    def _forget_base(self) -> None:
        """Take the launch's group away, and go back to where this process came from."""
        gone = not self._base or remove(self._base)
        self._base = ""
        if self._launcher:
            own = os.path.dirname(self._launcher)
            with suppress(OSError):
                write(own, SUBTREE, f"-{CONTROLLER}")
            with suppress(OSError):
                write(own, PROCESSES, "0")
            remove(self._launcher)
            self._launcher = ""
        if gone and not self._left:
            with suppress(OSError):
                os.unlink(self._record)


def _count_below(directory: str) -> None:
    """Have the groups below this one counted. Raises OSError, EBUSY where a process is in it."""
    write(directory, SUBTREE, f"+{CONTROLLER}")
