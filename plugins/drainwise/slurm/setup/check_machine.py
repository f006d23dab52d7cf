"""Judge what of Slurm runs on this machine: why slurmctld does not answer, the node's agent, this slurm.conf."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from drainwise.doctor.looks import NODE_AGENT
from drainwise.facts.errors import ConfigurationError
from drainwise.pool.clocks import WRONG_CLOCK
from drainwise.pool.finding import MISSING, OK, Finding
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.node.host_list import hosts
from drainwise.slurm.setup.check import FRAGMENT, exemption_before_others, short_name
from drainwise.slurm.setup.check_facts import ClusterFacts
from drainwise.slurm.setup.own_settings import ConfigLine, read_config

_NO_MUNGE = re.compile(r"munged? is up|munged|Munge encode failed", re.IGNORECASE)
_OTHER_KEY = re.compile(r"authentication error|Invalid credential|Invalid authentication", re.IGNORECASE)
_MENDED = re.compile(r"\b(prolog|epilog|not responding)\b", re.IGNORECASE)
_KEY = "/etc/munge/munge.key"


def lines_here(site: SiteConfig) -> tuple[ConfigLine, ...]:
    """Return the lines of this machine's own slurm.conf; nothing where it cannot be read."""
    try:
        return read_config(f"{site.slurm.config_dir}/slurm.conf")
    except ConfigurationError:
        return ()


def controllers_in(lines: Iterable[ConfigLine]) -> list[str]:
    """Return the controllers by the lines of slurm.conf, without a domain."""
    return [short_name(line.value) for line in lines if line.key in {"slurmctldhost", "controlmachine"}]


def unanswered(fault: str, lines: Sequence[ConfigLine], host: str) -> Finding:
    """Return why Slurm's commands have no answer on `host`, and what to do: munge, its key, the clock, slurmctld. Pure.

    fault: what a command said. lines: of this machine's slurm.conf.
    """
    controllers, fatal = controllers_in(lines), next(exemption_before_others(lines), None)
    what, there = "slurmctld", next(iter(controllers), "the controller")
    if _NO_MUNGE.search(fault):
        return Finding(MISSING, "munge", f"it does not run here: {fault}", "systemctl start munge", machine=host)
    if _OTHER_KEY.search(fault):
        why = f"the key here is another one than on {there}, or a clock is off by minutes: {fault}"
        line = f"scp root@{there}:{_KEY} {_KEY}; systemctl restart munge   # and compare `date` on both"
        return Finding(MISSING, "munge", why, line, machine=host)
    if WRONG_CLOCK in fault:
        return Finding(MISSING, "clock", fault, "timedatectl set-ntp true", machine=host)
    if fatal is not None:
        return replace(fatal, machine=host)
    line = f"systemctl start {what}" + ("" if short_name(host) in controllers else f"   # on {there}")
    return Finding(MISSING, what, f"it does not answer: {fault}", line, machine=host)


def judge_node_agent(running: Collection[str]) -> Iterator[Finding]:
    """Judge whether the agent runs on a node, by the names of the daemons that do. Pure."""
    if NODE_AGENT in running:
        yield Finding(OK, "node's agent", "it runs")
        return
    why = "it does not run: no report of a pilot here is published, and no pilot here receives an order"
    yield Finding(MISSING, "node's agent", why, f"systemctl unmask {NODE_AGENT}; systemctl enable --now {NODE_AGENT}")


def judge_away(facts: ClusterFacts, host: str, running: Collection[str]) -> Iterator[Finding]:
    """Judge whether this machine's node takes no jobs by what is mended meanwhile. running: daemons. Pure."""
    own = {node.name for node in facts.nodes if short_name(node.host) == short_name(host)}
    for nodes, reason in facts.drained:
        for name in own.intersection(hosts(nodes)) if _MENDED.search(reason) else ():
            line = f"scontrol update NodeName={name} State=RESUME" if "slurmd" in running else "systemctl start slurmd"
            yield Finding(MISSING, "this node", "Slurm gives it no jobs, and its hooks are in order now", line, reason)


def judge_own_config(facts: ClusterFacts, site: SiteConfig, is_in_force: bool, daemon: str) -> Iterator[Finding]:
    """Judge whether this machine's slurm.conf includes our lines where those of slurmctld are in force. Pure.

    daemon: of Slurm's here. A machine without a slurm.conf of its own has it from slurmctld.
    """
    lines, path = facts.history.lines, f"{site.slurm.config_dir}/slurm.conf"
    if not is_in_force or lines is None or any(os.path.basename(line.file) == FRAGMENT for line in lines):
        return
    why = f"it does not include {FRAGMENT}, which is in force: {daemon} here will do without when it starts anew"
    yield Finding(MISSING, "slurm.conf", why, including(site, daemon), path)


def including(site: SiteConfig, daemon: str) -> str:
    """Return the commands by which this machine's slurm.conf includes our lines, and its daemon reads them."""
    conf = f"{site.slurm.config_dir}/slurm.conf"
    return rf"sed -i --follow-symlinks '$a\Include {FRAGMENT}' {conf}; systemctl restart {daemon}"
