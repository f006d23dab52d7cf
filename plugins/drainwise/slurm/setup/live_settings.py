"""Asking a cluster what the site has set itself: its live configuration, its slurm.conf, the lines rendered before."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace

from drainwise.common.typed_table import read_text
from drainwise.facts.errors import ConfigurationError, PoolUnreachable, UsageError
from drainwise.node.hook import read_bounded
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.jobs.commands import SHOW_CONFIG, SlurmCommands, live_values
from drainwise.slurm.setup.merge import default_hooks
from drainwise.slurm.setup.own_settings import (
    HOOK_KEYS,
    VERSION,
    ClusterHistory,
    ConfigLine,
    Fragment,
    OwnSettings,
    Values,
    fragment_in,
    own_settings,
    read_config,
)
from drainwise.slurm.setup.render import fragment_path

NOTHING = "none"
"""Instead of a file: a cluster that has nothing of its own yet."""

_LONGEST = 1 << 20
_LONGEST_HOOK = 65536


def settings_to_merge(site: SiteConfig, file: str | None, out: str | None) -> OwnSettings:
    """Return what the site has set itself, for rendering.

    * file: where the output of `scontrol show config` lies, NOTHING for a new cluster; None: the command is asked.
    * out: the directory of an earlier tree, whose rendered lines are looked at first.

    Raises UsageError where it cannot be known, with what to do.
    """
    if file == NOTHING:
        return OwnSettings()
    command = " ".join(SHOW_CONFIG)
    if file is None:
        try:
            config = SlurmCommands(site.slurm.bin_dir, site.slurm.command_timeout).ask(*SHOW_CONFIG)
        except PoolUnreachable as fault:
            what = "what the cluster has already is not known, and the lines for slurm.conf could replace it: run this"
            how = f"where `{command}` works, or give its output by --live FILE (--live {NOTHING}: a new cluster)"
            raise UsageError(f"{fault}; {what} {how}") from None
    else:
        config = read_text(file, _LONGEST, f"the output of `{command}`", "the output of one command")
    live = live_values(config)
    if "slurm_version" not in live:
        raise UsageError(f"{file or command}: no SLURM_VERSION in it; expected the whole output of `{command}`")
    source = f"`{command}` of cluster {live.get('clustername', ('?',))[-1]}, Slurm {live['slurm_version'][-1]}"
    trees = [*([out] if out else []), "/"]
    own = _own(site, config, source, trees, _without_ours(site, lines_here(config)[0]) if file is None else None)
    if own.unknown:
        what = (
            f"{', '.join(own.unknown)}: drainwise's own lines are live, and what stood there before is not known here"
        )
        conf = live.get("slurm_conf", ("slurm.conf",))[-1]
        how = f"run this where {conf} can be read, or where {fragment_path(site)} lies as it was rendered"
        raise UsageError(f"{what}; {how}")
    return own


def history_of(site: SiteConfig, config: str) -> ClusterHistory:
    """Find what the site has set itself and what came of it, by `scontrol show config` and files here."""
    lines, fault = lines_here(config)
    own = _own(site, config, " ".join(SHOW_CONFIG), ["/"], _without_ours(site, lines))
    fragment = _fragment(fragment_path(site))
    had = (fragment.had if fragment is not None else None) or {}
    merged = _merged(site, live_values(config), had, lines or ())
    return ClusterHistory(own, lines, fault, merged, had.get(VERSION.lower(), ("",))[-1])


def _merged(site: SiteConfig, live: Values, had: Values, lines: tuple[ConfigLine, ...]) -> frozenset[tuple[str, str]]:
    found = set()
    for key, names in default_hooks(site).items():
        name, programs = key.lower(), live.get(key.lower(), ())
        if set(names) & set(programs):
            found |= {(name, value) for value in had.get(name, ())}
        written = {line.value for line in lines if line.key == name}
        found |= {(name, value) for value in written for program in programs if calls(program, value)}
    return frozenset(found)


def lines_here(config: str) -> tuple[tuple[ConfigLine, ...] | None, str]:
    """Read the lines of the slurm.conf that the live configuration names; None, and why, if it cannot be read."""
    live = live_values(config)
    path = live.get("slurm_conf", ("",))[-1]
    if not path:
        return None, "the live configuration does not name it"
    try:
        return read_config(path, live.get("clustername", ("",))[-1]), ""
    except ConfigurationError as fault:
        return None, str(fault)


def _without_ours(site: SiteConfig, lines: tuple[ConfigLine, ...] | None) -> tuple[ConfigLine, ...] | None:
    ours = os.path.basename(fragment_path(site))
    return None if lines is None else tuple(line for line in lines if os.path.basename(line.file) != ours)


def _own(
    site: SiteConfig, config: str, source: str, trees: Iterable[str], lines: tuple[ConfigLine, ...] | None
) -> OwnSettings:
    hooks = default_hooks(site)
    found = [_fragment(os.path.join(tree, fragment_path(site)[1:])) for tree in dict.fromkeys(trees)]
    own = own_settings(config, source, hooks, [one for one in found if one is not None], lines)
    programs = {value: hooks[key][0] for key in HOOK_KEYS for value in own.all(key)}
    return replace(own, wrappers=frozenset(value for value, ours in programs.items() if calls(value, ours)))


def _fragment(path: str) -> Fragment | None:
    try:
        return fragment_in(read_text(path, _LONGEST, "rendered lines", "rendered lines"))
    except ConfigurationError:
        return None


def calls(program: str, hook: str) -> bool:
    """Decide whether a script that lies here names a hook of ours outside of its comments."""
    try:
        text = read_bounded(os.path.realpath(program), _LONGEST_HOOK).decode("utf-8", "replace")
    except OSError:
        return False
    return any(
        re.search(rf"(?<![\w./-]){re.escape(hook)}(?![\w./-])", line.partition("#")[0])
        for line in text.splitlines()[1:]
    )
