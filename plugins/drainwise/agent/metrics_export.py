"""Export metrics: over HTTP on this machine's loopback, and as a file for node_exporter's textfile collector."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING

from drainwise.common.faults import Faults
from drainwise.facts.errors import ConfigurationError
from drainwise.siteconfig.schema import MetricsSection

if TYPE_CHECKING:
    from drainwise.agent.cycle import Cycle
    from drainwise.agent.metrics import Metrics

ADDRESS = "127.0.0.1"


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
    from drainwise.agent.metrics import Metrics  # noqa: PLC0415 - only who tells metrics needs prometheus_client

    return _MetricsExport(Metrics(policy), section, say).observe


class _MetricsExport:
    """Metrics on their way out, each channel tried at every cycle until it works.

    The port is taken at the first cycle, not before: an agent that stands by leaves it to the one that acts.
    """

    def __init__(self, metrics: Metrics, section: MetricsSection, say: Callable[[str], None]) -> None:
        self._metrics, self._section = metrics, section
        self._served = section.port is None
        self._faults = Faults(say)

    def observe(self, cycle: Cycle) -> None:
        """Take in a cycle that has ended."""
        self._metrics.observe(cycle)
        if not self._served:
            self._served = self._done(f"port {self._section.port} of {ADDRESS}", self._serve)
        if self._section.textfile is not None:
            self._done(self._section.textfile, self._write)

    def _serve(self) -> None:
        from prometheus_client import start_http_server  # noqa: PLC0415

        start_http_server(self._section.port or 0, ADDRESS, self._metrics.served)

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
