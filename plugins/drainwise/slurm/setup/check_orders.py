"""Check that orders can be given on this cluster: by this caller, and with reports from the nodes' agents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from drainwise.pool.finding import MISSING, OK, Finding, first_few
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.jobs.admin_comment import published_in
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.setup.check_facts import ClusterFacts

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


def judge_orders(facts: ClusterFacts, caller: Caller, site: SiteConfig, now: int) -> Iterator[Finding]:
    """Decide whether `caller` may give orders, and which nodes are silent at `now` (UNIX s). Pure."""
    if _may_always(caller, facts) or caller.level.casefold() in _MANAGE:
        yield Finding(OK, "orders", "who asks may shorten jobs", value=f"{caller.name} {caller.level}".strip())
    else:
        why = (
            f"{caller.name} is neither root nor SlurmUser nor of AdminLevel Operator: an order of this user is refused,"
            " and nothing is said of the agent"
        )
        line = f"sacctmgr modify user {caller.name} set AdminLevel=Operator   (or run the check as the agent's user)"
        yield Finding(MISSING, "orders", why, line, caller.level)
    silent = _silent_nodes(facts, site.pilot.stale_after, now)
    if silent:
        why = (
            "no job there has a fresh report, and jobs of the same user, account and size have one on other nodes: the"
            " node's agent does not run, or cannot publish"
        )
        line = "systemctl status drainwise-node-agent   (on the node)"
        yield Finding(MISSING, "nodes' agents", why, line, first_few(silent))


def is_controller(facts: ClusterFacts, host: str) -> bool:
    """Decide whether `host` is one of the cluster's controllers."""
    names = facts.text("SlurmctldHost").split()  # with the address in brackets, where that has another name
    return host.partition(".")[0] in {re.split(r"[.(]", name)[0] for name in names}


def _may_always(caller: Caller, facts: ClusterFacts) -> bool:
    return caller.uid == 0 or facts.text("SlurmUser").partition("(")[0] == caller.name


def _silent_nodes(facts: ClusterFacts, limit: int, now: int) -> list[str]:
    """Return the nodes on which no job has a fresh report, although jobs like theirs have one on other nodes."""
    fresh = [job for job in facts.single if _is_fresh(job, limit, now)]
    alike, sound = {_kind(job) for job in fresh}, {job.node for job in fresh}
    return sorted({job.node for job in facts.settled(now) if job.node not in sound and _kind(job) in alike})


def _kind(job: SlurmJob) -> tuple[str, str, int]:
    return job.user, job.account, job.cores


def _is_fresh(job: SlurmJob, limit: int, now: int) -> bool:
    published = published_in(job.admin_comment)
    return published is not None and published.report.heartbeat + limit > now
