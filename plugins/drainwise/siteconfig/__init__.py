"""The site file: one table of keys, their units and ranges, and the reader that refuses everything else."""

from __future__ import annotations

from drainwise.siteconfig.load import DEFAULT_SITE_FILE, load, load_or_defaults
from drainwise.siteconfig.node_sections import FeaturesSection, HTCondorSection, SlurmSection
from drainwise.siteconfig.schema import PilotSection, ReclaimSection, SiteConfig

__all__ = [
    "DEFAULT_SITE_FILE",
    "FeaturesSection",
    "HTCondorSection",
    "PilotSection",
    "ReclaimSection",
    "SiteConfig",
    "SlurmSection",
    "load",
    "load_or_defaults",
]
