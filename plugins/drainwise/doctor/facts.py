"""The facts of one machine that `drainwise doctor` judges. What is not known is "", None or empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from drainwise.pool.finding import Finding

CLONE, PIP, RELEASE = "clone", "pip", "release"
"""How the running package came here: a working copy, pip, or `drainwise install`, which packages call, too."""


@dataclass(frozen=True)
class Installation:
    """The package that runs, and what else is installed.

    * version, kind, place: of the package that runs, how it came here, and its directory.
    * packages: of the distribution, names and versions. release: the version that the hooks here use, "" where there is
      none; unreadable: why the jobs' users cannot read it.
    * libraries: the versions of what some commands need, "" for one that is not there. python: the interpreter's.
    """

    version: str
    kind: str
    place: str
    packages: tuple[tuple[str, str], ...] = ()
    release: str = ""
    unreadable: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)
    python: str = ""


@dataclass(frozen=True)
class RenderedFact:
    """A rendered file on this machine.

    origin: the site file's name, as the file has it, or "the defaults". version: of drainwise that rendered it.
    differs: whether it is another one than it should be, None where nobody knows. stub: whether it is what a removal
    left. fault: why it cannot be used. is_dangerous: whether others than root can change it. command: puts it in place
    again, "" where nothing does.
    """

    path: str
    origin: str = ""
    version: str = ""
    edited: bool = False
    differs: bool | None = None
    stub: bool = False
    fault: str = ""
    is_dangerous: bool = False
    command: str = ""


@dataclass(frozen=True)
class RunningProcess:
    """A daemon of the batch system or of drainwise: its name, number and age in seconds."""

    name: str
    pid: int
    age: int


@dataclass(frozen=True)
class SeenNode:
    """A node as the batch system shows it: its version of drainwise, and seconds since it published; None: never."""

    name: str
    version: str = ""
    silence: int | None = None


@dataclass(frozen=True)
class Rights:
    """Whether whoever asks may give orders: `allowed` is None where that was not tried, and `why` says why.

    line: the command that mends it.
    """

    allowed: bool | None
    why: str
    line: str = ""


@dataclass(frozen=True)
class BatchFacts:
    """What this machine is in one batch system.

    * system, version: its name for commands, and the batch system's version. title: its name for people.
    * roles: for which `drainwise config` renders here; agent_here: whether an agent of the pool belongs here.
    * daemons: that should run here. in_force: whether its configuration here uses drainwise, None where that is not
      asked; enable: the command that puts it in force.
    * whole: whether `nodes` and `standings` are of the whole pool, else of this machine. nodes: as it shows them.
      standings: pilots by the standing of their reports. fault: why it does not answer.
    * stale_after: seconds after which a node is silent, None where `findings` say it; update: within which it publishes
      once it is enabled. findings: of `drainwise check` on what it is here.
    """

    system: str
    title: str
    version: str = ""
    roles: tuple[str, ...] = ()
    agent_here: bool = False
    daemons: tuple[str, ...] = ()
    in_force: bool | None = None
    enable: str = ""
    whole: bool = False
    nodes: tuple[SeenNode, ...] = ()
    standings: Mapping[str, int] = field(default_factory=dict)
    rights: Rights | None = None
    fault: str = ""
    stale_after: int | None = None
    update: int = 0
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class AgentLook:
    """What is wrong with the agent that belongs here, or that it runs: `why`, and the command that mends it."""

    is_sound: bool
    why: str
    line: str = ""


@dataclass(frozen=True)
class MachineFacts:
    """All facts of one look at a machine.

    site, site_fault: the site file ("" where there is none) and why it cannot be used. faults: what could not be looked
    at, and why.
    """

    host: str
    uid: int
    installation: Installation
    batch: tuple[BatchFacts, ...] = ()
    rendered: tuple[RenderedFact, ...] = ()
    running: tuple[RunningProcess, ...] = ()
    agent: tuple[AgentLook, ...] = ()
    site: str = ""
    site_fault: str = ""
    faults: tuple[str, ...] = ()
