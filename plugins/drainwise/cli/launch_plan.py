"""`drainwise launch FILE --dry-run`: what would start when. Nothing is started, queried or written."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from functools import partial

from drainwise.cli.launch_output import Console, check_written, plan_json, plan_lines, put
from drainwise.cli.text import json_text
from drainwise.facts.errors import UsageError
from drainwise.launch.choice.engine import Engine
from drainwise.launch.choice.work import Work
from drainwise.launch.files.job_reader import LOCAL
from drainwise.launch.files.launch_file import LaunchFile
from drainwise.launch.run.additions import Additions, recall
from drainwise.launch.run.forecast import at_once, forecast
from drainwise.launch.run.state_directory import JOBS
from drainwise.launch.run.store import FILE, Store
from drainwise.launch.this_machine.slots import mapped, misfit, pool_of
from drainwise.systems.find import offering
from drainwise.systems.system import System


def request_targets(engine: Engine, launch: LaunchFile, targets: list[str]) -> None:
    """Request the targets of the command line, else the file's requests, else everything."""
    if targets:
        engine.request(targets=targets)
        return
    for name, wanted in launch.requests.items():
        engine.request(name, wanted)
    if not launch.requests:
        engine.request()


def print_plan(args: argparse.Namespace, launch: LaunchFile, directory: str) -> int:
    """Print the plan: start times of jobs; the exit code. Raises UsageError, PoolError."""
    pools: dict[str, Mapping[str, int] | None] = {one.name: None for one in offering(System.open_backend)}
    scratch = directory if os.path.isdir(directory) else os.path.dirname(os.path.abspath(args.file))
    pools[LOCAL] = pool = pool_of(launch.backends.get(LOCAL, {}), scratch, args.file)
    store = None
    if not args.again and os.path.exists(f"{directory}/{FILE}"):
        store = Store(directory)
    try:
        engine = Engine(store.rules() if store else None)
        place_here = partial(_placed, pools=pools, only_here=args.backend == LOCAL)
        engine.add(map(place_here, launch.works))
        if store:
            Additions(
                f"{directory}/{JOBS}", engine, store, launch.reader, place_here, Console(sys.stderr).say
            ).look_first()
        earlier = recall(engine, store, engine.graph.jobs) if store else 0
    finally:
        if store:
            store.close()
    request_targets(engine, launch, args.targets)
    planned = forecast(engine, pools, args.jobs)
    assumed = at_once(planned, pools)
    if args.json:
        text = json_text(plan_json(planned, earlier, assumed, pool))
    else:
        text = "\n".join(plan_lines(planned, earlier, assumed))
    check_written(put(f"{text}\n", sys.stdout))
    return 0


def _placed(work: Work, pools: Mapping[str, Mapping[str, int] | None], only_here: bool) -> Work:
    """Return the job as it is, if it may run; mapped to this machine where it runs only here. Raises UsageError."""
    if only_here:
        return work._replace(backend=LOCAL, reserved=mapped(work.resources, pools[LOCAL] or {}))
    if work.backend not in pools:
        raise UsageError(f"job {work.name[:100]!a}: backend = {work.backend!a}: expected one of {', '.join(pools)}")
    pool = pools[work.backend]
    why = "" if pool is None else misfit(work.resources, pool)
    if why:
        raise UsageError(f"job {work.name[:100]!a}: it can never run in {LOCAL}: {why}")
    return work
