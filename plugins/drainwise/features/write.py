"""A directory of keys, made or brought up to date: each file whole at any moment, nothing of the user's followed.

This runs in a hook, as the job's user, in the job's own sandbox, where the user may have put anything before us.
Everything goes through directory file descriptors and names that are created, never opened for writing: a link, FIFO
or file that waits under a key's name is replaced by rename and never written to. A new directory is filled under a
temporary name and renamed into place, so a job sees all of it or nothing.
"""

from __future__ import annotations

import _stat as stat  # `stat` itself would be one more module for a hook to load
import errno
import posix

from drainwise.common.local_file import OPEN, Held, create_file, kind_of, replace_file, shown, split_path
from drainwise.facts.errors import FeatureError
from drainwise.features.facts import sound_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Values = Mapping[str, str | None]

_DIRECTORY = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_CLOEXEC
_PLACE = posix.O_PATH | posix.O_DIRECTORY | posix.O_CLOEXEC
_TRIES = 8


def write_directory(path: str, values: Values) -> int:
    """Make the directory when it is absent, else bring it up to date.

    Parameters: `path` without a trailing slash; `values` key to text without newline, None = no such file. Files that
    are not named in `values` are left alone, and so are files that are right already.
    Returns: how many files were written or removed.
    Raises: FeatureError, one short printable line. A key that cannot be written does not keep the others from it.
    """
    return _write(path, values, may_create=True)


def update_directory(path: str, values: Values) -> int:
    """Do as `write_directory`, but an absent directory is a FeatureError: the job removed it and gets no half of it."""
    return _write(path, values, may_create=False)


def _write(path: str, values: Values, may_create: bool) -> int:
    contents = {key: _content(key, text) for key, text in values.items()}
    parent, name = split_path(path)
    if name in {"", ".", ".."}:
        raise FeatureError(f"{path[-60:]!a}: expected the path of a directory without a trailing slash")
    try:
        opened = posix.open(parent, _PLACE)
    except OSError as error:
        raise FeatureError(f"{shown(parent)}: {error.strerror}") from None
    try:
        with Held(opened) as place:
            directory = _open_owned(name, place)
            if directory is None and may_create:
                made = _make(name, place, contents)
                if made is not None:
                    return made
                directory = _open_owned(name, place)  # another hook was faster
            if directory is None:
                raise FeatureError(f"{shown(name)}: the directory is gone")
            with Held(directory):
                return _update(directory, name, contents)
    except OSError as error:
        raise FeatureError(f"{shown(name)}: {error.strerror}") from None


def _content(key: str, text: str | None) -> bytes | None:
    if not (key.isidentifier() and key.isascii()):
        raise FeatureError(f"{shown(key)}: cannot be the name of a key")
    if text is None:
        return None
    if not sound_text(text):
        raise FeatureError(f"{shown(key)}: {text[:40]!a} cannot be a value: expected printable ASCII, no blanks")
    return text.encode("ascii") + b"\n"


def _open_owned(name: str, place: int) -> int | None:
    """Open our directory `name` with mode 0755; None when it is absent. What is not a directory of ours is refused."""
    try:
        directory = posix.open(name, _DIRECTORY, dir_fd=place)
    except FileNotFoundError:
        return None
    except PermissionError:
        directory = _reopened(name, place)
    except OSError as error:
        if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
            raise
        found = kind_of(posix.stat(name, dir_fd=place, follow_symlinks=False).st_mode)
        raise FeatureError(f"{shown(name)}: {found} stands in the place of the directory; left alone") from None
    try:
        status = posix.fstat(directory)
        if status.st_uid != posix.geteuid():
            raise FeatureError(f"{shown(name)}: the directory belongs to uid {status.st_uid}, not to us; left alone")
        if status.st_mode & 0o777 != 0o755:
            posix.fchmod(directory, 0o755)
    except BaseException:
        posix.close(directory)
        raise
    return directory


def _reopened(name: str, place: int) -> int:
    """Open a directory that its owner may not read, such as one of mode 000: O_PATH asks for no right."""
    with Held(posix.open(name, _PLACE | posix.O_NOFOLLOW, dir_fd=place)) as handle:
        if posix.fstat(handle).st_uid == posix.geteuid():
            posix.chmod(f"/proc/self/fd/{handle}", 0o755)
        return posix.open(f"/proc/self/fd/{handle}", posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)


def _make(name: str, place: int, contents: Mapping[str, bytes | None]) -> int | None:
    """Fill a new directory under a temporary name and rename it; None when `name` has come to exist meanwhile."""
    temporary = _temporary_directory(name, place)
    written: list[str] = []
    directory = None
    try:
        directory = _open_owned(temporary, place)
        if directory is None:
            raise FeatureError(f"{shown(name)}: the directory was removed while it was made")
        for key, content in contents.items():
            if content is not None:
                written.append(key)
                create_file(key, content, directory)
        posix.rename(temporary, name, src_dir_fd=place, dst_dir_fd=place)
    except BaseException as error:
        _discard(temporary, place, directory, written)
        if isinstance(error, OSError) and error.errno in {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}:
            return None
        raise
    finally:
        if directory is not None:
            posix.close(directory)
    return len(written)


def _temporary_directory(name: str, place: int) -> str:
    stem = f".{name}.{posix.getpid()}"
    for attempt in range(_TRIES):
        temporary = f"{stem}.{attempt}"
        try:
            posix.mkdir(temporary, 0o755, dir_fd=place)
        except FileExistsError:
            continue  # left by a process that was killed and had our id
        return temporary
    raise FeatureError(f"{shown(name)}: no free temporary name {stem}.N")


def _discard(temporary: str, place: int, directory: int | None, written: list[str]) -> None:
    """Remove a directory that could not be finished; what resists stays, under its hidden name."""
    try:
        for key in written:
            try:
                posix.unlink(key, dir_fd=directory)
            except FileNotFoundError:
                continue
        posix.rmdir(temporary, dir_fd=place)
    except OSError:
        return


def _update(directory: int, name: str, contents: Mapping[str, bytes | None]) -> int:
    changed = 0
    failed: list[str] = []
    for key, content in contents.items():
        try:
            if content is None:
                changed += _remove(key, directory)
            elif not _holds(key, content, directory):
                replace_file(key, content, directory)
                changed += 1
        except OSError as error:
            failed.append(f"{shown(key)}: {error.strerror}")
    if failed:
        more = f" (and {len(failed) - 1} more keys)" if len(failed) > 1 else ""
        raise FeatureError(f"{shown(name)}: {failed[0]}{more}")
    return changed


def _holds(key: str, content: bytes, directory: int) -> bool:
    """Say whether the file is right as it is: our own, one link, mode 0644, this content. Reading it cannot hang."""
    try:
        status = posix.stat(key, dir_fd=directory, follow_symlinks=False)
        if (
            not stat.S_ISREG(status.st_mode)
            or status.st_size != len(content)
            or status.st_mode & 0o7777 != 0o644
            or status.st_nlink != 1
            or status.st_uid != posix.geteuid()
        ):
            return False
        with Held(posix.open(key, OPEN, dir_fd=directory)) as fd:
            return posix.read(fd, len(content) + 1) == content
    except OSError:
        return False  # whatever is wrong with it, replacing it is the cure, or tells what is wrong


def _remove(key: str, directory: int) -> bool:
    try:
        posix.unlink(key, dir_fd=directory)
    except FileNotFoundError:
        return False
    except IsADirectoryError:
        posix.rmdir(key, dir_fd=directory)
    return True
