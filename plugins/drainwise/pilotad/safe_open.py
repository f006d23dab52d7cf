"""Open and read files in a directory its user controls, as a reader with other rights than the user's.

What openat2(RESOLVE_BENEATH | NO_SYMLINKS | NO_MAGICLINKS | NO_XDEV) promises is had here without it, which Python
cannot call cheaply: names are single components opened below a directory descriptor (so nothing leads out, and a
renamed or swapped parent does not matter), O_NOFOLLOW refuses every symlink, magic ones too, and another file system
is seen by comparing devices. Nothing is believed before the open: kind, owner, links and size come from the descriptor.
O_NONBLOCK keeps FIFOs, devices and write leases from making us wait.
"""

from __future__ import annotations

import _stat as stat  # `stat` itself would be one more module for a hook to load
import errno
import posix
import time

from drainwise.common.local_file import OPEN, Held
from drainwise.common.mounts import is_on_other_fuse, same_mount
from drainwise.facts.errors import FeatureError, RefusedFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


class Patience:
    """Seconds left to wait; shared by the reads of one round."""

    __slots__ = ("_left",)

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    def pause(self, seconds: float) -> bool:
        """Sleep for `seconds` and say True, or say False at once when that is more than what is left.

        What counts is how long it really slept: on a busy machine a millisecond lasts ten.
        """
        if seconds > self._left:
            return False
        begun = time.monotonic()
        time.sleep(seconds)
        self._left -= max(seconds, time.monotonic() - begun)
        return True


# O_PATH: searching needs no read permission, and a directory's own file system is not asked to open anything.
_DIRECTORY_FLAGS = posix.O_PATH | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_CLOEXEC

_TRIES = 3
_PAUSE = 0.001

_REASONS = {
    errno.ENOENT: "absent",
    errno.ESTALE: "absent",
    errno.ELOOP: "symlink",
    errno.ENXIO: "not a regular file",
    errno.ENODEV: "not a regular file",
    errno.ENOTDIR: "not a directory",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EAGAIN: "lease held",
    errno.EMFILE: "no file descriptors",
    errno.ENFILE: "no file descriptors",
    errno.ENAMETOOLONG: "bad name",
}


def open_dir(name: str, dir_fd: int | None = None, uid: int | None = None) -> int:
    """Open the directory `name`, for `dir_fd` arguments only; the caller closes the descriptor.

    name: one component below `dir_fd`; without it a trusted path whose last component may not be a symlink.
    uid: the owner it must have (None: any). Raises RefusedFile.
    """
    if dir_fd is not None:
        _one_component(name)
    try:
        fd = posix.open(name, _DIRECTORY_FLAGS, dir_fd=dir_fd)
    except OSError as error:
        raise RefusedFile(reason_of(error)) from error
    try:
        if uid not in {None, owner_of(fd, dir_fd)}:
            raise RefusedFile("not the job's user")
    except RefusedFile:
        posix.close(fd)
        raise
    return fd


def owner_of(directory: int, below: int | None) -> int:
    """Return the owner of an open directory, which lies below the open directory `below`.

    A FUSE server could keep us waiting for the answer, or give none: mounted there since somebody looked, it is seen
    before it is asked. Raises RefusedFile.
    """
    if below is not None and is_on_other_fuse(directory, below):
        raise RefusedFile("other file system")
    try:
        return posix.fstat(directory).st_uid
    except OSError as error:
        raise RefusedFile(reason_of(error)) from error


def read_file(
    dir_fd: int, name: str, uid: int | None, limit: int, patience: Patience | None = None
) -> tuple[bytes, int]:
    """Read content and mtime (UNIX s) of the regular file `name` in `dir_fd`, as they were at one moment.

    uid: the owner it must have (None: any). limit: bytes it may hold. A file being written is tried three times in all,
    1 ms apart, as far as `patience` (None: enough) goes.
    Raises RefusedFile: "absent", "symlink", "not a regular file", "not the job's user", "hard link", "too large",
    "permission denied", "other file system", "torn", "empty", "lease held", "no file descriptors", "bad name", or the
    name of another errno.
    """
    verdict = "torn"
    for attempt in range(_TRIES):
        if attempt and not (patience or Patience(_PAUSE)).pause(_PAUSE):
            break
        with Held(open_file(dir_fd, name)) as fd:
            found = read_settled(fd, dir_fd, uid, limit)
        if found is not None and found[0]:
            return found
        # An empty file may be one that was just truncated to be written again.
        verdict = "torn" if found is None else "empty"
    raise RefusedFile(verdict)


def open_file(dir_fd: int, name: str) -> int:
    """Open whatever `name` in `dir_fd` is, unless a symlink; nothing else is checked. Raises RefusedFile."""
    _one_component(name)
    try:
        return posix.open(name, OPEN, dir_fd=dir_fd)
    except OSError as error:
        raise RefusedFile(reason_of(error)) from error


def read_settled(fd: int, dir_fd: int, uid: int | None, limit: int) -> tuple[bytes, int] | None:
    """Read as `read_file`, from a file already open; None when it changed meanwhile.

    Two reads must agree: clocks of files tick in ms on older kernels, so an equal mtime alone proves nothing.
    """
    before = check_file(fd, dir_fd, uid, limit)
    size = before.st_size
    try:
        data = posix.pread(fd, size + 1, 0)
        again = posix.pread(fd, size + 1, 0)
        after = posix.fstat(fd)
    except OSError as error:
        raise RefusedFile(reason_of(error)) from error
    if len(data) == size == after.st_size and again == data and before.st_mtime_ns == after.st_mtime_ns:
        return data, before.st_mtime_ns // 1_000_000_000
    return None


def check_file(fd: int, dir_fd: int, uid: int | None, limit: int) -> posix.stat_result:
    """Refuse an open file that is not a small plain one of `uid`'s own, on its directory's file system.

    Returns what was found. Raises RefusedFile as `read_file`.
    """
    try:
        found, device = posix.fstat(fd), posix.fstat(dir_fd).st_dev
    except OSError as error:
        raise RefusedFile(reason_of(error)) from error
    if not stat.S_ISREG(found.st_mode):
        raise RefusedFile("not a regular file")
    if uid is not None and found.st_uid != uid:
        raise RefusedFile("not the job's user")
    if found.st_nlink > 1:
        raise RefusedFile("hard link")
    if found.st_size > limit:
        raise RefusedFile("too large")
    # overlayfs may show another device within one mount: then the mount itself is asked.
    if found.st_dev != device and not same_mount(fd, dir_fd):
        raise RefusedFile("other file system")
    return found


def _one_component(name: str) -> None:
    if name in {"", ".", ".."} or "/" in name or "\0" in name:
        raise RefusedFile("bad name")


def reason_of(error: OSError) -> str:
    """Return one short phrase for `error`; never a path or a value."""
    number = error.errno or 0
    return _REASONS.get(number) or errno.errorcode.get(number, "unknown error")


_ADVICE = {
    errno.ENOSPC: "free space in the job's directory",
    errno.EDQUOT: "the user's quota is used up: free space",
    errno.EFBIG: "raise the job's limit of the size of files",
    errno.EMFILE: "close files or raise the limit of open files",
    errno.ENOTEMPTY: "remove the directory of that name",
}


class JobDirectory:
    """A directory to write the file `name` in: a descriptor, left open, or a path, opened for the time of the `with`.

    What goes wrong in the `with`, as OSError or RefusedFile, becomes a FeatureError that names the file.
    """

    __slots__ = ("_fd", "_given", "_name")

    def __init__(self, directory: int | str, name: str) -> None:
        self._given, self._name, self._fd = directory, name, -1

    def __enter__(self) -> int:
        if isinstance(self._given, int):
            return self._given
        try:
            self._fd = open_dir(self._given)
        except RefusedFile as refused:
            name = ascii(self._given[-60:])
            raise FeatureError(f"{name}: {refused.reason}; expected the job's directory, no symlink") from refused
        return self._fd

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd >= 0:
            posix.close(self._fd)
        if isinstance(error, RefusedFile):
            raise not_written(self._name, error.reason) from error
        if isinstance(error, OSError):
            raise not_written(self._name, error) from error


def not_written(name: str, error: OSError | str) -> FeatureError:
    """Make the one-line error for a file (a name of ours) that was not written or removed, with what to do."""
    if isinstance(error, str):
        return FeatureError(f"{name}: not written ({error})")
    number = error.errno or 0
    return FeatureError(f"{name}: not written ({posix.strerror(number)}); {_ADVICE.get(number, 'check its directory')}")
