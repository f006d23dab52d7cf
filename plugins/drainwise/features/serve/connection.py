"""One client: asks one question, has one answer, and is let go after a time in any case."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import cast

from drainwise.features.serve.http_answer import LARGEST_REQUEST, refusal

_END = b"\r\n\r\n"


class ClientConnection(asyncio.Protocol):
    """A connection from its arrival on.

    answer: makes the answer to a request's head. gone: is told of the end. limit: seconds that it has.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        answer: Callable[[bytes], bytes],
        gone: Callable[[ClientConnection], object],
        limit: float,
    ) -> None:
        self._loop, self.since = loop, loop.time()
        self.has_spoken = False
        self.admission: asyncio.Task[None] | None = None
        self._answer, self._gone = answer, gone
        self._transport: asyncio.Transport | None = None
        self._asked: bytes | None = b""
        self._limit = loop.call_later(limit, self.drop)

    def limit(self, seconds: float) -> None:
        """Give it so many seconds from now."""
        self._limit.cancel()
        self._limit = self._loop.call_later(seconds, self.drop)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer as soon as the head is whole; what comes after it is not read."""
        self.has_spoken = True
        if self._asked is None or self._transport is None:
            return
        self._asked += data
        head, end, _ = self._asked.partition(_END)
        if end:
            self._transport.write(self._answer(head))
        elif len(self._asked) > LARGEST_REQUEST:
            self._transport.write(refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
        else:
            return
        self._asked = None
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - a client that hangs up is no news
        """Forget it."""
        self.forget()

    def forget(self) -> None:
        """Release what it holds here."""
        self._limit.cancel()
        self._gone(self)

    def drop(self) -> None:
        """End it at once, wherever it stands."""
        if self._transport is not None:
            self._transport.abort()
        elif self.admission is not None:
            self.admission.cancel()
        self.forget()
