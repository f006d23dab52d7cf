"""Payloads as processes: started in a group of their own, stopped by TERM and then KILL, reaped when they end.

A payload stays in the pilot's session, so that a batch system that ends a session ends it too, and its main process
dies with the pilot.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.queues.records import EndedPayload, PayloadUsage
from drainwise.processes.children import ended_children, memory_of_trees
from drainwise.processes.process import children, kill_group, marks_of
from drainwise.processes.tree import kill_all_below, lead_group

PAYLOADS = "payloads"
"""The directory below the startup directory that holds one directory per payload."""
STDOUT, STDERR = "stdout", "stderr"
CANNOT_RUN, NOT_FOUND = 126, 127
"""Codes of a command that cannot be executed, as a shell has them."""
_LAST_WAIT = 5.0
_OTHERS_WAIT = 0.5
_PAUSE = 0.01
_LOOK_EVERY = 5.0  # seconds between two looks at what payloads have in memory and on disk
_MOST_FILES = 10_000  # in a payload's directory; what more take is not known
_NAME = "DRAINWISE_PAYLOAD"
_PILOT = "DRAINWISE_PILOT"
_FAULTS_OF_THE_PAYLOAD = (errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.E2BIG, errno.EISDIR, errno.ENOTDIR)


@dataclass
class _Process:
    payload: Payload
    place: str
    handle: subprocess.Popen[bytes]
    start: float
    stopped: str = ""
    kill_at: float = float("inf")
    code: int | None = None
    killed: bool = False
    usage: PayloadUsage | None = None
    memory: int = 0
    """Bytes that it and all below it had together at most, as far as somebody looked."""
    work: int | None = 0
    """Likewise of the files in its directory."""

    def look_at_files(self) -> int | None:
        """Look at the bytes in its directory; None: too many files, or one of the looks found so."""
        found = _bytes_in(self.place)
        self.work = None if found is None or self.work is None else max(self.work, found)
        return found

    @property
    def pid(self) -> int:
        return self.handle.pid


class Processes:
    """The payloads that run. directory: the startup directory. pilot: its id. kill_wait: s from TERM to KILL."""

    def __init__(self, directory: str, environment: Mapping[str, str], pilot: str, kill_wait: float) -> None:
        self._directory, self._environment, self._pilot = directory, dict(environment), pilot
        self._kill_wait = kill_wait
        self._by_name: dict[str, _Process] = {}
        self._by_pid: dict[int, _Process] = {}
        self._ended: list[EndedPayload] = []
        self._stopping: dict[str, _Process] = {}
        self._others: dict[int, Callable[[int], None]] = {}
        self._look_at = 0.0

    def start(self, payload: Payload, now: float) -> None:
        """Start a payload in a directory of its own.

        A command that cannot be executed is the payload's fault: it ends with 127 or 126 and a line in its stderr.
        Raises OSError for what is not: no space, no directory, no process.
        """
        place = _own_directory(f"{self._directory}/{PAYLOADS}", payload.name)
        try:
            handle = self._run(payload.command, payload, place)
        except OSError as error:
            if error.errno not in _FAULTS_OF_THE_PAYLOAD or not os.path.isdir(place):
                raise
            with contextlib.suppress(OSError), open(f"{place}/{STDERR}", "ab") as errors:
                errors.write(f"{payload.command[0]}: {error.strerror}\n".encode("utf-8", "surrogateescape"))
            code = NOT_FOUND if error.errno == errno.ENOENT else CANNOT_RUN
            self._ended.append(EndedPayload(payload, code, now))
            return
        process = _Process(payload, place, handle, now)
        self._by_name[payload.name] = self._by_pid[handle.pid] = process

    def save(self, name: str, done: Callable[[int], None]) -> None:
        """Run a payload's `checkpoint` where it runs itself; `done` gets its code when it has ended. Raises OSError."""
        process = self._by_name.get(name)
        if process is None or process.stopped:
            return
        handle = self._run(process.payload.checkpoint, process.payload, process.place)

        def ended(code: int) -> None:
            handle.returncode = code
            done(code)

        self.leave_alone(handle.pid, ended)

    def _run(self, command: Sequence[str], payload: Payload, place: str) -> subprocess.Popen[bytes]:
        environment = {
            **self._environment,
            _NAME: payload.name,
            _PILOT: self._pilot,
            "DRAINWISE_PAYLOAD_CORES": str(payload.cores),
            "DRAINWISE_PAYLOAD_DIRECTORY": place,
        }
        with open(f"{place}/{STDOUT}", "ab") as output, open(f"{place}/{STDERR}", "ab") as errors:
            return subprocess.Popen(
                command,
                cwd=place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                preexec_fn=lead_group,  # noqa: PLW1509 - the pilot has one thread
            )

    def leave_alone(self, pid: int, gone: Callable[[int], None]) -> None:
        """Leave alone a child that is no payload (the payload command); `gone` gets its code when it has ended."""
        self._others[pid] = gone

    def stop(self, name: str, reason: str, now: float) -> None:
        """Ask a payload to end (TERM); KILL follows after kill_wait. One that is being stopped already is left so."""
        process = self._by_name.get(name)
        if process is None or process.stopped:
            return
        process.stopped, process.kill_at = reason, now + self._kill_wait
        self._stopping[name] = process
        kill_group(process.pid, signal.SIGTERM)
        kill_group(process.pid, signal.SIGCONT)

    def reap(self, now: float) -> list[EndedPayload]:
        """Return the payloads that ended since the last call; kill those whose time for an orderly end is over."""
        self._look()
        self._collect()
        for process in list(self._stopping.values()):
            late = now >= process.kill_at
            if late and not process.killed:
                process.killed = True
                kill_group(process.pid, signal.SIGKILL)
            # What a stopped payload's main process left behind in its group may still be tidying up.
            if process.code is not None and (late or not kill_group(process.pid, 0)):
                self._end(process)
        ended, self._ended = self._ended, []
        if ended:
            self._end_escaped()
        return ended

    def _look(self) -> None:
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK_EVERY
            for pid, process in self._by_pid.items():
                process.memory = max(process.memory, memory_of_trees([pid], proportional=True))
                process.look_at_files()

    def _collect(self) -> None:
        # A payload that is being stopped keeps its group for a while.
        for ended in ended_children(lambda pid: pid in self._by_pid and not self._by_pid[pid].stopped):
            process = self._by_pid.pop(ended.pid, None)
            if process is None:
                self._others.pop(ended.pid, _nobody)(ended.code)
                continue
            process.code = process.handle.returncode = ended.code
            memory, left = max(ended.peak_bytes, process.memory), process.look_at_files()
            process.usage = PayloadUsage(
                *(round(ended.cpu_seconds, 3), memory, ended.read_bytes, ended.written_bytes), process.work, left
            )
            if not process.stopped:
                self._end(process)

    def _end(self, process: _Process) -> None:
        del self._by_name[process.payload.name]
        self._stopping.pop(process.payload.name, None)
        self._ended.append(
            EndedPayload(process.payload, process.code or 0, process.start, process.stopped, process.usage)
        )

    def _end_escaped(self) -> None:
        """Kill what left the group of a payload that is over; what does not say whose it is, when the pilot ends."""
        pilot, running = self._pilot.encode(), {name.encode() for name in self._by_name}
        with contextlib.suppress(OSError):  # no descriptor is free: when the next one ends
            for pid in children():
                known = pid in self._by_pid or pid in self._others
                if not known and marks_of(pid, _PILOT) == [pilot] and running.isdisjoint(marks_of(pid, _NAME)):
                    _kill(pid)

    @property
    def next_kill(self) -> float | None:
        """When the next stopped payload must be killed, or None."""
        return min((process.kill_at for process in self._stopping.values() if not process.killed), default=None)

    def shift(self, seconds: float) -> None:
        """Follow a clock that was set by so much."""
        for process in self._by_name.values():
            process.start += seconds
            process.kill_at += seconds

    def clear(self) -> list[int]:
        """End everything below the pilot, whoever it belongs to; the pids that would not go within 5 s.

        Children that are no payloads have a moment to end in order, the others are killed.
        """
        for pid in self._others:
            kill_group(pid, signal.SIGTERM)
        deadline = time.monotonic() + _OTHERS_WAIT
        while self._others and time.monotonic() < deadline:
            self._collect()
            time.sleep(_PAUSE)
        for known in (self._by_name, self._by_pid, self._stopping, self._others):
            known.clear()
        return kill_all_below(_LAST_WAIT)


def _bytes_in(directory: str) -> int | None:
    """Return the bytes of the files at and below a payload's directory, but for what it printed; None: too many."""
    total, seen, left = 0, 0, [directory]
    while left:
        with contextlib.suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                seen += 1
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
                elif entry.name not in {STDOUT, STDERR}:
                    total += entry.stat(follow_symlinks=False).st_size
                if seen > _MOST_FILES:
                    return None
    return total


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _nobody(code: int) -> None:
    """Do nothing for an orphan that the pilot has adopted: nobody waits for it."""


def _own_directory(parent: str, name: str) -> str:
    """Make a new directory for a payload; one that ran here before left its own, which stays. Raises OSError."""
    # Only the last level: a startup directory that has gone is not made again.
    with contextlib.suppress(FileExistsError):
        os.mkdir(parent)
    place, number = f"{parent}/{name}", 1
    while True:
        try:
            os.mkdir(place)
        except FileExistsError:
            number += 1
            place = f"{parent}/{name}~{number}"
            continue
        return place
