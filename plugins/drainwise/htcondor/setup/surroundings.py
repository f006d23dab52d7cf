"""What a node's operating system keeps from drainwise: access lists in $(EXECUTE), processes in /proc, the right time.

The node's cron is HTCondor's own user. It reaches a pilot's report by an access list on the job's directory, and knows
a job's starter by /proc; without either, every pilot of the node is silent.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from drainwise.common.acl import ACCESS_LIST
from drainwise.pool.clocks import clock_off
from drainwise.pool.finding import MISSING, Finding

_UNSUPPORTED = {errno.ENOTSUP, errno.EOPNOTSUPP}
_HIDING = re.compile(r"\bhidepid=(?!0|off)(\w+)")


@dataclass(frozen=True)
class Surroundings:
    """The directory $(EXECUTE), the numbers of the user and the group that own it, and what hides /proc.

    has_lists: whether its file system has access lists. other: it, or the next one above that has them, "" for none.
    proc: the options of the mount of /proc.
    """

    execute: str
    owner: tuple[int, int]
    has_lists: bool = True
    other: str = ""
    proc: str = ""


def surroundings(execute: str, mounts: str = "/proc/mounts") -> Surroundings | None:
    """Look at this node; None where $(EXECUTE) is not there."""
    try:
        status = os.stat(execute)
    except OSError:
        return None
    above = execute
    while above != "/" and not _has_lists(above):
        above = os.path.dirname(above)
    with open(mounts, encoding="utf-8", errors="replace") as stream:
        proc = [line.split(" ")[3] for line in stream if line.split(" ")[1:3] == ["/proc", "proc"]]
    other = above if _has_lists(above) else ""
    return Surroundings(execute, (status.st_uid, status.st_gid), other == execute, other, proc[-1] if proc else "")


def _has_lists(directory: str) -> bool:
    try:
        os.getxattr(directory, ACCESS_LIST)
    except OSError as fault:
        return fault.errno not in _UNSUPPORTED
    return True


def judge_surroundings(found: Surroundings) -> Iterator[Finding]:
    """Yield a finding for each that keeps the node's cron from the pilots' reports. Pure."""
    uid, gid = found.owner
    if not found.has_lists:
        why = "its file system has no access lists, so the cron reaches no pilot's report: every pilot here is silent"
        place = f"{found.other.rstrip('/')}/execute-with-lists" if found.other else "DIR-ON-EXT4-OR-XFS"
        line = (
            f"install -d -m 755 -o {uid} -g {gid} {place}; echo 'EXECUTE = {place}' >/etc/condor/config.d/45-execute;"
            " condor_restart -peaceful -startd"
        )
        yield Finding(MISSING, "EXECUTE", why, line, found.execute)
    hiding = _HIDING.search(found.proc)
    if hiding and f"gid={gid}" not in found.proc.split(","):
        why = "/proc hides the starters and payloads from HTCondor's user, so that pilots here count as silent"
        line = f"mount -o remount,{hiding[0]},gid={gid} /proc   # and in /etc/fstab"
        yield Finding(MISSING, "/proc", why, line, found.proc)


def judge_clock(machine: str, clock: int, heard: int) -> Iterator[Finding]:
    """Judge a node's clock: its time as its startd sent it, and that of the collector when it came (UNIX s; 0: none).

    Pure.
    """
    off = clock_off(clock, heard) if clock and heard else 0
    if off:
        how = f"{abs(off)} s {'ahead of' if off > 0 else 'behind'}"
        why = f"it is {how} the collector's, so that deadlines are wrong there, and no order is given"
        yield Finding(MISSING, "clock", why, f"timedatectl set-ntp true   # on {machine}", machine=machine)


def judge_unusable(machine: str, paths: Collection[str]) -> Iterator[Finding]:
    """Judge what the cron of a node publishes of the files there that jobs need and cannot use. Pure."""
    if paths:
        why = (
            "gone, or of no use to the jobs' users, by the node's last update: jobs there start without features, or"
            " not at all"
        )
        line = f"drainwise doctor   # on {machine}"
        yield Finding(MISSING, "files of the node", why, line, " ".join(sorted(paths)), machine)
