"""Set up what the agent exports, as the site file says: called once, before the first cycle."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from drainwise.agent.export.agent_notice import AgentNotices
from drainwise.agent.export.metrics_export import answers_of, metrics_observer
from drainwise.agent.export.page_export import page_observer
from drainwise.agent.settings import AgentSettings
from drainwise.pool.abilities import ShowsAgent
from drainwise.siteconfig import SiteConfig

if TYPE_CHECKING:
    from drainwise.agent.cycle import Cycle


def observers_of(
    site: SiteConfig, setup: AgentSettings, pool: str, say: Callable[[str], None]
) -> tuple[Callable[[Cycle], None], ...]:
    """Return what to call with each cycle that has ended.

    setup: with which the agent begins. pool: the pool in words. `say` takes a line of the log. Raises
    ConfigurationError for what this machine lacks, or for a file that cannot be read.
    """
    policy = setup.settings.policy
    shows = setup.pool if site.agent.advertise == "yes" and isinstance(setup.pool, ShowsAgent) else None
    answers = None if site.metrics.port is None else answers_of(site.metrics, site.file)
    served = answers if site.page.served == "yes" else None
    found = (
        page_observer(site.page, site.file, pool, policy, say, served),
        metrics_observer(site.metrics, site.file, policy, say, answers),
        None if shows is None else AgentNotices(shows, policy, setup.period, say).observe,
    )
    return tuple(one for one in found if one is not None)
