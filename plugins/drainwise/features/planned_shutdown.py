"""The machine-wide planned shutdown: one file, set by the site's administrator, read by every job's hook.

The file holds one UNIX second. It lies in a directory that only the administrator may write, is replaced by rename,
and is removed when its time has come.
"""

from __future__ import annotations

import errno
import posix

from drainwise.common.local_file import read_small, replace_file, shown, split_path
from drainwise.facts.errors import FeatureError, UsageError

LATEST = 9_999_999_999
"""UNIX seconds have ten digits until 2286; a longer number is milliseconds by mistake."""

_LIMIT = 64
_OTHERS_WRITE = 0o002


def read(path: str, now: int) -> tuple[int | None, str | None]:
    """Read the planned shutdown; never raises.

    Parameters: `path` of the file; `now` in UNIX seconds.
    Returns: the time if one is planned and lies ahead, and a remark of one short line if the file was ignored for
    something else than its time having come.
    """
    try:
        planned = _planned(path)
    except FeatureError as refusal:
        return None, f"planned shutdown ignored: {refusal}"
    return (planned if planned is not None and planned > now else None), None


def plan(path: str, when: int, now: int, grace_secs: int, force: bool = False) -> None:
    """Set or change the planned shutdown.

    Parameters: `when` and `now` in UNIX seconds, `grace_secs` in seconds. `force` overrules the grace, nothing else.
    Raises: UsageError when `when` is past, nearer than the grace, or no UNIX time in seconds; FeatureError when the
    file cannot be written.
    """
    if when <= now:
        raise UsageError(f"shutdown time {when} is not in the future (now is {now}); nothing was changed")
    if when > LATEST:
        raise UsageError(f"shutdown time {when} is no UNIX time in seconds (milliseconds?); nothing was changed")
    if when - now < grace_secs and not force:
        raise UsageError(
            f"shutdown time {when} is {when - now} s away, nearer than the grace of {grace_secs} s promised to jobs; "
            "nothing was changed (--force sets it all the same)"
        )
    parent, name = split_path(path)
    try:
        replace_file(name, b"%d\n" % when, parent, durable=True)
    except OSError as error:
        raise FeatureError(f"{path}: cannot be written: {error.strerror}") from None


def cancel(path: str) -> bool:
    """Remove the planned shutdown, whatever the file holds; False when there was none.

    Raises: FeatureError when it cannot be removed.
    """
    try:
        posix.unlink(path)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR}:
            return False
        raise FeatureError(f"{path}: cannot be removed: {error.strerror}") from None
    return True


def expire(path: str, now: int) -> bool:
    """Remove a planned shutdown whose time has come; whoever may, does. Never raises.

    A plan that replaces the old one at the same moment is kept, unless that falls between the last look and the
    removal (microseconds).
    """
    try:
        planned = _planned(path)
        if planned is None or planned > now or _planned(path) != planned:
            return False
        posix.unlink(path)
    except (FeatureError, OSError):
        return False
    return True


def _planned(path: str) -> int | None:
    found = read_small(path, _LIMIT)
    if found is None:
        return None
    content, status = found
    if status.st_mode & _OTHERS_WRITE:
        raise FeatureError(f"{shown(path)}: everybody may write this file (mode {status.st_mode & 0o7777:04o})")
    digits = content[:-1] if content.endswith(b"\n") else content
    if not (digits.isdigit() and int(digits) <= LATEST):
        raise FeatureError(f"{shown(path)}: {ascii(content[:24])[1:]}: expected one UNIX time in seconds")
    return int(digits)
