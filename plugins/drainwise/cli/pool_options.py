"""The options that every command on a pool has, and what they open."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from drainwise.htcondor.pool import HTCondorPool
from drainwise.pool import Pool
from drainwise.reclaim.policy import POLICIES
from drainwise.reclaim.settings import Settings, Trust
from drainwise.siteconfig import DEFAULT_SITE_FILE, SiteConfig, load

POOLS: dict[str, Callable[[], Pool]] = {"htcondor": HTCondorPool}
"""The batch systems by name."""


def add_pool_option(parser: argparse.ArgumentParser) -> None:
    """Add --pool."""
    parser.add_argument("--pool", choices=sorted(POOLS), default="htcondor", help="batch system (default: %(default)s)")


def add_pool_options(parser: argparse.ArgumentParser) -> None:
    """Add --pool, --site, --policy and --json."""
    add_pool_option(parser)
    parser.add_argument(
        "--site", metavar="FILE", help=f"the site's settings (default: {DEFAULT_SITE_FILE} where there is one)"
    )
    parser.add_argument("--policy", choices=sorted(POLICIES), help="how pilots are chosen (default: the site's)")
    parser.add_argument("--json", action="store_true", help="print JSON: times in UNIX s, wastes in core-seconds")


def open_pool(args: argparse.Namespace) -> Pool:
    """The batch system that was asked for."""
    return POOLS[args.pool]()


def settings_of(args: argparse.Namespace) -> Settings:
    """The bounds of a cycle by the site file and the command line. Raises ConfigurationError."""
    site = SiteConfig()
    if args.site is not None or os.path.exists(DEFAULT_SITE_FILE):
        site = load(DEFAULT_SITE_FILE if args.site is None else args.site)
    reclaim, trust = site.reclaim, site.trust
    return Settings(
        policy=args.policy or reclaim.policy,
        horizon=reclaim.horizon,
        grace=reclaim.grace,
        max_grace=reclaim.max_grace,
        heartbeat_limit=site.pilot.heartbeat_limit,
        max_cores=reclaim.max_cores_per_cycle,
        max_cores_per_user=reclaim.max_cores_per_user_per_cycle,
        max_cores_per_user_hour=reclaim.max_cores_per_user_per_hour,
        margin=reclaim.margin,
        notice=site.features.grace_job or 0,
        vacate=site.htcondor.max_vacate_time or 0,
        min_age=reclaim.min_age,
        min_between_acts=reclaim.min_between_acts,
        drain_only=reclaim.drain_only == "yes",
        trust=Trust(trust.window, trust.pilots, trust.tolerance, trust.spared),
    )
