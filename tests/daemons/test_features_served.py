"""`drainwise features serve` as a process of its own: many jobs at once, slow ones, ones that hang up."""

from __future__ import annotations

import asyncio
import os
import resource
import select
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import drainwise
from drainwise.features.job_token import features_url, make_token
from drainwise.features.read import open_features
from drainwise.features.write import write_directory
from drainwise.node import JOB_FEATURES, MACHINE_FEATURES
from own_certificate import own_certificate
from real_daemons.waiting import wait_for

AT_ONCE = 1000
PATIENCE = 20.0  # seconds; on a machine with nothing else to do, all have their answers in one
QUESTION = f"GET /job7/{JOB_FEATURES}/allocated_cpu HTTP/1.1\r\nHost: x\r\n\r\n".encode()


class Served:
    """The command as it is typed, and what it has said."""

    def __init__(self, root: Path, *words: str) -> None:
        self._errors = root.parent / "errors"
        command = [sys.executable, "-m", "drainwise", "features", "serve", str(root), *words]
        environment = {**os.environ, "PYTHONPATH": str(Path(drainwise.__file__).parent.parent)}
        with self._errors.open("w") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split(" at ")[1].split()[0]
        self.port = int(self.url.rpartition(":")[2])

    def connect(self) -> socket.socket:
        """Return a connection to it."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def errors(self) -> str:
        """Return what it has written to its standard error."""
        return self._errors.read_text()

    def end(self) -> None:
        """Stop it."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(timeout=10) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The tree of one job, with the names that the hooks give."""
    root = tmp_path / "root"
    (root / "job7").mkdir(parents=True)
    write_directory(str(root / "job7" / JOB_FEATURES), {"allocated_cpu": "8"})
    write_directory(str(root / "job7" / MACHINE_FEATURES), {"total_cpu": "24"})
    return root


@pytest.fixture
def served(root: Path) -> Iterator[Served]:
    """It serves that tree."""
    server = Served(root)
    try:
        yield server
    finally:
        server.end()


class Asking:
    """One job that asks: its connection, what is still to be said, and what was answered."""

    def __init__(self, port: int) -> None:
        self.socket, self.question, self.answer = socket.socket(), QUESTION, b""
        self.socket.setblocking(False)
        self.socket.connect_ex(("127.0.0.1", port))

    def goes_on(self) -> bool:
        """Say or hear what can be; whether the answer is not whole yet."""
        try:
            if self.question:
                self.question = self.question[self.socket.send(self.question) :]
                return True
            piece = self.socket.recv(4096)
        except OSError as error:
            self.answer = repr(error).encode()
            return False
        self.answer += piece
        return bool(piece)


def answers(port: int, number: int) -> list[bytes]:
    """Ask `number` times at once; the answers, as far as they came within PATIENCE."""
    begin, found, poll = time.monotonic(), [], select.poll()
    asking = {one.socket.fileno(): one for one in [Asking(port) for _ in range(number)]}
    for descriptor in asking:
        poll.register(descriptor, select.POLLOUT)
    while asking and time.monotonic() < begin + PATIENCE:
        for descriptor, _ in poll.poll(100):
            one = asking[descriptor]
            if one.goes_on():
                poll.modify(descriptor, select.POLLOUT if one.question else select.POLLIN)
            else:
                poll.unregister(descriptor)
                found.append(asking.pop(descriptor).answer)
                one.socket.close()
    for one in asking.values():
        one.socket.close()
    return found + [one.answer for one in asking.values()]


def test_the_trees_of_the_hooks_are_served(served: Served) -> None:
    """Their names begin with a point."""
    assert open_features(f"{served.url}/job7/{JOB_FEATURES}").integer("allocated_cpu") == 8
    assert open_features(f"{served.url}/job7/{MACHINE_FEATURES}").integer("total_cpu") == 24


def test_a_thousand_jobs_at_once_have_their_answers(served: Served) -> None:
    """None fails."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    found = answers(served.port, AT_ONCE)
    assert {answer[:13] for answer in found} == {b"HTTP/1.1 200 "}
    assert len(found) == AT_ONCE


def test_slow_ones_harm_nobody_and_are_let_go(served: Served) -> None:
    """Each begins a request and goes on by a byte at a time; others are answered at once."""
    slow = [served.connect() for _ in range(200)]
    for one in slow:
        one.sendall(b"GET /job7")
    assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers(served.port, 100))

    def gone() -> int:
        """How many are let go; each that is not goes on by a byte."""
        found = 0
        for one in slow:
            try:
                one.sendall(b"x")
            except OSError:
                found += 1
        return found

    wait_for(lambda: gone() == len(slow), what="the end of all slow ones")
    for one in slow:
        one.close()


def test_clients_that_hang_up_are_no_news(served: Served) -> None:
    """Before they have asked, in the midst of the question, and instead of reading the answer."""
    for said in (b"", QUESTION[:20], QUESTION):
        for _ in range(50):
            one = served.connect()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # with a reset
            one.sendall(said)
            one.close()
    assert answers(served.port, 1)[0].startswith(b"HTTP/1.1 200 ")
    assert served.errors() == ""


def test_https_with_a_certificate_and_a_token(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job reads its own keys by the URL of its variable; one that speaks http there harms nobody."""
    certificate, key = own_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    token = make_token(str(root / "job7"), None)
    server = Served(root, "--certificate", certificate, "--key", key)
    try:
        assert server.url.startswith("https://127.0.0.1:")
        reader = open_features(features_url(server.url, "job7", token, JOB_FEATURES))
        assert reader.integer("allocated_cpu") == 8
        with server.connect() as silent, server.connect() as plain:
            plain.sendall(QUESTION)
            assert plain.recv(4096) == b""
            assert reader.integer("wall_limit_secs") is None
            silent.close()
        assert open_features(f"{server.url}/job7/{JOB_FEATURES}").integer("allocated_cpu") is None
        assert server.errors() == ""
    finally:
        server.end()


async def secure_answers(port: int, number: int, context: ssl.SSLContext, target: str) -> list[bytes]:
    """Ask `number` times at once over https; the answers."""

    async def ask() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        return answer

    return list(await asyncio.wait_for(asyncio.gather(*(ask() for _ in range(number))), 60))


def test_many_over_https_beside_slow_ones(root: Path, tmp_path: Path) -> None:
    """More than may begin their handshake at a time; 100 others have begun one and do not go on."""
    certificate, key = own_certificate(tmp_path)
    token = make_token(str(root / "job7"), None)
    server = Served(root, "--certificate", certificate, "--key", key)
    slow = [server.connect() for _ in range(100)]
    try:
        for one in slow:
            one.sendall(b"\x16\x03\x01\x02")
        context = ssl.create_default_context(cafile=certificate)
        target = f"/job7/~{token}/{JOB_FEATURES}/allocated_cpu"
        found = asyncio.run(secure_answers(server.port, 300, context, target))
        assert {answer[:13] for answer in found} == {b"HTTP/1.1 200 "}
        for one in slow:
            one.close()
        assert server.errors() == ""
    finally:
        server.end()


@pytest.mark.parametrize("words", [("--key", "absent"), ("--certificate", "absent")])
def test_a_certificate_that_is_none_is_said(root: Path, words: tuple[str, str]) -> None:
    """In one line, before anything listens."""
    command = [sys.executable, "-m", "drainwise", "features", "serve", str(root), *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode in {1, 2} and ran.stderr.count("\n") == 1 and "certificate" in ran.stderr
    assert ran.stdout == ""
