"""Which asserts ran: one of the fast part that never did fails the run; one that a property seldom reaches fails it.

pytest calls a function of its own at each assert that passed (ini: enable_assertion_pass_hook). That function is
replaced here: the hook that pytest has for plugins gets the text of each assert, which takes longer than the tests.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import json
import linecache
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.assertion import rewrite
from hypothesis import settings

AT_LEAST = 0.1  # of a property's examples reach each assert in its body, unless its mark `reached` says another share
MORE = (60, 250)  # examples where the fewer before seem to reach too few: they resemble each other, by chance too
CHANCE = 3.0  # standard deviations by which the share among the most of them may be less
NEVER_RAN = 6  # the exit status: not that of failed tests, which may be run once more
CALLED = "_check_if_assertion_pass_impl"

Place = tuple[str, int]  # a file and a line


class Asserts:
    """The asserts of this process and of its workers."""

    def __init__(self) -> None:
        self.ran: set[Place] = set()  # those of the current example, while there is one
        self.wanted: set[Place] = set()
        self.judged: dict[tuple[str, float], bool] = {}
        self.functions: set[CodeType] = set()
        self.root = ""  # of the tests: pytest counts in its plugins too
        self.said = os.memfd_create("asserts")  # a file of what processes say that were forked
        self.is_forked = False
        os.register_at_fork(after_in_child=self.forked)

    def forked(self) -> None:
        """What is counted from here on would end with this process."""
        self.is_forked = True

    def passed(self) -> bool:
        """Count the assert on the caller's line. pytest does without its text."""
        caller = sys._getframe(1)
        place = (caller.f_code.co_filename, caller.f_lineno)
        if not self.is_forked:
            self.ran.add(place)
        else:
            with contextlib.suppress(OSError):  # a daemon closes what it inherits
                os.write(self.said, f"{json.dumps(place)}\n".encode())
        return False

    def collect(self) -> None:
        """Take over what forked processes counted."""
        said = os.pread(self.said, os.fstat(self.said).st_size, 0)
        self.ran.update((file, line) for file, line in map(json.loads, said.splitlines()))

    def want(self, called: object) -> None:
        """The asserts of a function that ran are to run, and those of what it names."""
        called = inspect.unwrap(called) if callable(called) else called
        if isinstance(called, type):
            for member in vars(called).values() if self.counts(vars(sys.modules[called.__module__])) else ():
                self.want(getattr(member, "__func__", getattr(member, "fget", member)))
        elif isinstance(called, FunctionType) and self.counts(called.__globals__):
            if called.__code__ in self.functions:
                return
            self.functions.add(called.__code__)
            self.wanted |= asserts(called.__code__)
            named = {name for code in nested(called.__code__) for name in code.co_names}
            for name in named & called.__globals__.keys():
                self.want(called.__globals__[name])

    def counts(self, module: Mapping[str, object]) -> bool:
        """Whether pytest rewrote the asserts of a module of these tests."""
        return "@pytest_ar" in module and str(module["__file__"]).startswith(self.root)


ASSERTS = Asserts()


def nested(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of functions within it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from nested(one)


def asserts(function: CodeType) -> set[Place]:
    """Where asserts stand in a function."""
    file = function.co_filename
    lines = {line for code in nested(function) for _, line in dis.findlinestarts(code) if line}
    return {(file, line) for line in lines if linecache.getline(file, line).lstrip().startswith("assert ")}


def judged(what: str, seen: bool, *, at_least: float) -> None:
    """Say, in a property, whether this example shows what is judged: it fails where fewer than such a share do."""
    ASSERTS.judged[what, at_least] = seen or ASSERTS.judged.get((what, at_least), False)


class Examples:
    """The examples of one property."""

    def __init__(self, test: Callable[..., None]) -> None:
        self.test = test
        self.number = 0
        self.reached: Counter[Place] = Counter()
        self.judged: Counter[tuple[str, float]] = Counter()
        self.asserting = 0

    def run(self, *arguments: Any, **named: Any) -> None:
        """Run one. It counts unless it is given up."""
        ran, ASSERTS.ran, ASSERTS.judged = ASSERTS.ran, set(), {}
        try:
            self.test(*arguments, **named)
            self.number += 1
            self.reached.update(ASSERTS.ran)
            self.asserting += bool(ASSERTS.ran)
            self.judged.update({what: int(seen) for what, seen in ASSERTS.judged.items()})
        finally:
            ran |= ASSERTS.ran
            ASSERTS.ran = ran

    def faults(self, share: float) -> Iterator[str]:
        """What too few of them reached."""
        own = sorted(asserts(self.test.__code__))
        least = max(1, self._least(share)) if share else 0
        if not own and 0 < self.asserting < least:
            yield f"{self.asserting} of {self.number} examples reach an assert"
        for file, line in own:
            if self.reached[file, line] < least:
                yield f"{self.reached[file, line]} of {self.number} examples reach the assert in line {line}"
        for (what, at_least), count in self.judged.items():
            if count < self._least(at_least):
                yield f"{count} of {self.number} examples show {what}, not {at_least:g}"

    def _least(self, share: float) -> float:
        """How many of them are to be seen, where such a share of all is."""
        away = CHANCE * math.sqrt(share * (1 - share) * self.number) if self.number > MORE[-1] // 2 else 0.0
        return share * self.number - away


def pytest_addoption(parser: pytest.Parser) -> None:
    """Name asserts that never ran in a part of the suite as well."""
    parser.addoption("--never-ran", action="store_true", help="name the asserts of what is run that never ran")


def pytest_configure(config: pytest.Config) -> None:
    """Count. What pytest compiled without the setting is not used."""
    config.addinivalue_line("markers", "reached(share, why): the share of a property's examples that reach its asserts")
    if not config.getini("enable_assertion_pass_hook") or not {CALLED, "PYC_TAIL"} <= vars(rewrite).keys():
        raise pytest.UsageError(f"this pytest does not let asserts be counted as {__file__} does it")
    ASSERTS.root = str(config.rootpath / config.getini("testpaths")[0])
    setattr(rewrite, CALLED, ASSERTS.passed)
    rewrite.PYC_TAIL = f"-counted{rewrite.PYC_TAIL}"


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    """A fixture that was set up."""
    value = yield
    ASSERTS.want(fixturedef.func)
    return value


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run a test: a property's examples are counted."""
    test: Any = getattr(item, "obj", None)
    if not hasattr(test, "hypothesis"):
        value = yield
        ASSERTS.want(test)
        return value
    handle = test.hypothesis
    examples = Examples(handle.inner_test)

    @functools.wraps(examples.test)  # the examples of continuous integration go by its text
    def counted(*arguments: Any, **named: Any) -> None:
        examples.run(*arguments, **named)

    handle.inner_test = counted
    mark = item.get_closest_marker("reached")
    share = mark.args[0] if mark else AT_LEAST
    kept = test._hypothesis_internal_use_settings
    try:
        value = yield
        for more in MORE:
            if any(examples.faults(share)):
                test._hypothesis_internal_use_settings = settings(kept, max_examples=more)
                item.runtest()
    finally:
        handle.inner_test, test._hypothesis_internal_use_settings = examples.test, kept
    ASSERTS.want(examples.test)
    if faults := "; ".join(examples.faults(share)):
        pytest.fail(faults, pytrace=False)
    return value


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker counted."""
    for mine, its in zip((ASSERTS.ran, ASSERTS.wanted), getattr(node, "workeroutput", {}).get("asserts", ())):
        mine.update((file, line) for file, line in its)


def never_ran(config: pytest.Config) -> list[str]:
    """The asserts that are missed."""
    missed = sorted(ASSERTS.wanted - ASSERTS.ran)
    return [f"{os.path.relpath(file, config.rootpath)}:{line}" for file, line in missed]


def fast_part(config: pytest.Config) -> bool:
    """Whether all of it is run."""
    option = config.option
    return bool(
        config.args == config.getini("testpaths")
        and option.markexpr == "not daemons"
        and not (option.keyword or option.deselect or getattr(option, "lf", False))
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand over what was counted, or judge it."""
    ASSERTS.collect()
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["asserts"] = (list(ASSERTS.ran), list(ASSERTS.wanted))
    elif session.exitstatus in {0, 1} and fast_part(session.config) and never_ran(session.config):
        session.exitstatus = NEVER_RAN


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name what was missed."""
    missed = never_ran(config)
    if missed and (fast_part(config) or config.option.never_ran):
        terminalreporter.section("asserts that never ran")
        for one in missed:
            terminalreporter.write_line(one)
