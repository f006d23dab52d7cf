"""What a payload used, as the kernel counted it: for those who want to learn from its record."""

from __future__ import annotations

import resource
from typing import NamedTuple


class Usage(NamedTuple):
    """CPU time of a payload's main process and the descendants it waited for, and the largest RSS of any one of them.

    cpu_seconds: over all cores. memory_bytes: less than the payload's own when several of its processes were large.
    """

    cpu_seconds: float
    memory_bytes: int


def usage_of(counted: resource.struct_rusage) -> Usage:
    """What wait4 says of a process that has ended."""
    return Usage(round(counted.ru_utime + counted.ru_stime, 3), counted.ru_maxrss * 1024)


def usage_details(usage: Usage | None) -> dict[str, object]:
    """The same for a line of a record."""
    return {} if usage is None else usage._asdict()
