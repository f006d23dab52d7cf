"""Fill the templates of a batch system, and of the units of agent and feature server, with one site's values.

The prologs and epilogs for LSF, PBS, Torque, Grid Engine and Flux are ready: here they get their places.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import fields
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

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
        ("checkpoint_files", site.observer.checkpoints),
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


_SETTINGS = {
    "wall_limit": "wall_limit_secs",
    "cpu_limit_per_core": "cpu_limit_secs_per_core",
    "max_swap": "max_swap_bytes",
    "scratch_limit": "scratch_limit_bytes",
}
"""The keys of the node's settings that are called otherwise than in the site file."""


def _facts(facts: NodeFacts) -> tuple[tuple[str, object], ...]:
    values = {_SETTINGS.get(one.name, one.name): getattr(facts, one.name) for one in fields(NodeFacts)}
    return tuple((key, value) for key, value in values.items() if value is not None)


UNIT = "/etc/systemd/system/drainwise-agent.service"

_LEAST_WATCHDOG = 300  # seconds; longer than any act takes, each of which is bounded


def agent_unit(site: SiteConfig, pool: str, after: str) -> RenderedFile:
    """Return the unit for the agent of `pool`, to start after the service `after`. It does nothing until enabled."""
    text = Renderer(site, template_dir("systemd", "systemd_templates"))
    watchdog = max(_LEAST_WATCHDOG, 10 * site.slurm.command_timeout)
    rendered = text("drainwise-agent.service.j2", pool=pool, after=after, watchdog=str(watchdog))
    return RenderedFile(UNIT, rendered)


FEATURES_UNIT = "/etc/systemd/system/drainwise-features.service"

HOST, _NODE = "%h", "node"
"""What stands for a node's name in the URL."""
LOOPBACK = {"localhost": "127.0.0.1", "127.0.0.1": "127.0.0.1", "::1": "::1"}
_UNPRIVILEGED = 1024
_PORTS = {"http": 80, "https": 443}


def features_unit(site: SiteConfig, root: str, after: str) -> tuple[RenderedFile, ...]:
    """Return the unit, to start after the service `after`; none where another machine or program serves the URL.

    root: the directory of the jobs' trees: a path, or a command in `$(…)` that prints it. Nothing starts until it is
    enabled.
    """
    url = site.features.url or ""
    parts = urlsplit(url.replace(HOST, _NODE))
    host = parts.hostname or ""
    if host not in LOOPBACK and host.partition(".")[0] != _NODE:
        return ()
    if parts.path.strip("/"):
        return ()  # drainwise serves at the top
    port = parts.port or _PORTS[parts.scheme]
    words = [site.agent.command, "features serve", root, f"--host {LOOPBACK.get(host, '0.0.0.0')} --port {port}"]  # noqa: S104 - as the site's URL says
    secure = parts.scheme == "https"
    if secure:
        words.append(f"--certificate {site.features.certificate} --key {site.features.certificate_key}")
    command = " ".join(words)
    if root.startswith("$("):
        command = f"/bin/sh -c 'exec {command}'".replace(root, f'"{root.replace("$", "$$")}"')
    text = Renderer(site, template_dir("systemd", "systemd_templates"))
    shown = url.replace(HOST, "%H")  # % is systemd's own, too
    filled = text(
        "drainwise-features.service.j2",
        url=shown,
        command=command,
        after=after,
        secure=secure,
        low=port < _UNPRIVILEGED,
    )
    return (RenderedFile(FEATURES_UNIT, filled),)


PLACE = "/usr/libexec/drainwise"
"""Where they lie on a node: they call each other there."""
_LIBRARY, _PYTHON = "/usr/share/drainwise", "/usr/bin/python3"
_SOURCED = ("drainwise-job.sh", "drainwise.lua")


def prolog_scripts(release: str, library: str, python: str) -> tuple[RenderedFile, ...]:
    """Return the scripts; those that others call come first.

    release: the directory of the package in use, which has them where it came from a wheel; else they are a working
    copy's. library: the directory in which Python finds the package; python: the interpreter.
    """
    inside = os.path.join(release, "drainwise", "prolog_scripts")
    source = inside if os.path.isdir(inside) else template_dir("prologs", "prolog_scripts")
    found = []
    for directory, _, names in os.walk(source):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, encoding="ascii") as stream:
                text = (
                    stream.read()
                    .replace(f'"{_LIBRARY}"', f'"{library}"')
                    .replace(f"exec {_PYTHON} ", f"exec {python} ")
                )
            place = f"{PLACE}/{os.path.relpath(path, source)}"
            found.append(RenderedFile(place, text, 0o644 if name in _SOURCED else 0o755))
    return tuple(sorted(found, key=lambda file: (file.path.count("/"), file.path)))
