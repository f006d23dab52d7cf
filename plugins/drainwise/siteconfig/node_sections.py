"""The sections of the site file on nodes: features, kinds of nodes, and the setup of each batch system."""

# ruff: noqa: RUF009 - key() and optional() are dataclasses.field() with a typed default

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from drainwise.facts.units import format_duration
from drainwise.siteconfig.kinds import (
    choice,
    decimal,
    duration,
    integer,
    key,
    optional,
    path,
    patterns,
    size,
    url,
    word,
)

if TYPE_CHECKING:
    from drainwise.siteconfig.schema import SiteConfig


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
    wall_limit: int | None = optional(duration("1m", "365d"), "3d", "longest elapsed time of a job, and of a lease")
    cpu_limit_per_core: int | None = optional(
        duration("1m", "365d"), "3d", "CPU time limit of a job for each of its cores"
    )
    max_swap: int | None = optional(size("0B", "1000TB"), "4GiB", "swap limit of a job")
    scratch_limit: int | None = optional(
        size("1MB", "1000TB"),
        "20GB",
        "most scratch space of a job, where it has no less",
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
        "jobs get URLs there in place of paths; %h: the node's name",
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
        "a feature in Slurm; on HTCondor an attribute of slots that is true, or NAME=VALUE",
    )

    def contradictions(self, site: object) -> Iterator[Contradiction]:  # noqa: ARG002
        """See `Contradiction`."""
        if self.host is None and self.cpu_model is None and self.feature is None:
            yield "host", "a condition for the kind: host, cpu_model or feature"


@dataclass(frozen=True)
class NodeSection:
    """Places on the nodes of a batch system: the same keys in the section of each."""

    python: str = key(path(100), "/usr/bin/python3", "the nodes' Python, 3.9 or later")
    library_dir: str = key(path(), "/usr/share/drainwise", "the drainwise package on nodes")
    libexec_dir: str = key(path(), "/usr/libexec/drainwise", "drainwise's own programs on nodes")
    node_file: str = key(path(), "/etc/drainwise/node.conf", "their settings")
    state_dir: str = key(path(), "/var/lib/drainwise", "where a node notes a planned shutdown")


@dataclass(frozen=True)
class HTCondorSection(NodeSection):
    """The setup of HTCondor nodes."""

    hook_keyword: str = key(word(), "DRAINWISE", "name of the job hooks and of the startd cron in HTCondor's knobs")
    cron_period: int = key(duration("1s", "1h"), 60, "how often a node publishes what its pilots report")
    update_interval: int = key(duration("1s", "1h"), 60, "how often a running pilot receives the site notice")
    initial_update_interval: int = key(duration("1s", "1h"), 10, "how soon after its start it receives the first")
    slot_update_interval: int | None = optional(
        duration("1s", "1h"),
        "5m",
        "UPDATE_INTERVAL of the startd; left out: as docs/htcondor.md says",
    )
    site_prepare_hook: str | None = optional(
        path(100),
        "/usr/libexec/site/prepare",
        "the site's own PREPARE_JOB hook, which ours calls; hook_keyword is then the site's keyword",
    )
    site_update_hook: str | None = optional(
        path(100), "/usr/libexec/site/update", "the site's own UPDATE_JOB_INFO hook, which ours calls, likewise"
    )
    retirement: int | None = optional(
        duration("0s", "365d"),
        "0s",
        "MAXJOBRETIREMENTTIME of jobs without an order; left out: the node's own stays",
    )
    negotiator_policy: str = key(
        choice("none", "least-waste"), "none", "least-waste: the negotiator itself preempts where the least is lost"
    )
    defrag: str = key(
        choice("no", "yes"),
        "no",
        "yes: condor_defrag drains the nodes whose pilots waste least",
    )
    partial_return: str = key(
        choice("no", "yes"),
        "no",
        "yes: a running pilot may return some of its cores, which a second slot hands out",
    )
    max_vacate_time: int | None = optional(
        duration("1s", "1d"),
        "10m",
        "how long before its deadline a pilot gets SIGTERM; left out: the node's own MachineMaxVacateTime stays",
    )

    def contradictions(self, site: SiteConfig) -> Iterator[Contradiction]:
        """See `Contradiction`."""
        heartbeat, grace, margin = site.pilot.heartbeat_limit, site.reclaim.grace, site.reclaim.margin
        vacate, in_time = self.max_vacate_time, f"less than [reclaim] grace, {format_duration(grace)}"
        if vacate is not None and vacate >= grace:
            yield "max_vacate_time", in_time
        if vacate is not None and vacate > margin:  # else a pilot would not get what it needs
            yield "max_vacate_time", f"at most [reclaim] margin, {format_duration(margin)}"
        if self.cron_period >= heartbeat:
            yield "cron_period", f"less than [pilot] heartbeat_limit, {format_duration(heartbeat)}"
        if (self.slot_update_interval or 0) > site.pilot.stale_after // 2:  # else reports would be stale when seen
            yield "slot_update_interval", f"at most {format_duration(site.pilot.stale_after // 2)}, by [pilot]"
        if self.initial_update_interval > self.update_interval:
            yield "initial_update_interval", f"at most update_interval, {format_duration(self.update_interval)}"
        if self.update_interval >= grace:
            yield "update_interval", in_time


@dataclass(frozen=True)
class SlurmSection(NodeSection):
    """The setup of Slurm nodes."""

    config_dir: str = key(path(), "/etc/slurm", "directory of slurm.conf, and of prolog.d and epilog.d below it")
    runtime_dir: str = key(path(), "/run/drainwise", "directory on the nodes for the jobs' features; best in memory")
    bin_dir: str = key(path(), "/usr/bin", "directory of Slurm's commands")
    scratch_dir: str | None = optional(
        path(),
        "/scratch",
        "the jobs' scratch space; left out: the live cluster's TmpFS",
    )
    container_bind: str = key(
        choice("no", "yes"),
        "no",
        "yes: containers of a job see its directories (APPTAINER_BIND, SINGULARITY_BIND)",
    )
    prolog_time_limit: int = key(duration("2s", "30s"), 10, "a hook that takes longer gives up; the job runs without")
    agent_period: int = key(duration("1s", "1h"), 30, "how often a node publishes reports and writes notices")
    command_timeout: int = key(duration("1s", "1m"), 5, "how long one of Slurm's commands may take")
    transport: str = key(
        choice("auto", "commands", "pyslurm"),
        "auto",
        "how the agent asks for jobs; auto: pyslurm where it fits this Slurm, else commands",
    )
    native_preemption: str = key(
        choice("no", "yes"), "no", "yes: Slurm's own preemption takes the pilots with the least waste"
    )
    release: Decimal | None = optional(
        decimal("22.05", "99.12"),
        "24.11",
        "Slurm's release, for rendering; left out: the live cluster's",
    )

    def contradictions(self, site: SiteConfig) -> Iterator[Contradiction]:
        """See `Contradiction`."""
        heartbeat, grace = site.pilot.heartbeat_limit, site.reclaim.grace
        if self.agent_period >= heartbeat:
            yield "agent_period", f"less than [pilot] heartbeat_limit, {format_duration(heartbeat)}"
        if self.agent_period >= grace:
            yield "agent_period", f"less than [reclaim] grace, {format_duration(grace)}"


@dataclass(frozen=True)
class LocalSection:
    """The local batch system."""

    partial_return: str = key(
        choice("no", "yes"),
        "no",
        "yes: the agent may ask a running pilot for some of its cores",
    )
