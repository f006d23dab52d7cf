"""Check features directories against every rule of the specification: a verdict per key, naming rule and value.

First each key by itself: must it be there, is it written as the specification wants, is its value sound. Then the keys
together, which needs what they compare.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from drainwise.facts.errors import FeatureError
from drainwise.features.facts import BY_NAME, DECIMAL, INTEGER, JOB, KEYS, MACHINE, PATH, Feature, converted, keys_of
from drainwise.features.read import DirectoryReader, FeatureReader, parse_decimal, parse_integer, parse_text

OK, ABSENT, INFO, WARNING, ERROR = "ok", "absent", "info", "warning", "error"
LEVELS = (OK, ABSENT, INFO, WARNING, ERROR)
"""From best to worst; `absent` is a key that may be left out and is."""
PROBE_ERRORS = frozenset({"total_cpu", "allocated_cpu", "jobstart_secs", "job_id", "wall_limit_secs", "cpu_limit_secs"})
PROBE_WARNINGS = frozenset({"hs06", "hs06_job", "max_rss_bytes", "max_swap_bytes", "scratch_limit_bytes"})
"""The keys that the WLCG SAM probe calls an error or a warning when missing."""
MOST_UNKNOWN = 20
"""Files that are no keys and are named one by one; the rest is counted."""
PANDA_LEAVES_SECS = 600
_SHARE_TOLERANCE = 0.01
_LONGEST_VALUE = 60


@dataclass(frozen=True)
class KeyVerdict:
    """One rule applied to one key; `key` is empty when the verdict is about the directory as a whole."""

    directory: str
    key: str
    level: str
    rule: str
    detail: str = ""
    value: str | None = None


def shown_value(content: bytes) -> str:
    """Print a file's content in one line: ASCII, no control characters, cut to what a terminal line can hold."""
    return ascii(content[:_LONGEST_VALUE].decode("latin-1"))[1:-1][:_LONGEST_VALUE]


def worst(verdicts: list[KeyVerdict]) -> str:
    """Return the worst level among the verdicts; `ok` when there are none."""
    return max((verdict.level for verdict in verdicts), key=LEVELS.index, default=OK)


def check(machine: FeatureReader | None, job: FeatureReader | None, now: int) -> list[KeyVerdict]:
    """Check a machine's directory, a job's, or both together.

    Parameters: readers from `open_features`; `now` in UNIX seconds.
    Returns: the verdicts in the table's order, those about a directory as a whole first; a key that breaks no rule has
    one verdict, `ok`. Rules between keys need what they compare: without the job's directory none of them is judged.
    """
    found = _Check(now)
    for directory, reader in ((MACHINE, machine), (JOB, job)):
        if reader is not None:
            found.check_directory(directory, reader)
    by_itself, found.verdicts = found.verdicts, []
    found.check_together()
    spoken = {verdict.key for verdict in found.verdicts if verdict.level != INFO}
    verdicts = [one for one in by_itself if one.level != OK or one.key not in spoken] + found.verdicts
    order = {"": -1, **{key.name: place for place, key in enumerate(KEYS)}}
    return sorted(verdicts, key=lambda verdict: (verdict.directory != MACHINE, order.get(verdict.key, 999)))


class _Check:
    """The verdicts so far, and the values found: sound ones only, in the types of the table."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.verdicts: list[KeyVerdict] = []
        self.directories: set[str] = set()
        self.present: set[str] = set()
        self.numbers: dict[str, float] = {}
        self.integers: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        self.written_at: dict[str, float] = {}

    def say(self, key: str, level: str, rule: str, detail: str = "", value: str | None = None) -> None:
        """Add a verdict on a key."""
        self.verdicts.append(KeyVerdict(BY_NAME[key].directory, key, level, rule, detail, value))

    def check_directory(self, directory: str, reader: FeatureReader) -> None:
        """Check a directory as a whole, and each of its keys by itself."""
        location = shown_value(reader.location.encode("utf-8", "replace"))

        def about(level: str, rule: str, detail: str, key: str = "", value: str | None = location) -> None:
            self.verdicts.append(KeyVerdict(directory, key, level, rule, detail, value))

        if reader.location != "/" and reader.location.endswith("/"):
            about(WARNING, "no-trailing-slash", "the variable's value should not end with a slash")
        if isinstance(reader, DirectoryReader):
            about(INFO, "dirac", "some of DIRAC 8's readers work over http(s) only")
        else:
            about(INFO, "panda-local", "the PanDA pilot reads local directories only")
        problem = reader.problem()
        if problem is not None:
            about(ERROR, "reachable", problem, value=reader.location)
            return
        self.directories.add(directory)
        if isinstance(reader, DirectoryReader):  # what only a file system tells
            mode = stat.S_IMODE(os.stat(reader.location).st_mode)
            if mode & 0o005 != 0o005:
                detail = f"mode {mode:04o}: the provider's services cannot read it"
                about(WARNING, "world-readable", detail, value=reader.location)
            try:
                names = reader.names()
            except FeatureError as error:
                about(ERROR, "listable", str(error), value=reader.location)
                names = []
            unknown = [name for name in names if name not in BY_NAME or BY_NAME[name].directory != directory]
            for name in unknown[:MOST_UNKNOWN]:
                printable = shown_value(name.encode("utf-8", "surrogateescape"))
                if name in BY_NAME:
                    detail = f"a key of the {BY_NAME[name].directory} directory; no client looks for it here"
                    about(WARNING, "right-directory", detail, printable, None)
                else:
                    about(INFO, "unknown-key", "not a key of the specification", printable, None)
            if len(unknown) > MOST_UNKNOWN:
                about(INFO, "unknown-key", f"{len(unknown) - MOST_UNKNOWN} more files that are no keys", value=None)
        for key in keys_of(directory):
            self._check_key(key, reader)

    def _check_key(self, key: Feature, reader: FeatureReader) -> None:
        """Read one key, note its value, and judge it by itself; at least one verdict."""
        name, mode = key.name, 0o644
        try:
            if isinstance(reader, DirectoryReader):
                found = reader.fetch_with_status(name)
                content = None if found is None else found[0]
                if found is not None:
                    mode, self.written_at[name] = found[1].st_mode, found[1].st_mtime
            else:
                content = reader.fetch(name)
        except FeatureError as error:
            self.present.add(name)
            self.say(name, ERROR, "readable", str(error))
            return
        if content is not None:
            self.present.add(name)
            self._check_content(key, content, mode)
        elif name in PROBE_ERRORS:
            detail = "without a limit, state the largest value the site will allow"
            self.say(name, ERROR, "sam-required", f"the WLCG SAM probe calls this an error; {detail}")
        elif name in PROBE_WARNINGS:
            self.say(name, WARNING, "sam-wanted", "the WLCG SAM probe warns when it is missing")
        else:
            self.say(name, ABSENT, "optional")

    def _check_content(self, key: Feature, content: bytes, mode: int) -> None:
        name, value, shown, before = key.name, content.strip(), shown_value(content), len(self.verdicts)
        if value and content != value + b"\n":
            if content.strip(b"\n") == value and not content.startswith(b"\n"):
                detail = f"expected exactly one newline after the value, found {len(content) - len(value)}"
                self.say(name, WARNING, "one-newline", detail, shown)
            else:
                detail = "blanks around the value; some clients compare the line as it is"
                self.say(name, WARNING, "no-blanks", detail, shown)
        if mode & 0o004 == 0:
            detail = "the draft wants every file readable by the user and by the provider's services"
            self.say(name, WARNING, "world-readable", f"mode {mode & 0o7777:04o}: {detail}", shown)
        try:
            self._note(key, content)
        except FeatureError as error:
            detail = str(error).partition(f"{name}: ")[2] or str(error)
            if name.startswith("shutdowntime"):
                detail += "; glideinWMS never drains on it"
            self.say(name, ERROR, "format" if value else "not-empty", detail, shown)
        if name in self.numbers:
            self._check_range(key, self.numbers[name])
        if len(self.verdicts) == before:
            self.say(name, OK, "present", value=shown_value(value))

    def _note(self, key: Feature, content: bytes) -> None:
        """Note the value of a key. Raises FeatureError for none."""
        if key.kind == INTEGER:
            self.integers[key.name] = self.numbers[key.name] = parse_integer(content, key.name)
        elif key.kind == DECIMAL:
            self.numbers[key.name] = parse_decimal(content, key.name)
        elif key.kind == PATH and not parse_text(content, key.name).startswith("/"):
            raise FeatureError(f"{key.name}: expected an absolute path")
        self.texts[key.name] = parse_text(content, key.name)

    def _check_range(self, key: Feature, value: float) -> None:
        name, text = key.name, self.texts[key.name]
        if value < key.minimum:
            detail = f"expected {f'{key.minimum:g} {key.unit} or more' if key.kind == INTEGER else 'more than 0'}"
            more = "; the PanDA pilot crashes on 0" if name == "total_cpu" else ""
            self.say(name, ERROR, "range", detail + more, text)
        elif value == 0 and "limit" in name:
            self.say(name, WARNING, "zero-limit", "a limit of 0 stops a job, or reads as none", text)
        if name == "shutdowntime":
            detail = "JAliEn fails on any shutdowntime file, so it must go when the plan is dropped"
            self.say(name, INFO, "jalien", detail, text)
        if name.startswith("shutdowntime") and value <= self.now:
            detail = f"{self.now - value:.0f} s ago; the file is removed when its time has come"
            self.say(name, ERROR, "future", detail, text)

    def check_together(self) -> None:
        """Judge the keys together; only what breaks a rule, or is worth knowing, has a verdict here."""
        self._check_cores_and_scores()
        for key in KEYS:
            if key.twin is not None and key.name in self.integers:
                self._check_twin(key, key.twin, self.integers[key.name])
        self._check_times()

    def _judge(self, key: str, level: str, rule: str, detail: str) -> None:
        self.say(key, level, rule, detail, self.texts.get(key))

    def _check_cores_and_scores(self) -> None:
        numbers = self.numbers
        total, allocated = self.integers.get("total_cpu"), self.integers.get("allocated_cpu")
        physical, logical = self.integers.get("phys_cores"), self.integers.get("log_cores")
        if total is not None and allocated is not None and allocated > total:
            self._judge("allocated_cpu", ERROR, "allocated<=total", f"more than total_cpu, which is {total}")
        if physical is not None and logical and logical < physical:
            detail = f"fewer than phys_cores, which is {physical}; 0 says that hyper-threading is off"
            self._judge("log_cores", WARNING, "logical>=physical", detail)
        host, measured, share = numbers.get("hs06"), numbers.get("hs23"), numbers.get("hs06_job")
        if measured is not None and host is None:
            detail = "HEPScore23 is written to hs06 as well: clients read that"
            self._judge("hs23", WARNING, "hs23=hs06", detail)
        elif measured is not None and measured != host:
            self._judge("hs23", INFO, "hs23=hs06", f"hs06 holds another value, {self.texts['hs06']}")
        if host is None or share is None:
            return
        if share > host:
            detail = f"more than the whole host's hs06, which is {self.texts['hs06']}"
            self._judge("hs06_job", ERROR, "share<=host", detail)
        if total and allocated and abs(share - host * allocated / total) > _SHARE_TOLERANCE * host:
            detail = f"{host * allocated / total:.6g} by cores; the provider may compute it otherwise"
            self._judge("hs06_job", INFO, "share-by-cores", detail)

    def _check_twin(self, key: Feature, twin: str, found: int) -> None:
        """Compare a draft key with its 2016 twin; one unit of difference is rounding, if it is downwards."""
        value = self.integers.get(twin)
        if value is None:
            self._judge(key.name, INFO, "twin-missing", f"clients of today read {twin}, not this")
            return
        expected = converted(key, value, self.texts.get("cpufactor_lrms") if key.normalised else None)
        if expected is None:
            self._judge(key.name, WARNING, "cpufactor", "without a sound cpufactor_lrms nobody can use it")
        elif found == expected + 1 and (key.normalised or key.divisor != 1):
            detail = f"rounded up from {twin} = {value}: a limit must not be promised too high"
            self._judge(key.name, WARNING, "twin-rounding", detail)
        elif found != expected:
            detail = f"{twin} = {value} makes it {expected}: two answers to one question"
            self._judge(key.name, ERROR, "twins-agree", detail)

    def _check_times(self) -> None:
        integers, now = self.integers, self.now
        start, limit = integers.get("jobstart_secs"), integers.get("wall_limit_secs")
        if start is not None and start > now:
            detail = f"{start - now} s in the future: the job would have run a negative time"
            self._judge("jobstart_secs", ERROR, "start-past", detail)
        elif start is not None and limit is not None and now - start > limit:
            detail = f"the job has run {now - start} s, longer than its wall limit: a stale directory?"
            self._judge("wall_limit_secs", WARNING, "within-limit", detail)
        pair = {"shutdowntime", "shutdowntime_job"}
        missing = pair - self.present
        if {MACHINE, JOB} <= self.directories and len(missing) == 1:
            [key], [other] = missing, pair & self.present
            more = ", and the PanDA pilot acts on the machine's file only" if key == "shutdowntime" else ""
            self._judge(key, ERROR, "both-or-neither", f"{other} is there: DIRAC raises unless both are{more}")
        machine, job = integers.get("shutdowntime"), integers.get("shutdowntime_job")
        if machine is not None and job is not None and machine > job:
            detail = f"later than shutdowntime_job, {job}: the PanDA pilot acts on this one and would stay too long"
            self._judge("shutdowntime", WARNING, "mirrors-job", detail)
        if machine is not None and 0 < machine - now < PANDA_LEAVES_SECS:
            detail = f"{machine - now} s ahead: the PanDA pilot stops itself {PANDA_LEAVES_SECS} s before"
            self._judge("shutdowntime", INFO, "panda-leaves", detail)
        for key, grace_key in (("shutdowntime", "grace_secs"), ("shutdowntime_job", "grace_secs_job")):
            planned, grace, written = integers.get(key), integers.get(grace_key), self.written_at.get(key)
            if planned is not None and grace is not None and written is not None and planned - written < grace - 1:
                detail = f"set {planned - written:.0f} s ahead, less than {grace_key} = {grace}"
                self._judge(key, WARNING, "notice", detail)
