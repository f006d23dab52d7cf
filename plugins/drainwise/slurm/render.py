"""From the site file to the files of each machine of a Slurm cluster: hooks, agent, settings, lines of slurm.conf."""

from __future__ import annotations

import re
from decimal import Decimal

from drainwise.errors import UsageError
from drainwise.siteconfig import SiteConfig
from drainwise.siteconfig.agent_unit import agent_unit
from drainwise.siteconfig.rendered_tree import RenderedFile
from drainwise.siteconfig.templates import Renderer
from drainwise.siteconfig.templates import template_dir as siteconfig_template_dir

MIN_EXEMPT_SINCE = Decimal("23.02")
"""The first release of Slurm that knows PreemptParameters=min_exempt_priority."""
ROLES = ("node", "controller")

_UNIT = "/etc/systemd/system/drainwise-slurm-agent.service"


def template_dir() -> str:
    """Where the templates lie."""
    return siteconfig_template_dir("slurm", "slurm_templates")


def prolog_path(site: SiteConfig) -> str:
    """Where the prolog lies on a node."""
    return f"{site.slurm.config_dir}/prolog.d/50-drainwise"


def epilog_path(site: SiteConfig) -> str:
    """Where the epilog lies on a node."""
    return f"{site.slurm.config_dir}/epilog.d/50-drainwise"


def task_prolog_path(site: SiteConfig) -> str:
    """Where the task prolog lies on a node."""
    return f"{site.slurm.libexec_dir}/slurm-task-prolog"


def hook_paths(site: SiteConfig) -> dict[str, str]:
    """Where each hook lies on a node, by the key of slurm.conf that names it."""
    return {"Prolog": prolog_path(site), "Epilog": epilog_path(site), "TaskProlog": task_prolog_path(site)}


def names_hook(value: str, key: str, path: str) -> bool:
    """Whether a key's live value (several ones with blanks between) runs the hook at `path`."""
    return bool({path, directory_of(key, path)} & set(re.split(r"[\s,]+", value)))


def directory_of(key: str, path: str) -> str:
    """What slurm.conf has for the hook: all of its directory; of task prologs Slurm takes one only."""
    return path if key == "TaskProlog" else f"{path.rpartition('/')[0]}/*"


def agent_path(site: SiteConfig) -> str:
    """Where the agent's program lies on a node."""
    return f"{site.slurm.libexec_dir}/slurm-agent"


def fragment_path(site: SiteConfig) -> str:
    """Where the lines lie that slurm.conf includes, on every machine."""
    return f"{site.slurm.config_dir}/drainwise.conf"


def render(site: SiteConfig, role: str) -> tuple[RenderedFile, ...]:
    """The files of a machine with this role, in the order in which they must be installed.

    The lines of slurm.conf come last: they name the others, and where the task prolog is missing no job lives long.
    slurm.conf is the same on all machines, and so are they. `role` is one of ROLES or `all` (a machine that is both).
    Raises UsageError for another role.
    """
    if role not in (*ROLES, "all"):
        raise UsageError(f"role {role!r}: expected one of {', '.join(ROLES)}, all")
    text = Renderer(site, template_dir())
    files = []
    if role in {"node", "all"}:
        drains = "drains the node"
        hooks = (
            (prolog_path(site), "prolog", "Slurm's prolog: makes a job's feature directories", drains, ""),
            (epilog_path(site), "epilog", "Slurm's epilog: removes a job's feature directories", drains, ""),
            (task_prolog_path(site), "task_prolog", "Slurm's task prolog: names them to a task", "ends the job", "yes"),
        )
        files.append(RenderedFile(site.slurm.node_file, text("node.conf.j2")))
        for path, module, what, otherwise, quiet in hooks:
            hook = text("hook.sh.j2", module=module, what=what, otherwise=otherwise, quiet=quiet)
            files.append(RenderedFile(path, hook, 0o755))
        files.append(RenderedFile(agent_path(site), text("agent.py.j2"), 0o755))
        files.append(RenderedFile(_UNIT, text("drainwise-slurm-agent.service.j2")))
    if role in {"controller", "all"}:
        files.append(agent_unit(site, "slurm"))
    files.append(RenderedFile(fragment_path(site), text("drainwise.conf.j2", exemption=_exemption(site))))
    return tuple(files)


def _exemption(site: SiteConfig) -> str:
    """What says on the native road whom Slurm spares: its `parameters`, or the `qos`; or nobody knows which."""
    release = site.slurm.release
    if release is None:
        return "unknown"
    return "parameters" if release >= MIN_EXEMPT_SINCE else "qos"
