"""The unit of a node's server of features, where `[features] url` says that the node itself serves them."""

from __future__ import annotations

from urllib.parse import urlsplit

from drainwise.install.rendered_tree import RenderedFile
from drainwise.install.templates import Renderer, template_dir
from drainwise.siteconfig.schema import SiteConfig

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
