"""Export what the agent does after each cycle: metrics over HTTP or as a file, its page, an ad in the pool.

On a port of this machine's loopback, `[metrics] port`:

    GET /metrics      for Prometheus
    GET /healthz      200 while the agent makes its cycles, else 503
    GET /readyz       200 when the last cycle came to a decision, else 503

One thread, apart from the agent's, answers from what the last cycle left; connections are bounded in number and time.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING

from drainwise import __version__
from drainwise.agent.cycle import Cycle
from drainwise.agent.settings import AgentSettings
from drainwise.common.local_file import replace_file
from drainwise.common.printable import ascii_line
from drainwise.common.service import Backoff, Faults
from drainwise.facts.errors import ConfigurationError
from drainwise.pool.abilities import AgentNotice, ShowsAgent
from drainwise.siteconfig import SiteConfig
from drainwise.siteconfig.schema import MetricsSection, PageSection

if TYPE_CHECKING:
    from drainwise.agent.cycle import Cycle

PAGE, DOCUMENT = "index.html", "status.json"
SLACK = 300.0
"""Seconds that a cycle may be late before the agent counts as hanging; its watchdog has as long."""
_MOST_CONNECTIONS = 64
_SAFE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY"}


def observers_of(
    site: SiteConfig, setup: AgentSettings, pool: str, say: Callable[[str], None]
) -> tuple[Callable[[Cycle], None], ...]:
    """Return what to call with each cycle that has ended, as the site file says: called once, before the first cycle.

    setup: with which the agent begins. pool: the pool in words. `say` takes a line of the log, one at once for each
    key of the site file that is read no more. Raises ConfigurationError for what this machine lacks.
    """
    for sentence in site.former:
        say(sentence)
    policy = setup.settings.policy
    shows = setup.pool if site.agent.advertise == "yes" and isinstance(setup.pool, ShowsAgent) else None
    found = (
        page_observer(site.page, site.file, pool, policy, say),
        metrics_observer(site.metrics, site.file, policy, say),
        None if shows is None else AgentNotices(shows, policy, setup.period, say).observe,
    )
    return tuple(one for one in found if one is not None)


def metrics_observer(
    section: MetricsSection, site_file: str, policy: str, say: Callable[[str], None]
) -> Callable[[Cycle], None] | None:
    """Return what to call with each cycle so that its metrics are exported; None when the site wants none.

    policy: with which the agent begins. `say` takes a line when the port or the file cannot be had, and one when it can
    again: that stops no cycle. Raises ConfigurationError when prometheus_client is missing.
    """
    wanted = {key: value for key in ("port", "textfile") if (value := getattr(section, key)) is not None}
    if not wanted:
        return None
    if importlib.util.find_spec("prometheus_client") is None:
        key, value = next(iter(wanted.items()))
        missing = "prometheus_client on this machine (pip install drainwise[metrics]), or no such line"
        raise ConfigurationError(site_file, "metrics", key, str(value), missing)
    return _MetricsExport(section, policy, say).observe


class AgentAnswers:
    """What is answered on the port; metrics: gives them in the form that an Accept header asks for, and its type.

    clock: seconds that never go back.
    """

    def __init__(
        self, metrics: Callable[[str], tuple[bytes, str]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._metrics, self._clock = metrics, clock
        self._due, self._why_not_ready = 0.0, "no cycle has ended yet"

    def cycle_ended(self, cycle: Cycle) -> None:
        """Take in when the next cycle is due, and whether this one came to a decision."""
        self._due = self._clock() + cycle.next_in + SLACK
        self._why_not_ready = "" if cycle.plan is not None and not cycle.fault else cycle.state or "no decision"

    def answer(self, head: bytes) -> bytes:
        """Return the whole answer to a request whose head this is."""
        from drainwise.features.served_key import question_of, refusal, whole_answer  # noqa: PLC0415

        asked = question_of(head)
        if isinstance(asked, HTTPStatus):
            return refusal(asked)
        path, kind, status = asked.target.partition("?")[0], "text/plain; charset=utf-8", HTTPStatus.OK
        if path == "/metrics":
            content, kind = self._metrics(", ".join(asked.values("accept")))
        elif path in {"/healthz", "/readyz"}:
            late = self._clock() > self._due
            wrong = "the agent makes no cycles" if late else self._why_not_ready if path == "/readyz" else ""
            status = HTTPStatus.SERVICE_UNAVAILABLE if wrong else HTTPStatus.OK
            content = f"{wrong or 'ok'}\n".encode("ascii", "replace")
        else:
            status, content = HTTPStatus.NOT_FOUND, b"there is /healthz /metrics /readyz\n"
        return whole_answer(status, content, _SAFE, asked.has_body, kind)


def _tried(faults: Faults, channel: str, step: Callable[[], None]) -> bool:
    """Do the step and return whether it succeeded; say a line when that has changed: nothing of it is worth a cycle."""
    fault = ""
    try:
        step()
    except OSError as error:
        fault = os.strerror(error.errno) if error.errno else str(error)  # the line has the address
    except Exception as error:
        fault = f"a fault of drainwise itself: {error!r}"
    faults.set(channel, fault, "works again")
    return not fault


class _MetricsExport:
    """Metrics on their way out, each channel tried at every cycle until it works.

    The port is taken at the first cycle, not before: an agent that stands by leaves it to the one that acts.
    """

    def __init__(self, section: MetricsSection, policy: str, say: Callable[[str], None]) -> None:
        from drainwise.agent.metrics import Metrics  # noqa: PLC0415 - only who exports metrics needs prometheus_client

        self._metrics, self._section = Metrics(policy), section
        self._answers, self._listens = AgentAnswers(self._exposition), False
        self._faults = Faults(say)

    def observe(self, cycle: Cycle) -> None:
        """Take in a cycle that has ended."""
        self._metrics.observe(cycle)
        self._answers.cycle_ended(cycle)
        if self._section.port is not None and not self._listens:
            self._listens = _tried(
                self._faults, f"metrics, port {self._section.port} of {self._section.address}", self._serve
            )
        if self._section.textfile is not None:
            _tried(self._faults, f"metrics, {self._section.textfile}", self._write)

    def _serve(self) -> None:
        """Serve from a thread of its own, which ends with the process. Raises OSError when the port cannot be had."""
        from drainwise.features.serve import BoundedServer  # noqa: PLC0415 - so does only who serves them

        address, port = self._section.address, self._section.port or 0
        server = BoundedServer(self._answers.answer, address, port, None, _MOST_CONNECTIONS)
        threading.Thread(target=server.serve_forever, name="listener", daemon=True).start()

    def _exposition(self, accept: str) -> tuple[bytes, str]:
        from prometheus_client.exposition import choose_encoder  # noqa: PLC0415

        encode, kind = choose_encoder(accept)
        return encode(self._metrics.served), kind

    def _write(self) -> None:
        from prometheus_client import write_to_textfile  # noqa: PLC0415

        write_to_textfile(self._section.textfile or "", self._metrics.registry)  # by rename: whole at every moment


def page_observer(
    section: PageSection, site_file: str, pool: str, policy: str, say: Callable[[str], None]
) -> Callable[[Cycle], None] | None:
    """Return what to call with each cycle so that the page shows it; None when the site wants no page.

    pool: the pool in words. policy: with which the agent begins. `say` takes a line when the page cannot be made or
    written, and one when it can again: no cycle fails. Raises ConfigurationError when jinja2 is missing.
    """
    place = section.directory
    if place is None:
        return None
    if importlib.util.find_spec("jinja2") is None:
        raise ConfigurationError(site_file, "page", "directory", place, "jinja2 on this machine, or no such line")
    from drainwise.agent.export.site_status import SiteStatus, document, page  # noqa: PLC0415 - only it needs jinja2

    status, faults = SiteStatus(pool, policy, section.pilots), Faults(say)

    def observe(cycle: Cycle) -> None:
        def write() -> None:
            known = status.after(cycle)
            for name, text in {PAGE: page(known), DOCUMENT: document(known)}.items():
                replace_file(name, text.encode(), place)

        _tried(faults, f"page, {place}", write)

    return observe


_LONGEST_WHY = 300
_NOTICE_SLACK = 600
"""Seconds for which a notice counts beyond twice the pause to the next cycle."""
_FIRST, _LONGEST = 60.0, 3600.0
"""Seconds until it is tried again after it was refused."""


class AgentNotices:
    """Shows one agent on a pool. policy: with which it begins; period: of its cycles, s; say: takes a line."""

    def __init__(
        self,
        pool: ShowsAgent,
        policy: str,
        period: float,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool, self._policy, self._period, self._clock = pool, policy, period, clock
        self._machine, self._started = socket.getfqdn(), 0
        self._error, self._error_time = "", 0
        self._faults, self._backoff = Faults(say), Backoff(_FIRST, _LONGEST)

    def observe(self, cycle: Cycle) -> None:
        """Take in a cycle that has ended. A notice that is not taken is one line in the log, and harms nothing."""
        self._started = self._started or cycle.started
        if cycle.fault or cycle.halted:
            self._error, self._error_time = cycle.fault or cycle.halted, cycle.started
        if cycle.plan is not None:
            self._policy = cycle.plan.policy
        if not self._backoff.is_over(self._clock()):
            return
        fault = ""
        try:
            self._pool.show_agent(self._notice(cycle))
            self._backoff.succeeded()
        except Exception as error:  # whatever it is, the agent has done its work
            fault = str(error)
            self._backoff.failed(self._clock())
        self._faults.set("the agent in the batch system", fault and f"not shown: {fault}", "shown now")

    def _notice(self, cycle: Cycle) -> AgentNotice:
        kind = "drainwise" if cycle.acting or cycle.kill_switch else "drainwise-dry-run"
        return AgentNotice(
            name=f"{kind}@{self._machine}",
            machine=self._machine,
            pid=os.getpid(),
            version=__version__,
            policy=self._policy,
            started=self._started,
            cycle=cycle.started,
            next_cycle=round(cycle.started + cycle.seconds + cycle.next_in),
            period=round(self._period),
            acting=cycle.acting,
            state=cycle.state,
            why=ascii_line(cycle.why, _LONGEST_WHY),
            error=ascii_line(self._error, _LONGEST_WHY),
            error_time=self._error_time,
            lifetime=round(2 * cycle.next_in) + _NOTICE_SLACK,
        )
