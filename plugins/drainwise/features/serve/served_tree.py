"""A key below the served root, for a client that may have it.

The path is walked by descriptors and no symbolic link is followed, so nothing leads out of the root. A directory that
holds a token file is entered by its token alone, and what lies in it must belong to its owner: a user who links another
user's file into the own tree gains nothing. Without a token only what everybody on this machine may read is given.
"""

from __future__ import annotations

import hmac
import os
import stat
from typing import NamedTuple

from drainwise.common.local_file import read_small
from drainwise.facts.errors import FeatureError
from drainwise.features.job_token import LONGEST_TOKEN, TOKEN_FILE, TOKEN_MARK
from drainwise.features.keys import BY_NAME
from drainwise.features.reader import LARGEST_FILE

DEEPEST = 6
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN = str.maketrans("", "", "_-.@")


class ServedKey(NamedTuple):
    """The content of a key; modified: UNIX s. by_token: it is one job's own."""

    content: bytes
    modified: float
    by_token: bool


def path_of(target: str) -> list[str] | None:
    """Split a request target into directories, tokens and a key of the table; None for anything else.

    Directories are plain names; nothing is unquoted, so `%2e%2e` is a strange name and no way up.
    >>> path_of("/17/~c0ffee/.jobfeatures/allocated_cpu"), path_of("/../hs06"), path_of("/hs06?x=1")
    (['17', '~c0ffee', '.jobfeatures', 'allocated_cpu'], None, None)
    """
    if not target.startswith("/"):
        return None
    *directories, key = target[1:].split("/")
    if key not in BY_NAME or len(directories) > DEEPEST:
        return None
    return [*directories, key] if all(_is_plain(name) for name in directories) else None


def _is_plain(name: str) -> bool:
    return name.isascii() and name.removeprefix(TOKEN_MARK).translate(_PLAIN).isalnum()


def read_key(root: str, path: list[str]) -> ServedKey | None:
    """Read a key below `root`; None where there is none, or not for this client.

    Raises: FeatureError for what is there but is no small readable file.
    """
    *names, key = path
    opened: list[int] = []
    try:
        opened.append(os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
        owner, public, asked = None, True, list(reversed(names))
        while True:
            shown = asked.pop() if asked and asked[-1].startswith(TOKEN_MARK) else None
            token = _token_of(opened[-1])
            if (token is None) != (shown is None):
                return None
            if token is not None and shown is not None:
                if not hmac.compare_digest(token, shown[len(TOKEN_MARK) :].encode("ascii")):
                    return None
                owner = os.fstat(opened[-1]).st_uid
            if not asked:
                break
            opened.append(os.open(asked.pop(), _DIRECTORY, dir_fd=opened[-1]))
            status = os.fstat(opened[-1])
            public = public and bool(status.st_mode & stat.S_IXOTH)
            if owner is not None and status.st_uid != owner:
                return None
        if owner is None and not public:
            return None
        return _read(key, opened[-1], owner)
    except OSError:
        return None
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _read(key: str, directory: int, owner: int | None) -> ServedKey | None:
    found = read_small(key, LARGEST_FILE, dir_fd=directory)
    if found is None:
        return None
    content, status = found
    allowed = status.st_mode & stat.S_IROTH if owner is None else status.st_uid == owner
    return ServedKey(content, status.st_mtime, owner is not None) if allowed else None


def _token_of(directory: int) -> bytes | None:
    """Return the token of a directory; None where it has none. One that cannot be read opens nothing: OSError."""
    try:
        found = read_small(TOKEN_FILE, LONGEST_TOKEN, dir_fd=directory)
    except FeatureError as error:
        raise PermissionError(str(error)) from None
    if found is None:
        return None
    token = found[0].strip()
    if not token:
        raise PermissionError("an empty token")
    return token
