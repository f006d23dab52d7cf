"""The facts of a cluster that `drainwise check slurm` judges, and the queries for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from drainwise.facts.errors import PoolUnreachable
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.jobs.commands import SHOW_CONFIG, UNSET_VALUES, SlurmCommands, settings_in
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.node_sign import signs_of
from drainwise.slurm.pool import qos_rules
from drainwise.slurm.pool.transport import SlurmTransport, TransportChoice
from drainwise.slurm.setup.live_settings import history_of
from drainwise.slurm.setup.merge import Hook, names_hook
from drainwise.slurm.setup.own_settings import ClusterHistory, OwnSettings, release_of

_NODES = ("sinfo", "--noheader", "--Node", "--all", "--Format=NodeHost:|,NodeList:|,StateLong:|,Extra:|")
_AWAY = tuple("*~#%!")
"""Signs behind a state: it does not answer, is without power, or is getting it."""
_PARTITION = re.compile(r"^PartitionName=(\S+) .*?\bOverTimeLimit=(\S+)", re.MULTILINE)
_SNAPSHOT_SECONDS = 30.0
_SETTLED = 300  # seconds


class NodeFacts(NamedTuple):
    """A node: the name of its machine, its own, its state in letters and signs, and its Extra, "" for nothing."""

    host: str
    name: str
    state: str = "idle"
    extra: str = ""

    @property
    def is_up(self) -> bool:
        """Whether slurmd answers there, as far as slurmctld knows."""
        return not self.state.startswith(("down", "future", "power", "reboot", "unk")) and self.state[-1:] not in _AWAY


@dataclass(frozen=True)
class ClusterFacts:
    """The live configuration by lower-case key (where one stands several times, the values with blanks between).

    `over_time`: each partition's own OverTimeLimit. `jobs`: all that slurmctld knows. `choice`: what snapshots ask by,
    None where nobody looked. `history`: what the site has set itself. `drained`: nodes that take no jobs, and why.
    `accounting_fault`: why the accounting does not answer. `nodes`: each once.
    """

    config: Mapping[str, str]
    over_time: Mapping[str, str]
    qos: tuple[qos_rules.Qos, ...]
    jobs: tuple[SlurmJob, ...]
    choice: TransportChoice | None = None
    history: ClusterHistory = field(default_factory=ClusterHistory)
    drained: tuple[tuple[str, str], ...] = ()
    accounting_fault: str = ""
    nodes: tuple[NodeFacts, ...] = ()

    @property
    def own(self) -> OwnSettings:
        """What the site has set itself."""
        return self.history.own

    @property
    def single(self) -> list[SlurmJob]:
        """The jobs that run on one node, each of which may be a pilot."""
        return [job for job in self.jobs if job.runs and job.single]

    def settled(self, now: int) -> list[SlurmJob]:
        """Return those of them that have run for so long that their first report must have come."""
        return [job for job in self.single if job.start is not None and job.start + _SETTLED < now]

    @property
    def hosts(self) -> list[str]:
        """The machines of the nodes."""
        return sorted({node.host for node in self.nodes})

    @property
    def signs(self) -> tuple[dict[str, tuple[int, str]], frozenset[str]]:
        """When each node last gave a sign of life (UNIX s), and its version; the nodes that should give signs."""
        return signs_of(self.single, ((node.name, node.extra) for node in self.nodes))

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
        """Return a setting's value, "" when it is not set."""
        value = self.config.get(key.lower(), "")
        return "" if value in UNSET_VALUES else value

    def runs(self, hook: Hook) -> bool:
        """Return whether slurm.conf names a hook of ours, or the site's own that calls it."""
        live = self.text(hook.key)
        return names_hook(live, hook.path) or bool(self.own.wrappers & set(live.split()))

    def number(self, key: str) -> int | None:
        """Return the number that a value begins with (`5 sec`), None without one."""
        match = re.match(r"\d+", self.text(key))
        return int(match[0]) if match else None


def collect(site: SiteConfig) -> ClusterFacts:
    """Ask the cluster that this machine belongs to. Raises PoolUnreachable."""
    commands = SlurmCommands(site.slurm.bin_dir, site.slurm.command_timeout)
    config = commands.ask(*SHOW_CONFIG)
    partitions = commands.ask("scontrol", "--oneliner", "show", "partition")
    jobs, settings = SlurmTransport(commands, _SNAPSHOT_SECONDS).answers().jobs, settings_in(config)
    qos, accounting_fault = "", ""
    try:
        qos = commands.ask(*qos_rules.COMMAND) if settings.get("accountingstoragetype") else ""
    except PoolUnreachable as fault:
        accounting_fault = str(fault)
    drained = [line.split("|", 1) for line in commands.ask("sinfo", "-h", "-R", "-o", "%N|%E").splitlines()]
    choice = SlurmTransport(commands, _SNAPSHOT_SECONDS, site.slurm.transport).choice()
    over_time = dict(_PARTITION.findall(partitions))
    return ClusterFacts(
        *(settings, over_time, qos_rules.qos_in(qos), tuple(jobs), choice, history_of(site, config)),
        drained=tuple((row[0], row[1]) for row in drained if len(row) == 2),
        accounting_fault=accounting_fault,
        nodes=nodes_in(commands.ask(*_NODES)),
    )


def nodes_in(answer: str) -> tuple[NodeFacts, ...]:
    """Return the nodes in the output of `_NODES`, each once."""
    rows = (line.rstrip("|").split("|", 3) for line in sorted(set(answer.splitlines())))
    found = (row for row in rows if len(row) == 4)
    return tuple(NodeFacts(host, name, state, "" if extra == "(null)" else extra) for host, name, state, extra in found)
