"""A call that hangs, dies or fails costs the time that was given to it and is told in one line."""

from __future__ import annotations

import itertools
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from drainwise.common import bounded_call
from drainwise.common.bounded_call import BoundedCall, each_within, several_within, within
from drainwise.facts.errors import ActionRefused, PoolUnreachable, UsageError


def test_the_value_comes_back() -> None:
    assert within(5, lambda: {"a": [1, "x" * 3_000_000]}, "it")["a"][0] == 1


def test_a_call_that_hangs_is_ended() -> None:
    """In C code that holds the interpreter, as the bindings do, no Python handler would run."""
    with pytest.raises(PoolUnreachable, match=r"^it did not answer within 0\.3 s$"):
        within(0.3, signal.pause, "it")
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


def test_without_standard_streams_the_answer_comes_all_the_same() -> None:
    """The pipe to the child is one of the first three descriptors then."""
    program = "import os; from drainwise.common.bounded_call import within; os._exit(within(5, lambda: 7, 'it'))"
    ran = subprocess.run(
        ["/bin/sh", "-c", f'exec {sys.executable} -c "{program}" <&- >&- 2>&-'],
        env={"PYTHONPATH": ":".join(sys.path)},
        check=False,
    )
    assert ran.returncode == 7


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
    """Twenty that hang, ten at once, are over after twice that."""
    began = time.monotonic()
    answers = [str(answer) for _, answer in each_within(0.3, [signal.pause] * 20, "it", at_once=10)]
    assert answers == ["it did not answer within 0.3 s"] * 20
    assert time.monotonic() - began >= 0.6


def test_a_child_that_ended_itself_late_did_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that stalls may keep us from looking until then."""
    monkeypatch.setattr(bounded_call, "_LATE", 0.01)
    asked = BoundedCall(0.05, lambda: iter(signal.pause, 0), "it")
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    with closing(asked), pytest.raises(PoolUnreachable, match=r"^it did not answer within 0\.05 s$"):
        next(asked.values(0.0))


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


def test_an_answer_without_end_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 40: whatever the bindings are told, the memory of who asked is bounded."""
    monkeypatch.setattr(bounded_call, "_MOST", 1 << 20)
    with pytest.raises(PoolUnreachable, match="it answered with more than"):
        list(several_within(20, lambda: itertools.repeat(b"x" * (1 << 16)), "it"))
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
