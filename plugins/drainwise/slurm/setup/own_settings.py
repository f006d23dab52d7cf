"""A cluster's configuration without the lines of drainwise: its own hooks, flags and limits.

`scontrol show config` shows them as they are live. Once the lines of drainwise are live, too, it shows those instead;
then slurm.conf still has the site's own, and where it cannot be read, the rendered file has recorded them. Pure but for
`read_config`, which reads slurm.conf with what it includes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from drainwise.common.typed_table import read_text
from drainwise.facts.errors import ConfigurationError
from drainwise.node.settings import DEFAULT_SCRATCH_DIR
from drainwise.siteconfig.kinds import path
from drainwise.slurm.jobs.commands import UNSET_VALUES, live_values

_LONGEST = 16 << 20  # bytes; the nodes of a large cluster fill a few MB
_MOST_FILES = 256
_INCLUDE = re.compile(r"\s*include\s+(\S+)", re.IGNORECASE)
_SETTING = re.compile(r'\s*([A-Za-z0-9_.]+)\s*=\s*(?:"([^"]*)"|(\S*))')
_COMMENT = re.compile(r"(?<!\\)#.*")


@dataclass(frozen=True)
class ConfigLine:
    """One setting: the key in lower case, its value without quotes, and where it stands."""

    file: str
    number: int
    key: str
    value: str

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{self.number}"


def read_config(path: str, cluster: str = "") -> tuple[ConfigLine, ...]:
    """Return the settings of the file `path` and of what it includes; `cluster` stands for `%c` in the names of these.

    Raises ConfigurationError for a file that cannot be read, and for files that include each other without end.
    """
    opened: list[str] = []
    return tuple(_lines(path, os.path.dirname(path), cluster, opened))


def _lines(path: str, directory: str, cluster: str, opened: list[str]) -> Iterator[ConfigLine]:
    opened.append(path)
    if len(opened) > _MOST_FILES:
        raise ConfigurationError(
            path, "", "Include", path, f"at most {_MOST_FILES} files, none of which includes itself"
        )
    text = read_text(path, _LONGEST, "a file of slurm.conf's lines that this user can read", "a shorter slurm.conf")
    for number, line in _joined(text):
        included = _INCLUDE.match(line)
        setting = _SETTING.match(line)
        if included:
            yield from _lines(os.path.join(directory, included[1].replace("%c", cluster)), directory, cluster, opened)
        elif setting:
            value = setting[3] if setting[2] is None else setting[2]
            yield ConfigLine(path, number, setting[1].lower(), value)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines without comments by number; what follows a backslash at a line's end belongs to it."""
    begun, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        first = first or number
        plain = _COMMENT.sub("", line).rstrip()
        if plain.endswith("\\"):
            begun += plain[:-1]
            continue
        yield first, (begun + plain).replace("\\#", "#")
        begun, first = "", 0


HOOK_KEYS = ("Prolog", "Epilog", "TaskProlog")
TIMEOUTS = ("PrologEpilogTimeout", "PrologTimeout", "EpilogTimeout")
"""The limits of prologs and epilogs; since 25.05 each can have its own, and `scontrol show config` shows those then."""
MANAGED = (*HOOK_KEYS, "PrologFlags", *TIMEOUTS, "PreemptType", "PreemptMode", "PreemptParameters")
"""The keys of slurm.conf that the lines of drainwise may set."""
LISTS = ("PrologFlags", "PreemptMode", "PreemptParameters")
"""Those of them whose value is a list of words."""
RECORD = "# had: "
VERSION = "SLURM_VERSION"

_ASIDE = ("PrologSlurmctld", "EpilogSlurmctld")  # never set, but PrologEpilogTimeout is theirs, too
_DEFAULTS = {"preempttype": {"preempt/none"}, "preemptmode": {"off"}}
_DEFAULTS |= {key.lower(): {"0", "65534"} for key in TIMEOUTS}

Values = Mapping[str, "tuple[str, ...]"]


@dataclass(frozen=True)
class OwnSettings:
    """The site's own settings; keys are in lower case.

    * source: what it was read from, in words; "" when nobody looked. version: Slurm's, "" when it is not known.
    * one_value: the hooks of which this release of Slurm takes one value only; others may be given several times.
    * wrappers: those of the site's hooks that call ours.
    * unknown: keys whose value was replaced by ours, and nobody has noted it.
    * scratch_dir: the directory of the jobs' scratch space, Slurm's own default where nobody looked.
    * retired: `Key=value` that ours has run until now, and that slurm.conf does not have any more.
    """

    source: str = ""
    version: str = ""
    one_value: frozenset[str] = frozenset(HOOK_KEYS)
    values: Values = field(default_factory=dict)
    wrappers: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    scratch_dir: str = DEFAULT_SCRATCH_DIR

    @property
    def release(self) -> Decimal | None:
        """The first two numbers of the version, such as 22.05."""
        return release_of(self.version)

    def all(self, key: str) -> tuple[str, ...]:
        """Return the values of a key, in their order."""
        return self.values.get(key.lower(), ())

    def text(self, key: str) -> str:
        """Return the value of a key that has one, "" when it is not set."""
        return (self.all(key) or ("",))[-1]

    def number(self, key: str) -> int | None:
        """Return the number that a value begins with, None without one."""
        match = re.match(r"\d+", self.text(key))
        return int(match[0]) if match else None

    def words(self, key: str) -> list[str]:
        """Return the words of a list."""
        return words_of(self.text(key))


@dataclass(frozen=True)
class ClusterHistory:
    """The history of a live cluster's configuration.

    * own: what the site has set itself.
    * lines: all of slurm.conf with what it includes; None where it cannot be read, and unread says why.
    * merged: by key in lower case, programs that run because the one which the key names runs them.
    * rendered_for: the version of Slurm for which the installed lines of drainwise were rendered, "" when not recorded.
    """

    own: OwnSettings = field(default_factory=OwnSettings)
    lines: tuple[ConfigLine, ...] | None = ()
    unread: str = ""
    merged: frozenset[tuple[str, str]] = frozenset()
    rendered_for: str = ""


@dataclass(frozen=True)
class Fragment:
    """The rendered lines of slurm.conf: what they set, and what the site had before; None: not recorded."""

    sets: Values
    had: Values | None


def words_of(text: str) -> list[str]:
    """Return the words of a list with commas."""
    return [word for word in text.split(",") if word]


def release_of(version: str) -> Decimal | None:
    """Return the first two numbers of a version such as 22.05.8."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return Decimal(f"{match[1]}.{int(match[2]):02}") if match else None


def fragment_in(text: str) -> Fragment:
    """Return what stands in the rendered lines of slurm.conf."""
    sets: dict[str, tuple[str, ...]] = {}
    had: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        into = had if line.startswith(RECORD) else sets
        key, equals, value = (part.strip() for part in line.removeprefix(RECORD).partition("="))
        if equals and not key.startswith("#"):
            into[key.lower()] = (*into.get(key.lower(), ()), value)
    recorded = any(line.startswith(RECORD.rstrip()) for line in text.splitlines())
    return Fragment(sets, had if recorded else None)


def own_settings(
    config: str,
    source: str,
    hooks: Mapping[str, Sequence[str]],
    fragments: Sequence[Fragment] = (),
    lines: Iterable[ConfigLine] | None = None,
) -> OwnSettings:
    """Return the site's own settings.

    * config: the output of `scontrol show config`; source: where that came from, in words.
    * hooks: by key what names the hooks of drainwise on a cluster that has none of its own.
    * fragments: the rendered lines that are installed, and those that were rendered last.
    * lines: slurm.conf without these lines; None where it cannot be read.
    """
    live = live_values(config)
    several = re.search(r"^Prolog[ \t]*=", config, re.MULTILINE) is None
    one_value = frozenset({"TaskProlog"} if several else HOOK_KEYS)
    known = (*fragments, Fragment(_named(live, hooks, bool(fragments)), None))
    written = None if lines is None else _last(lines, one_value)
    values: dict[str, tuple[str, ...]] = {}
    unknown, retired = [], []
    for key in (*MANAGED, *_ASIDE):
        name = key.lower()
        found = live.get(name, ())
        ours = [one for one in known if _is_live(key, one, found, hooks)]
        if ours:
            recorded = next((one.had.get(name, ()) for one in ours if one.had is not None), None)
            if key in HOOK_KEYS and key not in one_value:
                found = _without(found, set(ours[0].sets[name]) & set(hooks[key]))
            elif written is not None:
                found = _as_recorded(key, written.get(name, ()), recorded)
                retired += [f"{key}={value}" for value in recorded or () if key in HOOK_KEYS and value not in found]
            elif recorded is not None:
                found = recorded
            else:
                unknown.append(key)
                found = ()
        nothing = {*hooks.get(key, ())[:1], *_DEFAULTS.get(name, ())}
        values[name] = tuple(value for value in found if value not in nothing and value.lower() not in nothing)
    version = (live.get("slurm_version") or ("",))[-1]
    return OwnSettings(
        source, version, one_value, values, frozenset(), tuple(unknown), tuple(retired), _scratch_dir(live)
    )


def _scratch_dir(live: Values) -> str:
    """Return the live TmpFS: of one with a name of the node in it (`/scratch/%n`) the directory above."""
    plain, pattern, _ = live.get("tmpfs", (DEFAULT_SCRATCH_DIR,))[-1].partition("%")
    try:
        return path().parse(plain.rpartition("/")[0] if pattern else plain.rstrip("/"))
    except ValueError:
        return DEFAULT_SCRATCH_DIR


def _named(live: Values, hooks: Mapping[str, Sequence[str]], seen: bool) -> Values:
    """Return what the lines of drainwise must have set where none are at hand (`seen`: some are): what names its hooks.

    A whole directory may as well be the site's own, unless the task prolog is ours.
    """
    active = not seen and bool(set(hooks.get("TaskProlog", ())) & set(live.get("taskprolog", ())))
    found = {}
    for key, names in hooks.items():
        surely = names if active else names[:1]
        found[key.lower()] = tuple(value for value in live.get(key.lower(), ()) if value in surely)
    return found


def _is_live(key: str, fragment: Fragment, live: Sequence[str], hooks: Mapping[str, Sequence[str]]) -> bool:
    """Decide whether these lines are live; a program of the site's own that a person put there is not ours."""
    ours = fragment.sets.get(key.lower(), ())
    if not ours or not live:
        return False
    if key in LISTS:
        return set(words_of(ours[-1].lower())) <= set(words_of(live[-1].lower()))
    if key in TIMEOUTS:
        return live[-1].split()[0] == ours[-1]
    return bool(set(ours) & set(live) & set(hooks.get(key, ours)))


def _without(values: tuple[str, ...], ours: Iterable[str]) -> tuple[str, ...]:
    """Return the values but for one of each of ours: the site may have the same directory."""
    left = list(values)
    for value in ours:
        if value in left:
            left.reverse()
            left.remove(value)
            left.reverse()
    return tuple(left)


def _last(lines: Iterable[ConfigLine], one_value: frozenset[str]) -> Values:
    found: dict[str, tuple[str, ...]] = {}
    single = {key.lower() for key in (*MANAGED, *_ASIDE) if key not in HOOK_KEYS or key in one_value}
    for line in lines:
        before = () if line.key in single else found.get(line.key, ())
        found[line.key] = (*before, line.value) if line.value not in UNSET_VALUES else before
    return found


def _as_recorded(key: str, written: tuple[str, ...], recorded: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return what is written, as it was live before: a list's words in the same order."""
    if recorded and written and key in LISTS:
        same = set(words_of(recorded[-1].lower())) == set(words_of(written[-1].lower()))
        return recorded if same else written
    return written
