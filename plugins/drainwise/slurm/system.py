"""Slurm as the commands know it."""

from __future__ import annotations

import argparse
import os
import pwd
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from drainwise.facts.client_rules import SLURM_KEYS
from drainwise.facts.errors import PoolUnreachable
from drainwise.systems.system import System, Timings

if TYPE_CHECKING:
    from drainwise.doctor.facts import BatchFacts
    from drainwise.install.rendered_tree import RenderedFile
    from drainwise.pool.facts import Pool
    from drainwise.pool.finding import Finding
    from drainwise.siteconfig import SiteConfig
    from drainwise.systems.system import AgentFindings


class Slurm(System):
    """The cluster that slurm.conf names."""

    name = "slurm"
    extra = "slurm"
    roles = ("node", "controller", "all")
    about_check = "inspect configuration, jobs and, on a node, hooks of a live Slurm cluster"

    def missing(self, site: SiteConfig) -> str:
        """See `System`: by where the site file says that its configuration and commands lie."""
        places = (f"{site.slurm.config_dir}/slurm.conf", f"{site.slurm.bin_dir}/squeue")
        return "" if all(map(os.path.exists, places)) else "no Slurm here"

    scope_keys = ("user", "account", *SLURM_KEYS)

    def open_pool(self, site: SiteConfig, directory: str | None) -> Pool:  # noqa: ARG002
        """See `System`."""
        from drainwise.slurm.pool.pool import SlurmPool
        from drainwise.slurm.pool.snapshot import SiteRules

        rules, sent, its = site.clients.rules, site.identity.rules(), site.reclaim
        by_preemption = its.entitlement == "preemption"
        return SlurmPool(site.slurm, SiteRules(its.max_grace, (), rules, site.scope, sent, by_preemption))

    def timings(self, site: SiteConfig) -> Timings:
        """See `System`: it begins at the deadline itself."""
        return Timings(0, site.slurm.agent_period)

    def agent_label(self, site: SiteConfig, directory: str | None) -> str:  # noqa: ARG002
        """See `System`; one cluster has one however the path of its slurm.conf is spelled."""
        usual = os.path.realpath(f"{type(site.slurm)().config_dir}/slurm.conf")
        real = os.path.realpath(os.environ.get("SLURM_CONF") or f"{site.slurm.config_dir}/slurm.conf")
        return self.name if real == usual else f"{self.name} {real}"

    def add_render_options(self, parser: argparse.ArgumentParser) -> None:
        """See `System`."""
        parser.add_argument(
            "--live",
            metavar="FILE",
            help="the output of `scontrol show config`; none: a new cluster",
        )

    def render(self, site: SiteConfig, args: argparse.Namespace) -> Sequence[RenderedFile]:
        """See `System`."""
        from drainwise.slurm.setup.live_settings import settings_to_merge
        from drainwise.slurm.setup.render import render

        own = settings_to_merge(site, args.live, args.out)
        for setting in own.retired:
            gone = f"slurm.conf has {setting} no more: drainwise's hooks do not run it any more"
            print(f"drainwise: {gone}", file=sys.stderr)
        return render(site, args.role, own)

    def findings(
        self,
        site: SiteConfig,
        args: argparse.Namespace,  # noqa: ARG002
        agent: AgentFindings,
        progress: Callable[[int, int], None],  # noqa: ARG002
    ) -> Sequence[Finding]:
        """See `System`."""
        from drainwise.install.features_probe import features_findings
        from drainwise.pool.finding import judged
        from drainwise.slurm.setup.check import caller_of, is_controller, judge, judge_orders
        from drainwise.slurm.setup.check_facts import collect
        from drainwise.slurm.setup.check_machine import lines_here, unanswered
        from drainwise.slurm.setup.machine_facts import findings_here

        host, now = os.uname().nodename, int(time.time())
        try:
            facts = collect(site)
        except PoolUnreachable as fault:
            if not os.path.exists(f"{site.slurm.bin_dir}/scontrol"):
                raise
            return [unanswered(str(fault), lines_here(site), host)]
        caller = caller_of(facts, site, os.geteuid(), _user_name())
        findings = [*judge(facts, site, now), *judged(facts.cluster, (judge_orders,), facts, caller)]
        findings += agent(is_controller(facts, host), None, host)
        features = features_findings(site, facts.hosts if site.features.url else (), host)
        return [*findings, *findings_here(facts, site, host), *features]

    def machine_facts(self, site: SiteConfig) -> BatchFacts | None:
        """See `System`."""
        from drainwise.slurm.setup.machine_facts import batch_facts

        return batch_facts(site, _user_name())


def _user_name() -> str:
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


SYSTEM = Slurm()
