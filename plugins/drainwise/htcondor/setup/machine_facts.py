"""What this machine is in its HTCondor pool, and what the pool shows of the nodes: by HTCondor's own commands.

They are on every machine of a pool, which the Python bindings are not. The rights alone need the bindings. The log of
condor_master says how often the agent ended: one that dies at each start looks alive in between.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec

from drainwise.common.bounded_command import Answer, Running
from drainwise.doctor.facts import BatchFacts, Rights, SeenNode
from drainwise.facts.errors import DrainwiseError, PoolUnreachable
from drainwise.htcondor.node import CRON_HEARTBEAT, CRON_VERSION, UNUSABLE, USUAL_INTERVAL
from drainwise.htcondor.setup.check_knobs import ENABLE
from drainwise.htcondor.setup.surroundings import judge_clock, judge_surroundings, judge_unusable, surroundings
from drainwise.pilotad.attributes import STANDING
from drainwise.pilotad.report import SILENT
from drainwise.pool.finding import OK, Finding, judged
from drainwise.siteconfig import SiteConfig

_SECONDS = 30.0
_PLACES = "/usr/sbin:/usr/bin:/sbin:/bin"
_KNOBS = (
    "DAEMON_LIST",
    "FULL_HOSTNAME",
    "CONDOR_VERSION",
    "DRAINWISE_RUN",
    "DRAINWISE_WASTE",
    "UPDATE_INTERVAL",
    "EXECUTE",
)
_ROLES = {"STARTD": "execute", "SCHEDD": "access", "NEGOTIATOR": "central"}
_COLUMNS = (
    *("Machine", CRON_VERSION, CRON_HEARTBEAT, "MyCurrentTime", STANDING, "State", "PartitionableSlot"),
    *("LastHeardFrom", UNUSABLE),
)
_PACKAGED = "/etc/condor/config.d/50-drainwise.conf"


def batch_facts(site: SiteConfig) -> BatchFacts | None:
    """Look at this machine; None where HTCondor's commands or its configuration are not there."""
    try:
        knobs = _knobs()
    except PoolUnreachable:
        return None
    daemons = knobs.get("DAEMON_LIST", "").replace(",", " ").upper().split()
    roles = tuple(role for daemon, role in _ROLES.items() if daemon in daemons)
    is_central = "central" in roles
    host = knobs.get("FULL_HOSTNAME", os.uname().nodename)
    rows, fault = "", ""
    if is_central or "execute" in roles:
        only = () if is_central else ("-constraint", f'Machine == "{host}"')
        try:
            rows = _ask("condor_status", *only, "-af:t", *_COLUMNS)
        except PoolUnreachable as error:
            fault = str(error)
    nodes, update = tuple(nodes_in(rows)), knobs.get("UPDATE_INTERVAL", "")
    return BatchFacts(
        system="htcondor",
        title="HTCondor",
        version=knobs.get("CONDOR_VERSION", ""),
        roles=roles,
        agent_here=is_central,
        daemons=("condor_master", *(f"condor_{daemon.lower()}" for daemon in _ROLES if daemon in daemons)),
        in_force=_in_force(roles, knobs, site),
        enable=_enable(roles),
        whole=is_central,
        nodes=nodes,
        standings=standings_in(rows),
        rights=_rights(site, nodes) if is_central else None,
        fault=fault,
        stale_after=site.pilot.heartbeat_limit,
        findings=tuple(_findings(rows, knobs, host, "execute" in roles)),
        update=int(update) if update.isdigit() else USUAL_INTERVAL,
    )


def _enable(roles: tuple[str, ...]) -> str:
    """Return how drainwise is put in force: by one line, by rendering here, or by what was rendered elsewhere."""
    if os.path.exists(_PACKAGED):
        return ENABLE
    if find_spec("jinja2") is None:
        return "drainwise install --tree DIR   (rendered on the central machine: docs/install.md)"
    return f"drainwise config htcondor --role {' '.join(roles[:1])} --out / && condor_reconfig"


def _knobs() -> dict[str, str]:
    """Return the knobs of `_KNOBS` that are set here, by name. Raises PoolUnreachable without HTCondor."""
    found = {}
    for name in _KNOBS:
        answer = _run("condor_config_val", name)
        if answer.code == 0:
            found[name] = answer.text.strip()
    if "DAEMON_LIST" not in found:
        raise PoolUnreachable("HTCondor has no configuration here")
    return found


def _in_force(roles: tuple[str, ...], knobs: dict[str, str], site: SiteConfig) -> bool | None:
    """Decide whether the drop-ins count here, by a knob that each sets; None where no role needs one."""
    marks = {"execute": "DRAINWISE_RUN"}
    if site.htcondor.negotiator_policy != "none":
        marks["central"] = "DRAINWISE_WASTE"
    wanted = [marks[role] for role in roles if role in marks]
    return all(mark in knobs for mark in wanted) if wanted else None


def nodes_in(rows: str) -> Iterator[SeenNode]:
    """Yield the nodes in what condor_status printed: a row for each slot, with `_COLUMNS`."""
    found: dict[str, SeenNode] = {}
    for row in _rows(rows):
        heartbeat, clock = row[2], row[3]
        silence = max(0, int(clock) - int(heartbeat)) if heartbeat.isdigit() and clock.isdigit() else None
        version = "" if row[1] == "undefined" else row[1]
        before = found.get(row[0])
        if before is None or (silence is not None and (before.silence is None or silence < before.silence)):
            found[row[0]] = SeenNode(row[0], version, silence)
    yield from found.values()


def _findings(rows: str, knobs: dict[str, str], host: str, is_node: bool) -> Iterator[Finding]:
    """Judge the nodes' clocks and files in what condor_status printed, and what surrounds a node."""
    shown = {row[0]: (row[3], row[7], row[8].replace("undefined", "")) for row in _rows(rows)}
    for machine, (clock, heard, unusable) in sorted(shown.items()):
        if clock.isdigit() and heard.isdigit():
            yield from judge_clock(machine, int(clock), int(heard))
        if machine != host:  # what lies here is looked at
            yield from judge_unusable(machine, unusable.split())
    around = surroundings(knobs.get("EXECUTE", "")) if is_node else None
    if around is not None:
        yield from judged(host, (judge_surroundings,), around)


def standings_in(rows: str) -> dict[str, int]:
    """Count the slots in use by the standing of their pilot's report."""
    used = (row for row in _rows(rows) if row[5] == "Claimed" and row[6] != "true")
    return dict(Counter(SILENT if row[4] == "undefined" else row[4] for row in used))


def _rows(rows: str) -> Iterator[list[str]]:
    for line in rows.splitlines():
        row = line.split("\t")
        if len(row) == len(_COLUMNS):
            yield row


def _rights(site: SiteConfig, nodes: tuple[SeenNode, ...]) -> Rights:
    """Try at one node that publishes whether whoever asks may give orders, without an effect."""
    one = next((node.name for node in nodes if node.silence is not None), None)
    if one is None:
        return Rights(None, "no node of drainwise's is there")
    try:
        from drainwise.htcondor.setup.check import judge  # noqa: PLC0415 - the bindings may be missing
        from drainwise.htcondor.setup.collect_facts import collect  # noqa: PLC0415

        facts = collect(site, ("execute",), one)
        found = [finding for finding in judge(facts, site, ("execute",)) if finding.what == "orders"]
    except ImportError:
        return Rights(None, "HTCondor's Python bindings are not there")
    except DrainwiseError as fault:
        return Rights(None, str(fault))
    if not found:
        return Rights(None, f"{one} did not say")
    bad = next((finding for finding in found if finding.severity != OK), None)
    if bad is None:
        return Rights(True, f"tried at {one}")
    return Rights(False, f"{bad.why} ({one})", bad.line)


def _ask(name: str, *words: str) -> str:
    """Return what a command of HTCondor printed. Raises PoolUnreachable where it is not there or does not answer."""
    answer = _run(name, *words)
    if answer.code != 0:
        raise PoolUnreachable(f"{name}: {answer.complaint}")
    return answer.text


def _run(name: str, *words: str) -> Answer:
    program = shutil.which(name) or shutil.which(name, path=_PLACES)
    if program is None:
        raise PoolUnreachable(f"{name} is not there")
    environment = {**{key: value for key, value in os.environ.items() if "CONDOR" in key}, "LC_ALL": "C"}
    return Running((os.path.abspath(program), *words), {**environment, "PATH": _PLACES}, _SECONDS).answer()


_ENDED = re.compile(
    r"^(\d\d/\d\d/\d\d \d\d:\d\d:\d\d) The DRAINWISE_AGENT \(pid \d+\) (?:exited|died|was)[^\d]*(\d+)", re.MULTILINE
)
_TAIL = 1 << 20
_NAME = "DRAINWISE_AGENT"


def is_below_master(daemon_list: str) -> bool:
    """Decide whether condor_master keeps the agent, by the value of DAEMON_LIST."""
    return _NAME in re.split(r"[\s,]+", daemon_list.upper())


def endings_in(log: str, since: float) -> list[str]:
    """List the agent's ends after `since` (UNIX s) in the text of a MasterLog, as the code or signal of each."""
    return [status for when, status in _ENDED.findall(log) if _moment(when) > since]


def tail_of(path: str) -> str:
    """Read the end of a log; "" where there is none or it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return file.read(_TAIL).decode("utf-8", "replace")
    except OSError:
        return ""


def _moment(written: str) -> float:
    """Read a daemon's time stamp, which is local time."""
    try:
        return time.mktime(time.strptime(written, "%m/%d/%y %H:%M:%S"))
    except (ValueError, OverflowError):
        return 0.0
