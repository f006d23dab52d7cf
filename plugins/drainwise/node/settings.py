"""The site's settings for its nodes: the flat file of `key = value` lines that hooks and cron read.

`drainwise config` renders it from the site file, checked there; here it is read with what costs a hook least.
"""

from __future__ import annotations

import posix

from drainwise.common.local_file import Held
from drainwise.facts.errors import ConfigurationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.facts.client_rules import ClientRules

_WHOLE = (
    *("wall_limit_secs", "cpu_limit_secs_per_core", "max_swap_bytes", "scratch_limit_bytes", "jobslots", "grace_secs"),
    *("grace_secs_job", "heartbeat_limit_secs", "limits_wait_secs", "agent_period_secs", "command_timeout_secs"),
    *("container_bind", "observe", "partial_return", "contradictory_after_secs"),
)
_DECIMAL = ("hs06", "hs23", "cpufactor_lrms")
_PATH = ("shutdown_command", "shutdown_file", "runtime_dir", "bin_dir", "scratch_dir")
_URL = ("features_url",)
_TEXT = ("payload_patterns", "checkpoint_files")

_CLIENT = "client_"
"""Begins a key with a row of `[clients]`, by its client; `client_default`: what a pilot is that none fits."""

OF_A_KIND = frozenset(
    (
        *("hs06", "hs23", "cpufactor_lrms", "wall_limit_secs", "cpu_limit_secs_per_core"),
        *("max_swap_bytes", "scratch_limit_bytes", "jobslots", "shutdown_command"),
    )
)
"""The keys that a kind of nodes may set."""
_KIND = "kind"
"""Begins a kind of nodes, up to the next one: its conditions (see `node_kind`) and its values."""
_CONDITIONS = frozenset({"host", "cpu_model", "feature"})

_SIZE_LIMIT = 1 << 20  # bytes; the file has one page, and some lines more for each kind of nodes

DEFAULT_HEARTBEAT_LIMIT = 4200
DEFAULT_CONTRADICTORY_AFTER = 600
DEFAULT_SCRATCH_DIR = "/tmp"  # noqa: S108 - Slurm's own default of TmpFS; only its size is looked at


class _WholeOr:
    """A whole number by its key, or what it is where the site does not state it."""

    def __init__(self, key: str, default: int) -> None:
        self._key, self._default = key, default

    def __get__(self, settings: NodeSettings, _: object) -> int:
        value = settings.whole(self._key)
        return self._default if value is None else value


class NodeSettings:
    """The settings by key; a key that the site left out is None.

    kinds: the kinds of nodes, each with its name and with its conditions and values by key, in the site's order.
    """

    __slots__ = ("_chosen", "_clients", "_values", "kind", "kinds")

    heartbeat_limit = _WholeOr("heartbeat_limit_secs", DEFAULT_HEARTBEAT_LIMIT)
    """Seconds after which a pilot's report is stale."""
    contradictory_after = _WholeOr("contradictory_after_secs", DEFAULT_CONTRADICTORY_AFTER)
    """Seconds for which a report must be seen to be wrong."""
    # On Slurm's nodes alone, in seconds: the time between two rounds of the agent, what a command of Slurm's may take.
    agent_period = _WholeOr("agent_period_secs", 30)
    command_timeout = _WholeOr("command_timeout_secs", 5)

    def __init__(
        self,
        values: dict[str, str] | None = None,
        kinds: tuple[tuple[str, dict[str, str]], ...] = (),
        kind: str = "",
    ) -> None:
        self._values, self.kinds, self.kind = values or {}, kinds, kind
        self._chosen: dict[tuple[str, tuple[str, ...]], NodeSettings] = {}
        self._clients: ClientRules | None = None

    def of_node(self, name: str, features: tuple[str, ...] = ()) -> NodeSettings:
        """Return the settings of one node: the values of the first kind whose conditions hold before all others.

        name: of the node in the batch system. features: what the batch system says of it. `kind` names the kind then.
        """
        if not self.kinds:
            return self
        found = self._chosen.get((name, features))
        if found is None:
            from drainwise.node.node_kind import kind_of  # noqa: PLC0415 - a site of one kind has no use for it

            kind = kind_of(self.kinds, (name,), features)
            found = NodeSettings(self._values)
            if kind is not None:
                found = NodeSettings({**self._values, **kind[1]}, kind=kind[0])
            self._chosen[name, features] = found
        return found

    def features_asked(self) -> tuple[str, ...]:
        """Return the features that kinds ask for, as the site writes them, each once."""
        from drainwise.node.node_kind import features_asked  # noqa: PLC0415 - a site of one kind has no use for it

        return tuple(dict.fromkeys(word for _, lines in self.kinds for word in features_asked(lines)))

    def whole(self, key: str) -> int | None:
        """Return a whole number (seconds, bytes or a count)."""
        value = self._values.get(key)
        return None if value is None else int(value)

    def decimal(self, key: str) -> float | None:
        """Return a rating or factor; whole where the site wrote it so."""
        value = self._values.get(key)
        if value is None:
            return None
        return float(value) if "." in value else int(value)

    def text(self, key: str) -> str | None:
        """Return a path or a URL, as written."""
        return self._values.get(key)

    @property
    def clients(self) -> ClientRules | None:
        """Return the rules that say which kind of client a job is; None where the site says nothing of them."""
        if self._clients is None and any(key.startswith(_CLIENT) for key in self._values):
            from drainwise.facts.client_rules import ClientRules  # noqa: PLC0415 - only where the site has any

            rows = {key[len(_CLIENT) :]: row for key, row in self._values.items() if key.startswith(_CLIENT)}
            self._clients = ClientRules(rows, rows.get("default", "paper"))
        return self._clients

    def job_slots(self, total: int | None) -> int | None:
        """Return the host's job slots: as the site says, else its `total` of CPUs for jobs; None for neither."""
        return self.whole("jobslots") or total

    @property
    def is_returning_parts(self) -> bool:
        """Return whether pilots of this node may return some of their cores."""
        return self.whole("partial_return") == 1

    @property
    def is_observing(self) -> bool:
        """Return whether the node looks at the processes of its jobs."""
        return self.whole("observe") != 0

    @property
    def shutdown_file(self) -> str:
        """Return the file of the machine's planned shutdown."""
        from drainwise.features import SHUTDOWN_FILE  # noqa: PLC0415 - a hook that makes no features has no use for it

        return self.text("shutdown_file") or SHUTDOWN_FILE

    @property
    def features_url(self) -> str | None:
        """Return the URL under which this node's jobs find their features; None where they have paths."""
        url = self.text("features_url")
        return None if url is None else url.replace("%h", posix.uname().nodename)

    # What only Slurm's nodes have:

    @property
    def runtime_dir(self) -> str:
        """Return the directory of the jobs' trees, without a trailing slash."""
        return (self.text("runtime_dir") or "").rstrip("/") or "/run/drainwise"

    @property
    def scratch_dir(self) -> str:
        """Return the directory of the jobs' scratch space."""
        return self.text("scratch_dir") or DEFAULT_SCRATCH_DIR

    @property
    def bin_dir(self) -> str:
        """Return the directory of the batch system's commands, without a trailing slash."""
        return (self.text("bin_dir") or "").rstrip("/") or "/usr/bin"


def parse(text: str, file: str) -> NodeSettings:
    """Parse the settings in `text`; raises ConfigurationError naming `file` and the key that is wrong."""
    values: dict[str, str] = {}
    kinds: list[tuple[str, dict[str, str]]] = []
    into = values
    for line in text.splitlines():
        key, equals, value = (part.strip() for part in line.partition("="))
        if not key or key.startswith("#"):
            continue
        if key == _KIND and equals and value:
            into = {}
            kinds.append((value, into))
            continue
        expected = _fault(key, value, bool(kinds)) if equals else "key = value"
        if expected:
            raise ConfigurationError(file, "node", key[:60], value[:60], expected)
        into[key] = value
    return NodeSettings(values, tuple(kinds))


def _fault(key: str, value: str, in_kind: bool) -> str | None:
    if in_kind and key in _CONDITIONS:
        return None if value.isascii() and value.isprintable() and value else "patterns"
    if in_kind and key not in OF_A_KIND:
        return "a key that a kind of nodes may set"
    if key.startswith(_CLIENT):
        return _client_fault(key[len(_CLIENT) :], value)
    digits = value.isascii() and value.isdigit() and len(value) <= 18
    if key in _WHOLE:
        return None if digits else "a whole number"
    if key in _DECIMAL:
        whole, _, part = value.partition(".")
        plain = value.isascii() and whole.isdigit() and (part.isdigit() or "." not in value)
        return None if plain else "a decimal number"
    if key in _PATH:
        return None if value.startswith("/") and value.isascii() and value.isprintable() else "an absolute path"
    if key in _TEXT:
        return None if value.isascii() and value.isprintable() and value else "printable text"
    if key in _URL:
        plain = value.isascii() and value.isprintable() and not set(" \"'\\$`") & set(value)
        return None if plain and value.startswith(("http://", "https://")) else "a URL with http:// or https://"
    return "a key that this version knows; render the file again with `drainwise config`"


def _client_fault(name: str, value: str) -> str | None:
    from drainwise.facts.client_rules import alternatives  # noqa: PLC0415 - as above
    from drainwise.facts.clients import PROFILES  # noqa: PLC0415

    if name == "default":
        return None if value in PROFILES else "the name of a client"
    if name not in PROFILES:
        return "a client that this version knows; render the file again with `drainwise config`"
    try:
        alternatives(value)
    except ValueError:
        return "conditions on a job"
    return None


def load(path: str) -> NodeSettings:
    """Read the file; raises ConfigurationError, or OSError when it cannot be read."""
    descriptor = posix.open(path, posix.O_RDONLY | posix.O_NONBLOCK | posix.O_CLOEXEC)
    with Held(descriptor):
        content = posix.read(descriptor, _SIZE_LIMIT)
    return parse(content.decode("ascii", "replace"), path)


_MISSING = (0, 0, 0)


class SettingsFile:
    """The file of the node's settings. `settings`: as they were read last; None at the beginning: not read yet."""

    def __init__(self, path: str, settings: NodeSettings | None = None) -> None:
        self._path, self._seen = path, _MISSING if settings is None else _signature(path)
        self.settings, self.fault = settings or NodeSettings(), ""
        self.follow()

    def follow(self) -> NodeSettings:
        """Return the settings, read again where the file has changed; the earlier ones while it is missing or wrong.

        `fault` says then what is wrong, else "".
        """
        found = _signature(self._path)
        if found != self._seen:
            self._seen, self.fault = found, ""
            try:
                self.settings = load(self._path)
            except (ConfigurationError, OSError) as error:
                self.fault = f"the earlier settings stay: {error}"
        return self.settings


def _signature(path: str) -> tuple[int, int, int]:
    """Return what differs between two versions of a file; _MISSING where it cannot be looked at."""
    try:
        status = posix.stat(path)
    except OSError:
        return _MISSING
    return status.st_ino, status.st_mtime_ns, status.st_size
