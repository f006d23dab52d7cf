"""The systemd unit of the reclaim agent: the same for every batch system that has a central machine."""

from __future__ import annotations

from drainwise.siteconfig.rendered_tree import RenderedFile
from drainwise.siteconfig.schema import SiteConfig
from drainwise.siteconfig.templates import Renderer, template_dir

UNIT = "/etc/systemd/system/drainwise-agent.service"

_LEAST_WATCHDOG = 300  # seconds; longer than any act takes, each of which is bounded
_AFTER = {"htcondor": "condor.service", "slurm": "slurmctld.service"}


def agent_unit(site: SiteConfig, pool: str) -> RenderedFile:
    """The unit for `pool`, which is `htcondor` or `slurm`. It does nothing until it is enabled."""
    text = Renderer(site, template_dir("systemd", "systemd_templates"))
    watchdog = max(_LEAST_WATCHDOG, 10 * site.slurm.command_timeout)
    rendered = text("drainwise-agent.service.j2", pool=pool, after=_AFTER[pool], watchdog=str(watchdog))
    return RenderedFile(UNIT, rendered)
