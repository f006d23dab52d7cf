"""The sections of the site file on what the agent shows of itself: its metrics, and its page."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from drainwise.siteconfig.feature_sections import Contradiction
from drainwise.siteconfig.kinds import choice, integer, ip_address, path
from drainwise.siteconfig.table import key, optional

_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class MetricsSection:
    """The agent's metrics for Prometheus; it needs prometheus_client (`pip install drainwise[metrics]`)."""

    port: int | None = optional(
        integer(1024, 65535),
        "9877",
        "the agent serves its metrics there over HTTP; left out: it does not",
    )
    address: str = key(
        ip_address(),
        _LOOPBACK,
        "address on which it serves them; one beyond this machine's loopback needs passwords and a certificate",
    )
    certificate: str | None = optional(
        path(), "/etc/drainwise/agent-cert.pem", "it serves them over https with this certificate, PEM"
    )
    certificate_key: str | None = optional(path(), "/etc/drainwise/agent-key.pem", "the certificate's private key, PEM")
    passwords: str | None = optional(
        path(),
        "/etc/drainwise/page-passwords",
        "a file of NAME:PASSWORD lines that the agent's user alone may read; whoever asks must name one of them",
    )
    textfile: str | None = optional(
        path(),
        "/var/lib/prometheus/node-exporter/drainwise.prom",
        "the agent writes its metrics there after each cycle, for node_exporter's textfile collector",
    )

    @property
    def is_beyond_loopback(self) -> bool:
        """Whether other machines can reach it."""
        return not ipaddress.ip_address(self.address).is_loopback

    def contradictions(self, site: object) -> Iterator[Contradiction]:  # noqa: ARG002
        """See `Contradiction`."""
        if self.port is not None and self.is_beyond_loopback:
            lacks = [name for name in ("passwords", "certificate") if getattr(self, name) is None]
            if lacks:
                yield "address", f"a loopback address such as {_LOOPBACK}, or the keys {' and '.join(lacks)} as well"
        if (self.certificate is None) != (self.certificate_key is None):
            yield "certificate", "certificate and certificate_key together, or neither"


class SiteWithMetrics(Protocol):
    """The part of a site file that a page depends on."""

    @property
    def metrics(self) -> MetricsSection:
        """The section of the metrics."""


@dataclass(frozen=True)
class PageSection:
    """The agent's page for people: index.html and status.json, written whole after each cycle."""

    directory: str | None = optional(
        path(), "/var/lib/drainwise-page", "the agent writes them there; left out: it does not"
    )
    served: str = key(
        choice("no", "yes"), "no", "yes: the agent serves them as well, beside the metrics on [metrics] port"
    )
    pilots: int = key(integer(1, 5000), 200, "most pilots that the page shows; the others are counted")

    def contradictions(self, site: SiteWithMetrics) -> Iterator[Contradiction]:
        """See `Contradiction`."""
        if self.served == "yes" and site.metrics.port is None:
            yield "served", "no, or [metrics] port as well"
