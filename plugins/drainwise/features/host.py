"""Read this host's cores, memory and scratch from the kernel's files at the cost of a few system calls.

Nothing here raises: what cannot be read is None, and the key is left out.
"""

from __future__ import annotations

import posix

from drainwise.common.local_file import small_text

SYS_CPU = "/sys/devices/system/cpu"
CPUINFO = "/proc/cpuinfo"
MEMINFO = "/proc/meminfo"

_LIMIT = 4096
_CPUINFO_LIMIT = 8 * 1024**2
"""A host of 512 logical CPUs has about 1 MB there."""


def cores(sys_cpu: str = SYS_CPU, cpuinfo: str = CPUINFO) -> tuple[int | None, int | None]:
    """Count the online physical and logical cores.

    /sys is asked first: it costs one small file, and one more per physical core where hyper-threading is on.
    /proc/cpuinfo, which the kernel takes long to write on a large host, is read only where /sys says nothing.

    Returns: (`phys_cores`, `log_cores`); `log_cores` is 0 when hyper-threading is off (draft row 2.5).
    """
    counted = _from_sys(sys_cpu) or _from_cpuinfo(cpuinfo)
    if counted is None:
        return None, None
    physical, logical = counted
    return physical, logical if logical > physical else 0


def memory_bytes(meminfo: str = MEMINFO) -> int | None:
    """Read the host's memory (MemTotal) in bytes."""
    for line in _text(meminfo, _LIMIT * 4).splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == "MemTotal:" and words[1].isdigit() and words[2] == "kB":
            return int(words[1]) * 1024
    return None


def scratch_bytes(path: str) -> int | None:
    """Measure the whole file system under `path` in bytes: what a job may use where there is no quota."""
    try:
        status = posix.statvfs(path)
    except OSError:
        return None
    return status.f_blocks * status.f_frsize or None


def cpu_list(text: str) -> list[int]:
    """Parse the kernel's list of CPUs; [] for anything else.

    >>> cpu_list("0-2,8")
    [0, 1, 2, 8]
    """
    cpus: list[int] = []
    for part in text.strip().split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (part.isascii() and first.isdecimal() and last.isdecimal() and len(last) <= 5):
            return []
        cpus.extend(range(int(first), int(last) + 1))
    return cpus


def _text(path: str, limit: int) -> str:
    return small_text(path, limit) or ""


def _from_sys(sys_cpu: str) -> tuple[int, int] | None:
    online = cpu_list(_text(f"{sys_cpu}/online", _LIMIT))
    if not online:
        return None
    if _text(f"{sys_cpu}/smt/active", _LIMIT).strip() == "0":
        return len(online), len(online)
    physical = 0
    counted: set[int] = set()
    for cpu in online:
        if cpu not in counted:
            siblings = cpu_list(_text(f"{sys_cpu}/cpu{cpu}/topology/thread_siblings_list", _LIMIT))
            if cpu not in siblings:
                return None
            counted.update(siblings)
            physical += 1
    return physical, len(online)


def _from_cpuinfo(path: str) -> tuple[int, int] | None:
    logical = 0
    package = ""
    physical: set[tuple[str, str]] = set()
    for line in _text(path, _CPUINFO_LIMIT).splitlines():
        name, _, value = line.partition(":")
        name = name.strip()
        if name == "processor":
            logical += 1
            package = ""
        elif name == "physical id":
            package = value
        elif name == "core id":
            physical.add((package, value))
    if not logical:
        return None
    return len(physical) or logical, logical
