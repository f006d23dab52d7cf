"""Add to a cluster's configuration so that the site's own hooks, flags and limits stay what they are.

* Prolog and Epilog: where the site's own is a whole directory, ours lies in it and nothing is set. Elsewhere ours is
  one more line, or, in releases that take one line only, it hands over to the site's.
* TaskProlog, of which there is one: ours prints its lines, and then the site's takes over its process. So what that
  prints, its environment, time and exit code are what they were. The other way round the site would have to edit it.
* Lists of words get one more word. A key with one value that the site has set is not touched; the one exception is
  a PrologEpilogTimeout in which ours would not end, or not both hooks of which one hands over to the other: it grows.

Pure.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from drainwise.facts.errors import UsageError
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.pool.native_preemption import EXPOSED, exempt_from
from drainwise.slurm.setup.own_settings import HOOK_KEYS, TIMEOUTS, OwnSettings

MIN_EXEMPT_SINCE = Decimal("23.02")
"""The first release of Slurm that knows PreemptParameters=min_exempt_priority."""

_DIRECTORIES = {"Prolog": "prolog.d", "Epilog": "epilog.d"}
_NAME = "50-drainwise"
_MAGIC = re.compile(r"[*?\[]")
_RUNS_ON_ALL_NODES = {"alloc", "contain", "x11", "runinjob"}  # each of the others means Alloc as well
_LEAST_TIMEOUT = 60
UNSET = 65534
"""PrologEpilogTimeout where there is none."""


@dataclass(frozen=True)
class Hook:
    """One hook of ours: the key of slurm.conf, where it lies on a node, and what the key is set to ("": nothing).

    site: the site's own program to which it hands over, "" where there is none or Slurm runs it by itself.
    """

    key: str
    path: str
    value: str
    site: str = ""


def default_hooks(site: SiteConfig) -> dict[str, tuple[str, ...]]:
    """Return by key what names our hooks on a cluster that has none: the file, and the directory that it lies in."""
    names = {key: f"{site.slurm.config_dir}/{directory}" for key, directory in _DIRECTORIES.items()}
    found = {key: (f"{place}/{_NAME}", f"{place}/*") for key, place in names.items()}
    return {**found, "TaskProlog": (f"{site.slurm.libexec_dir}/slurm-task-prolog",)}


def hooks_of(site: SiteConfig, own: OwnSettings) -> dict[str, Hook]:
    """Return each hook by its key. Raises UsageError for a hook of the site's own that cannot be kept running."""
    return {key: _hook(key, names, own) for key, names in default_hooks(site).items()}


def _hook(key: str, names: tuple[str, ...], own: OwnSettings) -> Hook:
    path, values = names[0], own.all(key)
    if not values:
        return Hook(key, path, names[-1])
    if own.wrappers & set(values):
        return Hook(key, path, "")  # the site's own calls it
    if key in _DIRECTORIES:
        hosted = next(filter(None, map(_hosted_by, values)), "")
        if hosted:
            return Hook(key, hosted, "")
        if key not in own.one_value:
            return Hook(key, path, path)
    return Hook(key, path, path, _chainable(key, values[-1]))


def _hosted_by(pattern: str) -> str:
    """Return a name for our hook in the directory that the site's pattern takes, "" where none is sure to be taken."""
    directory, _, names = pattern.rpartition("/")
    if not directory.startswith("/") or _MAGIC.search(directory) or not _MAGIC.search(names):
        return ""
    fitting = (_NAME, f"{_NAME}.sh", f"S{_NAME}", re.sub(r"\*+", _NAME, names, count=1).replace("*", ""))
    name = next((one for one in fitting if fnmatch.fnmatchcase(one, names) and not _MAGIC.search(one)), "")
    return f"{directory}/{name}" if name else ""


def _chainable(key: str, value: str) -> str:
    if not value.startswith("/") or (_MAGIC.search(value) and key != "TaskProlog") or not value.isprintable():
        what = f"slurm.conf: {key}={value}: this Slurm runs one {key} only, so ours has to call it"
        raise UsageError(
            f"{what}; write the absolute path of one program there, or the directory of several as /path/*"
        )
    return value


def names_hook(value: str, path: str) -> bool:
    """Decide whether a key's live value (several ones with blanks between) runs the hook at `path`."""
    directory, _, name = path.rpartition("/")
    patterns = (pattern.rpartition("/") for pattern in re.split(r"[\s,]+", value))
    return any(place == directory and fnmatch.fnmatchcase(name, names) for place, _, names in patterns)


def lines_of(site: SiteConfig, own: OwnSettings) -> dict[str, str]:
    """Return the keys to set in slurm.conf, with their values. Raises UsageError for what cannot be merged."""
    hooks = hooks_of(site, own)
    lines = {key: hooks[key].value for key in HOOK_KEYS}
    flags = own.words("PrologFlags")
    lines["PrologFlags"] = "" if _RUNS_ON_ALL_NODES & {flag.lower() for flag in flags} else ",".join([*flags, "Alloc"])
    lines |= {key: _time_limit(site, own, hooks, key) for key in given_limits(own.number)}
    if site.slurm.native_preemption == "yes":
        lines |= _native_lines(site, own)
    return {key: value for key, value in lines.items() if value}


def given_limits(number: Callable[[str], int | None]) -> tuple[str, ...]:
    """Return the keys that limit prologs and epilogs: each one's own where there is one. number: the value of a key."""
    return tuple(key for key in TIMEOUTS[1:] if number(key) is not None) or TIMEOUTS[:1]


def _time_limit(site: SiteConfig, own: OwnSettings, hooks: Mapping[str, Hook], key: str) -> str:
    """Return the limit of a prolog, where the site's own by this key is none or too short for ours."""
    limit, ours = own.number(key), site.slurm.prolog_time_limit
    enough = str(max(_LEAST_TIMEOUT, 3 * ours))
    if limit is None:
        own_hooks = any(own.all(key) for key in ("Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld"))
        return "" if own_hooks else enough  # nobody knows how long these take
    if any(hooks[key].site for key in _DIRECTORIES):
        return str(max(limit, ours) + 2 * ours)  # both run within it; a busy machine starts Python late
    return "" if limit > ours else enough


def exemption(site: SiteConfig, own: OwnSettings) -> str:
    """Return what says whom Slurm's own preemption spares: `parameters`, `qos`, or `unknown`."""
    release = site.slurm.release or own.release
    if release is None:
        return "unknown"
    return "parameters" if release >= MIN_EXEMPT_SINCE else "qos"


def _native_lines(site: SiteConfig, own: OwnSettings) -> dict[str, str]:
    used = own.text("PreemptType").lower()
    if used not in {"", "preempt/qos"}:
        what = f"slurm.conf: PreemptType={used} is how this cluster preempts, and there can be one: [slurm]"
        raise UsageError(f"{what} native_preemption = yes needs preempt/qos; set native_preemption = no")
    lines = {"PreemptType": "" if used else "preempt/qos"}
    mode = own.words("PreemptMode")
    if not used or not mode:
        kept = [word for word in mode if word.lower() == "gang"]
        lines["PreemptMode"] = ",".join([site.preempt_mode, *kept])
    if exemption(site, own) == "parameters" and exempt_from(own.text("PreemptParameters")) is None:
        lines["PreemptParameters"] = ",".join([*own.words("PreemptParameters"), f"min_exempt_priority={EXPOSED + 1}"])
    return lines
