"""The kernel's control groups, in which memory is counted: where our own is, who is in one, an end for all of it.

Source: the kernel's admin-guide/cgroup-v1/memory.rst and admin-guide/cgroup-v2.rst; systemd's CGROUP_DELEGATION.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import NamedTuple

from drainwise.common.local_file import Held
from drainwise.common.processes import Process, birth_of, send

PROCESSES, SUBTREE = "cgroup.procs", "cgroup.subtree_control"
"""The files of a group that take a process (0: who writes), and, version 2, what is counted in the groups below."""
_CONTROLLERS, _KILL = "cgroup.controllers", "cgroup.kill"
_ROUNDS = 10
"""Looks at most for what a group has started meanwhile."""


class GroupFiles(NamedTuple):
    """The files of a group of one version. A kernel may lack all but the first of `limits` and the first of `kills`.

    limits: those that are set, with the value; None: the limit in bytes.
    kills: the file and its field that counts the kills for want of memory; a file that has no such field counts less.
    most: the file that has the most bytes that were in use; "": `kills` counts none for want of memory elsewhere.
    """

    limits: tuple[tuple[str, str | None], ...]
    kills: tuple[tuple[str, str], ...]
    most: str = ""


FILES = {
    1: GroupFiles(
        (("memory.limit_in_bytes", None), ("memory.memsw.limit_in_bytes", None)),
        (("memory.oom_control", "oom_kill"),),
        "memory.max_usage_in_bytes",
    ),
    # `oom` counts where a limit was reached, `oom_kill` where the victim was. The kernel's 5.1 lacks the first file.
    2: GroupFiles(
        (("memory.max", None), ("memory.swap.max", "0"), ("memory.oom.group", "1")),
        (("memory.events.local", "oom"), ("memory.events", "oom")),
    ),
}


class Hierarchy(NamedTuple):
    """The tree of groups that counts memory: its version, its mount point, the directory of this process's group."""

    version: int
    top: str
    own: str


def hierarchy_here(controller: str) -> Hierarchy | None:
    """Find the hierarchy of this process, as `memory_hierarchy`."""
    texts = []
    for path in ("/proc/self/cgroup", "/proc/self/mountinfo"):
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                texts.append(file.read())
        except OSError:
            return None
    return memory_hierarchy(texts[0], texts[1], controller)


def memory_hierarchy(cgroup: str, mountinfo: str, controller: str) -> Hierarchy | None:
    """Find it in the texts of /proc/self/cgroup and /proc/self/mountinfo; None where nothing counts memory here.

    controller: `memory`. Version 1 where the controller is mounted there: it is in one version alone.
    """
    paths: dict[int, str] = {}
    for line in cgroup.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(","):
            paths[1] = path
        elif number == "0" and not controllers:
            paths[2] = path
    for version, path in sorted(paths.items()):
        for line in mountinfo.splitlines():
            before, _, after = line.partition(" - ")
            fields, kind = before.split(" "), after.split(" ")
            wanted = kind[0] == "cgroup2" if version == 2 else kind[0] == "cgroup" and controller in kind[2].split(",")
            root = fields[3].rstrip("/")
            if wanted and ".." not in path.split("/") and (path + "/").startswith(root + "/"):
                top = fields[4]
                hierarchy = Hierarchy(version, top, os.path.normpath(top + path[len(root) :]))
                if version == 1 or controller in _words(hierarchy.own, _CONTROLLERS):
                    return hierarchy
    return None


def write(directory: str, name: str, value: str) -> None:
    """Write a file of a group. Raises OSError, which names it."""
    path = f"{directory}/{name}"
    try:
        with Held(os.open(path, os.O_WRONLY | os.O_CLOEXEC)) as descriptor:
            os.write(descriptor, value.encode())
    except OSError as fault:
        raise OSError(fault.errno, fault.strerror, path) from None


def count_below(directory: str, controller: str) -> None:
    """Have the groups below this one of version 2 counted. Raises OSError, EBUSY where a process is in it."""
    write(directory, SUBTREE, f"+{controller}")


def is_counted_below(directory: str, controller: str) -> bool:
    """Return whether the groups below this one of version 2 are counted."""
    return controller in _words(directory, SUBTREE)


def number_of(directory: str, name: str, field: str = "") -> int | None:
    """Return a number that a file of a group has, alone or behind the word `field`; None: the kernel has none."""
    words = _words(directory, name)
    with suppress(ValueError, IndexError):
        return int(words[words.index(field) + 1] if field else words[0])
    return None


def kill_all(directory: str) -> None:
    """Kill what is in a group and in those below it. What is started meanwhile another call finds."""
    with suppress(OSError):
        write(directory, _KILL, "1")  # version 2, kernel 5.14 and later
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
        found += [int(word) for word in _words(place, PROCESSES) if word != "0"]
    return found


def _words(directory: str, name: str) -> list[str]:
    """Return the words of a file of a group; [] where it cannot be read."""
    try:
        with open(f"{directory}/{name}", encoding="ascii") as file:
            return file.read().split()
    except (OSError, UnicodeError):
        return []
