"""Check that this machine's reclaim agent lives and its orders are taken, by its lock, its journal and its manager.

The facts are gathered without touching the lock, which a new agent must find free; `judge` is pure.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

from drainwise.facts.errors import UsageError
from drainwise.journal.event import Event, Kind, Outcome, State
from drainwise.journal.read import events_of, files_of
from drainwise.pool.finding import MISSING, OK, Finding

UNIT = "drainwise-agent"
"""As `drainwise config` renders it, and as the packages bring it."""

_ASKED = "LoadState,UnitFileState,ActiveState,SubState,NRestarts,Result,ExecMainStatus,ActiveEnterTimestampMonotonic"
_SECONDS = 5.0
_YOUNG = 60.0  # seconds; an agent that was started again and again has not lived longer
_MANY = 3

_HOUR = 3600
_NO_FAULT = (
    Outcome.DONE,
    Outcome.SKIPPED,
    Outcome.NOT_DONE,
)  # of an order that was not done, what nobody answered was written before
_STARTS = 3  # so often in an hour nobody starts it again by hand


@dataclass(frozen=True)
class ServiceManager:
    """What starts the agent on this machine (`name`), and how often it did in the last hour after the agent had ended.

    fault: why the agent is not kept running, "" where it is; look: the command that shows more.
    """

    name: str
    starts: int = 0
    fault: str = ""
    look: str = ""


@dataclass(frozen=True)
class AgentFacts:
    """The agent of a pool, as this machine has it.

    wanted: whether one must act here. lock: the path of its lock, and `holder` the process that holds it. journal: its
    path. state: the last one written there, and why. failed: why orders of the last hour failed, the last one last;
    given: how many orders there were in all. unread: why lock or journal cannot be looked at, or "".
    """

    wanted: bool
    lock: str
    holder: int | None
    journal: str
    state: tuple[str, str]
    failed: tuple[str, ...]
    given: int
    manager: ServiceManager | None
    unread: str = ""


def judge(facts: AgentFacts) -> Iterator[Finding]:
    """Yield the verdicts on the agent; none where this machine has no agent and needs none."""
    manager = facts.manager
    if manager is not None and (manager.fault or manager.starts >= _STARTS):
        ended = f"; started again {manager.starts} times in the last hour" if manager.starts else ""
        why = f"{manager.name} does not keep the agent running: {manager.fault or 'it ends again and again'}{ended}"
        yield Finding(MISSING, "agent", why, manager.look)
    elif facts.unread:
        yield Finding(OK, "agent", f"this user cannot see whether it lives: {facts.unread}")
        return
    elif facts.holder is not None:
        yield Finding(OK, "agent", "an agent that acts is running", value=f"pid {facts.holder}")
    elif facts.wanted:
        why = f"[agent] act = yes, and no agent that acts is running here: nobody holds {facts.lock}"
        line = manager.look if manager else f"systemctl unmask {UNIT}; systemctl enable --now {UNIT}   # docs/agent.md"
        yield Finding(MISSING, "agent", why, line)
    name, reason = facts.state
    if facts.holder is not None and name == State.BACKING_OFF:
        why = f"the last try failed: {reason}; the agent tries again within ten minutes, or at once by this signal"
        yield Finding(MISSING, "agent's state", why, f"kill -HUP {facts.holder}   # the agent", name)
    if facts.failed:
        why = f"the last one: {facts.failed[-1]}"
        shown = f"{len(facts.failed)} of {facts.given} orders of the last hour failed"
        yield Finding(MISSING, "agent's orders", why, f"see {facts.journal}", shown)


def facts_of(
    lock: str, journal: str, acting: bool, here: bool, manager: ServiceManager | None, now: int
) -> AgentFacts | None:
    """Look at the agent at `now` (UNIX s); None where there is no trace of one and it belongs on another machine.

    acting: whether the site file lets it act; here: whether this is the machine where the agent of a pool runs.
    """
    traced = os.path.lexists(lock) or manager is not None
    if not (traced or here):
        return None
    holder, lines, unread = None, [], ""
    try:
        holder = _holder(lock)
        recent = events_of(files_of(journal)[-2:], Kind.STATE, Kind.ORDER)
        lines = [event for event in recent if _time(event) <= now]
    except OSError as fault:
        unread = f"{lock}: {fault.strerror}"
    except UsageError as fault:
        unread = str(fault)
    states = [event for event in lines if event["event"] == Kind.STATE]
    orders = [event for event in lines if event["event"] == Kind.ORDER and _time(event) > now - _HOUR]
    failed = tuple(str(event.get("detail")) for event in orders if event.get("outcome") not in _NO_FAULT)
    state = (str(states[-1].get("state")), str(states[-1].get("why"))) if states else ("", "")
    wanted = acting and (here or manager is not None)
    return AgentFacts(wanted, lock, holder, journal, state, failed, len(orders), manager, unread)


def _time(event: Event) -> int:
    time = event.get("time")
    return time if isinstance(time, int) else 0


def _holder(lock: str) -> int | None:
    """Return the process whose number stands in the lock's file and that has this file open."""
    try:
        with open(lock, "rb") as file:
            written = (file.read(32).split() or [b""])[0]
            there = os.fstat(file.fileno())
    except FileNotFoundError:
        return None
    if not written.isdigit():
        return None
    directory = f"/proc/{int(written)}/fd"
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return None
    for name in names:
        try:
            if os.path.samestat(os.stat(f"{directory}/{name}"), there):
                return int(written)
        except OSError:
            continue  # closed meanwhile
    return None


def systemd_manager(program: str = "systemctl") -> ServiceManager | None:
    """Return what keeps the agent of this machine below systemd; None without systemd, or a unit in use."""
    command = [program, "show", UNIT, f"--property={_ASKED}"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if ran.returncode:
        return None
    return service_manager_of(ran.stdout, time.monotonic())


def service_manager_of(answer: str, now: float) -> ServiceManager | None:
    """Return the service manager by what `systemctl show` printed of a unit; `now` in s of the monotonic clock."""
    said = dict(line.split("=", 1) for line in answer.splitlines() if "=" in line)
    active, sub = said.get("ActiveState", ""), said.get("SubState", "")
    enabled = said.get("UnitFileState", "").startswith("enabled")
    if said.get("LoadState") != "loaded" or not (enabled or active in {"active", "activating", "failed", "reloading"}):
        return None
    starts, since = _whole(said.get("NRestarts")), _whole(said.get("ActiveEnterTimestampMonotonic")) / 1e6
    status = f"status {said.get('ExecMainStatus', '?')}, {said.get('Result', '?')}"
    fault, look = "", f"journalctl -u {UNIT} -n 20"
    if sub == "auto-restart" or active == "failed":
        fault = f"it ended ({status})"
    elif active == "inactive":
        fault, look = "its unit is enabled, and it is not running", f"systemctl start {UNIT}"
    elif starts >= _MANY and (active == "activating" or now - since < _YOUNG):
        fault = f"it was started again {starts} times, the last time less than a minute ago"
    return ServiceManager("systemd", 0, fault, look)


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0
