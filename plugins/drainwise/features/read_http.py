"""Ask a web server for one small thing, never waited for long; how long its answer may be reused.

No proxy is used: a features server is the site's own, and a caching proxy in between would delay a shutdown.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features.facts import LARGEST_FILE

if TYPE_CHECKING:
    from email.message import Message

    from _typeshed import WriteableBuffer

MOST_REDIRECTS = 3
_MOVED = (301, 302, 303, 307, 308)


class HttpAnswer(NamedTuple):
    """What a server answered; body: at most as many bytes as were allowed."""

    status: int
    headers: Message
    body: bytes


def lifetime_secs(headers: Message) -> float | None:
    """Work out for how many seconds an answer may be reused without asking: 0 = ask again; None = do not keep it."""
    directives: dict[str, str] = {}
    for header in headers.get_all("Cache-Control", []):
        for directive in header.split(","):
            name, _, value = directive.partition("=")
            directives.setdefault(name.strip().lower(), value.strip().strip('"'))
    if "no-store" in directives:
        return None
    if "no-cache" in directives:
        return 0.0
    if "max-age" in directives:
        age = headers.get("Age", "0").strip()
        return float(max(0, _seconds(directives["max-age"]) - _seconds(age)))
    try:
        expires = parsedate_to_datetime(headers["Expires"])
        return max(0.0, (expires - parsedate_to_datetime(headers["Date"])).total_seconds())
    except (TypeError, ValueError, IndexError, OverflowError):
        return 0.0  # nothing said, or nothing that can be understood: ask each time


def _seconds(text: str) -> int:
    return min(int(text), 365 * 86400) if text.isascii() and text.isdecimal() and len(text) < 12 else 0


def validators_in(headers: Message) -> dict[str, str]:
    """Return the headers by which the same answer is asked for again."""
    given = {"If-None-Match": headers.get("ETag"), "If-Modified-Since": headers.get("Last-Modified")}
    return {name: value for name, value in given.items() if value and value.isascii() and value.isprintable()}


def split_url(url: str) -> SplitResult:
    """Split a URL of http or https. Raises: UsageError for any other text."""
    try:
        parts = urlsplit(url)
        sound = url.isascii() and url.isprintable() and " " not in url and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or parts.scheme not in {"http", "https"}:
        raise UsageError(f"{url[:80]!a}: expected a URL such as http://host:port/features")
    return parts


def ask(
    url: str, headers: dict[str, str], timeout_secs: float, method: str = "GET", largest: int = LARGEST_FILE
) -> HttpAnswer:
    """Ask for one URL, following few redirects, never from https to http.

    timeout_secs: for all of it. largest: bytes of an answer. Raises: FeatureError.
    """
    deadline = time.monotonic() + timeout_secs
    place = url
    for _ in range(MOST_REDIRECTS + 1):
        try:
            answer = _exchange(split_url(url), headers, deadline, method, largest)
        except UsageError as error:
            raise FeatureError(f"{place}: redirected to {error}") from None
        except (TimeoutError, socket.timeout):
            raise FeatureError(f"{place}: no answer within {timeout_secs:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise FeatureError(f"{place}: {ascii(reason[:100])[1:-1]}") from None
        target = answer.headers.get("Location")
        if answer.status not in _MOVED or target is None:
            return answer
        following = urljoin(url, target)
        if url.startswith("https:") and not following.startswith("https:"):
            raise FeatureError(f"{place}: redirected from https to {following[:80]!a}; not followed")
        url = following
    raise FeatureError(f"{place}: more than {MOST_REDIRECTS} redirects")


def _exchange(parts: SplitResult, more: dict[str, str], deadline: float, method: str, largest: int) -> HttpAnswer:
    """Ask once. Raises: OSError (TimeoutError when the time is up), http.client.HTTPException."""
    host = parts.hostname or ""
    secure = parts.scheme == "https"
    connection = (http.client.HTTPSConnection if secure else http.client.HTTPConnection)(host, parts.port)
    with _connect(host, connection.port, secure, deadline) as plain:
        connection.sock = _TimedSocket(plain, deadline)
        headers = {"User-Agent": "drainwise", "Accept": "*/*", "Connection": "close", **more}
        connection.request(method, parts.path or "/", headers=headers)
        with connection.getresponse() as response:
            body = response.read(largest + 1)
            if response.status == 200 and len(body) > largest:
                raise http.client.HTTPException(f"longer than {largest} bytes")
            if response.status == 200 and response.length:
                raise http.client.HTTPException(f"cut off, {response.length} bytes are missing")
            return HttpAnswer(response.status, response.headers, body)


def _remaining(deadline: float) -> float:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError
    return remaining


def _connect(host: str, port: int, secure: bool, deadline: float) -> socket.socket:
    """Connect to the first address that answers. Only the name look-up is beyond the deadline's reach."""
    failure = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(_remaining(deadline))
            connection.connect(address)
            connection.settimeout(_remaining(deadline))
            return ssl.create_default_context().wrap_socket(connection, server_hostname=host) if secure else connection
        except OSError as error:
            connection.close()
            failure = error
    raise failure


class _TimedSocket(io.RawIOBase):
    """The part of a socket that http.client needs, with one deadline for all reads and writes together."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection, self._deadline = connection, deadline

    def sendall(self, content: bytes) -> None:
        self._connection.settimeout(_remaining(self._deadline))
        self._connection.sendall(content)

    def makefile(self, mode: str) -> io.BufferedReader:  # noqa: ARG002 - only ever asked for reading
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        self._connection.settimeout(_remaining(self._deadline))
        return self._connection.recv_into(buffer)

    def close(self) -> None:
        """Leave it open: http.client closes its socket before it reads an answer to the end."""
