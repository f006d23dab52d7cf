"""The http reader against real servers: a good one, and ones that lie, drip, redirect and hang."""

from __future__ import annotations

import contextlib
import email.message
import inspect
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import FeatureError
from drainwise.features.facts import LARGEST_FILE
from drainwise.features.read import TIMEOUT_SECS, HttpReader, open_features
from drainwise.features.read_http import lifetime_secs
from drainwise.features.serve import FeatureServer, tls_context
from drainwise.features.write import write_directory
from own_certificate import own_certificate

waits = pytest.mark.daemons
"""It reads without end, has a certificate made to be refused, or tries many headers."""

Answer = Callable[[str], "bytes | Iterator[bytes]"]


class Clock:
    """Time that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class RawServer:
    """Answers each connection with the bytes that `answer(request)` gives, piece by piece; keeps the requests."""

    def __init__(self, answer: Answer, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[str] = []
        self._answer, self._context = answer, context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._closed = threading.Event()
        self.url = f"{'http' if context is None else 'https'}://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(OSError):
                connection, _ = self._listener.accept()
                threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            speaking = connection if self._context is None else self._context.wrap_socket(connection, server_side=True)
            request = b""
            while b"\r\n\r\n" not in request:
                request += speaking.recv(4096)
            self.requests.append(request.decode())
            answer = self._answer(request.decode())
            for piece in [answer] if isinstance(answer, bytes) else answer:
                speaking.sendall(piece)
                if self._closed.is_set():
                    break
            if self._context is not None:
                speaking.close()

    def close(self) -> None:
        self._closed.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def raw() -> Iterator[Callable[..., RawServer]]:
    servers: list[RawServer] = []

    def start(answer: Answer, context: ssl.SSLContext | None = None) -> RawServer:
        servers.append(RawServer(answer, context))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[FeatureServer]:
    write_directory(str(tmp_path / "job"), {"allocated_cpu": "8", "shutdowntime_job": "1795249000"})
    with FeatureServer(str(tmp_path)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


PATIENT = 60.0
"""Seconds that a reader waits where that is not what is tried."""


def ok(body: bytes, *headers: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def refused(reader: HttpReader, key: str = "hs06") -> str:
    with pytest.raises(FeatureError) as error:
        reader.text(key)
    message = str(error.value)
    assert message.startswith(reader.location)
    assert message.isprintable()
    return message


# --- the good server ------------------------------------------------------------------------------------------------


def test_keys_are_read_over_http_like_from_a_directory(served: FeatureServer) -> None:
    reader = open_features(f"{served.url}/job")
    assert isinstance(reader, HttpReader)
    assert reader.integer("allocated_cpu") == 8
    assert reader.integer("shutdowntime_job") == 1795249000
    assert reader.integer("wall_limit_secs") is None
    assert reader.problem() is None
    assert open_features(f"{served.url}/job/").integer("allocated_cpu") == 8


def test_a_value_is_kept_as_long_as_the_server_says_and_then_asked_for_again(
    served: FeatureServer, tmp_path: Path
) -> None:
    clock = Clock()
    reader = HttpReader(f"{served.url}/job", clock)
    assert reader.integer("shutdowntime_job") == 1795249000
    write_directory(str(tmp_path / "job"), {"allocated_cpu": "4", "shutdowntime_job": None})
    clock.now += 9.9
    assert reader.integer("shutdowntime_job") == 1795249000
    clock.now += 0.2
    assert reader.integer("shutdowntime_job") is None
    write_directory(str(tmp_path / "job"), {"shutdowntime_job": "1795250000"})
    assert reader.integer("shutdowntime_job") is None  # absence is kept as well
    clock.now += 10
    assert reader.integer("shutdowntime_job") == 1795250000
    assert reader.integer("allocated_cpu") == 4
    write_directory(str(tmp_path / "job"), {"allocated_cpu": "2"})
    clock.now += 3599
    assert reader.integer("allocated_cpu") == 4
    clock.now += 2
    assert reader.integer("allocated_cpu") == 2


# --- cache headers --------------------------------------------------------------------------------------------------


def test_an_unchanged_value_is_revalidated_by_its_tag_and_not_sent_again(raw: Callable[..., RawServer]) -> None:
    def answer(request: str) -> bytes:
        if 'If-None-Match: "v1"' in request:
            return b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\nCache-Control: max-age=5\r\n\r\n'
        return ok(b"300\n", 'ETag: "v1"', "Cache-Control: max-age=5")

    clock = Clock()
    server = raw(answer)
    reader = HttpReader(server.url, clock)
    for expected_requests in (1, 1, 2, 2, 3):
        assert reader.decimal("hs06") == 300
        assert len(server.requests) == expected_requests
        clock.now += 3
    assert "If-None-Match" not in server.requests[0]
    assert "If-None-Match" in server.requests[1]


def test_a_tag_that_changes_without_its_value_is_the_next_one_asked_with(raw: Callable[..., RawServer]) -> None:
    """Without a new one the old one stands."""
    tags = iter(['ETag: "v2"', "X: 1", "X: 1"])

    def answer(request: str) -> bytes:
        if "If-None-Match" in request:
            return f"HTTP/1.1 304 Not Modified\r\n{next(tags)}\r\n\r\n".encode()
        return ok(b"300\n", 'ETag: "v1"')

    server = raw(answer)
    reader = HttpReader(server.url, Clock(), PATIENT)
    assert [reader.decimal("hs06") for _ in range(4)] == [300] * 4
    asked = [line for request in server.requests for line in request.splitlines() if line.startswith("If-")]
    assert asked == ['If-None-Match: "v1"', 'If-None-Match: "v2"', 'If-None-Match: "v2"']


def test_without_a_tag_the_modification_date_revalidates(raw: Callable[..., RawServer]) -> None:
    date = "Sat, 21 Nov 2026 10:00:00 GMT"

    def answer(request: str) -> bytes:
        if f"If-Modified-Since: {date}" in request:
            return b"HTTP/1.1 304 Not Modified\r\n\r\n"
        return ok(b"300\n", f"Last-Modified: {date}")

    server = raw(answer)
    reader = HttpReader(server.url, Clock(), PATIENT)
    assert [reader.decimal("hs06") for _ in range(3)] == [300, 300, 300]
    assert len(server.requests) == 3


def test_no_store_is_asked_for_each_time_without_validators(raw: Callable[..., RawServer]) -> None:
    server = raw(lambda _: ok(b"300\n", "Cache-Control: no-store, max-age=60", 'ETag: "v1"'))
    reader = HttpReader(server.url, Clock(), PATIENT)
    assert [reader.decimal("hs06") for _ in range(2)] == [300, 300]
    assert len(server.requests) == 2
    assert "If-None-Match" not in server.requests[1]


@pytest.mark.parametrize("tag", [b'"v\xe9"', b'"v\t1"'])
def test_a_tag_that_is_not_printable_is_not_sent_back(raw: Callable[..., RawServer], tag: bytes) -> None:
    server = raw(lambda _: ok(b"300\n").replace(b"\r\n\r\n", b"\r\nETag: " + tag + b"\r\n\r\n"))
    reader = HttpReader(server.url, Clock(), PATIENT)
    assert [reader.decimal("hs06") for _ in range(2)] == [300, 300]
    assert "If-None-Match" not in server.requests[1]


def test_what_may_not_be_kept_any_more_is_forgotten(raw: Callable[..., RawServer]) -> None:
    """Also what was kept before."""
    answers = iter(["max-age=5", "no-store", "no-store"])
    server = raw(lambda _: ok(b"300\n", f"Cache-Control: {next(answers)}", 'ETag: "v1"'))
    clock = Clock()
    reader = HttpReader(server.url, clock, PATIENT)
    for _ in range(3):
        assert reader.decimal("hs06") == 300
        clock.now += 6
    assert ["If-None-Match" in request for request in server.requests] == [False, True, False]


def test_304_to_a_question_that_was_not_asked_is_an_error(raw: Callable[..., RawServer]) -> None:
    reader = HttpReader(raw(lambda _: b"HTTP/1.1 304 Not Modified\r\n\r\n").url, Clock(), PATIENT)
    assert "answered 304" in refused(reader)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 0),
        ({"Cache-Control": "max-age=60"}, 60),
        ({"Cache-Control": 'public, MAX-AGE="60"'}, 60),
        ({"Cache-Control": "max-age=60", "Age": "50"}, 10),
        ({"Cache-Control": "max-age=60", "Age": "90"}, 0),
        ({"Cache-Control": "max-age=-1"}, 0),
        ({"Cache-Control": "max-age=99999999999"}, 365 * 86400),
        ({"Cache-Control": "max-age=" + "9" * 5000}, 0),
        ({"Cache-Control": "max-age=\u0661\u0662"}, 0),
        ({"Cache-Control": "max-age=60, max-age=70"}, 60),
        ({"Cache-Control": "max-age=60", "Age": " 50 "}, 10),
        ({"Cache-Control": "no-cache, max-age=60"}, 0),
        ({"Cache-Control": "private, no-store"}, None),
        ({"Date": "Sat, 21 Nov 2026 10:00:00 GMT", "Expires": "Sat, 21 Nov 2026 10:01:00 GMT"}, 60),
        ({"Date": "Sat, 21 Nov 2026 10:00:00 GMT", "Expires": "Sat, 21 Nov 2026 09:00:00 GMT"}, 0),
        ({"Date": "Sat, 21 Nov 2026 10:00:00 GMT", "Expires": "0"}, 0),
        ({"Expires": "Sat, 21 Nov 2026 10:01:00 GMT"}, 0),
        (
            {
                "Cache-Control": "max-age=5",
                "Date": "Sat, 21 Nov 2026 10:00:00 GMT",
                "Expires": "Sat, 21 Nov 2026 11:00:00 GMT",
            },
            5,
        ),
    ],
)
def test_how_long_an_answer_holds(headers: dict[str, str], expected: float | None) -> None:
    message = email.message.Message()
    for name, value in headers.items():
        message[name] = value
    assert lifetime_secs(message) == expected


@waits
@given(st.dictionaries(st.sampled_from(["Cache-Control", "Age", "Expires", "Date"]), st.text(max_size=40)))
def test_no_header_breaks_the_reader(headers: dict[str, str]) -> None:
    """HOSTILE 36, 37."""
    message = email.message.Message()
    for name, value in headers.items():
        message[name] = value
    lifetime = lifetime_secs(message)
    assert lifetime is None or lifetime >= 0


# --- servers that do harm -------------------------------------------------------------------------------------------


def test_404_and_410_are_an_absent_key_and_other_failures_are_errors(raw: Callable[..., RawServer]) -> None:
    for status in (404, 410):
        body = f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode()
        assert HttpReader(raw(lambda _, body=body: body).url, Clock(), PATIENT).text("hs06") is None
    for status in (204, 400, 401, 403, 500, 503):
        body = f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode()
        message = refused(HttpReader(raw(lambda _, body=body: body).url, Clock(), PATIENT))
        assert f"the server answered {status}" in message


def test_no_wait_is_longer_than_two_seconds_unless_a_caller_says_so() -> None:
    assert TIMEOUT_SECS == 2
    assert inspect.signature(HttpReader).parameters["timeout_secs"].default == TIMEOUT_SECS


def test_an_answer_has_a_largest_size(raw: Callable[..., RawServer]) -> None:
    """HOSTILE 19: one byte more than that is refused; a failure that is as long says what it is."""
    full = b"300".ljust(LARGEST_FILE)
    assert HttpReader(raw(lambda _: ok(full)).url, Clock(), PATIENT).decimal("hs06") == 300
    longer = raw(lambda _: ok(full + b" "))
    assert f"longer than {LARGEST_FILE} bytes" in refused(HttpReader(longer.url, Clock(), PATIENT))
    failed = raw(lambda _: ok(full + b" ").replace(b"200 OK", b"500 No"))
    assert "answered 500" in refused(HttpReader(failed.url, Clock(), PATIENT))


def test_without_time_nobody_is_asked(raw: Callable[..., RawServer]) -> None:
    server = raw(lambda _: ok(b"300\n"))
    assert "no answer within 0 s" in refused(HttpReader(server.url, Clock(), 0.0))
    assert server.requests == []


def test_a_server_that_never_answers_costs_the_time_limit(raw: Callable[..., RawServer]) -> None:
    """HOSTILE 54: no answer."""

    def answer(_: str) -> Iterator[bytes]:
        while True:
            time.sleep(0.05)
            yield b""

    assert "no answer within 0.3 s" in refused(HttpReader(raw(answer).url, Clock(), 0.3))


@pytest.mark.parametrize("prefix", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n"])
def test_a_server_that_drips_byte_by_byte_costs_the_time_limit(raw: Callable[..., RawServer], prefix: bytes) -> None:
    """HOSTILE 54: a time limit per read would be renewed with every byte."""

    def answer(_: str) -> Iterator[bytes]:
        yield prefix
        while True:
            time.sleep(0.02)
            yield b"1"

    assert "no answer within 0.3 s" in refused(HttpReader(raw(answer).url, Clock(), 0.3))


@waits
def test_a_server_that_goes_on_for_ever_is_cut_at_the_limit(raw: Callable[..., RawServer]) -> None:
    """HOSTILE 19, 21, 25: an endless body, a huge one, an endless header, headers without end, endless 100 Continue."""

    def endless(start: bytes, piece: bytes) -> Answer:
        def answer(_: str) -> Iterator[bytes]:
            yield start
            while True:
                yield piece

        return answer

    for start, piece in (
        (b"HTTP/1.1 200 OK\r\n\r\n", b"1" * 65536),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b"1" * 4096 + b"\r\n"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"1" * 65536),
        (b"HTTP/1.1 200 OK\r\n", b"X: 1\r\n" * 100),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ):
        refused(HttpReader(raw(endless(start, piece)).url, Clock(), 0.3))


def test_half_an_answer_is_no_answer(raw: Callable[..., RawServer]) -> None:
    """HOSTILE 54: 1795249000 cut short is a time long past."""
    cut = raw(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n17952")
    assert "cut off, 6 bytes are missing" in refused(HttpReader(cut.url, Clock(), PATIENT))
    chunked = raw(lambda _: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n179")
    refused(HttpReader(chunked.url, Clock(), PATIENT))
    assert "expected a value" in refused(HttpReader(raw(lambda _: ok(b"")).url, Clock(), PATIENT))
    refused(HttpReader(raw(lambda _: b"").url, Clock(), PATIENT))


@pytest.mark.parametrize(
    "answer", [b"\0" * 100, b"SSH-2.0-x\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\n\x1b[31m\r\n\r\n"]
)
def test_what_is_no_http_is_an_error(raw: Callable[..., RawServer], answer: bytes) -> None:
    """HOSTILE 41."""
    refused(HttpReader(raw(lambda _: answer).url, Clock(), PATIENT))


def test_nobody_listening_is_an_error_and_a_problem() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    reader = HttpReader(url, Clock(), PATIENT)
    assert "Connection refused" in refused(reader)
    assert "Connection refused" in (reader.problem() or "")


# --- redirects ------------------------------------------------------------------------------------------------------


def redirect(target: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode()


def test_few_redirects_are_followed_also_relative_ones(raw: Callable[..., RawServer]) -> None:
    server = raw(lambda request: ok(b"300\n") if request.startswith("GET /v2/hs06 ") else redirect("/v2/hs06"))
    assert HttpReader(server.url, Clock(), PATIENT).decimal("hs06") == 300


def test_a_circle_of_redirects_ends(raw: Callable[..., RawServer]) -> None:
    server = raw(lambda _: redirect("/hs06"))
    assert "more than 3 redirects" in refused(HttpReader(server.url, Clock(), PATIENT))
    assert len(server.requests) == 4


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_each_kind_of_redirect_is_followed(raw: Callable[..., RawServer], status: int) -> None:
    moved = redirect("/v2/hs06").replace(b"302", str(status).encode())
    server = raw(lambda request: ok(b"300\n") if request.startswith("GET /v2/hs06 ") else moved)
    assert HttpReader(server.url, Clock(), PATIENT).decimal("hs06") == 300


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("file:///etc/passwd", "redirected to"),
        ("ftp://127.0.0.1/x", "redirected to"),
        ("gopher://x", "redirected to"),
        ("http://a b/", "redirected to"),
        ("http://a:0/", "redirected to"),
        ("http://", "redirects"),
        ("//", "redirects"),
    ],
)
def test_a_redirect_leads_to_http_or_nowhere(raw: Callable[..., RawServer], target: str, why: str) -> None:
    message = refused(HttpReader(raw(lambda _: redirect(target)).url, Clock(), PATIENT))
    assert why in message
    assert "root:" not in message


# --- https ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def secured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    certificate, key = own_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    return tls_context(certificate, key)


def test_https_is_read_when_the_certificate_is_trusted(raw: Callable[..., RawServer], secured: ssl.SSLContext) -> None:
    assert HttpReader(raw(lambda _: ok(b"300\n"), secured).url, Clock(), PATIENT).decimal("hs06") == 300


@waits
def test_https_with_a_strangers_certificate_is_refused(
    raw: Callable[..., RawServer], secured: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    assert "certificate" in refused(HttpReader(raw(lambda _: ok(b"300\n"), secured).url, Clock(), PATIENT))


def test_https_is_never_left_for_http(raw: Callable[..., RawServer], secured: ssl.SSLContext) -> None:
    plain = raw(lambda _: ok(b"300\n"))
    reader = HttpReader(raw(lambda _: redirect(f"{plain.url}/hs06"), secured).url, Clock(), PATIENT)
    assert "redirected from https" in refused(reader)
    assert plain.requests == []


# --- locations ------------------------------------------------------------------------------------------------------


def test_no_proxy_of_the_environment_is_used(served: FeatureServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caching proxy in between would delay a shutdown."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert open_features(f"{served.url}/job").integer("allocated_cpu") == 8
