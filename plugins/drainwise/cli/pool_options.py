"""The options that every command on a pool has, and the pool and settings that they open."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial

from drainwise.cli.command_line.options import option
from drainwise.cli.site_file import SITE, site_of
from drainwise.common.printable import printable
from drainwise.facts.client_rules import ANY_ATTRIBUTE, ATTRIBUTE
from drainwise.facts.errors import ConfigurationError, UsageError
from drainwise.facts.scope_rules import ScopeRules
from drainwise.local.system import DIRECTORY_HELP
from drainwise.local.system import VARIABLE as LOCAL_VARIABLE
from drainwise.pool.billing import parse_billing
from drainwise.pool.facts import Pool
from drainwise.reclaim.prices import INSTALLED, POLICIES, is_policy, policy_names
from drainwise.reclaim.seen_pilots import StuckRules
from drainwise.reclaim.settings import OPEN_NEED, ReclaimSettings
from drainwise.siteconfig import SiteConfig
from drainwise.systems.find import FALLBACK, named, offering, own, tried
from drainwise.systems.system import System

AUTO = "auto"


def policy_name(text: str) -> str:
    """Parse the name of a policy, built in or installed, for argparse."""
    if not is_policy(text):
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: expected one of {', '.join(policy_names())}, or {INSTALLED}")
    return text


POOL = (
    option(
        "--pool SYSTEM",
        "htcondor, slurm, local, one of an installed package, or auto: what is configured here, else local"
        " (default: auto)",
        default=AUTO,
    ),
    option("--directory DIR", DIRECTORY_HELP),
    SITE,
)
"""All that opens a pool."""
DECISION = (
    *POOL,
    option("--policy NAME", f"{', '.join(POLICIES)}, or an installed one (the site's)", policy_name),
    option("--json", "print JSON: times in UNIX s, wastes in core-seconds"),
)


def system_of(args: argparse.Namespace, say: Callable[[str], None] = lambda _: None) -> System:
    """Return the batch system that was asked for; for `auto` the first that is configured here, else the local one.

    `say` gets a line when the local one takes over. Raises UsageError for an unknown one, and for options that
    contradict each other.
    """
    if args.pool != AUTO:
        system = named(args.pool, System.open_pool, "--pool")
        if args.directory and not system.takes_directory:
            raise UsageError(f"--directory goes with --pool {FALLBACK}")
        return system
    if args.directory:
        return own(FALLBACK)
    site, missing = site_of(args), list[str]()
    for system in offering(System.open_pool):
        why = tried(system, partial(system.missing, site), f"{system.name} does not work")
        if not why and missing and system.name == FALLBACK and LOCAL_VARIABLE not in os.environ:
            say(f"{missing[0]}: using {system.describe(None)}")
        if not why:
            return system
        missing.append(why)
    raise UsageError("; ".join(missing))


def open_pool(args: argparse.Namespace) -> Pool:
    """Open the pool of `system_of`; a warning on standard error where the local one takes over."""
    system = system_of(args, lambda text: print(f"drainwise: {printable(text)}", file=sys.stderr))
    return system.open_pool(site_of(args), args.directory)


def settings_of(args: argparse.Namespace) -> ReclaimSettings:
    """Return the bounds of a cycle by site file and command line. Raises ConfigurationError, and as `system_of`."""
    site = site_of(args)
    reclaim = site.reclaim
    system = system_of(args)
    timings = system.timings(site)
    same = ("horizon", "grace", "max_grace", "margin", "min_grace", "min_age", "time_to_start", "reports_compete")
    policy = args.policy or reclaim.policy
    return ReclaimSettings(
        policy=policy,
        heartbeat_limit=site.pilot.stale_after,
        max_cores=reclaim.max_cores_per_cycle,
        max_cores_per_user=reclaim.max_cores_per_user_per_cycle,
        max_cores_per_user_hour=reclaim.max_cores_per_user_per_hour,
        notice=site.features.grace_job or 0,
        vacate=timings.vacate,
        order_latency=timings.order_latency,
        drain_only=reclaim.drain_only == "yes",
        waiting_cost=float(reclaim.waiting_cost) if policy == OPEN_NEED else 0.0,
        stuck=StuckRules(reclaim.stuck_after, site.pilot.stale_after),
        scope=_scope(site, system),
        max_cores_hour=reclaim.max_cores_per_hour,
        max_gpus_user_hour=reclaim.max_gpus_per_user_per_hour,
        billing=parse_billing(reclaim.billing),
        max_billing_user_hour=reclaim.max_billing_per_user_per_hour,
        max_billing_hour=reclaim.max_billing_per_hour,
        extra_cores=None if reclaim.extra_cores == "auto" else int(reclaim.extra_cores),
        **{name: getattr(reclaim, name) for name in same},
    )


def _scope(site: SiteConfig, system: System) -> ScopeRules:
    """Return which jobs may be ordered. Raises ConfigurationError for a condition on what nobody tells of jobs."""
    for place, row in site.scope.rows().items():
        of_job = ATTRIBUTE if ANY_ATTRIBUTE in system.scope_keys else ()
        unknown = sorted(key for key in ScopeRules(row).keys() - set(system.scope_keys) if not key.startswith(of_job))
        if unknown:
            section, _, key = place.strip("[").partition("] ")
            expected = f"conditions on {', '.join(system.scope_keys)}: {system.name} does not tell {unknown[0]} of jobs"
            raise ConfigurationError(site.file, section, key, row, expected)
    return site.scope
