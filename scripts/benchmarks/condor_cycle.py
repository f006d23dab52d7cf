"""A whole dry-run cycle on a real HTCondor collector with 20,000 slots, against `condor_status` of the same attributes.

Both are whole processes that start, ask, and write what they found: one line for each slot, or the plan as JSON.
"""

from __future__ import annotations

import compileall
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable

from benchmarks.figures import Figure, in_turns
from benchmarks.many_slots import known, large_pool
from condor_pool import CondorPool
from drainwise.htcondor.pool.collector import SLOT_ATTRIBUTES, SLOTS
from scenario import condor_site

SLOT_ADS = 20_000
_SECONDS = 300.0

# The command, with more patience than usual: a machine that is busy with other things shall not end the measurement.
_COMMAND = """
import sys
from drainwise.cli.main import main
from drainwise.htcondor.pool import pool
pool.HTCondorPool.__init__.__defaults__ = (300.0, pool.ORDER_SECONDS)
sys.exit(main(sys.argv[1:]))
"""


def figures(release: str, runs: int) -> list[Figure]:
    """Medians of `runs` processes each, taken in turn, on a pool of a Debian release."""
    with tempfile.TemporaryDirectory() as place, large_pool(release, SLOT_ADS) as (pool, site_file):
        # Byte-compiled, as it is installed.
        shutil.copytree(condor_site.PACKAGE, f"{place}/drainwise", ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(place, quiet=1)
        status = ["condor_status", "-af", *SLOT_ATTRIBUTES]
        full = ["condor_status", "-constraint", SLOTS, "-af", *SLOT_ATTRIBUTES]
        cycle = ["reclaim", "--once", "--site", site_file]
        version, slots = "{}.{}.{}".format(*pool.version), known(pool)
        _require_plan(_agent(pool, place, [*cycle, "--json"]))
        steps: list[tuple[str, Callable[[], object], float | None]] = [
            (
                f"condor_status -af, {len(SLOT_ATTRIBUTES)} attributes of {slots:,} slots, {version}",
                lambda: pool.run(status, timeout=_SECONDS),
                None,
            ),
            ("the same, of those slots alone that have cores", lambda: pool.run(full, timeout=_SECONDS), None),
            ("dry-run cycle, its result as JSON", lambda: _agent(pool, place, [*cycle, "--json"]), 1.5),
            ("the same, shown as a table", lambda: _agent(pool, place, cycle), None),
        ]
        return in_turns(runs, steps, time.perf_counter)


def _agent(pool: CondorPool, place: str, arguments: list[str]) -> str:
    """Run a drainwise command in the pool's network; what it printed."""
    environment = {"PYTHONPATH": place, "COLUMNS": "160"}
    command = [sys.executable, "-c", _COMMAND, *arguments]
    return pool.run_outside(command, environment=environment, timeout=_SECONDS).stdout


def _require_plan(answer: str) -> None:
    """Raise RuntimeError when that was no cycle that had to decide."""
    plan = json.loads(answer)
    if not plan["cores"]["deficit"] or not plan["users"] or not plan["dry_run"]:
        raise RuntimeError(f"the cycle had nothing to decide: {plan['summary']}")
