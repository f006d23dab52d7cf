"""The site file of a command: the option that names it, and its settings."""

from __future__ import annotations

import argparse
import os

from drainwise.cli.command_line.options import option
from drainwise.siteconfig import DEFAULT_SITE_FILE, SiteConfig, load

SITE = option("--site FILE", f"the site's settings (default: {DEFAULT_SITE_FILE} where there is one)")
SITE_FILE = option("--site FILE", "default: %(default)s", default=DEFAULT_SITE_FILE)


def site_of(args: argparse.Namespace) -> SiteConfig:
    """Read the site file that was named, else the usual one where there is one."""
    if args.site is None and not os.path.exists(DEFAULT_SITE_FILE):
        return SiteConfig()
    return load(DEFAULT_SITE_FILE if args.site is None else args.site)
