"""`drainwise` commands that are killed at a chosen line of their own code or after a chosen time, for tests of crashes.

One process imports everything once and forks for each command, so that hundreds of them take seconds. What a fork runs
is the command itself, from its arguments on. A line is counted when it belongs to the package; everything before the
first one (the interpreter's start, the imports) does nothing to anybody.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

PLUGINS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "plugins")
PACKAGE = PLUGINS + os.sep


@dataclass(frozen=True)
class Ran:
    """How a command ended: killed, or with `code` after `lines` lines of the package (0 when none were counted)."""

    killed: bool
    code: int
    lines: int
    seconds: float
    said: str


class Killer:
    """Runs commands and kills them. A context manager.

    `warm_up` is a command that changes nothing: it is run once in the process that forks, which imports what it needs.
    """

    def __init__(self, warm_up: Sequence[str]) -> None:
        environment = {**os.environ, "PYTHONPATH": PLUGINS, "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._ask({"words": list(warm_up)}) != 0:
            raise AssertionError(f"{' '.join(warm_up)} failed")

    def __enter__(self) -> Killer:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()

    def run(self, words: Sequence[str], *, line: int | None = None, after: float | None = None) -> Ran:
        """Run a command: killed as it comes to its `line`-th line, or `after` so many seconds, or by nobody."""
        return Ran(**self._ask({"words": list(words), "line": line, "after": after}))

    def _ask(self, question: dict[str, object]) -> Any:
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("the pipes of the killer are closed")
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


# ---- in the process that forks ----


def _serve() -> None:
    import drainwise.cli.main  # noqa: PLC0415 - the tests' side does without

    with contextlib.redirect_stdout(io.StringIO()):
        code = drainwise.cli.main.main(json.loads(sys.stdin.readline())["words"])
    print(json.dumps(code), flush=True)
    for question in sys.stdin:
        print(json.dumps(_run(drainwise.cli.main, **json.loads(question))), flush=True)


def _run(command: Any, words: list[str], line: int | None, after: float | None) -> dict[str, object]:
    counted, count = os.pipe()
    output = os.memfd_create("said")
    began = time.monotonic()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    pid = os.fork()
    if pid == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        _become(command, words, line, count)
    os.close(count)
    if after is not None:
        signal.sigtimedwait({signal.SIGCHLD}, after)
        os.kill(pid, signal.SIGKILL)  # a child that has ended by now is still ours to wait for
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    signal.sigtimedwait({signal.SIGCHLD}, 0)
    seconds = time.monotonic() - began
    lines = int(os.read(counted, 32) or b"0")
    said = os.pread(output, 1 << 20, 0).decode("utf-8", "replace")
    os.close(counted)
    os.close(output)
    return {"killed": code == -signal.SIGKILL, "code": code, "lines": lines, "seconds": seconds, "said": said}


def _become(command: Any, words: list[str], line: int | None, count: int) -> None:
    """The command, in the fork; never returns."""
    code, lines = 70, 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:  # noqa: ARG001 - the interpreter's protocol
        nonlocal lines
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            lines += 1
            if lines == line:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    try:
        if line is not None:
            sys.settrace(trace)
        code = command.main(words)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:  # said, as the interpreter would
        traceback.print_exc()
    finally:
        sys.settrace(None)
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(count, b"%d" % lines)
        os._exit(code)


if __name__ == "__main__":
    _serve()
