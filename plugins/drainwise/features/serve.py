"""A small http(s) server of features directories: one thread, bounded memory, on loopback by default.

    GET /allocated_cpu                             -> ROOT/allocated_cpu
    GET /17/~TOKEN/.jobfeatures/allocated_cpu      -> ROOT/17/.jobfeatures/allocated_cpu

Clients wait for nobody but each other's milliseconds: no request is waited for, and each connection is bounded in time
and in bytes. Where as many are open as there may be, the one that has been silent longest goes, if it had its time.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import resource
import socket
import ssl
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar, cast

from drainwise.common.printable import ascii_line
from drainwise.facts.errors import FeatureError
from drainwise.features.served_key import LARGEST_REQUEST, answer, refusal

QUEUE = 4096
"""Connections that the kernel may keep for us; it takes no more than net.core.somaxconn."""
MOST_CONNECTIONS = 2048
"""Open at a time; those beyond them wait in the kernel's queue."""
MOST_SECURE = 256
"""Of them with a handshake of https begun: each holds a third of a MiB. Others wait for their turn."""
SILENT_SECS, ANSWER_SECS = 5.0, 5.0
"""What a client has until its first byte; and from then on until the end of its answer."""
TURN_SECS, SECURE_SECS = 30.0, 10.0
"""Over https: how long one waits for its turn; and what it has from then on, for handshake and answer."""
FAIR_SECS = {False: 1.0, True: 2.0}
"""What every client gets before another one may take its place: one that has said nothing, and one that has."""
_OTHER_DESCRIPTORS = 64
_PAUSE = 0.01
_END = b"\r\n\r\n"

S = TypeVar("S", bound="BoundedServer")


class BoundedServer:
    """Gives `answer` of the head of each request. Port 0 takes a free port; `server_address` says which.

    context: makes it https. most: connections that are open at a time. Raises OSError when it cannot listen.
    """

    def __init__(
        self,
        answer: Callable[[bytes], bytes],
        host: str = "127.0.0.1",
        port: int = 0,
        context: ssl.SSLContext | None = None,
        most: int = MOST_CONNECTIONS,
    ) -> None:
        self._answer, self._context = answer, context
        self._most = min(most, _descriptors(most + _OTHER_DESCRIPTORS) - _OTHER_DESCRIPTORS)
        self._silent: dict[asyncio.Task[None], float] = {}
        self._speaking: dict[asyncio.Task[None], float] = {}
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listening = socket.create_server((host, port), family=family, backlog=QUEUE)
        self._listening.setblocking(False)
        self.server_address: tuple[str, int] = self._listening.getsockname()[:2]

    @property
    def url(self) -> str:
        """Return the base URL, without a trailing slash."""
        host, port = self.server_address
        return f"http{'s' if self._context else ''}://{f'[{host}]' if ':' in host else host}:{port}"

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def serve_forever(self) -> None:
        """Serve until `shutdown`."""
        asyncio.run(self._accept())

    def shutdown(self) -> None:
        """End `serve_forever`, which another thread has begun."""
        self._listening.shutdown(socket.SHUT_RDWR)

    async def _accept(self) -> None:
        """Take one connection after the other; the others have their turn in between."""
        loop, turns = asyncio.get_running_loop(), asyncio.Semaphore(MOST_SECURE)
        loop.set_exception_handler(_say)
        while True:
            await self._room(loop)
            try:
                client, _ = await loop.sock_accept(self._listening)
            except OSError as error:
                if error.errno == errno.EINVAL:  # nobody listens any more
                    return
                await asyncio.sleep(_PAUSE)  # it has gone already, or the machine has no room for one more
                continue
            self._silent[loop.create_task(self._answer_one(loop, client, turns))] = loop.time()
            await asyncio.sleep(0)

    async def _room(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until there is room for one more connection."""
        while len(self._silent) + len(self._speaking) >= self._most:
            waiting = self._silent or self._speaking
            longest, since = next(iter(waiting.items()))
            if loop.time() >= since + FAIR_SECS[waiting is self._speaking]:
                del waiting[longest]
                longest.cancel()
            else:
                await asyncio.sleep(_PAUSE)

    async def _answer_one(
        self, loop: asyncio.AbstractEventLoop, client: socket.socket, turns: asyncio.Semaphore
    ) -> None:
        """Answer a client's one question, and let it go after a time in any case: its task is cancelled then."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        limit = loop.call_later(SILENT_SECS, task.cancel)

        def limit_to(seconds: float) -> None:
            nonlocal limit
            limit.cancel()
            limit = loop.call_later(seconds, task.cancel)

        try:
            await _until_readable(loop, client)
            self._speaking[task] = self._silent.pop(task)
            if self._context is None:
                limit_to(ANSWER_SECS)
                await self._exchange(loop, client)
            else:
                limit_to(TURN_SECS)
                async with turns:
                    limit_to(SECURE_SECS)
                    await self._exchange(loop, client)
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # it hung up, it does not speak https, or it had no more time
        finally:
            limit.cancel()
            for waiting in (self._silent, self._speaking):
                waiting.pop(task, None)
            client.close()

    async def _exchange(self, loop: asyncio.AbstractEventLoop, client: socket.socket) -> None:
        """Answer as soon as the head is whole; what comes after it is not read."""
        reader = asyncio.StreamReader(LARGEST_REQUEST, loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        timeout = SECURE_SECS if self._context else None
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, client, ssl=self._context, ssl_handshake_timeout=timeout
        )
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        try:
            try:
                answer = self._answer((await reader.readuntil(_END))[: -len(_END)])
            except asyncio.LimitOverrunError:
                answer = refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            writer.write(answer)
            writer.close()
            await writer.wait_closed()
        finally:
            transport.abort()


class FeatureServer(BoundedServer):
    """Serves the directories below `root`; the rest as in `BoundedServer`.

    Raises FeatureError when it cannot serve.
    """

    def __init__(
        self, root: str, host: str = "127.0.0.1", port: int = 0, context: ssl.SSLContext | None = None
    ) -> None:
        if not os.path.isdir(root):
            raise FeatureError(f"{root}: expected a directory")
        self.root = os.path.abspath(root)
        try:
            super().__init__(functools.partial(answer, self.root), host, port, context)
        except (OSError, OverflowError) as error:
            raise FeatureError(f"cannot listen on {host} port {port}: {error}") from None


async def _until_readable(loop: asyncio.AbstractEventLoop, client: socket.socket) -> None:
    """Wait for a first byte: until then a client costs nothing but its socket."""
    heard = asyncio.Event()
    loop.add_reader(client, heard.set)
    try:
        await heard.wait()
    finally:
        loop.remove_reader(client)


def tls_context(certificate: str, key: str | None) -> ssl.SSLContext:
    """Return the context of https. Raises FeatureError when certificate (with its chain) and key are no such pair."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password="")  # a key that has a password is an error, no question
    except (OSError, ValueError) as error:
        raise FeatureError(f"{certificate}, {key or certificate}: no certificate with its key: {error}") from None
    return context


def _descriptors(least: int) -> int:
    """Return how many files this process may open, after having asked for that many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = least if hard == resource.RLIM_INFINITY else min(least, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return least if soft == resource.RLIM_INFINITY else soft


def _say(_: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    print(ascii_line(f"drainwise: {context.get('message')}: {context.get('exception')!r}"), file=sys.stderr, flush=True)
