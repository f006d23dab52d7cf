"""The agent over HTTP: /metrics, /healthz and /readyz, and the page with its JSON where the site wants that.

    GET /             the page            GET /healthz   200 while the agent makes its cycles, else 503
    GET /status.json  the same as JSON    GET /readyz    200 when the last cycle came to a decision, else 503

One thread, apart from the agent's, answers from what the last cycle left; connections are bounded in number and time.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus

from drainwise.agent.cycle import Cycle
from drainwise.agent.export.passwords import Passwords
from drainwise.features.serve.http_answer import Question, question_of, refusal, whole_answer
from drainwise.features.serve.server import BoundedServer

SLACK = 300.0
"""Seconds that a cycle may be late before the agent counts as hanging; its watchdog has as long."""
_MOST_CONNECTIONS = 64
_SAFE = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}
_HTML, _JSON = "text/html; charset=utf-8", "application/json"
_OPEN = ("/healthz", "/readyz")

Exposition = Callable[[str], "tuple[bytes, str]"]
"""Gives the metrics in the form that an Accept header asks for, and the type of that."""


class AgentAnswers:
    """What is answered; `passwords` None lets everybody ask. clock: seconds that never go back.

    exposition: gives the metrics; it is there before anybody can ask.
    """

    def __init__(self, passwords: Passwords | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._passwords, self._clock = passwords, clock
        self.exposition: Exposition = lambda _: (b"", "")
        self._pages: Mapping[str, tuple[bytes, str]] = {}
        self._due, self._why_not_ready = 0.0, "no cycle has ended yet"

    def cycle_ended(self, cycle: Cycle) -> None:
        """Take in when the next cycle is due, and whether this one came to a decision."""
        self._due = self._clock() + cycle.next_in + SLACK
        self._why_not_ready = "" if cycle.plan is not None and not cycle.fault else cycle.state or "no decision"

    def show(self, page: str, document: str) -> None:
        """Have the page and its JSON served from now on."""
        self._pages = {"/": (page.encode(), _HTML), "/status.json": (document.encode(), _JSON)}

    def answer(self, head: bytes) -> bytes:
        """Return the whole answer to a request whose head this is."""
        asked = question_of(head)
        if isinstance(asked, HTTPStatus):
            return refusal(asked)
        path = asked.target.partition("?")[0]
        if path in _OPEN:
            return self._health(path, asked)
        if self._passwords is not None and not any(map(self._passwords.admit, asked.values("authorization"))):
            challenge = {**_SAFE, "WWW-Authenticate": 'Basic realm="drainwise", charset="UTF-8"'}
            return whole_answer(
                HTTPStatus.UNAUTHORIZED, b"a name and a password are wanted\n", challenge, asked.has_body
            )
        if path == "/metrics":
            content, kind = self.exposition(", ".join(asked.values("accept")))
        elif path in self._pages:
            content, kind = self._pages[path]
        else:
            known = " ".join(sorted([*self._pages, "/metrics", *_OPEN]))
            return whole_answer(HTTPStatus.NOT_FOUND, f"there is {known}\n".encode(), _SAFE, asked.has_body)
        return whole_answer(HTTPStatus.OK, content, _SAFE, asked.has_body, kind)

    def _health(self, path: str, asked: Question) -> bytes:
        late = self._clock() > self._due
        wrong = "the agent makes no cycles" if late else self._why_not_ready if path == "/readyz" else ""
        status = HTTPStatus.SERVICE_UNAVAILABLE if wrong else HTTPStatus.OK
        return whole_answer(status, f"{wrong or 'ok'}\n".encode("ascii", "replace"), _SAFE, asked.has_body)


def serve(answers: AgentAnswers, address: str, port: int, context: ssl.SSLContext | None) -> BoundedServer:
    """Serve from a thread of its own, which ends with the process. Raises OSError when the port cannot be had."""
    server = BoundedServer(answers.answer, address, port, context, _MOST_CONNECTIONS)
    threading.Thread(target=server.serve_forever, name="listener", daemon=True).start()
    return server
