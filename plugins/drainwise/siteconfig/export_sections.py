"""The sections of the site file on what the agent shows of itself: its metrics, and its page."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from drainwise.siteconfig.feature_sections import Contradiction
from drainwise.siteconfig.kinds import integer, ip_address, path
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
    address: str = key(ip_address(), _LOOPBACK, "address of this machine's loopback on which it serves them")
    textfile: str | None = optional(
        path(),
        "/var/lib/prometheus/node-exporter/drainwise.prom",
        "the agent writes its metrics there after each cycle, for node_exporter's textfile collector",
    )

    def contradictions(self, site: object) -> Iterator[Contradiction]:  # noqa: ARG002
        """See `Contradiction`."""
        if self.port is not None and not ipaddress.ip_address(self.address).is_loopback:
            yield "address", f"a loopback address such as {_LOOPBACK}; a proxy of the site has TLS and passwords"


@dataclass(frozen=True)
class PageSection:
    """The agent's page for people: index.html and status.json, written whole after each cycle."""

    directory: str | None = optional(
        path(), "/var/lib/drainwise-page", "the agent writes them there; left out: it does not"
    )
    pilots: int = key(integer(1, 5000), 200, "most pilots that the page shows; the others are counted")
