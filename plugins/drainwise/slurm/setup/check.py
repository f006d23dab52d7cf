"""Judging a live cluster: what is missing or dangerous in its configuration and on its jobs, with the line to add.

Whether orders can be given, too, and whether the site's own hooks, flags and limits still count. The lines are those of
`drainwise config slurm`, merged with what the site has. Pure but for the question to the accounting.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from drainwise.doctor.looks import NODE_AGENT
from drainwise.facts.signs import is_missed
from drainwise.facts.units import format_duration
from drainwise.pool.finding import DANGEROUS, MISSING, OK, Finding, Rule, first_few, judged
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.jobs.admin_comment import is_ours, published_in
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.pool.native_preemption import EXPOSED, PROTECTED, exempt_from
from drainwise.slurm.setup.check_facts import ClusterFacts
from drainwise.slurm.setup.merge import MIN_EXEMPT_SINCE, UNSET, given_limits, hooks_of, names_hook
from drainwise.slurm.setup.own_settings import HOOK_KEYS, LISTS, MANAGED, TIMEOUTS, ConfigLine, release_of, words_of

OLDEST = (22, 5)
_MANY = 100


def judge(facts: ClusterFacts, site: SiteConfig, now: int) -> tuple[Finding, ...]:
    """Return every finding about the cluster at `now` (UNIX s), measured by what `site` asks for."""
    return tuple(judged(facts.cluster, _RULES, facts, site, now))


def _version(facts: ClusterFacts, _: SiteConfig, __: int) -> Iterator[Finding]:
    old = facts.version < OLDEST
    why = "older than 22.05: never tried there" if old else "its answers are of a known shape"
    yield Finding(MISSING if old else OK, "Slurm", why, value=facts.text("SLURM_VERSION"))


def _transport(facts: ClusterFacts, _: SiteConfig, __: int) -> Iterator[Finding]:
    choice = facts.choice
    if choice is None:
        return
    if not choice.by:
        why = f"{choice.why_not}: without it there are no snapshots, as [slurm] transport = pyslurm"
        yield Finding(MISSING, "transport", why, "transport = auto")
        return
    why = f"snapshots ask by it; {choice.why_not}" if choice.why_not else "installed, and of this Slurm's release"
    yield Finding(OK, "transport", why, value=choice.by)


def _hooks(facts: ClusterFacts, site: SiteConfig, _: int) -> Iterator[Finding]:
    reasons = {
        "Prolog": "jobs find no feature directories",
        "Epilog": "feature directories of ended jobs stay on the nodes",
        "TaskProlog": "jobs do not learn where their features are",
    }
    again = "; or the site's own calls it: a check on a node, where that lies, sees it"
    for key, hook in hooks_of(site, facts.own).items():
        live = facts.text(key)
        wrapped = bool(facts.own.wrappers & {live, *live.split()})
        severity = OK if wrapped or names_hook(live, hook.path) else MISSING
        line = f"{key}={hook.value}" if hook.value else ""
        if severity == MISSING and hook.site:
            line = f"drainwise config slurm: its {key} runs {hook.site}, too"
        why = reasons[key] + (again if severity == MISSING and live else "")
        yield Finding(severity, key, "the site's own calls ours" if wrapped else why, line, live)


def _prolog_limits(facts: ClusterFacts, site: SiteConfig, _: int) -> Iterator[Finding]:
    own = site.slurm.prolog_time_limit
    for what in given_limits(facts.number):
        limit, enough = facts.number(what), max(60, 3 * own)
        if limit is None or limit == UNSET:
            why, severity = "unset: a prolog that hangs holds its job and node for ever", DANGEROUS
            if any(facts.own.all(key) for key in ("Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld")):
                why, severity = f"{why}; ours gives up by itself, how long the site's own take only the site knows", OK
            yield Finding(severity, what, why, f"{what}={enough}", "unset")
        elif limit <= own:
            why = (
                f"ours gives up after [slurm] prolog_time_limit, {own} s: before that, Slurm kills it and drains the"
                " node"
            )
            line = _with_value(facts, what, str(enough)) or f"{what}={enough}"
            yield Finding(DANGEROUS, what, why, line, str(limit))
        else:
            yield Finding(OK, what, "a prolog that hangs is ended", value=str(limit))
    flags = facts.text("PrologFlags")
    alloc = bool({"alloc", "contain"} & set(flags.lower().split(",")))
    why = "without it the prolog runs when a node's first step starts: on other nodes of the job perhaps never"
    line = "" if alloc else "PrologFlags=" + ",".join(filter(None, (flags, "Alloc")))
    yield Finding(OK if alloc else MISSING, "PrologFlags", why, line, flags)


def _accounting(facts: ClusterFacts, _: SiteConfig, __: int) -> Iterator[Finding]:
    for key, wanted, why in (
        ("AccountingStorageType", "accounting_storage/slurmdbd", "without accounts nobody is owed anything"),
        ("PriorityType", "priority/multifactor", "without it Slurm knows no shares, and sshare shows none"),
    ):
        severity = OK if facts.text(key) == wanted else MISSING
        yield Finding(severity, key, why, f"{key}={wanted}", facts.text(key))
    if facts.accounting_fault:
        why = f"shares and limits are those of before it went: {facts.accounting_fault}"
        host = facts.text("AccountingStorageHost") or "its machine"
        yield Finding(MISSING, "slurmdbd", why, f"systemctl start slurmdbd   # on {host}")
    # AdminComment and SystemComment, which we use, are always stored.
    kept = "the reports (AdminComment) and reasons (SystemComment) are kept whatever is set"
    yield Finding(OK, "AccountingStoreFlags", kept, value=facts.text("AccountingStoreFlags"))


def _late_deadlines(facts: ClusterFacts, site: SiteConfig, _: int) -> Iterator[Finding]:
    limits = {"": facts.text("OverTimeLimit"), **facts.over_time}
    late = {name: limit for name, limit in limits.items() if re.match(r"[1-9]|UNLIMITED", limit)}
    for name, limit in late.items():
        why = "an order is a shortened EndTime, and a job may run on that much longer"
        line = f"PartitionName={name} … OverTimeLimit=0" if name else "OverTimeLimit=0"
        yield Finding(DANGEROUS, "OverTimeLimit", why, line, f"{name} {limit}".strip())
    if not late:
        yield Finding(OK, "OverTimeLimit", "a job ends when its lease does")
    wait, grace = facts.number("KillWait") or 0, site.reclaim.grace
    severity = DANGEROUS if wait >= grace else OK
    why = f"cores come back that long after a deadline, if a pilot ignores SIGTERM; [reclaim] grace is {grace} s"
    yield Finding(severity, "KillWait", why, "KillWait=30", format_duration(wait))


def _requeue(facts: ClusterFacts, site: SiteConfig, _: int) -> Iterator[Finding]:
    if site.preempt_mode == "REQUEUE":
        why = "without it jobs that did not ask for --requeue end for good at their deadline, or at once"
        severity = OK if facts.number("JobRequeue") else MISSING
        yield Finding(severity, "JobRequeue", why, "JobRequeue=1", facts.text("JobRequeue"))


def _reports(facts: ClusterFacts, _: SiteConfig, now: int) -> Iterator[Finding]:
    foreign = [job.label for job in facts.single if not is_ours(job.admin_comment)]
    if foreign:
        why = "an AdminComment of somebody else is left alone, so these pilots count as silent"
        line = f'scontrol update JobId={",".join(foreign[:_MANY])} AdminComment=""'
        yield Finding(MISSING, "AdminComment", why, line, first_few(foreign))
    settled = facts.settled(now)
    reporting = [job for job in facts.single if published_in(job.admin_comment) is not None]
    if reporting:
        yield Finding(OK, "reports", "nodes publish what pilots report", value=f"{len(reporting)} jobs")
    elif settled:
        why = "not one running job has a report: no pilot reports, or no node's agent runs"
        line = "systemctl enable --now drainwise-node-agent   # on each node"
        yield Finding(MISSING, "reports", why, line, f"{len(settled)} jobs")


def _drained(facts: ClusterFacts, _: SiteConfig, __: int) -> Iterator[Finding]:
    for nodes, reason in facts.drained:
        if re.search(r"\b(prolog|epilog)\b", reason, re.IGNORECASE):
            why = "Slurm drained it for its prolog or epilog; a doctor there says what to mend, last how it takes jobs"
            yield Finding(MISSING, "drained nodes", why, f"drainwise doctor   # on {nodes}", f"{nodes}: {reason}")


def _preemption(facts: ClusterFacts, site: SiteConfig, _: int) -> Iterator[Finding]:
    """Judge what hinders steering where the site wants it, and what is left of it where it does not."""
    if site.slurm.native_preemption != "yes":
        # The lowest one is Slurm's own as well, where nothing has a weight, for one.
        is_weighted = any((job.priority or 0) not in {0, EXPOSED} for job in facts.jobs)
        marks = {EXPOSED, PROTECTED} if is_weighted and facts.text("PreemptType") == "preempt/qos" else {PROTECTED}
        marked = [job for job in facts.jobs if job.priority in marks]
        if marked:
            why = "native_preemption is off now and had set them: waiting jobs among them keep their place by it"
            line = "scontrol release " + ",".join(job.label for job in marked)
            yield Finding(DANGEROUS, "job priorities", why, line, first_few([job.label for job in marked]))
        return
    preempt = facts.text("PreemptType")
    why = "[slurm] native_preemption = yes steers this plugin"
    mode = site.preempt_mode
    line = f"PreemptType=preempt/qos\nPreemptMode={mode}"
    yield Finding(OK if preempt == "preempt/qos" else MISSING, "PreemptType", why, line, preempt)
    named = site.slurm.release
    if named is not None and (named >= MIN_EXEMPT_SINCE) != (facts.release >= MIN_EXEMPT_SINCE):
        why = f"[slurm] release = {named} in the site file is another one: the rendered lines do not fit"
        yield Finding(DANGEROUS, "release", why, f"release = {facts.release}", facts.text("SLURM_VERSION"))
    if facts.release >= MIN_EXEMPT_SINCE:
        yield from _exemption(facts)
    elif not any("within" in qos.modes for qos in facts.qos):
        why = "before 23.02 only jobs of one QOS look at each other's priority"
        line = f"sacctmgr modify qos PILOTS set PreemptMode={mode},WITHIN"
        yield Finding(MISSING, "QOS", why, line, ", ".join(qos.name for qos in facts.qos))
    if not any(qos.preempts or "within" in qos.modes for qos in facts.qos):
        why = "no QOS may preempt another: nobody is ever preempted"
        yield Finding(MISSING, "QOS Preempt", why, "sacctmgr modify qos OWED set Preempt=PILOTS")


def _exemption(facts: ClusterFacts) -> Iterator[Finding]:
    value, line = facts.text("PreemptParameters"), f"PreemptParameters=min_exempt_priority={EXPOSED + 1}"
    exempt = exempt_from(value)
    if exempt is None:
        severity, why = DANGEROUS, "without it Slurm preempts runs that were not chosen"
    elif exempt <= EXPOSED:
        severity, why = MISSING, "the chosen runs are exempt, too"
    elif exempt > EXPOSED + 1:
        severity, why = DANGEROUS, "a run whose own priority is below it is preempted without being chosen"
    else:
        severity, why = OK, "only chosen runs can be preempted"
    yield Finding(severity, "PreemptParameters", why, line, value)


def _with_value(facts: ClusterFacts, key: str, value: str) -> str:
    """Return the command that gives a key of slurm.conf that stands there another value; "" where it does not."""
    lines = [line for line in facts.history.lines or () if line.key == key.lower()]
    return f"{replaced(lines[-1], value)}; scontrol reconfigure" if lines else ""


def replaced(line: ConfigLine, value: str) -> str:
    """Return the command that gives the key of a line another value."""
    return f"sed -i --follow-symlinks '{line.number}s/=.*/={value}/' {line.file}"


def exemption_before_others(lines: Iterable[ConfigLine]) -> Iterator[Finding]:
    """Find a min_exempt_priority with others behind it: slurmctld of 24.11.5 ends when it reads that. Pure."""
    for line in lines:
        words = sorted(words_of(line.value), key=lambda word: exempt_from(word) is not None)
        if line.key == "preemptparameters" and ",".join(words) != line.value.strip(","):
            why = "min_exempt_priority stands before others: slurmctld (seen with 24.11) ends when it reads that"
            cure = f"{replaced(line, ','.join(words))}; systemctl restart slurmctld"
            yield Finding(DANGEROUS, "PreemptParameters", why, cure, line.place)


FRAGMENT = "drainwise.conf"
RENDER = (
    "drainwise config slurm --role controller --out /; scontrol reconfigure"
    "   # it merges the lines of drainwise with the site's own; the same file belongs on each node"
)


def given_twice(facts: ClusterFacts, site: SiteConfig, _: int) -> Iterator[Finding]:
    """Judge each key of ours that stands in slurm.conf more than once, and what was merged before and is gone."""
    rendered = facts.history.rendered_for
    if rendered and release_of(rendered) != facts.release:
        why = f"the lines of drainwise were rendered for Slurm {rendered}: a prolog of the site's may run twice, or not"
        yield Finding(MISSING, "rendered lines", why, RENDER, facts.text("SLURM_VERSION"))
    if facts.history.lines is None:
        why = f"cannot be read here, so keys that it has twice are not seen: {facts.history.unread}"
        yield Finding(OK, "slurm.conf", why)
        return
    if facts.own.unknown:
        why = "the lines of drainwise stand in its place, and what the site had is not known here"
        for key in facts.own.unknown:
            yield Finding(MISSING, key, why, RENDER)
    yield from exemption_before_others(facts.history.lines)
    own_hooks = [value for key in HOOK_KEYS[:2] for value in facts.own.all(key)]
    limit = facts.number("PrologEpilogTimeout")
    if own_hooks and not facts.own.unknown and not facts.own.text("PrologEpilogTimeout") and limit not in {None, UNSET}:
        why = f"the site's own {', '.join(own_hooks)} had no limit, and drains its node when it takes longer than this"
        yield Finding(DANGEROUS, "PrologEpilogTimeout", why, RENDER, str(limit))
    places = [line.place for line in facts.history.lines if os.path.basename(line.file) == FRAGMENT]
    if len(set(places)) < len(places):
        why = f"{FRAGMENT} is included twice, so Slurm runs each prolog and epilog of ours twice"
        conf = facts.text("SLURM_CONF") or f"{site.slurm.config_dir}/slurm.conf"
        line = rf"sed -i --follow-symlinks '0,/^ *[Ii]nclude .*{FRAGMENT}/{{//d}}' {conf}; scontrol reconfigure"
        yield Finding(MISSING, "Include", why, line, f"{len(places) // len(set(places))} times")
        return
    for key in MANAGED:
        found = [line for line in facts.history.lines if line.key == key.lower()]
        if len(found) > 1:
            yield _verdict(key, found, facts, site)


def _verdict(key: str, found: Sequence[ConfigLine], facts: ClusterFacts, site: SiteConfig) -> Finding:
    where = ", ".join(f"{line.place} {key}={line.value}" for line in found)
    if key in HOOK_KEYS and key not in facts.own.one_value:
        twice = sorted({line.value for line in found if [one.value for one in found].count(line.value) > 1})
        if twice:
            why = f"Slurm runs all of them, so what {', '.join(twice)} names runs twice"
            return Finding(MISSING, key, why, RENDER, where)
        return Finding(OK, key, "Slurm runs all of them", value=where)
    lost = [why for line in found[:-1] if (why := _lost(key, line, facts, site))]
    if lost:
        why, last = f"Slurm takes the last of them: {lost[-1]}", found[-1]
        cure = f"sed -i --follow-symlinks {last.number}d {last.file}; scontrol reconfigure"
        ours = os.path.basename(last.file) == FRAGMENT
        return Finding(DANGEROUS, key, why, RENDER if ours else cure, where)
    return Finding(OK, key, "Slurm takes the last of them, and nothing of the others is lost", value=where)


def _lost(key: str, line: ConfigLine, facts: ClusterFacts, site: SiteConfig) -> str:
    """Return what of a line that is not the last is not in force, "" when all of it is."""
    live, value = facts.text(key), line.value
    if value.lower() == live.lower() or value in {"", "(null)", "NONE", "none"}:
        return ""
    if key in HOOK_KEYS:
        handed_over = (key.lower(), value) in facts.history.merged
        by_the_sites = live in facts.own.wrappers and value == hooks_of(site, facts.own)[key].path
        return "" if handed_over or by_the_sites else f"{value} does not run any more"
    if key in LISTS:
        gone = [word for word in words_of(value) if word.lower() not in words_of(live.lower())]
        return f"without {', '.join(gone)}" if gone else ""
    if key in TIMEOUTS:
        seconds, limit = int(value) if value.isdigit() else 0, facts.number(key)
        longer = limit is not None and seconds > limit
        return f"a prolog or epilog of the site's that needs {value} s drains its node" if longer else ""
    return f"{value} is not in force"


_MANAGE = {"operator", "administrator"}  # the AdminLevels that may shorten another user's job


@dataclass(frozen=True)
class Caller:
    """The caller: user number, name, and AdminLevel in the accounting, "" where that was not needed or is not known."""

    uid: int
    name: str
    level: str = ""


def caller_of(facts: ClusterFacts, site: SiteConfig, uid: int, name: str) -> Caller:
    """Return what the accounting says of a user, where that counts. Raises PoolUnreachable."""
    caller = Caller(uid, name)
    if _may_always(caller, facts) or not facts.text("AccountingStorageType"):
        return caller
    commands = SlurmCommands(site.slurm.bin_dir, site.slurm.command_timeout)
    answer = commands.ask("sacctmgr", "--noheader", "--parsable2", "show", "user", name, "format=AdminLevel")
    return Caller(uid, name, answer.strip())


def judge_orders(facts: ClusterFacts, caller: Caller) -> Iterator[Finding]:
    """Decide whether `caller` may give orders. Pure."""
    if _may_always(caller, facts) or caller.level.casefold() in _MANAGE:
        yield Finding(OK, "orders", "who asks may shorten jobs", value=f"{caller.name} {caller.level}".strip())
    else:
        why = (
            f"{caller.name} is neither root nor SlurmUser nor of AdminLevel Operator: an order of this user is refused,"
            " and nothing is said of the agent"
        )
        line = f"sacctmgr modify user {caller.name} set AdminLevel=Operator   (or run the check as the agent's user)"
        yield Finding(MISSING, "orders", why, line, caller.level)


def _node_agents(facts: ClusterFacts, site: SiteConfig, now: int) -> Iterator[Finding]:
    """Judge which nodes are silent: by their signs of life, and by reports of jobs like theirs on other nodes."""
    alike = "no job there has a fresh report, and jobs of the same user, account and size have one on other nodes"
    signs, awaited = facts.signs
    up = {one.name for one in facts.nodes if one.is_up}
    missed = sorted(name for name in up & awaited if is_missed(signs.get(name, (0, ""))[0], now))
    for nodes, why in (
        (missed, "no sign of life for two hours, so no order is given there"),
        (_silent_nodes(facts, site.pilot.stale_after, now), alike),
    ):
        if nodes:
            line = f"systemctl unmask {NODE_AGENT}; systemctl enable --now {NODE_AGENT}   # on {nodes[0]}"
            then = "the node's agent does not run, or cannot publish"
            yield Finding(MISSING, "nodes' agents", f"{why}: {then}", line, first_few(nodes))


def is_controller(facts: ClusterFacts, host: str) -> bool:
    """Decide whether `host` is one of the cluster's controllers."""
    return short_name(host) in map(short_name, facts.text("SlurmctldHost").split())


def short_name(name: str) -> str:
    """Return the name of a machine without its domain, and without an address in brackets, as SlurmctldHost has it."""
    return re.split(r"[.(]", name)[0]


def _may_always(caller: Caller, facts: ClusterFacts) -> bool:
    return caller.uid == 0 or facts.text("SlurmUser").partition("(")[0] == caller.name


def _silent_nodes(facts: ClusterFacts, limit: int, now: int) -> list[str]:
    """Return the nodes on which no job has a fresh report, although jobs like theirs have one on other nodes."""
    kind = attrgetter("user", "account", "cores")
    reports = [(job, published_in(job.admin_comment)) for job in facts.single]
    fresh = [job for job, found in reports if found is not None and found.report.heartbeat + limit > now]
    alike, sound = set(map(kind, fresh)), {job.node for job in fresh}
    return sorted({job.node for job in facts.settled(now) if job.node not in sound and kind(job) in alike})


_RULES: tuple[Rule, ...] = (
    _version,
    _transport,
    _hooks,
    given_twice,  # before the limits: of a key that stands twice one line goes
    _prolog_limits,
    _accounting,
    _late_deadlines,
    _requeue,
    _preemption,
    _node_agents,
    _reports,
    _drained,
)
