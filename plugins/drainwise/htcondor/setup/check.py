"""Judge a live pool, and the node on which the check runs: what is in force, missing or dangerous, and what mends it.

Facts and the site's settings in, findings out. `collect_facts` gets the facts, but for those of the node's own files,
which need no bindings.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial

from drainwise.htcondor.node import CRON_HEARTBEAT
from drainwise.htcondor.setup.check_facts import DaemonFacts, FileFacts, PoolFacts, SlotFacts
from drainwise.htcondor.setup.check_knobs import expected_knobs, judge_daemon, restart_line
from drainwise.htcondor.setup.knobs import words
from drainwise.htcondor.setup.render import ROLES, drop_in_path, hooks_path, render
from drainwise.htcondor.setup.surroundings import judge_clock, judge_surroundings, judge_unusable
from drainwise.install.expected_files import ExpectedFiles, expected_files
from drainwise.install.rendered_tree import OTHERS_WRITE, open_above
from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding, judged
from drainwise.siteconfig import SiteConfig

_GROUP = re.compile(r"\b(AccountingGroup|AcctGroup)\b", re.IGNORECASE)
_RULES = {"submit_requirement_names": "submit_requirement_", "job_transform_names": "job_transform_"}

LINES = """\
SCHEDD_CLASSAD_USER_MAP_NAMES = $(SCHEDD_CLASSAD_USER_MAP_NAMES) AccountingGroups
# A line for each user: * alice group_a,group_b
CLASSAD_USER_MAPFILE_AccountingGroups = /etc/condor/accounting_groups
SUBMIT_REQUIREMENT_NAMES = $(SUBMIT_REQUIREMENT_NAMES) AccountingGroup
SUBMIT_REQUIREMENT_AccountingGroup = (AccountingGroup is undefined && AcctGroup is undefined) || \
(AccountingGroup is strcat(AcctGroup, ".", Owner) && stringListIMember(AcctGroup, userMap("AccountingGroups", Owner)))
SUBMIT_REQUIREMENT_AccountingGroup_REASON = strcat(Owner, " may not use this accounting group")
IMMUTABLE_JOB_ATTRS = $(IMMUTABLE_JOB_ATTRS) AccountingGroup AcctGroup AcctGroupUser"""
"""One way to bind the group to the user, at the submission and afterwards (condor_qedit)."""


def judge(facts: PoolFacts, site: SiteConfig, roles: Sequence[str] = ROLES) -> tuple[Finding, ...]:
    """Judge the daemons, slots and files in `facts`, measured by what `site` asks for."""
    findings: list[Finding] = []
    for role in roles:
        wanted = expected_knobs(site, role)
        for daemon in facts.daemons:
            if daemon.role == role:
                findings += judged(daemon.machine, (judge_daemon,), daemon, site, wanted)
    findings += judge_accounts(facts)
    if "execute" in roles:
        refuse = {one.machine for one in findings if one.what == "orders" and one.severity != OK}
        findings += judge_closed(facts.slots, refuse)
        findings += judge_slots(facts.slots, site)
        findings += judged(facts.local_machine, (judge_files,), facts, site)
        clocks = {slot.machine: slot for slot in facts.slots}
        findings += [one for name, slot in sorted(clocks.items()) for one in judge_clock(name, slot.clock, slot.heard)]
        if facts.around is not None:
            findings += judged(facts.local_machine, (judge_surroundings,), facts.around)
    return tuple(findings)


def judge_accounts(facts: PoolFacts) -> Iterator[Finding]:
    """Judge each access point of a pool with accounting groups; none where the negotiator was not queried."""
    groups = " ".join(one.knobs.get("group_names", "") for one in facts.daemons if one.role == "central").strip()
    if not groups:
        return
    what = "AccountingGroup"
    for daemon in facts.daemons:
        if daemon.role != "access" or daemon.fault:
            continue
        bound = next(_rules_on_groups(daemon), "")
        if bound:
            yield Finding(OK, what, "the access point looks at it", value=bound, machine=daemon.machine)
        else:
            why = (
                "a job may name any accounting group and user, and is then served by the quota of that one. No submit"
                " requirement and no job transform looks at it; one way to bind it:"
            )
            yield Finding(MISSING, what, why, LINES, f"GROUP_NAMES = {groups}", daemon.machine)


def _rules_on_groups(daemon: DaemonFacts) -> Iterator[str]:
    """Yield the submit requirements and job transforms in force there that name the group."""
    for names, prefix in _RULES.items():
        for name in words(daemon.knobs.get(names, "")):
            rule = f"{prefix}{name}".casefold()
            if _GROUP.search(daemon.knobs.get(rule, "")):
                yield rule.upper()


_LATE = 3  # periods of the cron: its silence is then no chance any more


def judge_slots(slots: Sequence[SlotFacts], site: SiteConfig) -> Iterator[Finding]:
    """Judge whether each node's cron publishes and finds its files, and whether its slots show their orders."""
    lines = {knob.name: knob.line for knob in expected_knobs(site, "execute")}
    period = site.htcondor.cron_period
    by_machine: dict[str, list[SlotFacts]] = {}
    for slot in slots:
        by_machine.setdefault(slot.machine, []).append(slot)
    for machine, own in sorted(by_machine.items()):
        ages = [slot.clock - slot.cron_heartbeat for slot in own if slot.cron_heartbeat is not None]
        what, line = CRON_HEARTBEAT, lines["STARTD_CRON_JOBLIST"]
        if not ages:
            why = (
                "the cron has never published here, so every pilot counts as silent: its program or the package is"
                " missing there, or cannot be run; see STARTD_CRON in the StartLog"
            )
            yield Finding(MISSING, what, why, line, machine=machine)
        elif min(ages) > _LATE * period:
            why = (
                f"the cron does not run any more (its period is {period} s): its program or the package has gone from"
                " there; see STARTD_CRON in the StartLog"
            )
            yield Finding(MISSING, what, why, line, f"{min(ages)} s old", machine)
        else:
            yield Finding(OK, what, "the cron publishes", line, f"{min(ages)} s old", machine)
        yield from judge_unusable(machine, {path for slot in own for path in slot.unusable})
        hidden = [slot.name for slot in own if not slot.orders_visible]
        why = "the reclaim agent reads its orders back from the slots"
        severity = MISSING if hidden else OK
        yield Finding(severity, "PilotReclaimDeadline", why, lines["STARTD_ATTRS"], " ".join(hidden), machine)


def judge_closed(slots: Sequence[SlotFacts], named: Collection[str]) -> Iterator[Finding]:
    """Judge the nodes that publish that they take no orders: the agent gives none there.

    named: machines of which another finding says so.
    """
    what, closed = "PilotOrdersSince", {}
    for slot in slots:
        if slot.machine not in named and slot.orders_since is not None:
            if slot.orders_since == 0:
                closed[slot.machine] = (
                    "the agent asks nobody here: ENABLE_RUNTIME_CONFIG is not true, or a site's own job hooks go first"
                    " (STARTER_JOB_HOOK_KEYWORD), so that no pilot would receive an order",
                    "hook_keyword, site_prepare_hook and site_update_hook in [htcondor] of the site file; render again",
                )
            elif slot.startd_started < slot.orders_since:
                closed[slot.machine] = (
                    "the agent asks nobody here: the startd has not been started since orders were configured",
                    restart_line("NODE"),
                )
    for machine, (why, line) in sorted(closed.items()):
        yield Finding(MISSING, what, why, line, machine=machine)


def on_node(site: SiteConfig) -> ExpectedFiles:
    """Return the files that are to lie on an execute node."""
    command, has_site_file = "drainwise config htcondor --role execute --out /", bool(site.file)
    return expected_files(partial(render, site, "execute"), command, has_site_file=has_site_file)


def paths_on_node(site: SiteConfig, expected: ExpectedFiles) -> Iterable[str]:
    """Return the paths that a node must have: the interpreter, the package, the settings, the hooks and the drop-in."""
    return [site.htcondor.python, f"{site.htcondor.library_dir}/drainwise", *(file.path for file in expected.files)]


def file_facts(paths: Iterable[str], root: str = "") -> Iterator[FileFacts]:
    """Look at each path, below the directory `root` when the node's file system is mounted elsewhere."""
    for path in paths:
        try:
            status = os.stat(root + path)
        except OSError as fault:
            yield FileFacts(path, fault.strerror or "cannot be looked at")
            continue
        yield FileFacts(
            path, "", status.st_mode, status.st_uid, int(status.st_ctime), next(iter(open_above(path, root)), "")
        )


def judge_files(facts: PoolFacts, site: SiteConfig) -> Iterator[Finding]:
    """Judge whether hooks, settings and package are there and safe; nothing when the check does not run on a node."""
    drop_in = drop_in_path("execute")
    for file in facts.files:
        if file.path == drop_in:
            yield from _not_restarted(file, facts)
            continue
        program = file.path.startswith(site.htcondor.libexec_dir + "/") and file.path != hooks_path(site)
        runs = file.path == site.htcondor.python or program
        wanted = stat.S_IXOTH | stat.S_IROTH if runs or stat.S_ISDIR(file.mode) else stat.S_IROTH
        what, shown = file.path, f"{stat.S_IMODE(file.mode):04o}"
        if file.fault:
            why = f"{file.fault}; while a hook is missing no job starts on the node"
            yield Finding(MISSING, what, why, facts.install)
        elif file.owner != 0 or file.mode & OTHERS_WRITE:
            why = "who can change it runs code as every job's user"
            line = f"chown root {what} && chmod go-w {what}"
            yield Finding(DANGEROUS, what, why, line, f"uid {file.owner} mode {shown}")
        elif file.exposed:
            why = f"{file.exposed} above it can be changed by others than root, who then run code as every job's user"
            yield Finding(DANGEROUS, what, why, f"chown root {file.exposed} && chmod go-w {file.exposed}")
        elif file.mode & wanted != wanted:
            why = "the jobs' users and HTCondor's own must be able to use it"
            line = f"chmod a+r{'x' if wanted & stat.S_IXOTH else ''} {what}"
            yield Finding(MISSING, what, why, line, f"mode {shown}")
        else:
            yield Finding(OK, what, "there, root's own, usable", value=f"mode {shown}")


def _not_restarted(file: FileFacts, facts: PoolFacts) -> Iterator[Finding]:
    """Find a startd older than the drop-in: ENABLE_RUNTIME_CONFIG counts from the daemon's start.

    Said only where the startd itself was not tried.
    """
    if any(one.trial and one.trial.taken is not None for one in facts.daemons if one.machine == facts.local_machine):
        return
    started = [slot.startd_started for slot in facts.slots if slot.machine == facts.local_machine]
    if started and not file.fault and file.modified > min(started):
        why = f"the startd is older than {file.path}, and this takes effect only when it starts"
        line = restart_line(facts.local_machine)
        yield Finding(MISSING, "ENABLE_RUNTIME_CONFIG", why, line)
