"""Which tests on daemons one submission runs: plays on one release in turn, of some groups of tests one member in turn
(the same play on HTCondor or on Slurm, say), and tests of what brings the daemons up where that has changed.
`--all-releases` runs everything.

The turn is the number of commits, so that the next submission looks at another release, and a rerun of the same commit
at the same one.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LAST_RUN = ROOT / "tests" / "daemons" / "last_run.json"
"""What the last runs noted: see `last_run`."""
RELEASES = ("release", "slurm_release", "system")
"""Fixtures whose parameter is the release of something."""
_OUTCOMES = ("passed", "failed", "error")
_SHORT = 20  # seconds; a group of tests that takes no longer may begin at any time

LOOKS_AT = {
    "tests/daemons/test_condor_pool.py": ("scripts/real_daemons", "scripts/condor_pool"),
    "tests/daemons/test_slurm_cluster.py": ("scripts/real_daemons", "scripts/slurm_cluster"),
    "tests/daemons/test_whole_machine.py": ("scripts/real_daemons", "scripts/whole_machine"),
    "tests/monitoring/test_rules.py": ("monitoring", "scripts/clean_machine", "tests/monitoring"),
    "tests/test_faults.py": (
        "pyproject.toml",
        "scripts/faults",
        "scripts/fault_places.py",
        "scripts/fault_plugin.py",
        "scripts/fault_tests.py",
    ),
    "tests/test_reached_asserts.py": ("pyproject.toml", "tests/support/reached_asserts.py"),
    "tests/test_time_limits.py": ("pyproject.toml", "tests/support/time_limits.py"),
    "tests/test_suite.py": ("pyproject.toml", "scripts/test", "tests/conftest.py", "tests/support/failure_reasons.py"),
}
"""Tests that look at nothing but these files: a submission runs them where one of the files has changed since."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that runs everything."""
    parser.addoption("--all-releases", action="store_true", help="run every play on every release, and all in turn")


def commits() -> int:
    """The number of commits up to this one; 0 where there is no history."""
    command = ["git", "-C", str(ROOT), "rev-list", "--count", "HEAD"]
    counted = subprocess.run(command, capture_output=True, text=True, check=False)
    return int(counted.stdout) if counted.returncode == 0 else 0


def fingerprint(paths: Iterable[str], root: Path = ROOT) -> str:
    """A checksum of the files at or below `paths`, by name and content."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        for file in sorted([root / path] if (root / path).is_file() else (root / path).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def last_run() -> dict[str, dict[str, Any]]:
    """What the last runs noted.

    `passed`: for each file of LOOKS_AT that passed, the checksum of what it looks at. `seconds`: how long each group of
    tests took that one worker does, where that is long; by a run of everything, or longer in a submission's.
    """
    noted: dict[str, dict[str, Any]] = json.loads(LAST_RUN.read_text()) if LAST_RUN.exists() else {}
    return {"passed": noted.get("passed", {}), "seconds": noted.get("seconds", {})}


def unchanged() -> set[str]:
    """The files of LOOKS_AT that passed with what they look at, as it is now."""
    known = last_run()["passed"]
    return {file for file, paths in LOOKS_AT.items() if known.get(file) == fingerprint([*paths, file])}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    """After the whole part with daemons, if it came to its end: note what the next ones want to know."""
    option, is_whole = config.option, exitstatus in {0, 1} and config.args == config.getini("testpaths")
    if not is_whole or option.markexpr != "daemons" or option.keyword or getattr(option, "lf", False):
        return
    reports = {kind: terminalreporter.getreports(kind) for kind in ("", *_OUTCOMES)}
    files = {kind: {one.nodeid.partition("::")[0] for one in reports[kind]} for kind in _OUTCOMES}
    seconds: dict[str, float] = {}
    for one in [one for kind in reports.values() for one in kind]:
        _, grouped, group = one.nodeid.rpartition("@")
        if grouped:
            seconds[group] = seconds.get(group, 0.0) + one.duration
    noted = last_run()
    for file in files["passed"] & set(LOOKS_AT) - files["failed"] - files["error"]:
        noted["passed"][file] = fingerprint([*LOOKS_AT[file], file])
    known = {} if config.getoption("--all-releases") else noted["seconds"]  # else a group may have run in part
    noted["seconds"].update(
        {one: max(round(took), known.get(one, 0)) for one, took in seconds.items() if took > _SHORT}
    )
    LAST_RUN.write_text(json.dumps(noted, indent=1, sort_keys=True) + "\n")


def has_its_turn(item: pytest.Item, turn: int, groups: Mapping[str, Sequence[str]], settled: Collection[str]) -> bool:
    """Whether a submission whose turn this is runs the test.

    groups: the members of each group of `in_turn`. settled: see `unchanged`.
    """
    file = item.nodeid.partition("::")[0]
    if file in settled or item.get_closest_marker("all_releases") is not None:
        return False
    for mark in item.iter_markers("in_turn"):
        group, member = mark.args
        if _of_turn(groups[group], turn, group) != member:
            return False
    if item.get_closest_marker("play") is None:
        return True
    return all(_of_turn(releases, turn // 2, file) == release for release, releases in _releases(item))


def choose(items: Sequence[pytest.Item], turn: int) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Divide the tests into those that have their turn and the others."""
    members: dict[str, set[str]] = {}
    for item in items:
        for mark in item.iter_markers("in_turn"):
            members.setdefault(mark.args[0], set()).add(mark.args[1])
    groups, settled = {group: sorted(names) for group, names in members.items()}, unchanged()
    chosen = [item for item in items if has_its_turn(item, turn, groups, settled)]
    kept = set(chosen)
    return chosen, [item for item in items if item not in kept]


def _of_turn(names: Sequence[str], turn: int, what: str) -> str:
    """The one whose turn it is; not all groups and files are at the same place."""
    return names[(turn + zlib.crc32(what.encode())) % len(names)]


def _releases(item: pytest.Item) -> list[tuple[str, tuple[str, ...]]]:
    """The release of each batch system that a test runs on, with those on which it could run."""
    assert isinstance(item, pytest.Function)
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return [(str(parameters[name]), _all_of(item, name)) for name in RELEASES if name in parameters]


def _all_of(item: pytest.Function, name: str) -> tuple[str, ...]:
    """All releases of a parameter, by the test's own list or by the fixture's."""
    for mark in item.iter_markers("parametrize"):
        if mark.args[0] == name:
            return tuple(map(str, mark.args[1]))
    return tuple(map(str, item._fixtureinfo.name2fixturedefs[name][-1].params or ()))
