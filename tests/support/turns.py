"""Which tests on daemons one submission runs: plays on one release in turn, one test in turn of a group, and tests of
what brings the daemons up where that has changed. `--all-releases` runs everything.

The turn is the number of commits, so that the next submission looks at the other release, and a rerun of the same
commit at the same one.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PASSED = ROOT / "tests" / "daemons" / "passed.json"
RELEASE_FIXTURES = ("release", "slurm_release")
_OUTCOMES = ("passed", "failed", "error")

LOOKS_AT = {
    "tests/daemons/test_condor_pool.py": ("scripts/real_daemons", "scripts/condor_pool"),
    "tests/daemons/test_slurm_cluster.py": ("scripts/real_daemons", "scripts/slurm_cluster"),
    "tests/monitoring/test_rules.py": ("monitoring", "scripts/clean_machine", "tests/monitoring"),
    "tests/test_suite.py": ("scripts/test", "tests/conftest.py", "tests/support/failure_reasons.py"),
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


def unchanged() -> set[str]:
    """The files of LOOKS_AT that passed with what they look at, as it is now."""
    known = json.loads(PASSED.read_text()) if PASSED.exists() else {}
    return {file for file, paths in LOOKS_AT.items() if known.get(file) == fingerprint([*paths, file])}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """After a run of everything: note which files of LOOKS_AT passed, and with what."""
    if not config.getoption("--all-releases"):
        return
    seen = {kind: {one.nodeid.partition("::")[0] for one in terminalreporter.getreports(kind)} for kind in _OUTCOMES}
    known = json.loads(PASSED.read_text()) if PASSED.exists() else {}
    for file in seen["passed"] & set(LOOKS_AT) - seen["failed"] - seen["error"]:
        known[file] = fingerprint([*LOOKS_AT[file], file])
    PASSED.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")


def has_its_turn(item: pytest.Item, turn: int, groups: dict[str, list[str]], settled: set[str]) -> bool:
    """Whether a submission whose turn this is runs the test.

    groups: the names of the tests of each group of `in_turn`. settled: see `unchanged`.
    """
    file = item.nodeid.partition("::")[0]
    if file in settled:
        return False
    group = item.get_closest_marker("in_turn")
    if group is not None:
        names = groups[group.args[0]]
        if _plain_name(item) != names[turn // 2 % len(names)]:
            return False
    if item.get_closest_marker("play") is None:
        return True
    return all(release == _of_turn(releases, turn + zlib.crc32(file.encode())) for release, releases in _releases(item))


def choose(items: Sequence[pytest.Item], turn: int) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Divide the tests into those that have their turn and the others."""
    groups: dict[str, list[str]] = {}
    for item in items:
        marker = item.get_closest_marker("in_turn")
        if marker is not None:
            names = groups.setdefault(marker.args[0], [])
            names += [name for name in [_plain_name(item)] if name not in names]
    settled = unchanged()
    chosen = [item for item in items if has_its_turn(item, turn, groups, settled)]
    kept = set(chosen)
    return chosen, [item for item in items if item not in kept]


def _of_turn(releases: Sequence[str], turn: int) -> str:
    return releases[turn % len(releases)]


def _plain_name(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _releases(item: pytest.Item) -> list[tuple[str, tuple[str, ...]]]:
    """The release of each batch system that a test runs on, with those on which it could run."""
    assert isinstance(item, pytest.Function)
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return [(str(parameters[name]), _all_of(item, name)) for name in RELEASE_FIXTURES if name in parameters]


def _all_of(item: pytest.Function, name: str) -> tuple[str, ...]:
    """All releases of a parameter, by the test's own list or by the fixture's."""
    for mark in item.iter_markers("parametrize"):
        if mark.args[0] == name:
            return tuple(map(str, mark.args[1]))
    definition = item._fixtureinfo.name2fixturedefs[name][-1]
    return tuple(map(str, definition.params or ()))
