"""A job of the local batch system from its submission to its end, the accounts it is charged to, and its nodes."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from drainwise.facts.client_rules import ACCOUNT, USER, ClientRules
from drainwise.facts.clients import PAPER, ClientProfile
from drainwise.facts.errors import UsageError
from drainwise.local.lease.job_spec import checked_command, checked_environment
from drainwise.processes.process import Process

WAITING = "waiting"
STARTING = "starting"
"""Its start is written down; whether its lease has come to be is what the lease's directory tells."""
RUNNING = "running"
ENDED = "ended"
LIVE = (STARTING, RUNNING)
"""The states in which a job holds cores."""

TERM = "term"
KILL = "kill"
AGAIN = 1.0
"""Seconds until what was killed and is still there is killed again."""

LARGEST_CORES = 1_000_000
LONGEST_WALL_LIMIT = 365 * 86400

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")
_NODES = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,5})")


@dataclass(frozen=True)
class AccountQuota:
    """An account and its `quota` in cores. It may use more while cores are free, and is over its quota then."""

    name: str
    quota: int


@dataclass(frozen=True)
class LocalNode:
    """A made-up machine. Its cores are counted, not bound: a lease's processes run wherever they like."""

    name: str
    cores: int


@dataclass(frozen=True)
class JobRequest:
    """A job as a user submits it: `wall_limit` in seconds; of one account the highest `priority` starts first."""

    account: str
    user: str
    cores: int
    command: tuple[str, ...]
    wall_limit: int
    priority: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LocalJob:
    """One job as the state has it. Times are UNIX seconds; None where it has not come to that.

    run: names this run and no other (job id and start). supervisor: its lease supervisor. deadline: of its order.
    term_sent, kill_sent: when it was ended for its deadline, wall limit or removal. not_before: no start before that.
    note: why it waits or ended. cpu_seconds: CPU time of all its processes, known when it has ended.
    """

    job_id: int
    request: JobRequest
    submitted: float
    state: str = WAITING
    node: str = ""
    run: str = ""
    started: int = 0
    supervisor: Process | None = None
    deadline: int | None = None
    removed: bool = False
    term_sent: float | None = None
    kill_sent: float | None = None
    not_before: float = 0.0
    ended: float | None = None
    code: int | None = None
    signal: int | None = None
    note: str = ""
    cpu_seconds: float | None = None

    @property
    def cores(self) -> int:
        """The cores that it leases or waits for."""
        return self.request.cores

    @property
    def wall_end(self) -> int:
        """When its wall limit is over, UNIX s (once it has started)."""
        return self.started + self.request.wall_limit

    @property
    def lease_end(self) -> int:
        """When its cores must be free: the end of the wall limit or, when earlier, the deadline of its order."""
        return self.wall_end if self.deadline is None else min(self.wall_end, self.deadline)

    @property
    def was_ended(self) -> bool:
        """Whether it did not end by itself, or was not left to: its lease was over, or somebody removed it."""
        return self.removed or self.term_sent is not None


def due(job: LocalJob, now: float, kill_wait: float) -> str | None:
    """Decide what a running job gets at `now` (UNIX s): TERM at the end of its lease, KILL `kill_wait` s later."""
    if job.term_sent is None:
        return TERM if job.removed or now >= job.lease_end else None
    if now < job.term_sent + kill_wait:
        return None
    return KILL if job.kill_sent is None or now >= job.kill_sent + AGAIN else None


def next_due(job: LocalJob, kill_wait: float) -> float:
    """Return when `due` says something else, UNIX s."""
    if job.term_sent is None:
        return float(job.lease_end)
    return job.term_sent + kill_wait if job.kill_sent is None else job.kill_sent + AGAIN


def why_due(job: LocalJob) -> str:
    """Return the reason in words."""
    if job.removed:
        return "removed"
    if job.deadline is not None and job.deadline < job.wall_end:
        return "its deadline has come"
    return "its wall limit is over"


def run_name(job_id: int, started: int) -> str:
    """Name one run of a job, which is also the name of its directory."""
    return f"{job_id}@{started}"


def check_request(request: JobRequest) -> JobRequest:
    """Check a request and return it; raises UsageError that names what is not."""
    check_name("account", request.account)
    check_name("user", request.user)
    if not 1 <= request.cores <= LARGEST_CORES:
        raise UsageError(f"cores: {request.cores}: expected a whole number from 1 to {LARGEST_CORES}")
    if not 1 <= request.wall_limit <= LONGEST_WALL_LIMIT:
        raise UsageError(f"wall limit: {request.wall_limit} s: expected 1 s to 365 d")
    checked_command(request.command)
    checked_environment(request.environment)
    if not -1_000_000 <= request.priority <= 1_000_000:
        raise UsageError(f"priority: {request.priority}: expected a whole number of at most 1000000 either way")
    return request


def check_name(what: str, name: str) -> str:
    """Check the name of an account or user and return it; raises UsageError."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{what}: {name[:100]!a}: expected 1 to 100 of A-Z a-z 0-9 . _ @ -, a letter or digit first")
    return name


def parse_nodes(text: str) -> tuple[LocalNode, ...]:
    """Parse the nodes of `4x16` (four of sixteen cores) or `4x16,2x8`, called node1 and so on; raises UsageError."""
    nodes: list[LocalNode] = []
    for part in text.split(","):
        match = _NODES.fullmatch(part)
        if match is None or len(nodes) + int(match[1]) > 10_000:
            raise UsageError(
                f"nodes: {text[:80]!a}: expected NUMBERxCORES, such as 4x16 or 4x16,2x8, up to 10000 nodes"
            )
        nodes += [LocalNode(f"node{len(nodes) + number}", int(match[2])) for number in range(1, int(match[1]) + 1)]
    return tuple(nodes)


def login_name() -> str:
    """Return the name of the user who runs this; the number where nobody knows one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def client_of(job: JobRequest, rules: ClientRules | None) -> ClientProfile:
    """Return which kind of client a job is, by the rows of its node.conf or of the site file; None: there are none."""
    return rules.profile_of({USER: (job.user,), ACCOUNT: (job.account,)}) if rules else PAPER
