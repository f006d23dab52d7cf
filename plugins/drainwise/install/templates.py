"""Fill the templates of a batch system, and that of the agent's unit, with one site's values."""

from __future__ import annotations

import functools
import os
import re
from typing import TYPE_CHECKING

from drainwise.facts.clients import PAPER, PROFILES
from drainwise.install.rendered_tree import RenderedFile
from drainwise.siteconfig.node_sections import CONDITIONS, NodeFacts
from drainwise.siteconfig.schema import SECTIONS, SiteConfig

if TYPE_CHECKING:
    import jinja2


def template_dir(folder: str, installed: str) -> str:
    """Return the directory of templates: `installed` in an installed package, else `folder` of a working copy."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    inside = os.path.join(package, installed)
    return inside if os.path.isdir(inside) else os.path.join(package, "..", "..", folder)


class Renderer:
    """Fills the templates of one directory; every section of the site file is there by its name."""

    def __init__(self, site: SiteConfig, directory: str) -> None:
        self._environment = _environment(directory)
        # The site file's own name is the one text here that no kind has checked.
        name = re.sub(r"[^A-Za-z0-9_./+-]", "?", site.file) or "the defaults"
        self._values = {section: getattr(site, section) for section in SECTIONS}
        self._values |= {"file": name, "site_keys": site_keys(site), "kinds": site_kinds(site)}

    def __call__(self, template: str, **more: object) -> str:
        """Fill a template, with `more` values."""
        return self._environment.get_template(template).render(**self._values, **more)


@functools.lru_cache(maxsize=8)
def _environment(directory: str) -> jinja2.Environment:
    """Load the templates of a directory; each is compiled once in a process, which takes longer than filling it."""
    import jinja2  # noqa: PLC0415 - what asks only where files lie runs on nodes, too, without it

    # Configuration files, not HTML: quoting for HTML would spoil them, and every value is of a kind without quotes.
    return jinja2.Environment(  # noqa: S701
        loader=jinja2.FileSystemLoader(directory),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def site_keys(site: SiteConfig) -> tuple[tuple[str, object], ...]:
    """Return the site's values that the hooks of every batch system need, by the keys of the node's settings.

    What the site file leaves out is left out.
    """
    features = site.features
    more = (
        ("features_url", features.url),
        ("grace_secs", features.grace),
        ("grace_secs_job", features.grace_job),
        ("heartbeat_limit_secs", site.pilot.stale_after),
        ("observe", 0 if site.observer.enabled == "no" else None),
        ("payload_patterns", site.observer.payloads),
        ("contradictory_after_secs", site.observer.contradictory_after),
    )
    clients = site.clients
    rows = tuple((f"client_{name}", row) for name in PROFILES if (row := getattr(clients, name)) is not None)
    if clients.default != PAPER.name:
        rows += (("client_default", clients.default),)
    return (*_facts(features), *((key, value) for key, value in more if value is not None), *rows)


def site_kinds(site: SiteConfig) -> tuple[tuple[str, tuple[tuple[str, object], ...]], ...]:
    """Return the kinds of nodes in their order: name, then conditions and values by the keys of the node's settings."""
    return tuple(
        (name, (*((key, text) for key in CONDITIONS if (text := getattr(kind, key)) is not None), *_facts(kind)))
        for name, kind in site.kinds.items()
    )


def _facts(facts: NodeFacts) -> tuple[tuple[str, object], ...]:
    values = (
        ("hs06", facts.hs06),
        ("hs23", facts.hs23),
        ("cpufactor_lrms", facts.cpufactor_lrms),
        ("wall_limit_secs", facts.wall_limit),
        ("cpu_limit_secs_per_core", facts.cpu_limit_per_core),
        ("max_swap_bytes", facts.max_swap),
        ("scratch_limit_bytes", facts.scratch_limit),
        ("jobslots", facts.jobslots),
        ("shutdown_command", facts.shutdown_command),
    )
    return tuple((key, value) for key, value in values if value is not None)


UNIT = "/etc/systemd/system/drainwise-agent.service"

_LEAST_WATCHDOG = 300  # seconds; longer than any act takes, each of which is bounded


def agent_unit(site: SiteConfig, pool: str, after: str) -> RenderedFile:
    """Return the unit for the agent of `pool`, to start after the service `after`. It does nothing until enabled."""
    text = Renderer(site, template_dir("systemd", "systemd_templates"))
    watchdog = max(_LEAST_WATCHDOG, 10 * site.slurm.command_timeout)
    rendered = text("drainwise-agent.service.j2", pool=pool, after=after, watchdog=str(watchdog))
    return RenderedFile(UNIT, rendered)
