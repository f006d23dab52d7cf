"""The kernel's control groups of version 2: where our own is, who is in one, an end for all of it.

Source: the kernel's admin-guide/cgroup-v2.rst; systemd's CGROUP_DELEGATION.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import NamedTuple

from drainwise.processes.process import Process, birth_of, send

PROCESSES, SUBTREE = "cgroup.procs", "cgroup.subtree_control"
"""The files of a group that take a process (0: who writes), and what is counted in the groups below."""
_CONTROLLERS, _KILL = "cgroup.controllers", "cgroup.kill"
_ROUNDS = 10
"""Looks at most for what a group has started meanwhile."""


class Hierarchy(NamedTuple):
    """The tree of groups: its mount point, and the directory of this process's group."""

    top: str
    own: str


def hierarchy_here(controller: str) -> Hierarchy | None:
    """Find the hierarchy of this process, as `hierarchy_in`."""
    texts = []
    for path in ("/proc/self/cgroup", "/proc/self/mountinfo"):
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                texts.append(file.read())
        except OSError:
            return None
    return hierarchy_in(texts[0], texts[1], controller)


def hierarchy_in(cgroup: str, mountinfo: str, controller: str) -> Hierarchy | None:
    """Find it in the texts of /proc/self/cgroup and /proc/self/mountinfo; None where it does not count `controller`."""
    path = next((line[3:] for line in cgroup.splitlines() if line.startswith("0::")), "..")
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        root = fields[3].rstrip("/")
        if after.startswith("cgroup2 ") and ".." not in path.split("/") and (path + "/").startswith(root + "/"):
            own = os.path.normpath(fields[4] + path[len(root) :])
            if controller in words_of(own, _CONTROLLERS):
                return Hierarchy(fields[4], own)
    return None


def write(directory: str, name: str, value: str) -> None:
    """Write a file of a group. Raises OSError, which names it."""
    path = f"{directory}/{name}"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)
    except OSError as fault:
        raise OSError(fault.errno, fault.strerror, path) from None


def number_of(directory: str, name: str, field: str = "") -> int | None:
    """Return a number that a file of a group has, alone or behind the word `field`; None: the kernel has none."""
    words = words_of(directory, name)
    with suppress(ValueError, IndexError):
        return int(words[words.index(field) + 1] if field else words[0])
    return None


def kill_all(directory: str) -> None:
    """Kill what is in a group and in those below it. What is started meanwhile another call finds."""
    with suppress(OSError):
        write(directory, _KILL, "1")  # kernel 5.14 and later
        return
    for _ in range(_ROUNDS):
        births = {pid: birth_of(pid) for pid in _members(directory)}
        # Who is still in it afterwards is who was born then: no pid of another's is signalled.
        found = [Process(pid, births[pid] or 0) for pid in _members(directory) if births.get(pid)]
        if not [send(process, signal.SIGKILL) for process in found]:
            return


def remove(directory: str) -> bool:
    """Take a group and those below it away; whether it is gone. One with a process in it stays."""
    for place, _, _ in os.walk(directory, topdown=False):
        with suppress(OSError):
            os.rmdir(place)
    return not os.path.isdir(directory)


def _members(directory: str) -> list[int]:
    """Return the pids of a group and of those below it. 0, another namespace's, is none of ours."""
    found = []
    for place, _, _ in os.walk(directory):
        found += [int(word) for word in words_of(place, PROCESSES) if word != "0"]
    return found


def words_of(directory: str, name: str) -> list[str]:
    """Return the words of a file of a group; [] where it cannot be read."""
    try:
        with open(f"{directory}/{name}", encoding="ascii") as file:
            return file.read().split()
    except (OSError, UnicodeError):
        return []
