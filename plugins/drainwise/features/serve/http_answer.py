"""The answer to one request: a key with how long it holds, or a refusal.

Seconds for keys that may change while a job runs, an hour for the others. An absent key may come at any time, so a 404
holds for seconds as well. A job's own keys are `private`: no cache that several share may keep them.
"""

from __future__ import annotations

import zlib
from email.utils import formatdate
from http import HTTPStatus

from drainwise.facts.errors import FeatureError
from drainwise.features.keys import BY_NAME
from drainwise.features.serve.served_tree import path_of, read_key

DYNAMIC_SECS, STATIC_SECS = 10, 3600
LARGEST_REQUEST = 8192
"""Bytes of a request's head."""
_LARGEST_TARGET = 1024


def answer(root: str, head: bytes) -> bytes:
    """Return the whole answer to a request whose head this is, for the tree at `root`."""
    line, _, rest = head.decode("latin-1").partition("\r\n")
    words = line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or len(words[1]) > _LARGEST_TARGET:
        return refusal(HTTPStatus.BAD_REQUEST)
    if words[0] not in {"GET", "HEAD"}:
        return refusal(HTTPStatus.NOT_IMPLEMENTED)
    return _key(root, words[1], _tags(rest), body=words[0] == "GET")


def refusal(status: HTTPStatus) -> bytes:
    """Return an answer without content."""
    return _whole(status, b"", {"Cache-Control": "no-store"})


def _tags(headers: str) -> list[str]:
    """Return the tags of the answers that the client has."""
    named = [line.partition(":") for line in headers.split("\r\n")]
    return [
        tag.strip() for name, _, value in named if name.strip().lower() == "if-none-match" for tag in value.split(",")
    ]


def _key(root: str, target: str, known: list[str], body: bool) -> bytes:
    absent = {"Cache-Control": f"max-age={DYNAMIC_SECS}"}
    path = path_of(target)
    if path is None:
        return _whole(HTTPStatus.NOT_FOUND, b"", absent)
    try:
        found = read_key(root, path)
    except FeatureError as error:
        text = f"{error}\n".encode("ascii", "replace")
        return _whole(HTTPStatus.INTERNAL_SERVER_ERROR, text, {"Cache-Control": "no-store"}, body)
    if found is None:
        return _whole(HTTPStatus.NOT_FOUND, b"", absent)
    age = DYNAMIC_SECS if BY_NAME[path[-1]].dynamic else STATIC_SECS
    tag = f'"{zlib.crc32(found.content):08x}-{len(found.content)}"'
    headers = {
        "Cache-Control": f"{'private, ' if found.by_token else ''}max-age={age}",
        "ETag": tag,
        "Last-Modified": formatdate(int(found.modified), usegmt=True),
    }
    if tag in known:
        return _whole(HTTPStatus.NOT_MODIFIED, b"", headers)
    return _whole(HTTPStatus.OK, found.content, headers, body)


def _whole(status: HTTPStatus, content: bytes, headers: dict[str, str], body: bool = True) -> bytes:
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        "Server: drainwise",
        f"Date: {formatdate(usegmt=True)}",
        "Connection: close",
    ]
    if status is not HTTPStatus.NOT_MODIFIED:
        lines += ["Content-Type: text/plain; charset=us-ascii", f"Content-Length: {len(content)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (content if body else b"")
