"""What this machine is in its Slurm cluster, and what the jobs' comments show of the nodes."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator

from drainwise.doctor.facts import BatchFacts, Rights, SeenNode
from drainwise.doctor.looks import running_processes
from drainwise.facts.errors import DrainwiseError, PoolUnreachable
from drainwise.pilotad.report import FRESH, SILENT
from drainwise.pool.finding import OK, Finding, judged, to_mend
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.jobs.admin_comment import published_in
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.setup.check import caller_of, is_controller, judge, judge_orders, short_name
from drainwise.slurm.setup.check_facts import ClusterFacts, collect
from drainwise.slurm.setup.check_machine import (
    controllers_in,
    including,
    judge_away,
    judge_node_agent,
    judge_own_config,
    lines_here,
    unanswered,
)
from drainwise.slurm.setup.check_node import hook_files, judge_hooks, judge_space, space_of
from drainwise.slurm.setup.merge import hooks_of


def batch_facts(site: SiteConfig, user: str) -> BatchFacts | None:
    """Look at this machine as `user`; None where there is no slurm.conf or no command of Slurm's."""
    if not all(map(os.path.exists, (f"{site.slurm.config_dir}/slurm.conf", f"{site.slurm.bin_dir}/scontrol"))):
        return None
    host, now = os.uname().nodename, int(time.time())
    try:
        facts = collect(site)
    except PoolUnreachable as fault:
        lines = lines_here(site)
        roles = ("controller",) if short_name(host) in controllers_in(lines) else ()
        found = (unanswered(str(fault), lines, host),)
        return BatchFacts("slurm", "Slurm", roles=roles, agent_here=bool(roles), findings=found)
    here, control = short_name(host), is_controller(facts, host)
    is_node = _is_node(facts.hosts, host)
    in_force = _in_force(facts, site)
    of_cluster = judge(facts, site, now) if control and in_force else ()
    findings = (*findings_here(facts, site, host), *of_cluster)
    jobs = [job for job in facts.single if control or short_name(job.node) == here]
    return BatchFacts(
        system="slurm",
        title="Slurm",
        version=facts.text("SLURM_VERSION"),
        roles=(*(("node",) if is_node else ()), *(("controller",) if control else ())),
        agent_here=control,
        daemons=(*(("slurmd",) if is_node else ()), *(("slurmctld",) if control else ())),
        in_force=in_force if is_node or control else None,
        enable=f"{including(site, 'slurmctld' if control else 'slurmd')}   # docs/slurm.md",
        findings=tuple(one for one in findings if one.severity != OK),
        whole=control,
        nodes=tuple(seen_nodes(facts, None if control else here, now)) if in_force else (),
        standings=standings_in(jobs),
        rights=_rights(facts, site, user) if control else None,
    )


def findings_here(facts: ClusterFacts, site: SiteConfig, host: str) -> list[Finding]:
    """Judge what lies and runs on this machine: hooks, space, the node's agent, its slurm.conf."""
    in_force, is_node = _in_force(facts, site), _is_node(facts.hosts, host)
    running = {one.name for one in running_processes()}
    found = judged(host, (judge_hooks,), hook_files(facts, site))
    found += judged(host, (judge_space,), space_of(site.slurm.runtime_dir))
    if is_node and in_force:
        found += judged(host, (judge_node_agent,), running)
    if is_node or is_controller(facts, host):
        daemon = "slurmctld" if is_controller(facts, host) else "slurmd"
        found += judged(host, (judge_own_config,), facts, site, in_force, daemon)
    if not to_mend(found):  # else it would drain again
        found += judged(host, (judge_away,), facts, host, running)
    return found


def _is_node(names: Iterable[str], host: str) -> bool:
    return short_name(host) in map(short_name, names)


def seen_nodes(facts: ClusterFacts, host: str | None, now: int) -> Iterator[SeenNode]:
    """Yield the nodes, only that on `host` where it is given, with their signs of life. now: UNIX s."""
    signs, _ = facts.signs
    for node in facts.nodes:
        if host in {None, short_name(node.host)}:
            at, version = signs.get(node.name, (0, ""))
            yield SeenNode(node.name, version, max(0, now - at) if at else None)


def standings_in(jobs: Iterable[SlurmJob]) -> dict[str, int]:
    """Count the jobs by the standing of their report."""
    said = [published_in(job.admin_comment) for job in jobs]
    return dict(Counter(SILENT if one is None else one.standing or FRESH for one in said))


def _in_force(facts: ClusterFacts, site: SiteConfig) -> bool:
    """Decide whether slurm.conf names all hooks of ours, or the site's own that call them."""
    return all(map(facts.runs, hooks_of(site, facts.own).values()))


def _rights(facts: ClusterFacts, site: SiteConfig, user: str) -> Rights:
    try:
        caller = caller_of(facts, site, os.geteuid(), user)
    except DrainwiseError as fault:
        return Rights(None, str(fault))
    found = next(one for one in judge_orders(facts, caller) if one.what == "orders")
    return Rights(found.severity == OK, found.why, found.line)
