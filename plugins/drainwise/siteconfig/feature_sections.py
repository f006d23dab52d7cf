"""The sections of the site file on its nodes: `[features]` for all of them, `[kind NAME]` for those of one kind."""

# ruff: noqa: RUF009 - key() and optional() are dataclasses.field() with a typed default

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from drainwise.siteconfig.kinds import decimal, duration, integer, path, patterns, size, url
from drainwise.siteconfig.table import key, optional

Contradiction = tuple[str, str]
"""A key whose value is right by itself and contradicts another key's, and what is expected of it."""

CONDITIONS = ("host", "cpu_model", "feature")
"""The keys of a kind that say which nodes are of it."""
KIND = "kind "
"""What the name of a section begins with that is about nodes of one kind."""


@dataclass(frozen=True)
class NodeFacts:
    """What the site alone knows of its nodes, or of those of one kind, and the limits of jobs there."""

    hs06: Decimal | None = optional(decimal("0.01", "10000000"), "380.5", "HS06 of a whole node")
    hs23: Decimal | None = optional(
        decimal("0.01", "10000000"), "391.2", "HEPScore23 of a whole node; also published as hs06"
    )
    cpufactor_lrms: Decimal | None = optional(
        decimal("0.000001", "1000"), "1.15", "the batch system's normalisation of time; 1 is the reference machine"
    )
    wall_limit: int | None = optional(
        duration("1m", "365d"), "3d", "longest elapsed time of a job; also the end of a pilot's lease on its node"
    )
    cpu_limit_per_core: int | None = optional(
        duration("1m", "365d"), "3d", "CPU time limit of a job for each of its cores"
    )
    max_swap: int | None = optional(size("0B", "1000TB"), "4GiB", "swap limit of a job")
    scratch_limit: int | None = optional(
        size("1MB", "1000TB"),
        "20GB",
        "most scratch space of a job; where its batch system gives it less, or its disk is smaller, that counts",
    )
    jobslots: int | None = optional(integer(1, 100000), "24", "job slots of a node")
    shutdown_command: str | None = optional(
        path(), "/usr/sbin/poweroff", "on virtual machines: what a job may run to shut the machine down"
    )


@dataclass(frozen=True)
class FeaturesSection(NodeFacts):
    """Facts of the nodes and limits that the site alone knows (Machine/Job Features)."""

    url: str | None = optional(
        url(),
        "https://%h:8443",
        "where `drainwise features serve` serves the jobs' trees, %h: the node's name; jobs get URLs with a token each,"
        " not paths",
    )
    certificate: str = key(
        path(), "/etc/grid-security/hostcert.pem", "of a node that serves an https url itself: its certificate, PEM"
    )
    certificate_key: str = key(path(), "/etc/grid-security/hostkey.pem", "the certificate's private key, PEM")
    grace: int | None = optional(duration("0s", "30d"), "1h", "least notice before a planned shutdown of a node")
    grace_job: int | None = optional(
        duration("0s", "30d"), "1h", "least notice before the end of a pilot that must leave"
    )


@dataclass(frozen=True)
class KindSection(NodeFacts):
    """Nodes of one kind, by conditions that must all hold; the first kind that fits counts before [features]."""

    host: str | None = optional(patterns(), "wn[001-120], epyc-*", "names of nodes; several with commas")
    cpu_model: str | None = optional(patterns(), "AMD EPYC 7*", "the kernel's name of the CPU model")
    feature: str | None = optional(
        patterns(),
        "fast",
        "a feature of the node in Slurm; on HTCondor an attribute of its slots that is true, or NAME=VALUE",
    )

    def contradictions(self, site: object) -> Iterator[Contradiction]:  # noqa: ARG002
        """See `Contradiction`."""
        if self.host is None and self.cpu_model is None and self.feature is None:
            yield "host", "a condition for the kind: host, cpu_model or feature"
