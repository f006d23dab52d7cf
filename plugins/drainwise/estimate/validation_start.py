"""How a batch system starts the runner around a run's program: with this Python, or packed into one file.

What the packed runner is told lies in a file beside it: no batch system ever reads a word of the user's.
"""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile

from drainwise.errors import UsageError
from drainwise.estimate.validation_backend import REPORT, Run
from drainwise.features.local_file import replace_file

NODE_PYTHON = "/usr/bin/python3"
RUNNER, RUN = "validation_runner.pyz", "run.json"
RUNNER_WORDS = ("-I", "-S", "-B", RUNNER, RUN)
"""What NODE_PYTHON is told in a directory as `prepare` makes it."""
LEEWAY = 60
"""Seconds that a job has beyond its program's wall limit, which the runner keeps itself."""

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PROGRAM = (
    f"import sys; sys.path.append({_ROOT!r}); from drainwise.estimate.validation_runner import main; sys.exit(main())"
)
PACKED = (
    "drainwise/__init__.py",
    "drainwise/errors.py",
    "drainwise/estimate/__init__.py",
    "drainwise/estimate/validation_cmssw.py",
    "drainwise/estimate/validation_runner.py",
    "drainwise/features/__init__.py",
    "drainwise/features/local_file.py",
    "drainwise/pilot/__init__.py",
    "drainwise/pilot/process_tree.py",
)
"""The runner and what it imports."""
_MAIN = """\
import json, os, sys, tempfile
from drainwise.estimate.validation_runner import main
with open(sys.argv[1], encoding="utf-8") as stream:
    run = json.load(stream)
report, *words = run["words"]
os.environ.update(run["environment"])
report = os.path.abspath(report)
os.chdir(tempfile.mkdtemp(prefix="run-", dir="."))
sys.exit(main([report, *words], run["wall_limit"]))
"""


def runner_words(run: Run) -> tuple[str, ...]:
    """What the runner is told, as its arguments."""
    return (REPORT, str(run.cores), str(run.events), str(run.memory), "--", *run.command)


def command_here(run: Run, python: str = sys.executable) -> tuple[str, ...]:
    """The command that starts the runner with this Python and this package."""
    return (python, "-I", "-S", "-B", "-c", _PROGRAM, *runner_words(run))


def packed_run(run: Run) -> bytes:
    """What the packed runner is told: its words, its program's variables, and its wall limit in seconds, as JSON."""
    told = {"words": runner_words(run), "environment": dict(run.environment), "wall_limit": run.wall_limit}
    return json.dumps(told).encode()


def packed_runner() -> bytes:
    """The runner as one zip file that any Python since 3.9 executes: `python3 -I -S FILE RUN`.

    RUN names a file as `packed_run` makes it. The program starts in an empty directory `run-…` below the runner's.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in PACKED:
            archive.write(os.path.join(_ROOT, name), name)
        archive.writestr("__main__.py", _MAIN)
    return packed.getvalue()


def prepare(work: str, run: Run) -> None:
    """Make the directory of a run, with the runner, what it is told, and an empty report. Raises UsageError."""
    try:
        os.makedirs(work, mode=0o700, exist_ok=True)
        handle = os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name, content in ((RUNNER, packed_runner()), (RUN, packed_run(run)), (REPORT, b"")):
                replace_file(name, content, handle)
        finally:
            os.close(handle)
    except OSError as fault:
        raise UsageError(f"{work}: no place for a run: {fault.strerror}; --state names another place") from None
