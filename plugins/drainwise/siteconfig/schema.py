"""The site file: its sections, each with the name, kind, default, range and meaning of its keys."""

# ruff: noqa: RUF009 - key() and optional() are dataclasses.field() with a typed default

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any

from drainwise.facts.client_rules import ClientRules
from drainwise.facts.clients import PAPER, PROFILES
from drainwise.facts.scope_rules import END, REQUEUE, Scope, ScopeRules
from drainwise.facts.units import format_duration
from drainwise.pool.billing import CORES
from drainwise.pool.identity import IdentityRules, Rule
from drainwise.reclaim.prices import DEFAULT, INSTALLED, POLICIES, is_policy
from drainwise.siteconfig.kinds import (
    Key,
    billing_weights,
    choice,
    client_conditions,
    decimal,
    duration,
    file_patterns,
    integer,
    integer_or,
    ip_address,
    key,
    keys_of,
    listed,
    optional,
    path,
    payload_patterns,
    rule,
    size,
)
from drainwise.siteconfig.node_sections import (
    Contradiction,
    FeaturesSection,
    HTCondorSection,
    KindSection,
    LocalSection,
    SlurmSection,
)

_LOOPBACK = "127.0.0.1"
_PILOTS, _COUNT, _NO_OR_YES = client_conditions(), integer(1, 10_000_000), choice("no", "yes")
_AT_DEADLINE = choice(END, REQUEUE)


@dataclass(frozen=True)
class MetricsSection:
    """The agent's metrics for Prometheus; it needs prometheus_client (`pip install drainwise[metrics]`)."""

    port: int | None = optional(
        integer(1024, 65535),
        "9877",
        "the agent serves its metrics there; left out: it does not",
    )
    address: str = key(ip_address(), _LOOPBACK, "loopback address for that")
    textfile: str | None = optional(
        path(),
        "/var/lib/prometheus/node-exporter/drainwise.prom",
        "the agent writes its metrics there, for node_exporter",
    )

    def contradictions(self, site: object) -> Iterator[Contradiction]:  # noqa: ARG002
        """See `Contradiction`."""
        if self.port is not None and not ipaddress.ip_address(self.address).is_loopback:
            yield "address", f"a loopback address such as {_LOOPBACK}; a proxy of the site has TLS and passwords"


@dataclass(frozen=True)
class PageSection:
    """The agent's page for people: index.html and status.json, written whole after each cycle."""

    directory: str | None = optional(
        path(), "/var/lib/drainwise-page", "the agent writes the page there; left out: it does not"
    )
    pilots: int = key(integer(1, 5000), 200, "most pilots that the page shows")


@dataclass(frozen=True)
class ClientsSection:
    """Which pilots are of which kind of client, by conditions; the rows are tried in this order: docs/pilots.md."""

    none: str | None = optional(
        _PILOTS, "account=group_local.*", "pilots that are shown nothing: they hear SIGTERM alone"
    )
    alice: str | None = optional(
        _PILOTS, "user=alice*", "ALICE's JAliEn: it never sees a shutdown file, which would break it"
    )
    panda: str | None = optional(
        _PILOTS,
        "user=atlas* or job.x509UserProxyVOName=atlas",
        "PanDA's pilot: it stops 10 min before its deadline and drops what runs",
    )
    dirac: str | None = optional(_PILOTS, "user=lhcb* name=DIRAC*", "DIRAC's pilot: it goes on until SIGTERM")
    glideinwms: str | None = optional(
        _PILOTS,
        "job.GLIDEIN_Factory=*",
        "glideins of glideinWMS: they drain; the time shown is 30 min later, since they stop so long before it",
    )
    paper: str | None = optional(
        _PILOTS, "account=group_pilots.*", "pilots that read .site.ad or the shutdown files, and drain"
    )
    default: str = key(choice(*reversed(PROFILES)), PAPER.name, "what a pilot is that no row fits")

    @property
    def rules(self) -> ClientRules:
        """The rows as nodes and the agent use them."""
        rows = {name: row for name in PROFILES if (row := getattr(self, name)) is not None}
        return ClientRules(rows, self.default)


@dataclass(frozen=True)
class IdentitySection:
    """Who sent a pilot, by its virtual organisation and its job at the CE: shown, and never decided upon."""

    issuer: Rule | None = optional(
        rule(), "https://{vo}-auth.cern.ch/{}", "on HTCondor: what the issuer of a token says of a pilot"
    )
    comment: Rule | None = optional(
        rule(), "vo={vo} job={ce_job} {} | vo={vo}", "on Slurm: what a job's comment says of it"
    )
    job_name: Rule | None = optional(rule(), "{vo}_{ce_job}", "on Slurm: what a job's name says of it")

    def rules(self) -> IdentityRules:
        """Return the section as whoever reads a pool needs it."""
        return IdentityRules(self.issuer, self.comment, self.job_name)


SCOPE = "scope "


@dataclass(frozen=True)
class ScopeSection:
    """Jobs of one kind, by conditions as in [clients]; the first scope that fits a job counts before [reclaim]."""

    jobs: str | None = optional(_PILOTS, "partition=scavenge", "which jobs these are")
    min_age: int | None = optional(duration("0s", "1d"), "10m", "a job younger than this gets no order")
    multi_node: str = key(_NO_OR_YES, "no", "yes: a job of several nodes that reports nothing may be ordered, as one")
    at_deadline: str | None = optional(_AT_DEADLINE, REQUEUE, "as [reclaim] at_deadline, for these jobs")

    def contradictions(self, site: object) -> Iterator[Contradiction]:  # noqa: ARG002
        """See `Contradiction`."""
        if self.jobs is None:
            yield "jobs", "conditions for the jobs of the scope"


@dataclass(frozen=True)
class PilotSection:
    """The use of a pilot's report."""

    heartbeat_limit: int = key(duration("1m", "7d"), 3600, "a pilot reports at least so often")
    heartbeat_slack: int = key(
        duration("0s", "1d"),
        600,
        "time for a report to reach the pool; one older than both together is stale",
    )

    @property
    def stale_after(self) -> int:
        """The age, in seconds, beyond which a report has lost its protection."""
        return self.heartbeat_limit + self.heartbeat_slack


@dataclass(frozen=True)
class ObserverSection:
    """What a node sees of payloads from outside, for pilots that report nothing."""

    enabled: str = key(choice("yes", "no"), "yes", "no: the nodes do not look at the processes of jobs")
    payloads: str | None = optional(
        payload_patterns(),
        "cms=cmsRun",
        "processes that are payloads: client=part of their command line",
    )
    checkpoints: str | None = optional(
        file_patterns(),
        "*.ckpt, restart/*.h5",
        "on Slurm: checkpoint files below a silent job's WorkDir",
    )
    contradictory_after: int = key(
        duration("10s", "1d"), 600, "a report is contradictory when its node sees for so long that it cannot be true"
    )


@dataclass(frozen=True)
class ReclaimSection:
    """Orders to pilots, and the bounds of every cycle."""

    policy: str = key(
        listed(POLICIES, is_policy, INSTALLED),
        DEFAULT,
        "how the pilots that must leave are chosen",
    )
    preemptible: str | None = optional(
        _PILOTS,
        "partition=scavenge",
        "which running jobs may be ordered; without it all may, but for exempt",
    )
    exempt: str | None = optional(
        _PILOTS,
        "account=operations or user=root",
        "which running jobs are never ordered; it wins, also over orders that stand",
    )
    entitlement: str = key(
        choice("shares", "preemption"),
        "shares",
        "shares: accounts below theirs take from those above; preemption: Slurm's own rule says who takes from whom",
    )
    at_deadline: str | None = optional(
        _AT_DEADLINE,
        REQUEUE,
        "requeue: on Slurm a job that may be requeued waits again, with its time limit; end: it has ended; left out: it"
        " is requeued only where it is ended at once",
    )
    horizon: int = key(
        duration("0s", "30d"),
        7200,
        "cores must be free within this time; slower options are not considered",
    )
    grace: int = key(duration("5s", "30d"), 7200, "longest time between the order to leave and its deadline")
    max_grace: int = key(duration("5s", "30d"), 86400, "longest time a pilot may get, whatever it says")
    min_grace: int = key(
        duration("0s", "30d"),
        300,
        "shortest time that a pilot has to drain, where grace and horizon allow it",
    )
    margin: int = key(
        duration("0s", "1d"),
        900,
        "time that a pilot gets beyond the remaining time that it reports; without it, it counts as cut",
    )
    drain_only: str = key(
        choice("yes", "no"),
        "yes",
        "yes: an ordered pilot has time to drain before its deadline; no: it may end at once, where that wastes less",
    )
    waiting_cost: Decimal = key(
        decimal("0", "1000"),
        Decimal("0.5"),
        "with policy = open-need: wasted core-hours that a core-hour of waiting is worth",
    )
    stuck_after: int = key(duration("10s", "30d"), 14400, "a pilot without a payload for so long is stuck")
    min_age: int = key(duration("0s", "1d"), 60, "a younger pilot gets no order")
    time_to_start: int = key(
        duration("1s", "1d"),
        180,
        "time for jobs to start on cores that came back for them",
    )
    max_cores_per_cycle: int = key(_COUNT, 512, "most cores that one cycle orders back")
    max_cores_per_user_per_cycle: int = key(_COUNT, 128, "most cores that one cycle takes from one user")
    max_cores_per_user_per_hour: int = key(_COUNT, 1024, "most cores taken from one user within an hour")
    extra_cores: str = key(
        integer_or("auto", 0, 10000000),
        "auto",
        "cores that a user's own reports may cost it within an hour, beyond what facts take; auto: the larger of"
        " its largest pilot and a quarter of what facts take",
    )
    reports_compete: str = key(
        choice("user", "account", "site"),
        "user",
        "within whom reports decide which pilots go",
    )
    billing: str = key(
        billing_weights(),
        CORES,
        "how jobs compare: by cores, by weights as in Slurm's TRESBillingWeights, or site: as Slurm bills them, or by"
        " HTCondor's SlotWeight",
    )
    max_gpus_per_user_per_hour: int = key(_COUNT, 10000000, "most GPUs taken from one user within an hour")
    max_billing_per_user_per_hour: int = key(_COUNT, 10000000, "most of what is billed taken from one user in an hour")
    max_billing_per_hour: int = key(_COUNT, 10000000, "likewise from all users")
    max_cores_per_hour: int = key(_COUNT, 10000000, "most cores taken from all users within an hour")

    def contradictions(self, site: SiteConfig) -> Iterator[Contradiction]:
        """See `Contradiction`."""
        if site.agent.act == "yes" and (self.preemptible is not None or self.exempt is not None):
            for name, value in (
                ("negotiator_policy", site.htcondor.negotiator_policy),
                ("defrag", site.htcondor.defrag),
            ):
                if value in {"least-waste", "yes"}:
                    which = "preemptible" if self.exempt is None else "exempt"
                    yield (
                        which,
                        f"no scope, or [agent] act = no: [htcondor] {name} = {value} is not bound by it",
                    )
        notice = site.features.grace_job or 0
        least = f"at least [features] grace_job, {format_duration(notice)}"
        if self.grace > self.max_grace:
            yield "grace", f"at most max_grace, {format_duration(self.max_grace)}"
        if self.margin >= self.grace:  # else nobody could be gone in time
            yield "margin", f"less than grace, {format_duration(self.grace)}"
        if self.grace < notice:
            yield "grace", least
        if self.horizon < notice:
            yield "horizon", least


@dataclass(frozen=True)
class JournalSection:
    """The journal of decisions, orders and outcomes; `drainwise explain` and `drainwise report` read it."""

    file: str | None = optional(
        path(), "/var/log/drainwise/journal", "left out: an agent that acts keeps one in [agent] state_dir"
    )
    max_size: int = key(size("100kB", "10GB"), 64_000_000, "size at which a new file is begun")
    keep: int = key(integer(1, 1000), 8, "older files that are kept")
    view: str = key(
        choice("owner", "all", "no"),
        "owner",
        "who may read what `explain` shows of a user's pilots without the journal's rights; owner: that user",
    )


@dataclass(frozen=True)
class AgentSection:
    """The reclaim agent as a service: `drainwise reclaim --loop`."""

    act: str = key(_NO_OR_YES, "no", "no: a dry run; --act is a yes as well")
    period: int = key(duration("1s", "1d"), 60, "from the beginning of one cycle to that of the next")
    kill_switch: str = key(path(), "/etc/drainwise/kill-switch", "while this file exists, no order is given")
    state_dir: str = key(path(), "/var/lib/drainwise", "directory of the agent's lock and requests")
    command: str = key(path(), "/usr/bin/drainwise", "the drainwise command on the machine of the agent")
    condor_master: str = key(
        _NO_OR_YES, "no", "yes: condor_master starts the agent on the central manager, instead of systemd"
    )
    advertise: str = key(
        choice("yes", "no"), "yes", "no: a running agent has no ad in HTCondor's collector (condor_status -any)"
    )


@dataclass(frozen=True)
class SiteConfig:
    """The whole site file; `file` is where it was read from.

    kinds: the kinds of nodes by name, in the file's order.
    others: the sections of batch systems of installed packages, by name: a dataclass as the system says, or text.
    former: a sentence for each key in the file that is read no more, or will not be.
    """

    file: str = ""
    features: FeaturesSection = FeaturesSection()
    pilot: PilotSection = PilotSection()
    observer: ObserverSection = ObserverSection()
    clients: ClientsSection = ClientsSection()
    htcondor: HTCondorSection = HTCondorSection()
    slurm: SlurmSection = SlurmSection()
    local: LocalSection = LocalSection()
    reclaim: ReclaimSection = ReclaimSection()
    identity: IdentitySection = IdentitySection()
    journal: JournalSection = JournalSection()
    agent: AgentSection = AgentSection()
    metrics: MetricsSection = MetricsSection()
    page: PageSection = PageSection()
    kinds: Mapping[str, KindSection] = field(default_factory=dict, hash=False)
    scopes: Mapping[str, ScopeSection] = field(default_factory=dict, hash=False)
    others: Mapping[str, Any] = field(default_factory=dict, hash=False)
    former: tuple[str, ...] = ()

    @property
    def preempt_mode(self) -> str:
        """What becomes of a Slurm job that is ended at once, in the word of Slurm's PreemptMode."""
        return "CANCEL" if self.reclaim.at_deadline == END else "REQUEUE"

    @property
    def scope(self) -> ScopeRules:
        """Which running jobs may be ordered."""
        scopes = tuple(
            Scope(name, one.jobs, one.min_age, one.multi_node == "yes", one.at_deadline)
            for name, one in self.scopes.items()
            if one.jobs is not None
        )
        its = self.reclaim
        return ScopeRules(its.preemptible or "", its.exempt or "", scopes, its.at_deadline)


SECTIONS: dict[str, type[Any]] = {
    one.name: type(one.default)
    for one in fields(SiteConfig)
    if one.name not in {"file", "kinds", "scopes", "others", "former"}
}
"""The sections of every site file by name, each a typed table."""


def keys() -> Iterator[Key]:
    """Yield the keys of all sections in their order."""
    for section, table in SECTIONS.items():
        yield from keys_of(section, table)
