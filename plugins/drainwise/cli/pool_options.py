"""The options that every command on a pool has, and what they open."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Callable

from drainwise.cli.local_directory import add_directory, default_directory
from drainwise.cli.text import printable
from drainwise.errors import UsageError
from drainwise.htcondor.pool import HTCondorPool
from drainwise.pool import Pool
from drainwise.reclaim.settings import Settings, Trust
from drainwise.siteconfig import DEFAULT_SITE_FILE, SiteConfig, load
from drainwise.siteconfig.schema import POLICIES

POOLS: dict[str, Callable[[], Pool]] = {"htcondor": HTCondorPool}
"""The batch systems that need no further option, by name."""

AUTO, HTCONDOR, LOCAL, SLURM = "auto", "htcondor", "local", "slurm"
CONDOR_CONFIG = "CONDOR_CONFIG"
CONDOR_FILES = ("/etc/condor/condor_config", "/usr/local/etc/condor_config", "~condor/condor_config")
"""Where HTCondor looks for its configuration when CONDOR_CONFIG does not say."""
CONDOR_VACATE_TIME = 600
"""HTCondor's own MachineMaxVacateTime in seconds."""
CONDOR_POLLING = 5
"""Seconds until a startd looks at an order (POLLING_INTERVAL): a pilot is told when its slot retires."""
LOCAL_PERIOD = 1
"""Seconds between two looks of the local batch system's daemon, rounded up."""


def add_pool_option(parser: argparse.ArgumentParser) -> None:
    """Add --pool, --directory and --site: all that opens a pool."""
    parser.add_argument(
        "--pool",
        choices=(AUTO, *sorted(POOLS), SLURM, LOCAL),
        default=AUTO,
        help="batch system (default: htcondor or slurm where it is configured, else local)",
    )
    add_directory(parser)
    parser.add_argument(
        "--site", metavar="FILE", help=f"the site's settings (default: {DEFAULT_SITE_FILE} where there is one)"
    )


def add_pool_options(parser: argparse.ArgumentParser) -> None:
    """Add --pool, --directory, --site, --policy and --json."""
    add_pool_option(parser)
    parser.add_argument("--policy", choices=sorted(POLICIES), help="how pilots are chosen (default: the site's)")
    parser.add_argument("--json", action="store_true", help="print JSON: times in UNIX s, wastes in core-seconds")


def pool_name(args: argparse.Namespace, say: Callable[[str], None] = lambda _: None) -> str:
    """The batch system that was asked for; without a word HTCondor or Slurm where there is one, else the local one.

    `say` is told when the local one takes over. Raises UsageError for options that contradict each other.
    """
    if args.directory and args.pool not in {AUTO, LOCAL}:
        raise UsageError(f"--directory goes with --pool {LOCAL}")
    if args.pool != AUTO:
        return str(args.pool)
    if args.directory:
        return LOCAL
    missing = missing_of_htcondor()
    if not missing:
        return HTCONDOR
    if has_slurm(site_of(args)):
        return SLURM
    say(f"{missing}: using the local batch system in {default_directory()}")
    return LOCAL


def open_pool(args: argparse.Namespace) -> Pool:
    """The batch system that `pool_name` names; a warning on standard error where the local one takes over."""
    name = pool_name(args, lambda text: print(f"drainwise: {printable(text)}", file=sys.stderr))
    if name == SLURM:
        from drainwise.slurm.pool import SlurmPool

        site = site_of(args)
        return SlurmPool(site.slurm, site.reclaim.grace)
    if name != LOCAL:
        return POOLS[name]()
    from drainwise.local.pool import LocalPool

    return LocalPool(args.directory or default_directory())


def missing_of_htcondor() -> str:
    """What keeps HTCondor from being used here, "" when nothing does."""
    named = CONDOR_CONFIG in os.environ  # a wrong name in it is HTCondor's to complain about
    if not (named or any(os.path.exists(os.path.expanduser(path)) for path in CONDOR_FILES)):
        return "no HTCondor here"
    if importlib.util.find_spec("htcondor2") is None:
        return "no HTCondor here (it is configured, but its Python bindings are missing)"
    return ""


def has_slurm(site: SiteConfig) -> bool:
    """Whether Slurm is configured here and its commands are where the site says."""
    return all(map(os.path.exists, (f"{site.slurm.config_dir}/slurm.conf", f"{site.slurm.bin_dir}/squeue")))


def site_of(args: argparse.Namespace) -> SiteConfig:
    """The site's settings: of the file that was named, else of the usual one where there is one."""
    if args.site is None and not os.path.exists(DEFAULT_SITE_FILE):
        return SiteConfig()
    return load(DEFAULT_SITE_FILE if args.site is None else args.site)


def vacate_and_told(pool: str, site: SiteConfig) -> tuple[int, int]:
    """Seconds before a deadline at which this batch system begins to end a pilot; seconds until a pilot hears of it.

    HTCondor begins MachineMaxVacateTime before the deadline, the node's own where the site file does not name it; Slurm
    and the local batch system begin at the deadline itself.
    """
    if pool == HTCONDOR:
        vacate = site.htcondor.max_vacate_time
        told = site.htcondor.update_interval + CONDOR_POLLING
        return CONDOR_VACATE_TIME if vacate is None else vacate, told
    return 0, site.slurm.agent_period if pool == SLURM else LOCAL_PERIOD


def settings_of(args: argparse.Namespace) -> Settings:
    """The bounds of a cycle by the site file and the command line. Raises ConfigurationError, and as `pool_name`."""
    site = site_of(args)
    reclaim, trust = site.reclaim, site.trust
    vacate, told = vacate_and_told(pool_name(args), site)
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
        vacate=vacate,
        told=told,
        min_age=reclaim.min_age,
        min_between_acts=reclaim.min_between_acts,
        retry_after=reclaim.retry_after,
        time_to_start=reclaim.time_to_start,
        demand_pause=reclaim.demand_pause,
        drain_only=reclaim.drain_only == "yes",
        trust=Trust(trust.window, trust.pilots, trust.tolerance, trust.spared),
    )
