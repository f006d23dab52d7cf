"""Export metrics: over HTTP, on this machine's loopback by default, and as a file for node_exporter's collector."""

from __future__ import annotations

import importlib.util
import os
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from drainwise.common.faults import Faults
from drainwise.facts.errors import ConfigurationError, FeatureError
from drainwise.siteconfig.export_sections import MetricsSection

if TYPE_CHECKING:
    from drainwise.agent.cycle import Cycle
    from drainwise.agent.export.listener import AgentAnswers
    from drainwise.agent.metrics import Metrics


def metrics_observer(
    section: MetricsSection,
    site_file: str,
    policy: str,
    say: Callable[[str], None],
    answers: AgentAnswers | None = None,
) -> Callable[[Cycle], None] | None:
    """Return what to call with each cycle so that its metrics are exported; None when the site wants none.

    policy: with which the agent begins. answers: what is served on the port. `say` takes a line when the port or the
    file cannot be had, and one when it can again: that stops no cycle. Raises ConfigurationError when
    prometheus_client is missing, or the certificate or the passwords cannot be read.
    """
    wanted = {key: value for key in ("port", "textfile") if (value := getattr(section, key)) is not None}
    if not wanted:
        return None
    if importlib.util.find_spec("prometheus_client") is None:
        key, value = next(iter(wanted.items()))
        missing = "prometheus_client on this machine (pip install drainwise[metrics]), or no such line"
        raise ConfigurationError(site_file, "metrics", key, str(value), missing)
    from drainwise.agent.metrics import Metrics  # noqa: PLC0415 - only who exports metrics needs prometheus_client

    served = None if section.port is None else _Served(section, site_file, answers or answers_of(section, site_file))
    return _MetricsExport(Metrics(policy), section, served, say).observe


def answers_of(section: MetricsSection, site_file: str) -> AgentAnswers:
    """Return what is to be served, to those whom the site admits. Raises ConfigurationError for the passwords."""
    from drainwise.agent.export.listener import AgentAnswers  # noqa: PLC0415 - so does only who serves them
    from drainwise.agent.export.passwords import read_passwords  # noqa: PLC0415

    return AgentAnswers(None if section.passwords is None else read_passwords(section.passwords, site_file))


class _Served:
    """The port with what is answered there. Raises ConfigurationError for a certificate that cannot be used."""

    def __init__(self, section: MetricsSection, site_file: str, answers: AgentAnswers) -> None:
        from drainwise.features.serve.server import tls_context  # noqa: PLC0415

        self.answers, self._section = answers, section
        self.place = f"port {section.port} of {section.address}"
        self._context: ssl.SSLContext | None = None
        self._loaded: tuple[float, ...] = ()
        if section.certificate is not None:
            try:
                self._loaded = self._changed()
                self._context = tls_context(section.certificate, section.certificate_key)
            except (FeatureError, OSError) as fault:
                key, wanted = "certificate", f"a certificate with its key that the agent can read ({fault})"
                raise ConfigurationError(site_file, "metrics", key, section.certificate, wanted) from None

    def begin(self) -> None:
        """Take the port. Raises OSError."""
        from drainwise.agent.export.listener import serve  # noqa: PLC0415

        try:
            serve(self.answers, self._section.address, self._section.port or 0, self._context)
        except OSError as fault:
            raise OSError(fault.errno, os.strerror(fault.errno or 0)) from None  # the line has the address

    def renew(self) -> None:
        """Load a certificate that was renewed; the old one counts until that succeeds. Raises OSError."""
        if self._context is not None and (changed := self._changed()) != self._loaded:
            self._context.load_cert_chain(self._section.certificate or "", self._section.certificate_key, password="")
            self._loaded = changed

    def _changed(self) -> tuple[float, ...]:
        names = (self._section.certificate, self._section.certificate_key)
        return tuple(os.stat(name).st_mtime for name in names if name is not None)


class _MetricsExport:
    """Metrics on their way out, each channel tried at every cycle until it works.

    The port is taken at the first cycle, not before: an agent that stands by leaves it to the one that acts.
    """

    def __init__(
        self, metrics: Metrics, section: MetricsSection, served: _Served | None, say: Callable[[str], None]
    ) -> None:
        self._metrics, self._section, self._served = metrics, section, served
        self._listens = False
        self._faults = Faults(say)
        if served is not None:
            served.answers.exposition = self._exposition

    def observe(self, cycle: Cycle) -> None:
        """Take in a cycle that has ended."""
        self._metrics.observe(cycle)
        if self._served is not None:
            self._served.answers.cycle_ended(cycle)
            if not self._listens:
                self._listens = self._done(self._served.place, self._served.begin)
            self._done("certificate", self._served.renew)
        if self._section.textfile is not None:
            self._done(self._section.textfile, self._write)

    def _exposition(self, accept: str) -> tuple[bytes, str]:
        from prometheus_client.exposition import choose_encoder  # noqa: PLC0415

        encode, kind = choose_encoder(accept)
        return encode(self._metrics.served), kind

    def _write(self) -> None:
        from prometheus_client import write_to_textfile  # noqa: PLC0415

        write_to_textfile(self._section.textfile or "", self._metrics.registry)  # by rename: whole at every moment

    def _done(self, channel: str, step: Callable[[], None]) -> bool:
        """Do the step and return whether it succeeded; log a line when that has changed."""
        fault = ""
        try:
            step()
        except OSError as error:
            fault = error.strerror or str(error)
        self._faults.set(f"metrics, {channel}", fault, "works again")
        return not fault
