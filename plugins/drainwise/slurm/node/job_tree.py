"""The directories of a job on its node: <runtime_dir>/<node>/<job>/, made by the prolog, root's alone.

A tree is filled under a hidden name, where no user gets in, and renamed into place; it is taken away by renaming it to
another hidden name and removing it there. So a job's name leads to a whole tree or to nothing, and whatever a killed
hook leaves behind is known by its name. Nobody but root can write to any directory down to the job's own $JOBSTATUS.

That is the only place in the runtime directory where a user can write, so it is a small file system of its own: what
its user writes there takes nothing from anybody else. The prolog mounts a tmpfs of a fixed size and number of files
there before anybody gets in, and the epilog takes it away with the job's tree. Where it cannot be mounted, the
directory stays a plain one, as large as what it lies in. Before Slurm 24.11, job_container/tmpfs makes a job's view of
all mounts before the prolog runs, so there the job would write below the mount, unseen: nothing is mounted then.
"""

from __future__ import annotations

import _stat as stat  # `stat` itself would be one more module for a hook to load
import errno
import posix

from drainwise.common.local_file import Held, create_file, shown
from drainwise.facts.errors import FeatureError
from drainwise.node import JOB_STATUS
from drainwise.node.hook import status_of
from drainwise.slurm import COMPLETE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.slurm.node.environment import Environment
    from drainwise.slurm.node.lease import SlurmLease

NEW, GONE = ".new.", ".gone."
"""The two hidden names: of a tree that is being made, and of one that is to be removed."""

BYTES, FILES = 1 << 20, 128
"""What a job can write: a report has ten files of some bytes, each a page of memory."""

_TYPE = b" - tmpfs drainwise "
_SILENT = ((posix.POSIX_SPAWN_OPEN, 2, "/dev/null", posix.O_WRONLY, 0),)
_PROGRAMS = ("/usr/bin/", "/bin/")

_DIRECTORY = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_CLOEXEC
_MODE = 0o755
_TRIES = 8
_ABANDONED = 60
"""Seconds after which a tree that is still being made belongs to a hook that was killed: hooks have less time."""
_IN_THE_WAY = {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}


def open_node(runtime_dir: str, node: str, create: bool = False) -> int | None:
    """Return a descriptor of the directory of a node's jobs; None when it is not there and is not to be made.

    Raises FeatureError when one of the two directories is not root's alone, OSError when one cannot be made or opened.
    """
    runtime = _open_own(runtime_dir, None, create)
    if runtime is None:
        return None
    with Held(runtime):
        return _open_own(node, runtime, create)


def _open_own(name: str, below: int | None, create: bool) -> int | None:
    try:
        directory = posix.open(name, _DIRECTORY, dir_fd=below)
    except FileNotFoundError:
        if not create:
            return None
        try:
            posix.mkdir(name, _MODE, dir_fd=below)
            is_ours = True
        except FileExistsError:
            is_ours = False  # another prolog was faster
        directory = posix.open(name, _DIRECTORY, dir_fd=below)
        if is_ours:
            posix.fchmod(directory, _MODE)
    status = posix.fstat(directory)
    if status.st_uid == posix.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return directory
    posix.close(directory)
    raise FeatureError(f"{shown(name)}: others may write there; expected root's directory with mode 0755")


def open_tree(node: int, name: str) -> int | None:
    """Return a descriptor of a tree below the open directory of a node; None when there is none. Raises OSError."""
    try:
        return posix.open(name, _DIRECTORY, dir_fd=node)
    except FileNotFoundError:
        return None


def new_tree(node: int, job: str) -> tuple[str, int]:
    """Return an empty tree under a hidden name, for root alone: its name and a descriptor. Raises OSError."""
    name = _free_name(node, f"{NEW}{job}")  # a hook that was killed may have left another, and had our number
    posix.mkdir(name, 0o700, dir_fd=node)
    return name, posix.open(name, _DIRECTORY, dir_fd=node)


def _free_name(node: int, stem: str) -> str:
    for attempt in range(_TRIES):
        name = f"{stem}.{posix.getpid()}.{attempt}"
        if status_of(name, node) is None:
            return name
    raise FileExistsError(errno.EEXIST, f"no free name {stem}.{posix.getpid()}.N")


def put_in_place(node: int, name: str, tree: int, job: str) -> str | None:
    """Give a finished tree its job's name. What stands there is set aside: its hidden name, or None. Raises OSError."""
    posix.fchmod(tree, _MODE)
    aside = None
    for attempt in range(_TRIES):
        try:
            posix.rename(name, job, src_dir_fd=node, dst_dir_fd=node)
        except OSError as error:
            if error.errno not in _IN_THE_WAY or attempt == _TRIES - 1:
                raise
            aside = set_aside(node, job) or aside
        else:
            break
    return aside


def set_aside(node: int, tree: str) -> str | None:
    """Leave a tree, or whatever has this name, to the epilogs: its new name, None when there is nothing.

    `tree`: the job's own name, or the hidden one of a tree that could not be finished. Raises OSError.
    """
    name = _free_name(node, f"{GONE}{tree.lstrip('.')}")
    try:
        posix.rename(tree, name, src_dir_fd=node, dst_dir_fd=node)
    except FileNotFoundError:
        return None
    return name


def mark_complete(tree: int) -> None:
    """Say in the open tree of a job that nothing more is to be waited for. Raises OSError."""
    try:
        create_file(COMPLETE, b"", tree)
    except FileExistsError:
        return


def jobs(node: int) -> list[str]:
    """Return the jobs that have a tree below the open directory of a node, in no order. Raises OSError."""
    return [name for name in posix.listdir(node) if name.isdigit() and name.isascii()]


def leftovers(node: int, now: float) -> list[str]:
    """Return the hidden names below the open directory of a node that nobody works on any more; `now` in UNIX s."""
    found = []
    for name in posix.listdir(node):
        made = status_of(name, node) if name.startswith(NEW) else None
        if name.startswith(GONE) or (made is not None and now - made.st_mtime > _ABANDONED):
            found.append(name)
    return found


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
