"""From the site file to the files of each machine of a Slurm cluster: hooks, agent, settings, lines of slurm.conf."""

from __future__ import annotations

import os
import re
import shlex

from drainwise.common.printable import printable_ascii
from drainwise.facts.errors import UsageError
from drainwise.install.rendered_tree import RenderedFile
from drainwise.install.templates import Renderer, agent_unit, features_unit
from drainwise.install.templates import template_dir as siteconfig_template_dir
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.setup.merge import Hook, exemption, hooks_of, lines_of
from drainwise.slurm.setup.own_settings import MANAGED, RECORD, VERSION, OwnSettings

ROLES = ("node", "controller")

_DRAINS = "drains the node"
_HOOKS = {
    "Prolog": ("prolog", "Slurm's prolog: makes a job's feature directories", _DRAINS),
    "Epilog": ("epilog", "Slurm's epilog: removes a job's feature directories", _DRAINS),
    "TaskProlog": ("task_prolog", "Slurm's task prolog: names them to a task", "ends the job"),
}
_UNIT = "/etc/systemd/system/drainwise-node-agent.service"


def template_dir() -> str:
    """Return where the templates lie."""
    return siteconfig_template_dir("slurm", "slurm_templates")


def agent_path(site: SiteConfig) -> str:
    """Return where the agent's program lies on a node."""
    return f"{site.slurm.libexec_dir}/slurm-agent"


def fragment_path(site: SiteConfig) -> str:
    """Return where the lines lie that slurm.conf includes, on every machine."""
    return f"{site.slurm.config_dir}/drainwise.conf"


def render(site: SiteConfig, role: str, own: OwnSettings | None = None) -> tuple[RenderedFile, ...]:
    """Return the files of a machine with this role, in the order in which they must be installed.

    The lines of slurm.conf come last: they name the others, and where the task prolog is missing no job lives long.
    slurm.conf is the same on all machines, and so are they. `role` is one of ROLES or `all` (a machine that is both).
    own: what the site has set itself, with which the lines are merged; None: nobody looked, so it has none of them.
    Raises UsageError for another role, and for what cannot be merged.
    """
    if role not in (*ROLES, "all"):
        raise UsageError(f"role {role!r}: expected one of {', '.join(ROLES)}, all")
    own = own or OwnSettings()
    text = Renderer(site, template_dir())
    files = []
    if role in {"node", "all"}:
        files.append(
            RenderedFile(
                site.slurm.node_file, text("node.conf.j2", scratch_dir=site.slurm.scratch_dir or own.scratch_dir)
            )
        )
        files += [_hook_file(text, hook) for hook in hooks_of(site, own).values()]
        files.append(RenderedFile(agent_path(site), text("agent.py.j2"), 0o755))
        mount = mount_unit(site.slurm.runtime_dir)
        files.append(RenderedFile(_UNIT, text("drainwise-node-agent.service.j2", mount=mount)))
        files.append(RenderedFile(f"{os.path.dirname(_UNIT)}/{mount}", text("runtime-dir.mount.j2")))
        files += features_unit(site, site.slurm.runtime_dir, "drainwise-node-agent.service")
    if role in {"controller", "all"}:
        files.append(agent_unit(site, "slurm", "slurmctld.service"))
    files.append(RenderedFile(fragment_path(site), _fragment(text, site, own)))
    return tuple(files)


def mount_unit(directory: str) -> str:
    """Return the name that systemd wants for the unit that mounts a directory, as `systemd-escape --path` writes it."""
    plain = "/".join(part for part in directory.split("/") if part)
    escaped = re.sub(r"^\.|[^A-Za-z0-9:_./]", lambda one: "".join(f"\\x{byte:02x}" for byte in one[0].encode()), plain)
    return f"{escaped.replace('/', '-')}.mount"


def _hook_file(text: Renderer, hook: Hook) -> RenderedFile:
    module, what, otherwise = _HOOKS[hook.key]
    quiet = "yes" if hook.key == "TaskProlog" else ""
    chained = shlex.quote(hook.site) if hook.site else ""
    filled = text("hook.sh.j2", module=module, what=what, otherwise=otherwise, quiet=quiet, site=chained)
    return RenderedFile(hook.path, filled, 0o755)


def _fragment(text: Renderer, site: SiteConfig, own: OwnSettings) -> str:
    had = "".join(f"{RECORD}{key}={printable_ascii(value)}\n" for key in MANAGED for value in own.all(key))
    lines = lines_of(site, own)
    return text(
        "drainwise.conf.j2",
        lines={key: lines.get(key, "") for key in MANAGED},
        hooks=hooks_of(site, own),
        exemption=exemption(site, own),
        preempt_mode=site.preempt_mode,
        source=printable_ascii(own.source),
        had=f"{RECORD}{VERSION}={printable_ascii(own.version)}\n{had}",
    )
