"""A copy of the tree in which faults are put, and the fast tests that run what is at fault."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from coverage import CoverageData

from fault_places import Fault

HERE = Path(__file__).parent
MEMORY = 8 << 30
"""Bytes of addresses that the tests of one fault may have: a loop that collects without end is ended."""
PURE = {"reclaim", "requests"}
"""Rooms of which each line runs in the process of its test. What runs others may be a process that a test starts, which
tests do is not known, so all of the folder are run."""
WAIT = 60
"""Seconds of CPU that the tests of one fault have beside four times what they take without it; as a busy machine is no
fault, they may take ten times as long."""


class Answer(NamedTuple):
    """The tests that passed with the seconds that each took, and those that did not; `lost`: why there are none."""

    passed: dict[str, float]
    others: list[str]
    lost: str = ""


class FaultTests:
    """Fast tests, in a copy of a tree, by the lines that each runs."""

    def __init__(self, root: Path, scratch: Path) -> None:
        self.scratch, self.copy = scratch, scratch / "tree"
        self.kept = root / ".pytest_cache" / "faults"
        self.kept.mkdir(parents=True, exist_ok=True)
        shutil.copytree(root, self.copy, symlinks=True, ignore=shutil.ignore_patterns(".*", "__pycache__", "site"))
        if (root / ".venv").exists():
            (self.copy / ".venv").symlink_to(root / ".venv")
        self.written = 0
        self.passed: dict[str, float] = {}
        self.lines = CoverageData(str(self.kept / "coverage"))

    def _run(self, tests: dict[str, float] | None, *arguments: str) -> Answer:
        """Run these tests, or all that the arguments name."""
        answer, asked = self.scratch / "answer", self.scratch / "asked"
        answer.unlink(missing_ok=True)
        asked.write_text(json.dumps(tests))
        environment = {**os.environ, "CI": "true", "FAULT_TESTS": str(asked), "FAULT_ANSWER": str(answer)}
        environment |= {"PYTHONPATH": f"{self.copy}/plugins:{HERE}", "COVERAGE_FILE": str(self.kept / "coverage")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        seconds = None if tests is None else WAIT + 4 * round(sum(tests.values()))

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            if seconds is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "--tb=no",
                "-p",
                "no:cacheprovider",
                "-p",
                "fault_plugin",
                *arguments,
            ],
            cwd=self.copy,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=limit,  # noqa: PLW1509 - one thread
        )
        try:
            process.wait(seconds and 10 * seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return Answer(**json.loads(answer.read_text())) if answer.exists() else Answer({}, [], "no end of the tests")

    def learn(self) -> None:
        """Run the fast part, to know which tests pass, and which lines each runs.

        That is kept; when only test modules have changed since, these alone are run.
        """
        files = [file for folder in ("plugins", "tests") for file in (self.copy / folder).rglob("*.py")]
        marks = {str(file.relative_to(self.copy)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
        known = self.kept / "tests.json"
        before, self.passed = json.loads(known.read_text()) if known.exists() else ({}, {})
        changed = {name for name, _ in marks.items() ^ before.items()}
        if any(not name.startswith("tests/") or "/test_" not in name for name in changed):
            self.lines.erase()
            self.passed, modules = {}, []
        else:
            self.passed = {test: took for test, took in self.passed.items() if test.partition("::")[0] not in changed}
            modules = sorted(changed & marks.keys())
        if modules or not self.passed:
            by_test = ["-m", "not daemons", "--cov", "--cov-append", "--cov-context=test", "--cov-report="]
            self.passed |= self._run(None, *by_test, *modules).passed
        known.write_text(json.dumps([marks, self.passed]))
        self.lines.read()

    def _running(self, fault: Fault) -> set[str]:
        """The tests that run a line of the fault."""
        names: set[str] = set()
        for file in self.lines.measured_files():
            if file.endswith(f"/{fault.path.relative_to(self.copy)}"):
                contexts = self.lines.contexts_by_lineno(file)
                names.update(*(contexts.get(line, []) for line in fault.lines))
        return {name.rpartition("|")[0] for name in names} - {""}  # what runs as a module is imported

    def _naming(self, fault: Fault) -> set[str]:
        """The tests of the files that name the fault's module."""
        *packages, module = fault.path.relative_to(self.copy / "plugins").with_suffix("").parts
        names = (".".join([*packages, module]), f"{'.'.join(packages)} import {module}")
        files = (self.copy / "tests").rglob("test_*.py")
        naming = {str(file.relative_to(self.copy)) for file in files if any(name in file.read_text() for name in names)}
        return {test for test in self.passed if test.partition("::")[0] in naming}

    def seen_by(self, fault: Fault) -> str:
        """Put a fault of the copy into it and return the first test that sees it, and sees it again alone; "": none."""
        original = fault.path.read_bytes()
        self._write(fault.path, fault.text())
        try:
            running, naming = self._running(fault), self._naming(fault)
            room = fault.path.relative_to(self.copy / "plugins" / "drainwise").parts[0]
            beside = {test for test in self.passed if test.startswith(f"tests/{room}/")}
            if running and room in PURE:
                beside.clear()
            stages = [running & naming, running - naming, (naming | beside) - running]
            return next(filter(None, map(self._first, stages)), "")
        finally:
            self._write(fault.path, original)

    def _write(self, file: Path, text: bytes) -> None:
        """Write a file, with a time that it never had: by this and its length Python knows what is to be compiled."""
        file.write_bytes(text)
        self.written += 1
        os.utime(file, (self.written, self.written))

    def _first(self, names: set[str]) -> str:
        tests = {test: took for test, took in self.passed.items() if test in names}
        while tests:
            answer = self._run(tests, "-x", *sorted({name.partition("::")[0] for name in tests}))
            if answer.lost or not answer.others:
                return answer.lost
            name = answer.others[0]
            if name not in tests:
                return name  # a module that cannot be imported
            again = self._run({name: tests.pop(name)}, name.partition("::")[0])
            if again.others or again.lost:
                return name
        return ""
