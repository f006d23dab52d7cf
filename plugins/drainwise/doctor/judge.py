"""Decide what is wrong on a machine, in an order in which it is mended, and what to do next. Pure: facts in."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from drainwise.doctor.facts import CLONE, MachineFacts
from drainwise.facts.units import duration
from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding, first_few, judged, to_mend
from drainwise.pool.notices import UNKNOWN, counted

TOPICS = ("role", "installed", "rendered", "in force", "running", "allowed", "fresh", "versions")
"""What is judged, in the order in which it is mended."""

_SHOWN = 3
_NODE_ROLES = frozenset({"execute", "node"})
_INSTALL = "scripts/package deb   (docs/install.md), or: drainwise install --library /usr/share/drainwise"
_NOTHING = "nothing to mend here"


def judge(facts: MachineFacts) -> list[Finding]:
    """Return the verdicts, at least one on each of TOPICS, in their order."""
    return judged(facts.host, _RULES, facts)


def next_step(findings: Iterable[Finding]) -> str:
    """Return what to do next, in one line: for the first topic with a danger, else the first with something missing."""
    first = next(iter(to_mend(findings)), None)
    if first is None:
        return _NOTHING
    return first.line.splitlines()[0] if first.line else f"{first.what}: {first.why}"


def _role(facts: MachineFacts) -> Iterator[Finding]:
    if facts.site_fault:
        yield Finding(DANGEROUS, "role", f"the site file cannot be used: {facts.site_fault}", f"correct {facts.site}")
    for one in facts.batch:
        title = f"{one.title} {one.version}".strip()
        agent = "; the agent belongs here" if one.agent_here else ""
        yield Finding(OK, "role", f"{', '.join(one.roles) or 'submit'} of {title}{agent}")
    if not facts.batch:
        yield Finding(OK, "role", "no batch system of drainwise's here; the local one needs none")
    for fault in facts.faults:
        yield Finding(MISSING, "role", f"could not be looked at: {fault}")


def _installed(facts: MachineFacts) -> Iterator[Finding]:
    it = facts.installation
    packages = ", ".join(f"{name} {version}" for name, version in it.packages)
    why = f"{it.version} from {f'packages: {packages}' if packages else f'a {it.kind}'} ({it.place})"
    yield Finding(OK, "installed", why)
    if it.unreadable:
        line = f"chmod a+rX {it.unreadable.partition(':')[0]}"
        yield Finding(DANGEROUS, "installed", f"the jobs' users cannot read the package: {it.unreadable}", line)
    if any(_NODE_ROLES & set(one.roles) for one in facts.batch) and not it.release:
        why = "jobs run here, and the hooks' package is not in /usr/share/drainwise"
        yield Finding(MISSING, "installed", why, _INSTALL)
    elif it.release and it.release != it.version and it.kind != CLONE:
        why = f"the hooks here use {it.release}, and this command is {it.version}"
        yield Finding(MISSING, "installed", why, "install one version here: docs/install.md")
    elif it.release:
        yield Finding(OK, "installed", f"the hooks use {it.release}")
    if any(one.agent_here for one in facts.batch):
        for name in (name for name in ("numpy", "jinja2") if not it.libraries.get(name)):
            why = f"the agent needs the Python package {name}"
            yield Finding(MISSING, "installed", why, f"apt install python3-{name}")
        is_condor = any(one.system == "htcondor" and one.agent_here for one in facts.batch)
        if is_condor and not it.libraries.get("htcondor2"):
            why = "the agent needs HTCondor's Python bindings"
            yield Finding(MISSING, "installed", why, "pip install --target /usr/local/lib/drainwise htcondor")


def _rendered(facts: MachineFacts) -> Iterator[Finding]:
    files = facts.rendered
    sound = [one for one in files if not (one.fault or one.stub)]
    if not files:
        yield Finding(OK, "rendered", "no rendered files here")
        return
    origins = _each(one.origin for one in sound)
    versions = _each(one.version or "a version that does not say itself" for one in sound)
    number = f"{len(sound)} file{'' if len(sound) == 1 else 's'}"
    yield Finding(OK, "rendered", f"{number} from {origins}, by {versions}")
    for file in (one for one in files if one.fault):
        severity = DANGEROUS if file.is_dangerous else MISSING
        yield Finding(severity, "rendered", f"{file.path}: {file.fault}", file.command or f"ls -l {file.path}")
    stubs = [one.path for one in files if one.stub]
    if stubs:
        why = f"{first_few(stubs, _SHOWN)}: left by a removal, does nothing, and the configuration may still name it"
        yield Finding(MISSING, "rendered", why, "take it out of the batch system's configuration, or install again")
    edited = [one.path for one in sound if one.edited]
    if edited:
        yield Finding(OK, "rendered", f"edited here, and kept by an upgrade: {first_few(edited, _SHOWN)}")
    differing = [one for one in sound if one.differs and not one.edited]
    if differing:
        paths = first_few([one.path for one in differing], _SHOWN)
        yield Finding(MISSING, "rendered", f"another text than it should have: {paths}", differing[0].command)


def _in_force(facts: MachineFacts) -> Iterator[Finding]:
    for one in facts.batch:
        if one.in_force is False:
            why = f"the configuration of {one.title} here does not use drainwise"
            yield Finding(MISSING, "in force", why, one.enable)
        elif one.in_force:
            yield Finding(OK, "in force", f"in the configuration of {one.title} here")
        for found in one.findings:
            value = f" ({found.value})" if found.value else ""
            yield Finding(found.severity, "in force", f"{found.what}{value}: {found.why}", found.line)
    if not any(one.in_force is not None for one in facts.batch):
        yield Finding(OK, "in force", "no configuration here needs it")


def _running(facts: MachineFacts) -> Iterator[Finding]:
    running = ", ".join(f"{one.name} for {duration(one.age)}" for one in facts.running)
    yield Finding(OK, "running", running or "no daemons here")
    names = {one.name for one in facts.running}
    for one in facts.batch:
        missing = [name for name in one.daemons if name not in names]
        if missing:
            why = f"{', '.join(missing)} should run here and {'does' if len(missing) == 1 else 'do'} not"
            yield Finding(MISSING, "running", why, _start(missing[0], names))
        if one.fault:
            yield Finding(MISSING, "running", f"{one.title} does not answer: {one.fault}")
    for look in facts.agent:
        yield Finding(OK if look.is_sound else MISSING, "running", look.why, look.line)


def _start(daemon: str, running: Collection[str]) -> str:
    """Return the command that starts a daemon where these run: those of HTCondor are started by its master."""
    if not daemon.startswith("condor_"):
        return f"systemctl start {daemon}"
    if "condor_master" not in running:
        return "systemctl start condor"
    return f"condor_on -{daemon[len('condor_') :]}   # not needed in the first seconds after a start"


def _allowed(facts: MachineFacts) -> Iterator[Finding]:
    tried = [(one, one.rights) for one in facts.batch if one.rights is not None]
    for one, rights in tried:
        if rights.allowed is None:
            yield Finding(OK, "allowed", f"orders on {one.title}: not tried: {rights.why}")
        else:
            words = "are allowed" if rights.allowed else "are refused"
            why = f"orders on {one.title} {words}: {rights.why}"
            yield Finding(OK if rights.allowed else MISSING, "allowed", why, rights.line)
    if not tried:
        yield Finding(OK, "allowed", "no orders are given from here")


def _fresh(facts: MachineFacts) -> Iterator[Finding]:
    for one in facts.batch:
        limit = math.inf if one.stale_after is None else one.stale_after
        silent = [node.name for node in one.nodes if node.silence is None or node.silence > limit]
        where = "nodes" if one.whole else "this node"
        if one.nodes:
            newest = min((node.silence for node in one.nodes if node.silence is not None), default=None)
            last = "none ever" if newest is None else f"the last {duration(newest)} ago"
            yield Finding(OK, "fresh", f"{where}: {len(one.nodes) - len(silent)} of {len(one.nodes)} publish, {last}")
        if silent and one.in_force is not False and one.stale_after is not None:
            why = f"silent: {first_few(silent, _SHOWN)}"
            line = f"drainwise check {one.system}"
            if all(node.silence is None for node in one.nodes if node.name in silent):
                why += f" (never published: a node does with its first update, within {duration(one.update)})"
                line = f"sleep {one.update}; {line}   # only if it was enabled just now; else at once"
            elsewhere = [name for name in silent if name.partition(".")[0] != facts.host.partition(".")[0]]
            if elsewhere:
                line = f"drainwise doctor   # on {elsewhere[0]}"
            yield Finding(MISSING, "fresh", why, line)
        if one.standings:
            each = ", ".join(f"{number} {name}" for name, number in sorted(one.standings.items()))
            yield Finding(OK, "fresh", f"reports of pilots on {where}: {each}")
    if not any(one.nodes or one.standings for one in facts.batch):
        yield Finding(OK, "fresh", "no node's report is seen from here")


def _versions(facts: MachineFacts) -> Iterator[Finding]:
    own = facts.installation.version
    nodes = [node for one in facts.batch for node in one.nodes if node.silence is not None]
    versions = counted(node.version for node in nodes)
    each = ", ".join(f"{number} of {version or UNKNOWN}" for version, number in versions)
    if not versions or [version for version, _ in versions] == [own]:
        yield Finding(OK, "versions", f"{each or 'no node is seen from here'}; here {own}")
        return
    # An upgrade of the site goes node by node, and neighbouring versions work together: nothing to mend.
    why = f"mixed: {each}; here {own}"
    yield Finding(OK, "versions", why, "install one version on all machines, in any order: docs/install.md")


def _each(values: Iterable[str]) -> str:
    """Return what there is, each once, the most frequent first."""
    return ", ".join(value for value, _ in sorted(Counter(values).items(), key=lambda row: (-row[1], row[0]))) or "none"


_RULES = (_role, _installed, _rendered, _in_force, _running, _allowed, _fresh, _versions)
