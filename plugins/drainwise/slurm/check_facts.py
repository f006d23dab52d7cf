"""What `drainwise check slurm` knows of a cluster before it judges, and how it is asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from drainwise.siteconfig import SiteConfig
from drainwise.slurm.commands import SlurmCommands
from drainwise.slurm.job_record import Job
from drainwise.slurm.live_settings import COMMAND, history_of
from drainwise.slurm.own_settings import History, OwnSettings, live_values, release_of
from drainwise.slurm.pyslurm_transport import Choice, choice_of
from drainwise.slurm.transport import CommandLine

QOS_COMMAND = ("sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=Name,Preempt,PreemptMode")

_PARTITION = re.compile(r"^PartitionName=(\S+) .*?\bOverTimeLimit=(\S+)", re.MULTILINE)
_SNAPSHOT_SECONDS = 30.0
_SHOWN = 5


@dataclass(frozen=True)
class Qos:
    """A quality of service: which others it may preempt, and the words of its PreemptMode."""

    name: str
    preempts: frozenset[str]
    modes: frozenset[str]


@dataclass(frozen=True)
class ClusterFacts:
    """The live configuration by lower-case key (where one stands several times, the values with blanks between).

    `over_time`: each partition's own OverTimeLimit. `jobs`: all that slurmctld knows. `choice`: what snapshots ask by,
    None where nobody looked. `history`: what the site has set itself.
    """

    config: Mapping[str, str]
    over_time: Mapping[str, str]
    qos: tuple[Qos, ...]
    jobs: tuple[Job, ...]
    choice: Choice | None = None
    history: History = field(default_factory=History)

    @property
    def own(self) -> OwnSettings:
        """What the site has set itself."""
        return self.history.own

    @property
    def cluster(self) -> str:
        """Its name."""
        return self.text("ClusterName") or "cluster"

    @property
    def version(self) -> tuple[int, ...]:
        """Slurm's version, such as (22, 5, 8); empty when unknown."""
        return tuple(int(number) for number in re.findall(r"\d+", self.text("SLURM_VERSION"))[:3])

    @property
    def release(self) -> Decimal:
        """The first two numbers of the version, such as 22.05; 0 when unknown."""
        return release_of(self.text("SLURM_VERSION")) or Decimal(0)

    def text(self, key: str) -> str:
        """A setting's value, "" when it is not set."""
        value = self.config.get(key.lower(), "")
        return "" if value in {"(null)", "N/A", "none", "NONE"} else value

    def number(self, key: str) -> int | None:
        """The number that a value begins with (`5 sec`), None without one."""
        match = re.match(r"\d+", self.text(key))
        return int(match[0]) if match else None


def collect(site: SiteConfig) -> ClusterFacts:
    """Ask the cluster that this machine belongs to. Raises PoolUnreachable."""
    commands = SlurmCommands(site.slurm.bin_dir, site.slurm.command_timeout)
    config = commands.ask(*COMMAND)
    partitions = commands.ask("scontrol", "--oneliner", "show", "partition")
    jobs = CommandLine(commands, _SNAPSHOT_SECONDS).answers().jobs
    qos = qos_in(commands.ask(*QOS_COMMAND)) if settings_in(config).get("accountingstoragetype", "") else ()
    choice = choice_of(site.slurm.transport, commands, _SNAPSHOT_SECONDS)
    over_time = dict(_PARTITION.findall(partitions))
    return ClusterFacts(settings_in(config), over_time, qos, tuple(jobs), choice, history_of(site, config))


def settings_in(config: str) -> dict[str, str]:
    """The settings in the output of `scontrol show config` by lower-case key, as far as they are set."""
    return {key: " ".join(values) for key, values in live_values(config).items()}


def qos_in(answer: str) -> tuple[Qos, ...]:
    """The qualities of service in the output of QOS_COMMAND."""
    rows = [line.split("|") for line in answer.splitlines()]
    return tuple(
        Qos(row[0], frozenset(filter(None, row[1].split(","))), frozenset(row[2].lower().split(",")))
        for row in rows
        if len(row) == 3
    )


def shown_labels(jobs: Sequence[Job]) -> str:
    """The first few of these jobs, by what Slurm's commands take for them."""
    more = f" and {len(jobs) - _SHOWN} more" if len(jobs) > _SHOWN else ""
    return ", ".join(job.label for job in jobs[:_SHOWN]) + more
