"""HTCondor as the commands know it."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from drainwise.facts.client_rules import ANY_ATTRIBUTE
from drainwise.facts.errors import UsageError
from drainwise.systems.system import System, Timings

if TYPE_CHECKING:
    from drainwise.agent.health import ServiceManager
    from drainwise.doctor.facts import BatchFacts
    from drainwise.htcondor.pool.pool import HTCondorPool
    from drainwise.install.rendered_tree import RenderedFile
    from drainwise.pilotad.report import PilotReport
    from drainwise.pool.facts import Pool
    from drainwise.pool.finding import Finding
    from drainwise.siteconfig import SiteConfig
    from drainwise.systems.system import AgentFindings

CONDOR_CONFIG = "CONDOR_CONFIG"
CONDOR_FILES = ("/etc/condor/condor_config", "/usr/local/etc/condor_config", "~condor/condor_config")
"""The places of HTCondor's configuration where CONDOR_CONFIG names none."""

_VACATE_TIME = 600
"""HTCondor's own MachineMaxVacateTime in seconds."""
_POLLING = 5
"""Seconds until a startd looks at an order (POLLING_INTERVAL): a pilot is notified when its slot retires."""
_ROLES = ("execute", "access", "central")
_HOUR = 3600
_LONGEST_LABEL = 200


class HTCondor(System):
    """The pool that HTCondor's own configuration names."""

    name = "htcondor"
    extra = "htcondor"
    packages = ("htcondor2", "classad2")
    roles = (*_ROLES, "all")
    scope_keys = ("user", "account", ANY_ATTRIBUTE)
    about_check = "inspect the knobs, hooks and crons of a live HTCondor pool"

    def missing(self, site: SiteConfig) -> str:  # noqa: ARG002
        """See `System`."""
        is_named = CONDOR_CONFIG in os.environ  # a wrong name in it is HTCondor's to complain about
        if not (is_named or any(os.path.exists(os.path.expanduser(path)) for path in CONDOR_FILES)):
            return "no HTCondor here"
        if importlib.util.find_spec("htcondor2") is None:
            return "no HTCondor here (it is configured, but its Python bindings are missing)"
        return ""

    def open_pool(self, site: SiteConfig, directory: str | None) -> Pool:
        """See `System`; what one pool has is no other pool's."""
        from drainwise.htcondor.pool.pool import HTCondorPool

        label = re.sub("[^A-Za-z0-9]+", "-", self.agent_label(site, directory))[-_LONGEST_LABEL:]
        startds = f"{os.path.abspath(site.agent.state_dir)}/startds-{label}.json"
        return HTCondorPool(
            clients=site.clients.rules,
            rules=site.identity.rules(),
            startds_file=startds,
            attributes=site.scope.attributes(),
        )

    def require(self, pool: Pool) -> None:
        """See `System`."""
        cast("HTCondorPool", pool).require_bindings()

    def ask_ahead(self, pool: Pool) -> None:
        """See `System`."""
        cast("HTCondorPool", pool).ask_ahead()

    def timings(self, site: SiteConfig) -> Timings:
        """See `System`; the nodes' own MachineMaxVacateTime counts where the site file does not name it."""
        vacate = site.htcondor.max_vacate_time
        return Timings(_VACATE_TIME if vacate is None else vacate, site.htcondor.update_interval + _POLLING)

    def agent_label(self, site: SiteConfig, directory: str | None) -> str:  # noqa: ARG002
        """See `System`; one pool has one however the path of its configuration is spelled."""
        places = [os.path.expanduser(path) for path in CONDOR_FILES]
        usual = os.path.realpath(next(filter(os.path.exists, places), "".join(places[:1])))
        real = os.path.realpath(os.environ.get(CONDOR_CONFIG) or usual)
        return self.name if real == usual else f"{self.name} {real}"

    def render(self, site: SiteConfig, args: argparse.Namespace) -> Sequence[RenderedFile]:
        """See `System`."""
        from drainwise.htcondor.setup.render import render

        return render(site, args.role)

    def add_check_options(self, parser: argparse.ArgumentParser) -> None:
        """See `System`."""
        parser.add_argument("--role", choices=self.roles, default="all", help="only machines of this role")
        parser.add_argument("--node", metavar="NAME", help="of the execute nodes only this one")

    def findings(
        self, site: SiteConfig, args: argparse.Namespace, agent: AgentFindings, progress: Callable[[int, int], None]
    ) -> Sequence[Finding]:
        """See `System`."""
        from drainwise.htcondor.ads.query import require_bindings
        from drainwise.install.features_probe import features_findings

        try:
            require_bindings()
        except UsageError as fault:
            return self._findings_without_bindings(site, fault)
        from drainwise.htcondor.setup.check import judge
        from drainwise.htcondor.setup.collect_facts import collect

        roles = _ROLES if args.role == "all" else (args.role,)
        facts = collect(site, roles, args.node, progress)
        here = any(one.role == "central" and one.machine == facts.here for one in facts.daemons)
        of_agent = agent(here, _master_service(), facts.here) if "central" in roles else ()
        nodes = sorted({one.machine for one in facts.daemons if one.role == "execute"})
        return [*judge(facts, site, roles), *of_agent, *features_findings(site, nodes, facts.here)]

    def _findings_without_bindings(self, site: SiteConfig, fault: UsageError) -> Sequence[Finding]:
        """Inspect the files of an execute node; raises UsageError anywhere else: the agent needs the bindings, too."""
        from drainwise.htcondor.setup.check import file_facts, judge_files, on_node, paths_on_node
        from drainwise.htcondor.setup.check_facts import PoolFacts
        from drainwise.pool.finding import OK, Finding, judged

        here = self.machine_facts(site)
        if here is None or here.roles != ("execute",):
            raise fault
        expected, host = on_node(site), os.uname().nodename
        files = tuple(file_facts(paths_on_node(site, expected)))
        of_pool = Finding(OK, "pool", f"inspected on the central manager alone: {fault}", machine=host)
        findings = judged(host, (judge_files,), PoolFacts((), (), host, files, host, expected.command), site)
        return [of_pool, *findings, *here.findings]

    def payload_reports(self, address: str, now: int) -> Mapping[str, PilotReport]:
        """See `System`: the address is that of an HTCondor-CE's collector."""
        from drainwise.htcondor.pool.payload_slots import payload_reports

        return payload_reports(address, now)

    def machine_facts(self, site: SiteConfig) -> BatchFacts | None:
        """See `System`."""
        from drainwise.htcondor.setup.machine_facts import batch_facts

        return batch_facts(site)


def _master_service() -> ServiceManager | None:
    """Return condor_master as the agent's service manager; None where this machine has no agent below it."""
    from drainwise.agent.health import ServiceManager
    from drainwise.htcondor.ads.query import htcondor2
    from drainwise.htcondor.setup.machine_facts import endings_in, is_below_master, tail_of

    if not is_below_master(str(htcondor2.param.get("DAEMON_LIST") or "")):
        return None
    log = str(htcondor2.param.get("MASTER_LOG") or os.path.join(str(htcondor2.param.get("LOG") or ""), "MasterLog"))
    ended = endings_in(tail_of(log), time.time() - _HOUR)
    look = f"grep DRAINWISE_AGENT {log}; its own lines are in the system's log"
    return ServiceManager("condor_master", len(ended), "", look)


SYSTEM = HTCondor()
