"""What a site leaves on this machine while it runs and must not leave afterwards: processes, mounts, users, files."""

from __future__ import annotations

import os
import tempfile

from real_daemons.roots import mount_point


def namespace_of(pid: int, kind: str) -> int:
    """The number of a process's namespace (`pid`, `mnt` …); raises OSError if the process is gone."""
    return os.stat(f"/proc/{pid}/ns/{kind}").st_ino


def processes_in(namespaces: set[int]) -> list[int]:
    """Processes of this machine in one of these namespaces (pid or mnt)."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if {namespace_of(int(name), "pid"), namespace_of(int(name), "mnt")} & namespaces:
                found.append(int(name))
        except OSError:  # it has ended, or not even root may look
            continue
    return found


def host_state() -> tuple[list[str], str, str, list[str]]:
    """Mounts, users, hosts, files below the cache's mount point: equal before and after a site.

    Mounts below the directory of temporary files and that of shared memory are left out: a site makes none there, and
    other tests do meanwhile.
    """
    texts = []
    for path in ("/proc/self/mountinfo", "/etc/passwd", "/etc/hosts"):
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    temporary = os.path.realpath(tempfile.gettempdir()) + "/", "/dev/shm/"  # noqa: S108 - nothing is made there
    mounts = [line for line in texts[0].splitlines() if not line.split()[4].startswith(temporary)]
    return mounts, texts[1], texts[2], os.listdir(mount_point())


def child_of(pid: int) -> int:
    """The first child of a process, 0 as long as there is none."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return int((file.read().split() or ["0"])[0])
    except FileNotFoundError:
        return 0
