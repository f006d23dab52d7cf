"""The answer to one request over http: a key below the served root, for a client that may have it, or a refusal.

The path is walked by descriptors and no symbolic link is followed, so nothing leads out of the root. A directory that
holds a token file is entered by its token alone, and what lies in it must belong to its owner: a user who links another
user's file into the own tree gains nothing. Without a token only what everybody on this machine may read is given.

An answer says how long it holds: seconds for keys that may change while a job runs, an hour for the others. An absent
key may come at any time, so a 404 holds for seconds as well. A job's own keys are `private`: no cache that several
share may keep them.
"""

from __future__ import annotations

import hmac
import os
import stat
import zlib
from collections.abc import Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import NamedTuple

from drainwise.common.local_file import read_small
from drainwise.facts.errors import FeatureError
from drainwise.features.facts import BY_NAME, LARGEST_FILE
from drainwise.features.job_token import LONGEST_TOKEN, TOKEN_FILE, TOKEN_MARK

DEEPEST = 6
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN = str.maketrans("", "", "_-.@")
DYNAMIC_SECS, STATIC_SECS = 10, 3600
LARGEST_REQUEST = 8192
"""Bytes of a request's head."""
_LARGEST_TARGET = 1024
_PLAIN_TEXT = "text/plain; charset=us-ascii"


class Question(NamedTuple):
    """A GET or HEAD request. has_body: whether the answer is to have its content. headers: its lines."""

    target: str
    has_body: bool
    headers: str

    def values(self, wanted: str) -> list[str]:
        """Return the values of a header, whose name is given in small letters."""
        named = [line.partition(":") for line in self.headers.split("\r\n")]
        return [value.strip() for name, _, value in named if name.strip().lower() == wanted]


def question_of(head: bytes) -> Question | HTTPStatus:
    """Return what a request asks whose head this is, or why it is refused."""
    line, _, rest = head.decode("latin-1").partition("\r\n")
    words = line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or len(words[1]) > _LARGEST_TARGET:
        return HTTPStatus.BAD_REQUEST
    if words[0] not in {"GET", "HEAD"}:
        return HTTPStatus.NOT_IMPLEMENTED
    return Question(words[1], words[0] == "GET", rest)


def answer(root: str, head: bytes) -> bytes:
    """Return the whole answer to a request whose head this is, for the tree at `root`."""
    asked = question_of(head)
    if isinstance(asked, HTTPStatus):
        return refusal(asked)
    path = path_of(asked.target)
    try:
        found = read_key(root, path) if path else None
    except FeatureError as error:
        text = f"{error}\n".encode("ascii", "replace")
        return whole_answer(HTTPStatus.INTERNAL_SERVER_ERROR, text, {"Cache-Control": "no-store"}, asked.has_body)
    if path is None or found is None:
        return whole_answer(HTTPStatus.NOT_FOUND, b"", {"Cache-Control": f"max-age={DYNAMIC_SECS}"})
    age = DYNAMIC_SECS if BY_NAME[path[-1]].dynamic else STATIC_SECS
    tag = f'"{zlib.crc32(found.content):08x}-{len(found.content)}"'
    headers = {
        "Cache-Control": f"{'private, ' if found.by_token else ''}max-age={age}",
        "ETag": tag,
        "Last-Modified": formatdate(int(found.modified), usegmt=True),
    }
    if tag in [one.strip() for value in asked.values("if-none-match") for one in value.split(",")]:
        return whole_answer(HTTPStatus.NOT_MODIFIED, b"", headers)
    return whole_answer(HTTPStatus.OK, found.content, headers, asked.has_body)


def refusal(status: HTTPStatus) -> bytes:
    """Return an answer without content."""
    return whole_answer(status, b"", {"Cache-Control": "no-store"})


def whole_answer(
    status: HTTPStatus, content: bytes, headers: Mapping[str, str], has_body: bool = True, kind: str = _PLAIN_TEXT
) -> bytes:
    """Return a whole answer; `kind` is the type of its content."""
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        "Server: drainwise",
        f"Date: {formatdate(usegmt=True)}",
        "Connection: close",
    ]
    if status is not HTTPStatus.NOT_MODIFIED:
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(content)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (content if has_body else b"")


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
