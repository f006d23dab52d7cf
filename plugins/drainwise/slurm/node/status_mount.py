"""A job's $JOBSTATUS as a small file system of its own: what its user writes there takes nothing from anybody else.

It is the only place in the runtime directory where a user can write. The prolog mounts a tmpfs of a fixed size and
number of files there before anybody gets in, and the epilog takes it away with the job's tree. Where it cannot be
mounted, the directory stays a plain one, as large as what it lies in.

Before Slurm 24.11, job_container/tmpfs makes a job's view of all mounts before the prolog runs, so there the job would
write below the mount, unseen: nothing is mounted then.
"""

from __future__ import annotations

import posix

from drainwise.node import JOB_STATUS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.slurm.node.environment import Environment
    from drainwise.slurm.node.lease import SlurmLease

BYTES, FILES = 1 << 20, 128
"""What a job can write: a report has ten files of some bytes, each a page of memory."""

_TYPE = b" - tmpfs drainwise "
_SILENT = ((posix.POSIX_SPAWN_OPEN, 2, "/dev/null", posix.O_WRONLY, 0),)
_PROGRAMS = ("/usr/bin/", "/bin/")


def can_be_seen(environment: Environment, lease: SlurmLease) -> bool:
    """Decide whether a job would see what its prolog mounts."""
    if lease.start_known:  # since 24.11
        return True
    directory = environment.get(b"SLURM_CONF", b"/etc/slurm/slurm.conf").rpartition(b"/")[0]
    try:
        posix.stat(directory + b"/job_container.conf")
    except OSError:
        return True
    return False


def mount(directory: str, uid: int, gid: int) -> bool:
    """Mount on a directory that nobody but root can get to yet; whether it worked."""
    limits = f"size={BYTES},nr_inodes={FILES},mode=755,uid={uid},gid={gid},nosuid,nodev,noexec"
    return _run("mount", "-n", "-t", "tmpfs", "-o", limits, "drainwise", directory)


def unmount(tree: str) -> None:
    """Take the mount in a job's tree (a real path) away, if it is alone: a user may mount on his own directory."""
    if _mounts_below(tree) == own_mounts(tree) == (f"{tree}/{JOB_STATUS}",):
        _run("umount", "-n", "-l", f"{tree}/{JOB_STATUS}")


def own_mounts(base: str) -> tuple[str, ...]:
    """Return the mounts of ours at or below `base`, a real path."""
    return _mounts_below(base, _TYPE)


def foreign_mounts(base: str) -> tuple[str, ...]:
    """Return others' mounts at or below `base`, a real path, and those of ours on which somebody has mounted again."""
    found, own = list(_mounts_below(base)), own_mounts(base)
    for place in own:
        found.remove(place)
    return tuple(found)


def is_full(directory: str) -> bool:
    """Decide whether the file system that a directory of ours lies in has no room left for anything. Raises OSError."""
    left = posix.statvfs(directory)
    return left.f_bavail == 0 or (left.f_files > 0 and left.f_ffree == 0)


def _mounts_below(base: str, marked: bytes = b"") -> tuple[str, ...]:
    from drainwise.common.mounts import mounts_below  # noqa: PLC0415 - the prolog needs none of it

    return mounts_below(base, marked)


def _run(program: str, *arguments: str) -> bool:
    for directory in _PROGRAMS:
        try:
            child = posix.posix_spawn(directory + program, [program, *arguments], {}, file_actions=_SILENT)
        except OSError:
            continue
        return posix.waitstatus_to_exitcode(posix.waitpid(child, 0)[1]) == 0
    return False
