"""`drainwise launch FILE`: run a list of jobs with dependencies on this machine or in a batch system, to the end."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from drainwise.cli.launch_output import Console, plan_json, plan_lines, put, result_json, result_lines
from drainwise.cli.text import json_text
from drainwise.facts.errors import PoolError, PoolUnreachable, UsageError
from drainwise.launch.backend import Backend, LaunchPlace
from drainwise.launch.choice.engine import Engine
from drainwise.launch.choice.work import DONE, Work
from drainwise.launch.files.job_reader import LOCAL
from drainwise.launch.files.launch_file import LaunchFile, load_launch
from drainwise.launch.run.additions import Additions, recall
from drainwise.launch.run.forecast import at_once, forecast
from drainwise.launch.run.route import Routes
from drainwise.launch.run.runner import LaunchRunner
from drainwise.launch.run.starts import Starts
from drainwise.launch.run.state_directory import JOBS, StateDirectory
from drainwise.launch.run.store import FILE, OpenStart, Store
from drainwise.launch.this_machine.process import end_escaped
from drainwise.launch.this_machine.slots import misfit, pool_of
from drainwise.systems.find import named, offering
from drainwise.systems.system import System

STATE = ".launch"
"""The suffix of the state directory behind the name of the file."""
_INTERRUPTED = 128


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "run a list of jobs with dependencies: on this machine or in a batch system"
    parser = subparsers.add_parser(
        "launch",
        help=text,
        description=f"{text}. Ends with 0 when all is done, 1 when a job has failed. Interrupted, it ends what it"
        " started; run again, it goes on where it was.",
    )
    parser.add_argument("file", metavar="FILE", help="TOML; JSON and JSON lines where its name ends in .json or .jsonl")
    parser.add_argument("targets", metavar="JOB", nargs="*", help="only these jobs and all before them")
    parser.add_argument("--backend", metavar="NAME", help="the backend of every job, whatever the file says")
    parser.add_argument("--backend-options", metavar="TEXT", default="", help="options of the batch system's own")
    parser.add_argument("--state", metavar="DIRECTORY", help=f"what is known so far (default: FILE{STATE})")
    parser.add_argument("--again", action="store_true", help="do everything anew; how long it takes is remembered")
    parser.add_argument("--dry-run", action="store_true", help="show what would start when, and start nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Launch, or show the plan; the exit code. Raises UsageError, PoolError."""
    gc.disable()  # a million jobs are no garbage, and would be gone through again and again
    try:
        if args.backend:
            named(args.backend, System.open_backend, "--backend")
        launch = load_launch(args.file, args.backend)
        directory = args.state or args.file + STATE
        if args.dry_run:
            return _plan(args, launch, directory)
        state = StateDirectory(directory)
        try:
            with contextlib.closing(state.open_store(args.again)) as store:
                return _launch(args, launch, state, store)
        finally:
            state.close()
    finally:
        gc.unfreeze()
        gc.enable()


def _launch(args: argparse.Namespace, launch: LaunchFile, state: StateDirectory, store: Store) -> int:
    console = Console(sys.stderr)
    tag = state.state_of(store)
    store.commit()
    place = LaunchPlace(args.file, _key(args.file), state.path, tag)
    routes = Routes(_openers(launch, args.backend_options, place), console.say)
    try:
        _open_again(routes, store.open_starts())
        engine = Engine(store.rules())
        engine.add(map(routes.place, launch.works))
        if LOCAL not in routes.backends:  # which ends what a killed launch has left here when it is opened
            end_escaped(tag)
        additions = Additions(state.jobs, engine, store, launch.reader, routes.place, console.say)
        additions.mend()
        additions.look_first()
        earlier = recall(engine, store, engine.graph.jobs)
        _request(engine, launch, args.targets)

        def look() -> None:
            state.must_hold()
            additions.look()

        gc.freeze()
        gc.enable()
        starts = Starts(os.environ, state.output, state.jobs)
        runner = LaunchRunner(engine, routes.backends, store, starts, tag, console.say, look, take_up=not args.again)
        with _ended_by_signals(runner) as caught:
            try:
                runner.run(console.show)
            finally:
                routes.close()
    finally:
        routes.close()
        console.clear()
    if args.json:
        text = json_text(result_json(engine, starts, earlier, additions.refused))
    else:
        text = "\n".join(result_lines(engine, earlier))
    unwritten = put(f"{text}\n", sys.stdout)
    if caught:
        return _INTERRUPTED + caught[0]
    _check_written(unwritten)
    wanted = [job for request in engine.requests for job in request.targets or engine.graph.jobs]
    return 0 if not additions.refused and all(job.state == DONE for job in wanted) else 1


def _check_written(fault: OSError | None) -> None:
    """Raise PoolError where the result could not be written, BrokenPipeError where its reader has gone."""
    if isinstance(fault, BrokenPipeError):
        raise fault
    if fault is not None:
        raise PoolError(f"the result cannot be written: {fault.strerror}")


def _open_again(routes: Routes, starts: Iterable[OpenStart]) -> None:
    """Open the backends that have jobs of a run that was killed, though no job may name them now.

    Raises PoolError where one cannot be used now: elsewhere its jobs would run twice.
    """
    for name, found in Counter(start.backend for start in starts).items():
        if routes.opened(name) is None:
            raise PoolError(
                f"{found} jobs of an earlier run may still run in {name}: run this again when {name} can be used,"
                " or begin anew with another --state"
            )


def _request(engine: Engine, launch: LaunchFile, targets: list[str]) -> None:
    """Request the targets of the command line, else the file's requests, else everything."""
    if targets:
        engine.request(targets=targets)
        return
    for name, wanted in launch.requests.items():
        engine.request(name, wanted)
    if not launch.requests:
        engine.request()


def _openers(launch: LaunchFile, options: str, place: LaunchPlace) -> dict[str, Callable[[], Backend]]:
    return {
        one.name: partial(_open, one, launch.backends.get(one.name, {}), options if one.name != LOCAL else "", place)
        for one in offering(System.open_backend)
    }


def _open(system: System, settings: Mapping[str, object], options: str, place: LaunchPlace) -> Backend:
    """Open the backend; raises PoolUnreachable where it cannot be used here, UsageError for wrong settings."""
    try:
        return system.open_backend(settings, options, place)
    except ModuleNotFoundError as fault:
        raise PoolUnreachable(f"the Python package {fault.name} is not installed") from None
    except ImportError as fault:  # bindings of another HTCondor or Python than those here
        raise PoolUnreachable(f"the Python package {fault.name} cannot be used: {fault}") from None


def _key(file: str) -> str:
    """Return a short name of the launch, for the names of jobs in a batch system."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", os.path.basename(file).rpartition(".")[0] or "launch")[:30]


@contextlib.contextmanager
def _ended_by_signals(runner: LaunchRunner) -> Iterator[list[int]]:
    """End what was started at Ctrl-C, SIGTERM and SIGHUP; yield which of them came."""
    caught: list[int] = []

    def end(number: int, _: object) -> None:
        caught.append(number)
        runner.stop()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, end) for number in numbers if signal.getsignal(number) != signal.SIG_IGN}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _plan(args: argparse.Namespace, launch: LaunchFile, directory: str) -> int:
    """Print the plan: start times of jobs. Nothing is started, queried or written."""
    pools: dict[str, Mapping[str, int] | None] = {one.name: None for one in offering(System.open_backend)}
    scratch = directory if os.path.isdir(directory) else os.path.dirname(os.path.abspath(args.file))
    pools[LOCAL] = pool = pool_of(launch.backends.get(LOCAL, {}), scratch, args.file)
    store = None
    if not args.again and os.path.exists(f"{directory}/{FILE}"):
        store = Store(directory)
    try:
        engine = Engine(store.rules() if store else None)
        engine.add(_placed(work, pools) for work in launch.works)
        if store:
            place_here = partial(_placed, pools=pools)
            Additions(
                f"{directory}/{JOBS}", engine, store, launch.reader, place_here, Console(sys.stderr).say
            ).look_first()
        earlier = recall(engine, store, engine.graph.jobs) if store else 0
    finally:
        if store:
            store.close()
    _request(engine, launch, args.targets)
    planned = forecast(engine, pools)
    assumed = at_once(planned, pools)
    if args.json:
        text = json_text(plan_json(planned, earlier, assumed, pool))
    else:
        text = "\n".join(plan_lines(planned, earlier, assumed))
    _check_written(put(f"{text}\n", sys.stdout))
    return 0


def _placed(work: Work, pools: Mapping[str, Mapping[str, int] | None]) -> Work:
    """Return the job as it is, if it may run. Raises UsageError."""
    if work.backend not in pools:
        raise UsageError(f"job {work.name[:100]!a}: backend = {work.backend!a}: expected one of {', '.join(pools)}")
    pool = pools[work.backend]
    why = "" if pool is None else misfit(work.resources, pool)
    if why:
        raise UsageError(f"job {work.name[:100]!a}: it can never run in {LOCAL}: {why}")
    return work
