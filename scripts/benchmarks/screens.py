"""What the screens cost, in CPU time: `status` of made-up pools as whole processes, `plan` on a saved snapshot.

The bindings of a batch system are not in these figures: the pool is made up in the process that shows it.
"""

from __future__ import annotations

import compileall
import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from benchmarks.figures import Figure
from benchmarks.made_up_pool import USERS, made_up_pool

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FEW, MANY, SAVED = 100, 5000, 17_500

_COMMAND = f"""
import sys
sys.path[:0] = [sys.argv[1], {HERE!r}]
from benchmarks.made_up_pool import made_up_pool
from drainwise.cli.main import main
from drainwise.htcondor.system import HTCondor
class Pool:
    def snapshot(self, now):
        return made_up_pool(int(sys.argv[2]), now)
HTCondor.open_pool, HTCondor.missing = (lambda *_: Pool()), (lambda *_: "")
sys.exit(main(sys.argv[3:]))
"""


def figures(runs: int) -> list[list[Figure]]:
    """Medians of `runs`, taken in turn: whole processes, then the plan inside one, against `json.load` of its file."""
    return [whole_processes(runs), plan_of_saved(runs)]


def whole_processes(runs: int) -> list[Figure]:
    """`status` of a small and a large pool, and the bare start of the same interpreter."""
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(f"{HERE}/../plugins", place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(place, quiet=1)  # as it is installed
        with open(f"{place}/site.ini", "w", encoding="ascii") as stream:
            stream.write(f"[agent]\nstate_dir = {place}\n")

        def shown(pilots: int, *more: str) -> Callable[[], float]:
            words = [place, str(pilots), "status", "--pool", "htcondor", "--site", f"{place}/site.ini", *more]
            return lambda: _cpu([sys.executable, "-c", _COMMAND, *words])

        steps: list[tuple[str, Callable[[], float], float | None]] = [
            ("the interpreter, CPU time", lambda: _cpu([sys.executable, "-c", "pass"]), None),
            (f"status: {FEW} pilots, CPU time", shown(FEW), 0.15),
            (f"status --json: {FEW} pilots, CPU time", shown(FEW, "--json"), None),
            (f"status: {MANY:,} pilots, CPU time", shown(MANY), None),
            (f"status --user: one of {USERS} users, {MANY:,} pilots, CPU time", shown(MANY, "--user", "alice1"), None),
        ]
        return _in_turn([(what, step, None, limit) for what, step, limit in steps], runs)


def plan_of_saved(runs: int) -> list[Figure]:
    """`plan --snapshot` as a command inside a process that has imported it, its table written into a file."""
    from drainwise.cli.main import main  # noqa: PLC0415 - as below
    from drainwise.cli.text import json_text  # noqa: PLC0415
    from drainwise.pool.snapshot_json import snapshot_as_json  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as place:
        path, site = f"{place}/snapshot.json", f"{place}/site.ini"
        with open(path, "w", encoding="ascii") as stream:
            stream.write(json_text(snapshot_as_json(made_up_pool(SAVED, int(time.time())))))
        with open(site, "w", encoding="ascii") as stream:
            stream.write(f"[agent]\nstate_dir = {place}\n")

        def load() -> float:
            with open(path, encoding="utf-8") as stream:
                begin = time.process_time()
                json.load(stream)
                return time.process_time() - begin

        def plan() -> float:
            gc.unfreeze()  # what the last plan left
            gc.collect()
            kept, begin = sys.stdout, time.process_time()
            with open(f"{place}/shown", "w", encoding="utf-8") as stream:
                sys.stdout = stream
                try:
                    code = main(["plan", "--pool", "local", "--snapshot", path, "--site", site])
                finally:
                    sys.stdout = kept
            if code:
                raise RuntimeError(f"plan ended with {code}")
            return time.process_time() - begin

        plan()  # it imports what it needs
        size = os.path.getsize(path) / 1e6
        return _in_turn(
            [
                (f"json.load of a snapshot of {SAVED:,} pilots, {size:.0f} MB, CPU time", load, None, None),
                ("plan --snapshot of it, read, decided and shown, CPU time", plan, 3.0, None),
            ],
            runs,
        )


def _in_turn(steps: list[tuple[str, Callable[[], float], float | None, float | None]], runs: int) -> list[Figure]:
    """Medians; steps: what, what measures it once in seconds, the target of its ratio, and the limit in seconds."""
    spent: list[list[float]] = [[] for _ in steps]
    for turn in range(runs + 1):
        for (_, step, _, _), times in zip(steps, spent):
            seconds = step()
            if turn:
                times.append(seconds)
    medians = [statistics.median(times) for times in spent]
    return [
        Figure(what, median, median / medians[0], target, limit)
        for (what, _, target, limit), median in zip(steps, medians)
    ]


def _cpu(command: list[str]) -> float:
    """CPU time of a whole process, user and system, seconds."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[-1]}: it ended with {process.returncode}")
    return used.ru_utime + used.ru_stime
