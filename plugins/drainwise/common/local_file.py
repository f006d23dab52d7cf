"""One small file in a place where somebody else may have put something else: read with care, or replaced by rename.

Reading takes regular files only, is bounded, and never waits. Writing creates a new file and renames it, so that what
waits under the name is never opened, and a reader sees the old content or the new.
"""

from __future__ import annotations

import _stat as stat  # `stat` itself would be one more module for a hook to load
import errno
import posix

from drainwise.facts.errors import FeatureError

OPEN = posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_NOCTTY | posix.O_CLOEXEC
"""Flags to open what may be a link, a FIFO or a terminal by now."""
_CREATE = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW | posix.O_CLOEXEC
_TRIES = 8
_PIECE = 65536
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Held:
    """An open descriptor, closed at the end of the `with`."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        posix.close(self._descriptor)


def shown(name: str) -> str:
    """Print a name from outside: the last part of a path, ASCII without control characters, at most 60 characters."""
    return ascii(name.rpartition("/")[2][:60])[1:-1][:60]


def split_path(path: str) -> tuple[str, str]:
    """Split a path into its directory, never empty, and its last part."""
    parent, slash, name = path.rpartition("/")
    return parent or slash or ".", name


def kind_of(mode: int) -> str:
    """Name the kind of file in an error message."""
    return _KINDS.get(stat.S_IFMT(mode), "not a regular file")


def read_small(path: str, limit: int, dir_fd: int | None = None) -> tuple[bytes, posix.stat_result] | None:
    """Read a regular file of at most `limit` bytes; None when there is none.

    A symbolic link is not followed. The kind is looked at before opening, so that no device is ever opened, and again
    afterwards, so that a swap in between gains nothing.

    Raises: FeatureError, one short line, for anything else than a small regular file that may be read.
    """
    try:
        before = posix.stat(path, dir_fd=dir_fd, follow_symlinks=False)
        _must_be_regular(path, before)
        with Held(posix.open(path, OPEN, dir_fd=dir_fd)) as fd:
            after = posix.fstat(fd)
            _must_be_regular(path, after)
            content = b""
            while len(content) <= limit:
                piece = posix.read(fd, min(limit + 1 - len(content), _PIECE))
                if not piece:
                    return content, after
                content += piece
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR}:
            return None
        raise FeatureError(f"{shown(path)}: {error.strerror}") from None
    raise FeatureError(f"{shown(path)}: longer than {limit} bytes")


def _must_be_regular(path: str, status: posix.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise FeatureError(f"{shown(path)}: expected a regular file, found {kind_of(status.st_mode)}")


def small_text(path: str, limit: int, dir_fd: int | None = None) -> str | None:
    """Return the text of a file as `read_small`, without blanks around it; None where none can be read."""
    try:
        found = read_small(path, limit, dir_fd)
    except FeatureError:
        return None
    return None if found is None else found[0].decode("latin-1").strip()


def read_json(path: str, limit: int) -> object:
    """Return the value in a JSON file of at most `limit` bytes; None when there is none.

    Raises: FeatureError as `read_small`, ValueError for what is no JSON.
    """
    import json  # noqa: PLC0415 - no hook needs it

    found = read_small(path, limit)
    try:
        return None if found is None else json.loads(found[0])
    except RecursionError:
        raise ValueError("nested too deeply") from None


def create_file(name: str, content: bytes, directory: int, durable: bool = False) -> None:
    """Create `name` in an open directory, mode 0644 whatever the umask; nothing is left when it cannot be whole.

    Parameters: `durable` waits until the content is on disk.
    Raises: OSError.
    """
    fd = posix.open(name, _CREATE, 0o644, dir_fd=directory)
    try:
        if posix.write(fd, content) != len(content):
            raise OSError(errno.ENOSPC, "the file could not be written in whole")
        posix.fchmod(fd, 0o644)
        if durable:
            posix.fsync(fd)
    except OSError:
        posix.unlink(name, dir_fd=directory)
        raise
    finally:
        posix.close(fd)


def replace_file(name: str, content: bytes, directory: int | str, durable: bool = False) -> None:
    """Put `content` under `name` by rename, whatever stood there except a directory with something in it.

    directory: open, or its path. Raises: OSError.
    """
    if isinstance(directory, str):
        with Held(posix.open(directory, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)) as opened:
            return replace_file(name, content, opened, durable)
    stem = f".{name}.{posix.getpid()}"
    temporary = stem
    for attempt in range(_TRIES):
        temporary = f"{stem}.{attempt}"
        try:
            create_file(temporary, content, directory, durable)
            break
        except FileExistsError:
            continue
    else:
        raise FileExistsError(errno.EEXIST, f"no free temporary name {stem}.N")
    try:
        try:
            posix.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except IsADirectoryError:
            posix.rmdir(name, dir_fd=directory)
            posix.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        posix.unlink(temporary, dir_fd=directory)
        raise


def is_at(descriptor: int, path: str, dir_fd: int | None = None) -> bool:
    """Decide whether `path` still leads to the open file: a lock on one that was replaced guards nothing."""
    try:
        there, here = posix.stat(path, dir_fd=dir_fd, follow_symlinks=False), posix.fstat(descriptor)
    except OSError:
        return False
    return (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev)


def make_public(path: str) -> None:
    """Make the directory `path` and its parents where they are missing, each with mode 0755 whatever the umask.

    Jobs' users must get to what lies there. What is there is left as it is. Raises OSError.
    """
    if not path or _is_directory(path):
        return
    make_public(path.rstrip("/").rpartition("/")[0])
    try:
        posix.mkdir(path)
    except FileExistsError:
        if not _is_directory(path):
            raise
        return  # made by another process in this moment
    posix.chmod(path, 0o755)


def _is_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(posix.stat(path).st_mode)
    except OSError:
        return False
