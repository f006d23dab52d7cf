"""The part of `drainwise check` that looks at the reclaim agent of this machine."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from drainwise.agent.health import Keeper, facts_of, judge
from drainwise.agent.systemd_unit import systemd_keeper
from drainwise.cli.agent_place import journal_path, lock_of

if TYPE_CHECKING:
    from drainwise.finding import Finding
    from drainwise.siteconfig import SiteConfig

_HOUR = 3600


def agent_findings(
    args: argparse.Namespace, site: SiteConfig, here: bool, keeper: Keeper | None, machine: str
) -> Iterable[Finding]:
    """What is to be said of the agent of `args.system` on this machine; here: whether an agent of it belongs here."""
    place = argparse.Namespace(pool=args.system, directory=None, site=args.site, journal=None)
    lock, journal = lock_of(place).path, journal_path(place)
    facts = facts_of(lock, journal, site.agent.act == "yes", here, keeper or systemd_keeper(), int(time.time()))
    return () if facts is None else judge(facts, machine)


def master_keeper() -> Keeper | None:
    """condor_master as the agent's keeper; None where the configuration of this machine has no agent below it."""
    from drainwise.htcondor.bindings import htcondor2
    from drainwise.htcondor.master_log import endings_in, is_below_master, tail_of

    if not is_below_master(str(htcondor2.param.get("DAEMON_LIST") or "")):
        return None
    log = str(htcondor2.param.get("MASTER_LOG") or os.path.join(str(htcondor2.param.get("LOG") or ""), "MasterLog"))
    ended = endings_in(tail_of(log), time.time() - _HOUR)
    look = f"grep DRAINWISE_AGENT {log}; its own lines are in the system's log"
    return Keeper("condor_master", len(ended), "", look)
