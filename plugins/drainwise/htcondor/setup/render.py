"""Render the files of each machine by the site file: HTCondor drop-ins, node settings, hook scripts, print formats."""

from __future__ import annotations

import os

from drainwise.facts.errors import ConfigurationError, UsageError
from drainwise.facts.waste import drain_price_expression
from drainwise.htcondor.node import USUAL_INTERVAL
from drainwise.htcondor.node.order_list import ENDLESS
from drainwise.install.removal import AFTER_REMOVAL
from drainwise.install.rendered_tree import RenderedFile
from drainwise.install.templates import Renderer, agent_unit, features_unit
from drainwise.install.templates import template_dir as siteconfig_template_dir
from drainwise.siteconfig import HTCondorSection, SiteConfig
from drainwise.siteconfig.node_sections import KIND

ROLES = ("execute", "access", "central")

_CONFIG_DIR = "/etc/condor/config.d"
_SCRIPTS = (
    ("prepare-hook", "prepare_hook", "the starter's prepare hook: makes a job's feature directories"),
    ("update-hook", "update_hook", "the starter's update hook: tells a pilot what the site wants of it"),
    ("pilot-cron", "startd_cron", "the startd's cron: publishes what the pilots report"),
)
_PRINT_FORMATS = ("pilots.cpf", "users.cpf")
_DEFRAG_FORMATS = ("nodes.cpf",)
_FIGURES = ("PilotRemaining", "PilotDrainingWaste", "PilotKillWaste")
_RETURNED = ("PilotReturnedBy", "PilotLentCpus=0", "PilotLentMemory=0")

PUSHES = (25, 7)
"""Since this release a slot is sent when the cron asks for it. So do 24.0.18 and 25.0.8, which are taken as before."""
_PERIODS = 5  # of the cron, and half as many where nothing else is sent
_RETURNED_BEFORE = 30  # s; with 300, returned cores were handed out after 295 s on 23.9.6, with 30 after 55 s


def template_dir() -> str:
    """Return the directory of the templates."""
    return siteconfig_template_dir("condor_config.d", "condor_config.d")


def render(site: SiteConfig, role: str) -> tuple[RenderedFile, ...]:
    """Render the files of a machine with this role, in the order in which they must be installed.

    The HTCondor drop-in comes last, after `hooks.conf`, which it includes: while a hook that is named there is missing,
    no job starts on the node.
    `role` is one of ROLES or `all` (one machine that plays every role). Raises UsageError for another role, and
    ConfigurationError for hooks of the site's without their keyword.
    """
    if role not in (*ROLES, "all"):
        raise UsageError(f"role {role!r}: expected one of {', '.join(ROLES)}, all")
    roles = ROLES if role == "all" else (role,)
    _require_the_sites_keyword(site)
    _refuse_limits_by_feature(site)
    render_text = Renderer(site, template_dir())
    settings_dir = os.path.dirname(site.htcondor.node_file).rstrip("/")
    hooks_file = hooks_path(site)
    next_hooks = {"prepare-hook": site.htcondor.site_prepare_hook, "update-hook": site.htcondor.site_update_hook}
    files = []
    if "execute" in roles:
        files.append(RenderedFile(site.htcondor.node_file, render_text("node.conf.j2")))
        for name, module, what in _SCRIPTS:
            values = {"name": name, "module": module, "what": what, "next_hook": next_hooks.get(name) or ""}
            text = render_text("libexec.py.j2", **values)
            files.append(RenderedFile(f"{site.htcondor.libexec_dir}/{name}", text, 0o755))
        files.append(RenderedFile(hooks_file, render_text("hooks.conf.j2")))
        files += features_unit(site, "$(condor_config_val EXECUTE)", "condor.service")
    if "access" in roles or "central" in roles:
        names = _PRINT_FORMATS + (_DEFRAG_FORMATS if site.htcondor.defrag == "yes" else ())
        files += [RenderedFile(f"{settings_dir}/{name}", render_text(name)) for name in names]
    if "central" in roles and site.agent.condor_master == "no":
        files.append(agent_unit(site, "htcondor", "condor.service"))
    if "execute" in roles:
        text = render_text(f"{AFTER_REMOVAL}.j2", endless_retirement=str(ENDLESS))
        files.append(RenderedFile(f"{_CONFIG_DIR}/{AFTER_REMOVAL}", text))
    for one in roles:
        path = drop_in_path(one)
        more = {"endless_retirement": str(ENDLESS), "hooks_file": hooks_file, "drop_in": os.path.basename(path)}
        more["drain_price"] = drain_price_expression(site.reclaim.grace, site.reclaim.margin)
        more |= {"pushes": ".".join(map(str, PUSHES)), "guarded": _guarded(site)}
        by_kind = any(kind.wall_limit is not None for kind in site.kinds.values())
        text = render_text(
            f"50-drainwise-{one}.conf.j2", **more, wall_limit_by_kind=by_kind, updates=update_intervals(site)
        )
        files.append(RenderedFile(path, text))
    return tuple(files)


def update_intervals(site: SiteConfig) -> tuple[int, int]:
    """Return UPDATE_INTERVAL (s) of nodes with a release since PUSHES, and of those before.

    As old may a report be when it is seen: so no report counts as stale that is younger than two of them.
    """
    own, most = site.htcondor, site.pilot.stale_after // 2
    if own.slot_update_interval is not None:
        return own.slot_update_interval, own.slot_update_interval
    if own.partial_return == "yes":  # what is lent must be sent before it is worth nothing
        return min(own.cron_period, USUAL_INTERVAL, most), min(own.cron_period, _RETURNED_BEFORE, most)
    usual = min(_PERIODS * own.cron_period, USUAL_INTERVAL)
    return min(usual, most), min(max(1, usual // 2), most)


def _guarded(site: SiteConfig) -> str:
    """Return the attributes of the cron's by which HTCondor decides about jobs on nodes of this site."""
    own = site.htcondor
    figures = _FIGURES if own.negotiator_policy != "none" or own.defrag == "yes" else ()
    return " ".join((*figures, *(_RETURNED if own.partial_return == "yes" else ())))


def _require_the_sites_keyword(site: SiteConfig) -> None:
    """Raise ConfigurationError without the site's keyword: its other hooks would be switched off silently."""
    own = site.htcondor
    if (own.site_prepare_hook or own.site_update_hook) and own.hook_keyword == HTCondorSection.hook_keyword:
        expected = "the keyword of the site's own hooks, since site_prepare_hook or site_update_hook is set"
        raise ConfigurationError(site.file, "htcondor", "hook_keyword", own.hook_keyword, expected)


def _refuse_limits_by_feature(site: SiteConfig) -> None:
    """Raise ConfigurationError for a wall limit of a kind by feature: the lease's end is published without a slot."""
    for name, kind in site.kinds.items():
        if kind.feature is not None and kind.wall_limit is not None:
            expected = "host or cpu_model in place of feature: on HTCondor the wall limit of a kind goes by these"
            raise ConfigurationError(site.file, f"{KIND}{name}", "feature", kind.feature, expected)


def hooks_path(site: SiteConfig) -> str:
    """Return the path of the file that an execute node's drop-in includes: beside the hooks, it goes with them."""
    return f"{site.htcondor.libexec_dir}/hooks.conf"


def drop_in_path(role: str) -> str:
    """Return the path of a role's HTCondor drop-in on its machine."""
    return f"{_CONFIG_DIR}/50-drainwise-{role}.conf"
