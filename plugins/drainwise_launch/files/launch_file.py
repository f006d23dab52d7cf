"""A launch file: jobs with what they need and come after, as TOML, JSON, or JSON lines.

backend = "local"            # of jobs that name none
[backends.local]             # what the backend's own page says
[rules.simulate]             # what its jobs have in common; the times of a rule are averaged
[[jobs]]                     # name, rule, command, after, resources, expected, cwd, environment, backend, wall_limit
[requests]                   # name = [targets]: several at once; without it everything is wanted
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from drainwise.common.typed_table import (
    Kind,
    anything,
    from_json,
    from_toml,
    in_file,
    optional,
    read_table,
    read_text,
    read_value,
    refuse_unknown,
    shown,
    table_of,
)
from drainwise.facts.errors import ConfigurationError, UsageError
from drainwise_launch.choice.engine import Engine
from drainwise_launch.choice.work import Work
from drainwise_launch.files.job_reader import LOCAL, SHARED, TABLE, TEXT, JobReader, names

LONGEST_FILE = 1 << 30

_TABLES = optional(table_of(TABLE))
_TOP: Mapping[str, Kind[Any]] = {
    "backend": TEXT,
    "backends": _TABLES,
    "rules": _TABLES,
    "jobs": anything(),
    "requests": optional(table_of(names(1, "a list of names of jobs"))),
}


@dataclass(frozen=True)
class LaunchFile:
    """`requests`: targets by name, empty where everything is wanted. backends: tables by name, not checked yet."""

    works: list[Work]
    requests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    backends: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    def request(self, engine: Engine, targets: Collection[str]) -> None:
        """Request these targets, else the file's own requests, else everything. Raises UsageError, as the engine."""
        if targets:
            engine.request(targets=targets)
            return
        for name, wanted in self.requests.items():
            engine.request(name, wanted)
        if not self.requests:
            engine.request()


def load_launch(path: str, backend: str | None = None) -> LaunchFile:
    """Return the file; `backend` replaces that of all jobs. Raises UsageError, ConfigurationError (file and key)."""
    if path.endswith(".jsonl"):
        return LaunchFile(list(JobReader(path, {}, LOCAL, backend, any_rule=True).jobs(_lines(path))))
    text = read_text(path, LONGEST_FILE, "a launch file that can be read", "a launch file, or JSON lines (.jsonl)")
    found = from_json(path, text) if path.endswith(".json") else from_toml(path, text)
    del text
    if isinstance(found, list):
        found = {"jobs": found}
    top = read_table(found, _TOP, in_file(path))
    rules = top.get("rules") or {}
    for name, rule in rules.items():
        refuse_unknown(rule, SHARED, in_file(path, f"rules.{name}"))
    reader = JobReader(path, rules, top.get("backend", LOCAL), backend, any_rule="rules" not in top)
    works = list(reader.jobs(_entries(path, top.get("jobs"))))
    if not works:
        raise ConfigurationError(path, "", "jobs", "nothing", "a list of jobs")
    return LaunchFile(works, top.get("requests") or {}, top.get("backends") or {})


def _lines(path: str) -> Iterator[object]:
    """Yield the lines of a file as they are read, one job each."""
    try:
        with open(path, encoding="utf-8-sig", opener=_at_once) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise ConfigurationError(path, "", "", "not a regular file", "JSON lines that can be read")
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield from_json(f"{path}, line {number}", line)
    except (OSError, UnicodeDecodeError) as fault:
        raise ConfigurationError(path, "", "", str(fault)[:120], "JSON lines that can be read") from None


def _at_once(path: str, flags: int) -> int:
    """Open without blocking: a FIFO in the file's place does not hold the command for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


def _entries(path: str, jobs: object) -> Iterator[object]:
    """Yield the jobs of a list, or of a table by name; free each as it is taken."""
    if isinstance(jobs, dict):
        for name, job in jobs.items():
            table = read_value(f"jobs.{name}", job, TABLE, in_file(path))
            yield {**table, "name": name}
        return
    if jobs is None:
        return
    if not isinstance(jobs, list):
        raise ConfigurationError(path, "", "jobs", shown(jobs), "a list of jobs")
    jobs.reverse()
    while jobs:
        yield jobs.pop()


def options_by_backend(texts: Iterable[str], backends: Collection[str], named: Collection[str]) -> dict[str, str]:
    """Return the options of each backend by name, joined by blanks.

    texts: `NAME:OPTIONS`, or OPTIONS alone: those of the only one of `named`, the backends that jobs name beside this
    machine. Where they name none, options alone are ignored, as open-lmake does. backends: all there are.
    Raises UsageError where options alone could be meant for several.
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        name, colon, options = text.partition(":")
        if colon and name in backends:
            found.setdefault(name, []).append(options)
            continue
        if len(named) > 1:
            several = " and ".join(sorted(named))
            raise UsageError(
                f"--backend-options {text[:60]!r}: jobs go to {several}: say for which it is, as {min(named)}:OPTIONS"
            )
        for only in named:
            found.setdefault(only, []).append(text)
    return {name: " ".join(options) for name, options in found.items()}
