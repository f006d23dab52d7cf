"""A run, and the directory of its job: the runner packed into one file, its input, and what it leaves behind.

The packed runner's input lies in a file beside it: no batch system ever reads any text of the user's.
"""

from __future__ import annotations

import io
import json
import os
import stat
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from drainwise.common.local_file import OPEN, Held, read_small, replace_file
from drainwise.facts.errors import FeatureError, UsageError

NODE_PYTHON = "/usr/bin/python3"
RUNNER, RUN = "validation_runner.pyz", "run.json"
RUNNER_WORDS = ("-I", "-S", "-B", RUNNER, RUN)
"""The arguments of a Python that starts the runner in a directory as `prepare` makes it."""
REPORT = "validation.json"
"""The file in which the runner reports, in the directory where the batch system starts it."""
LEEWAY = 60
"""Seconds that a job has beyond its program's wall limit, which the runner keeps itself."""

_REPORT_LIMIT = 1 << 23
_ERROR_READ, _ERROR_SHOWN = 4096, 200
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKED = (
    "drainwise/__init__.py",
    "drainwise/facts/__init__.py",
    "drainwise/facts/errors.py",
    "drainwise_tasks/__init__.py",
    "drainwise_tasks/validate/__init__.py",
    "drainwise_tasks/validate/runner.py",
    "drainwise/common/__init__.py",
    "drainwise/common/local_file.py",
    "drainwise/processes/__init__.py",
    "drainwise/processes/children.py",
    "drainwise/processes/process.py",
    "drainwise/processes/tree.py",
)
"""The runner and what it imports."""
_MAIN = """\
import json, os, sys, tempfile
from drainwise_tasks.validate.runner import main
with open(sys.argv[1], encoding="utf-8") as stream:
    run = json.load(stream)
report, *words = run["words"]
os.environ.update(run["environment"])
report = os.path.abspath(report)
os.chdir(tempfile.mkdtemp(prefix="run-", dir="."))
sys.exit(main([report, *words], run["wall_limit"], run["following"]))
"""


@dataclass(frozen=True)
class Run:
    """One run to start: `name` is its own and nobody else's, also after a crash. memory: MB. wall_limit: seconds.

    command, environment: the program's own; the job starts the runner around it. events: how many the program is given.
    following: the commands of further sequences, each run when the one before has ended well.
    """

    name: str
    cores: int
    memory: int
    events: int
    wall_limit: int
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    following: tuple[tuple[str, ...], ...] = ()


def packed_run(run: Run) -> bytes:
    """Return the packed runner's input: its arguments, its program's variables, and its wall limit, as JSON."""
    words = (REPORT, str(run.cores), str(run.events), str(run.memory), "--", *run.command)
    passed = {"words": words, "environment": dict(run.environment), "wall_limit": run.wall_limit}
    passed["following"] = run.following
    return json.dumps(passed).encode()


def packed_runner() -> bytes:
    """Return the runner as one zip file that any Python since 3.9 executes: `python3 -I -S FILE RUN`.

    RUN names a file as `packed_run` makes it. The program starts in an empty directory `run-…` below the runner's.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in PACKED:
            archive.write(os.path.join(_ROOT, name), name)
        archive.writestr("__main__.py", _MAIN)
    return packed.getvalue()


def prepare(work: str, run: Run) -> None:
    """Make the directory of a run, with the runner, its input, and an empty report. Raises UsageError."""
    try:
        os.makedirs(work, mode=0o700, exist_ok=True)
        for name, content in ((RUNNER, packed_runner()), (RUN, packed_run(run)), (REPORT, b"")):
            replace_file(name, content, work)
    except OSError as fault:
        raise UsageError(f"{work}: no place for a run: {fault.strerror}; --state names another place") from None


def report_in(work: str) -> bytes | None:
    """Return the runner's report; None where there is none that may be read, or an empty one."""
    with suppress(FeatureError):
        found = read_small(f"{work}/{REPORT}", _REPORT_LIMIT)
        return None if found is None else found[0] or None
    return None


def last_line(path: str) -> str:
    """Return the last line that a run wrote into this file, without what a terminal would take for more than text."""
    lines = _end_of(path).decode("utf-8", "replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return "".join(letter for letter in last if letter.isprintable()).strip()[:_ERROR_SHOWN]


def _end_of(path: str) -> bytes:
    """Return the last bytes of a regular file, however long it is; nothing of anything else."""
    with suppress(OSError), Held(os.open(path, OPEN)) as file:
        found = os.fstat(file)
        if stat.S_ISREG(found.st_mode):
            return os.pread(file, _ERROR_READ, max(0, found.st_size - _ERROR_READ))
    return b""
