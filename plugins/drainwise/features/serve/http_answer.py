"""The answer to one request: a key with how long it holds, or a refusal.

Seconds for keys that may change while a job runs, an hour for the others. An absent key may come at any time, so a 404
holds for seconds as well. A job's own keys are `private`: no cache that several share may keep them.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import NamedTuple

from drainwise.facts.errors import FeatureError
from drainwise.features.keys import BY_NAME
from drainwise.features.serve.served_tree import path_of, read_key

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
    tags = [tag.strip() for value in asked.values("if-none-match") for tag in value.split(",")]
    return _key(root, asked.target, tags, asked.has_body)


def refusal(status: HTTPStatus) -> bytes:
    """Return an answer without content."""
    return whole_answer(status, b"", {"Cache-Control": "no-store"})


def _key(root: str, target: str, known: list[str], body: bool) -> bytes:
    absent = {"Cache-Control": f"max-age={DYNAMIC_SECS}"}
    path = path_of(target)
    if path is None:
        return whole_answer(HTTPStatus.NOT_FOUND, b"", absent)
    try:
        found = read_key(root, path)
    except FeatureError as error:
        text = f"{error}\n".encode("ascii", "replace")
        return whole_answer(HTTPStatus.INTERNAL_SERVER_ERROR, text, {"Cache-Control": "no-store"}, body)
    if found is None:
        return whole_answer(HTTPStatus.NOT_FOUND, b"", absent)
    age = DYNAMIC_SECS if BY_NAME[path[-1]].dynamic else STATIC_SECS
    tag = f'"{zlib.crc32(found.content):08x}-{len(found.content)}"'
    headers = {
        "Cache-Control": f"{'private, ' if found.by_token else ''}max-age={age}",
        "ETag": tag,
        "Last-Modified": formatdate(int(found.modified), usegmt=True),
    }
    if tag in known:
        return whole_answer(HTTPStatus.NOT_MODIFIED, b"", headers)
    return whole_answer(HTTPStatus.OK, found.content, headers, body)


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
