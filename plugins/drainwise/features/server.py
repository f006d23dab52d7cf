"""A small http server of features directories: read-only, on loopback by default, only keys of the table.

    GET /allocated_cpu              -> ROOT/allocated_cpu
    GET /slot1_1/job/allocated_cpu  -> ROOT/slot1_1/job/allocated_cpu

Every answer says how long it holds: seconds for keys that may change while a job runs, an hour for the others. An
absent key may come at any time, so a 404 holds for seconds as well.
"""

from __future__ import annotations

import os
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from drainwise.common.local_file import read_small
from drainwise.facts.errors import FeatureError
from drainwise.features.keys import BY_NAME
from drainwise.features.reader import LARGEST_FILE

DYNAMIC_SECS, STATIC_SECS = 10, 3600
DEEPEST = 4
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FeatureServer(ThreadingHTTPServer):
    """Serves the directories under `root`. Port 0 takes a free port; `server_address` says which."""

    daemon_threads = True

    def __init__(self, root: str, host: str = "127.0.0.1", port: int = 0) -> None:
        if not os.path.isdir(root):
            raise FeatureError(f"{root}: expected a directory")
        self.root = os.path.abspath(root)
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise FeatureError(f"cannot listen on {host} port {port}: {error}") from None

    @property
    def url(self) -> str:
        """Return the base URL, without a trailing slash."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"


def path_of(target: str) -> list[str] | None:
    """Split a request target into directories and a key of the table; None for anything else.

    Directories are plain names that do not begin with a point; nothing is unquoted, so `%2e%2e` is a strange name and
    no way up.
    >>> path_of("/slot1_1/job/allocated_cpu"), path_of("/../hs06"), path_of("/hs06?x=1")
    (['slot1_1', 'job', 'allocated_cpu'], None, None)
    """
    if not target.startswith("/"):
        return None
    *directories, key = target[1:].split("/")
    if key not in BY_NAME or len(directories) > DEEPEST:
        return None
    for name in directories:
        plain = name.isascii() and name.replace("_", "").replace("-", "").replace(".", "").replace("@", "").isalnum()
        if not plain or name.startswith("."):
            return None
    return [*directories, key]


def read_key(root: str, path: list[str]) -> tuple[bytes, float] | None:
    """Read content and modification time (UNIX s) of a key below `root`, following no symbolic link below it.

    Raises: FeatureError for what is there but is no small readable file.
    """
    *directories, key = path
    opened: list[int] = []
    try:
        opened.append(os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
        for name in directories:
            opened.append(os.open(name, _DIRECTORY, dir_fd=opened[-1]))
        found = read_small(key, LARGEST_FILE, dir_fd=opened[-1])
    except OSError:
        return None
    finally:
        for fd in opened:
            os.close(fd)
    return None if found is None else (found[0], found[1].st_mtime)


class _Handler(BaseHTTPRequestHandler):
    server: FeatureServer
    protocol_version = "HTTP/1.1"
    server_version = "drainwise"
    timeout = 5

    def do_GET(self) -> None:
        """Answer one key."""
        path = path_of(self.path)
        if path is None:
            self._answer(404, b"", {"Cache-Control": f"max-age={DYNAMIC_SECS}"})
            return
        try:
            found = read_key(self.server.root, path)
        except FeatureError as error:
            self._answer(500, f"{error}\n".encode("ascii", "replace"), {"Cache-Control": "no-store"})
            return
        if found is None:
            self._answer(404, b"", {"Cache-Control": f"max-age={DYNAMIC_SECS}"})
            return
        content, modified = found
        age = DYNAMIC_SECS if BY_NAME[path[-1]].dynamic else STATIC_SECS
        tag = f'"{zlib.crc32(content):08x}-{len(content)}"'
        headers = {
            "Cache-Control": f"max-age={age}",
            "ETag": tag,
            "Last-Modified": self.date_time_string(int(modified)),
        }
        wanted = self.headers.get("If-None-Match", "")
        if tag in [candidate.strip() for candidate in wanted.split(",")]:
            self._answer(304, b"", headers)
        else:
            self._answer(200, content, headers)

    def do_HEAD(self) -> None:
        """Answer one key's headers."""
        self.do_GET()

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Type", "text/plain; charset=us-ascii")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class has this name
        """Say nothing: a pilot asks every minute, and a request line is foreign text."""
