"""The one table of the site file's keys: name, kind, default, range and meaning, as typed frozen sections.

The fields below *are* the table: the reader checks a file against it, `drainwise config keys` prints it, and whoever
uses a value gets it typed. Durations are held in seconds and sizes in bytes.
"""

# ruff: noqa: RUF009 - key() and optional() are dataclasses.field() with a typed default

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar, cast

from drainwise.siteconfig.kinds import Kind, choice, decimal, duration, integer, path, size, word

T = TypeVar("T")


def key(kind: Kind[T], default: T, meaning: str) -> T:
    """A key with a default value."""
    return field(default=default, metadata={"kind": kind, "meaning": meaning})


def optional(kind: Kind[T], example: str, meaning: str) -> T | None:
    """A key that a site may leave out: what it would say is then unknown or not wanted."""
    return field(default=None, metadata={"kind": kind, "meaning": meaning, "example": example})


@dataclass(frozen=True)
class FeaturesSection:
    """What the site alone knows of its nodes and limits (Machine/Job Features)."""

    hs06: Decimal | None = optional(decimal("0.01", "10000000"), "380.5", "HS06 of a whole node")
    hs23: Decimal | None = optional(
        decimal("0.01", "10000000"), "391.2", "HEPScore23 of a whole node; also told as hs06"
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
        size("1MB", "1000TB"), "20GB", "scratch limit of a job where its request names none"
    )
    jobslots: int | None = optional(integer(1, 100000), "24", "job slots of a node")
    shutdown_command: str | None = optional(
        path(), "/usr/sbin/poweroff", "on virtual machines: what a job may run to shut the machine down"
    )
    grace: int | None = optional(duration("0s", "30d"), "1h", "least notice before a planned shutdown of a node")
    grace_job: int | None = optional(
        duration("0s", "30d"), "1h", "least notice before the end of a pilot that must leave"
    )


@dataclass(frozen=True)
class PilotSection:
    """How far a pilot's word is believed."""

    heartbeat_limit: int = key(duration("1m", "7d"), 3600, "a pilot's report older than this has lost its protection")


@dataclass(frozen=True)
class NodeSection:
    """Where things lie on the nodes of a batch system: the same keys in the section of each."""

    python: str = key(path(100), "/usr/bin/python3", "the nodes' Python, 3.9 or later")
    library_dir: str = key(path(), "/usr/share/drainwise", "directory on the nodes that holds the drainwise package")
    libexec_dir: str = key(path(), "/usr/libexec/drainwise", "directory on the nodes for drainwise's own programs")
    node_file: str = key(path(), "/etc/drainwise/node.conf", "settings on the nodes for drainwise's own programs")
    state_dir: str = key(path(), "/var/lib/drainwise", "directory on the nodes where a planned shutdown is noted")


@dataclass(frozen=True)
class HTCondorSection(NodeSection):
    """How the HTCondor nodes are set up."""

    hook_keyword: str = key(word(), "DRAINWISE", "name of the job hooks and of the startd cron in HTCondor's knobs")
    cron_period: int = key(duration("1s", "1h"), 60, "how often a node publishes what its pilots report")
    update_interval: int = key(duration("1s", "1h"), 60, "how often a running pilot is told what the site wants of it")
    initial_update_interval: int = key(duration("1s", "1h"), 10, "how soon after its start a pilot is told first")
    slot_update_interval: int | None = optional(
        duration("1s", "1h"),
        "5m",
        "how often a node sends its slots to the collector (UPDATE_INTERVAL); left out: cron_period, or 5m if shorter",
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
        "how long after its start a job may go on when its slot is preempted without an order;"
        " left out: the node's own MAXJOBRETIREMENTTIME stays",
    )
    negotiator_policy: str = key(
        choice("none", "least-waste"), "none", "least-waste: the negotiator itself preempts where the least is lost"
    )
    max_vacate_time: int | None = optional(
        duration("1s", "1d"),
        "10m",
        "how long before its deadline a pilot gets SIGTERM; left out: the node's own MachineMaxVacateTime stays",
    )


@dataclass(frozen=True)
class SlurmSection(NodeSection):
    """How the Slurm nodes are set up."""

    config_dir: str = key(path(), "/etc/slurm", "directory of slurm.conf, and of prolog.d and epilog.d below it")
    runtime_dir: str = key(path(), "/run/drainwise", "directory on the nodes for the jobs' features; best in memory")
    bin_dir: str = key(path(), "/usr/bin", "directory of Slurm's commands")
    prolog_time_limit: int = key(
        duration("1s", "30s"), 10, "a prolog, task prolog or epilog that takes longer gives up; the job runs without"
    )
    limits_wait: int = key(
        duration("0s", "10s"), 1, "how long a starting job waits at most until the agent knows its limits"
    )
    agent_period: int = key(
        duration("1s", "1h"), 30, "how often a node publishes what its pilots report and tells them what the site wants"
    )
    command_timeout: int = key(duration("1s", "1m"), 5, "how long one of Slurm's commands may take")
    transport: str = key(
        choice("auto", "commands", "pyslurm"),
        "auto",
        "what the reclaim agent asks for the jobs by: Slurm's commands, or pyslurm, which auto takes where it is"
        " installed for this release of Slurm",
    )
    vacate: str = key(
        choice("requeue", "cancel"),
        "requeue",
        "what an order to end at once does; at a later deadline Slurm itself ends the job (TIMEOUT)",
    )
    native_preemption: str = key(
        choice("no", "yes"), "no", "yes: Slurm's own preemption takes the pilots with the least waste"
    )
    release: Decimal | None = optional(
        decimal("22.05", "99.12"),
        "24.11",
        "Slurm's release: what only some releases know stands in the rendered lines; left out: the live cluster's",
    )


POLICIES = ("least-waste", "paper", "least-kill", "youngest-first", "oldest-first", "nebraska", "random")
"""As `reclaim.policy` has them: a command line names them before numpy is imported."""


@dataclass(frozen=True)
class ReclaimSection:
    """How cores are taken back, and the bounds of every act."""

    policy: str = key(
        choice(*POLICIES),
        POLICIES[0],
        "how the pilots that must leave are chosen",
    )
    horizon: int = key(
        duration("0s", "30d"),
        7200,
        "the cores must be back within this; a way to end a pilot that takes longer is none",
    )
    grace: int = key(duration("5s", "30d"), 7200, "longest time between the order to leave and its deadline")
    max_grace: int = key(duration("5s", "30d"), 86400, "longest time a pilot may get, whatever it says")
    margin: int = key(
        duration("0s", "1d"), 900, "time a pilot gets beyond what it says it needs; without it, it counts as cut"
    )
    drain_only: str = key(
        choice("yes", "no"),
        "yes",
        "yes: no pilot is killed, each that is asked gets time to drain; no: it is killed where that wastes less",
    )
    min_age: int = key(duration("0s", "1d"), 60, "a pilot younger than this is not asked: its start must be over")
    min_between_acts: int = key(duration("0s", "1d"), 0, "least time between two cycles that ask anybody")
    retry_after: int = key(
        duration("0s", "1d"),
        600,
        "a pilot or node that refused an order is left alone so long, and another one asked instead",
    )
    time_to_start: int = key(
        duration("1s", "1d"),
        180,
        "so long after cores came back jobs that waited for them are given to start: a few cycles of the scheduler",
    )
    demand_pause: int = key(
        duration("0s", "1d"),
        900,
        "demand that cores which came back twice did not serve counts as none so long, then twice as long, up to a day",
    )
    max_cores_per_cycle: int = key(integer(1, 10000000), 512, "most cores that one cycle asks for")
    max_cores_per_user_per_cycle: int = key(integer(1, 10000000), 128, "most cores that one cycle takes from one user")
    max_cores_per_user_per_hour: int = key(
        integer(1, 10000000), 1024, "most cores that are taken from one user within any hour"
    )


@dataclass(frozen=True)
class TrustSection:
    """When a pilot's or a user's word counts less; how many cores a user gives back never depends on it."""

    window: int = key(duration("1h", "365d"), 604800, "how long the outcome of a pilot counts for or against its user")
    pilots: int = key(integer(1, 100000), 5, "fewer outcomes than this say nothing about a user yet")
    tolerance: int = key(
        integer(0, 10000), 25, "percent by which a user's promises may be wrong in sum before its claims are moved"
    )
    spared: int = key(
        integer(0, 1000000), 0, "a pilot spared so many times while its user gave cores back goes first; 0: never"
    )


@dataclass(frozen=True)
class JournalSection:
    """Where it is written down what was decided and done; `drainwise explain` and `drainwise report` read it."""

    file: str | None = optional(
        path(), "/var/log/drainwise/journal", "the journal; left out: an agent that acts keeps one in [agent] state_dir"
    )
    max_size: int = key(size("100kB", "10GB"), 64_000_000, "a file that has grown to this is moved on, a new one begun")
    keep: int = key(integer(1, 1000), 8, "so many files are kept besides the one that is written")


@dataclass(frozen=True)
class AgentSection:
    """The reclaim agent as a service: `drainwise reclaim --loop`."""

    act: str = key(choice("no", "yes"), "no", "no: a dry run, decide and say, ask nobody; --act is a yes as well")
    period: int = key(duration("1s", "1d"), 60, "from the beginning of one cycle to that of the next")
    longest_pause: int = key(
        duration("1s", "1d"), 600, "longest pause between two tries while the batch system does not answer"
    )
    kill_switch: str = key(
        path(), "/etc/drainwise/kill-switch", "while this file is there, the agent decides and says but asks nobody"
    )
    state_dir: str = key(path(), "/var/lib/drainwise", "directory of the lock that keeps a second agent from acting")
    command: str = key(path(), "/usr/bin/drainwise", "the drainwise command on the machine of the agent")
    condor_master: str = key(
        choice("no", "yes"), "no", "yes: condor_master starts the agent on the central manager, instead of systemd"
    )


@dataclass(frozen=True)
class MetricsSection:
    """What the agent tells Prometheus; it needs prometheus_client (`pip install drainwise[metrics]`)."""

    port: int | None = optional(
        integer(1024, 65535),
        "9877",
        "the agent serves its metrics there over HTTP, on 127.0.0.1 alone; left out: it does not",
    )
    textfile: str | None = optional(
        path(),
        "/var/lib/prometheus/node-exporter/drainwise.prom",
        "the agent writes its metrics there after each cycle, for node_exporter's textfile collector",
    )


@dataclass(frozen=True)
class SiteConfig:
    """The whole site file; `file` is where it was read from."""

    file: str = ""
    features: FeaturesSection = FeaturesSection()
    pilot: PilotSection = PilotSection()
    htcondor: HTCondorSection = HTCondorSection()
    slurm: SlurmSection = SlurmSection()
    reclaim: ReclaimSection = ReclaimSection()
    trust: TrustSection = TrustSection()
    journal: JournalSection = JournalSection()
    agent: AgentSection = AgentSection()
    metrics: MetricsSection = MetricsSection()


SECTIONS: dict[str, type[Any]] = {
    "features": FeaturesSection,
    "pilot": PilotSection,
    "htcondor": HTCondorSection,
    "slurm": SlurmSection,
    "reclaim": ReclaimSection,
    "trust": TrustSection,
    "journal": JournalSection,
    "agent": AgentSection,
    "metrics": MetricsSection,
}


@dataclass(frozen=True)
class Key:
    """One row of the table; `default` is the text that a site file would have, empty when there is none.

    `example` is what a key without a default may look like.
    """

    section: str
    name: str
    kind: Kind[Any]
    default: str
    meaning: str
    example: str


def keys() -> Iterator[Key]:
    """The table of all keys in the order of the sections."""
    for section, table in SECTIONS.items():
        for row in dataclasses.fields(table):
            kind = cast("Kind[Any]", row.metadata["kind"])
            default = "" if row.default is None else kind.show(row.default)
            yield Key(
                section, row.name, kind, default, str(row.metadata["meaning"]), str(row.metadata.get("example", ""))
            )
