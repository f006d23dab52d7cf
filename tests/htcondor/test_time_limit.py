"""A call that hangs, dies or fails costs the time that was given to it and is told in one line."""

from __future__ import annotations

import itertools
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import drainwise
from drainwise.errors import ActionRefused, PoolUnreachable, UsageError
from drainwise.htcondor.time_limit import each_within, several_within, within

PLUGINS = str(Path(drainwise.__file__).parents[1])


def test_the_value_comes_back() -> None:
    assert within(5, lambda: {"a": [1, "x" * 3_000_000]}, "it")["a"][0] == 1


def test_a_call_that_hangs_is_ended() -> None:
    """In C code that holds the interpreter, as the bindings do, no Python handler would run."""
    began = time.monotonic()
    with pytest.raises(PoolUnreachable, match=r"^it did not answer within 0\.3 s$"):
        within(0.3, signal.pause, "it")
    assert time.monotonic() - began < 3
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_an_error_of_the_pool_is_the_callers() -> None:
    def refuse() -> None:
        raise ActionRefused("no")

    with pytest.raises(ActionRefused, match=r"^no$"):
        within(5, refuse, "it")


def test_any_other_error_is_told() -> None:
    with pytest.raises(PoolUnreachable, match=r"^it cannot be asked: ZeroDivisionError: division by zero$"):
        within(5, lambda: 1 / 0, "it")


def test_a_crash_of_the_bindings_is_not_ours() -> None:
    with pytest.raises(PoolUnreachable, match="the process that asked died"):
        within(5, lambda: os.kill(os.getpid(), signal.SIGKILL), "it")


def test_what_the_bindings_print_stays_unseen(capfd: pytest.CaptureFixture[str]) -> None:
    within(5, lambda: os.write(1, b"noise") + os.write(2, b"noise"), "it")
    assert capfd.readouterr() == ("", "")


def test_a_collector_that_never_answers_holds_nobody(
    in_a_silent_pool: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    """HOSTILE 54: the real bindings against a real socket that takes connections and says nothing."""
    began = time.monotonic()
    ran = in_a_silent_pool(
        "from drainwise.htcondor.pool import HTCondorPool; HTCondorPool(snapshot_seconds=1.0).snapshot(0)"
    )
    assert ran.stderr.splitlines()[-1].endswith("PoolUnreachable: the collector did not answer within 1 s")
    assert time.monotonic() - began < 8


def test_several_values_come_one_by_one() -> None:
    """Each may take as long as the limit."""

    def slowly() -> Iterator[int]:
        for number in range(4):
            select.select([], [], [], 0.2)
            yield number

    assert list(several_within(0.6, slowly, "it")) == [0, 1, 2, 3]


def test_values_before_a_fault_are_given() -> None:
    def twice() -> Iterator[int]:
        yield 1
        raise ActionRefused("no more")

    values = several_within(5, twice, "it")
    assert next(values) == 1
    with pytest.raises(ActionRefused, match=r"^no more$"):
        next(values)


def test_who_stops_early_leaves_no_process() -> None:
    values = several_within(60, itertools.count, "it")
    assert next(values) == 0
    values.close()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_call_that_waits_holds_up_no_other() -> None:
    """One that fails and one that dies cost their own answer; what waits longest comes last."""
    reader, writer = os.pipe()

    def wait() -> str:
        return os.read(reader, 9).decode()

    def fail() -> str:
        raise ActionRefused("no")

    def die() -> str:
        os._exit(3)

    calls: list[Callable[[], str]] = [wait, lambda: "a", fail, die, lambda: "b"]
    came = []
    for place, answer in each_within(30, calls, "it", at_once=2):
        came.append((place, str(answer)))
        if len(came) == 4:
            os.write(writer, b"at last")
    died = "it cannot be asked: the process that asked died"
    assert came == [(1, "a"), (2, "no"), (3, died), (4, "b"), (0, "at last")]
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    os.close(reader)
    os.close(writer)


def test_each_call_has_its_own_time() -> None:
    """Sixty that hang, twenty at once, are over after three times that."""
    began = time.monotonic()
    answers = [str(answer) for _, answer in each_within(0.3, [signal.pause] * 60, "it", at_once=20)]
    assert answers == ["it did not answer within 0.3 s"] * 60
    assert 0.9 <= time.monotonic() - began < 9


def test_whoever_stops_early_leaves_no_child() -> None:
    answers = each_within(30, [lambda: None, signal.pause, signal.pause], "it")
    assert next(answers) == (0, None)
    answers.close()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_wrong_use_ends_it_all() -> None:
    """Bindings that are too old are no fault of one daemon."""

    def refuse() -> None:
        raise UsageError("too old")

    with pytest.raises(UsageError, match="too old"):
        list(each_within(5, [refuse, signal.pause], "it"))
