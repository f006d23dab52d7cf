"""What an access point is asked of jobs that checkpoint, on a real schedd, against `condor_q` of all that run."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from benchmarks.figures import Figure, in_turns
from condor_pool import CondorPool
from drainwise.htcondor.pool.identity import CHECKPOINTED, CHECKPOINTS

JOBS = 10_000
_SECONDS = 120.0
_JOB = "executable = /bin/sleep\narguments = 1000\ntransfer_executable = False\nhold = True\n"
_SAVED = {"CheckpointNumber": 3, "CommittedTime": 3000, "NumJobStarts": 1}


def figures(release: str, runs: int) -> list[Figure]:
    """Medians of `runs` questions each, in turn, to a schedd of a Debian release: no job saves, then half do."""
    with CondorPool(nodes=1, cpus=1, release=release) as pool:
        version = "{}.{}.{}".format(*pool.version)
        asked = ["condor_q", "-all", "-constraint"]

        def ask(constraint: str, expected: int) -> None:
            lines = pool.run([*asked, constraint, "-af", *CHECKPOINTS], timeout=_SECONDS).stdout.splitlines()
            if len(lines) != expected:
                raise RuntimeError(f"{len(lines)} jobs, not {expected}: {constraint}")

        def rows(share: str, saving: int) -> list[tuple[str, Callable[[], object], float | None]]:
            text = f"condor_q -af, {len(CHECKPOINTS)} attributes of {JOBS:,} running jobs, {version}"
            question = f"of {share} that checkpoints alone, as the agent asks"
            return [
                (text, partial(ask, "JobStatus == 2", JOBS), None),
                (question, partial(ask, CHECKPOINTED, saving), 1.0),
            ]

        for _ in range(2):
            pool.submit(f"{_JOB}queue {JOBS // 2}\n", user="alice")
        _edit(pool, "true", JobCurrentStartDate=int(time.time()) - 7200)
        _edit(pool, "true", JobStatus=2)
        none = in_turns(runs, rows("none", 0), time.perf_counter)
        _edit(pool, "ClusterId == 1", **_SAVED, TransferOutFinished=int(time.time()) - 600)
        return [*none, *in_turns(runs, rows("each second one", JOBS // 2), time.perf_counter)[1:]]


def _edit(pool: CondorPool, constraint: str, **values: int) -> None:
    """Change jobs as an administrator may: those that nobody started run then, as far as the schedd knows."""
    for name, value in values.items():
        pool.run(["condor_qedit", "-constraint", constraint, name, str(value)], timeout=_SECONDS)
