"""`drainwise launch FILE`: run a list of jobs with dependencies on this machine or in a batch system, to the end."""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from drainwise.cli.launch_output import Console, plan_json, plan_lines, put, result_json, result_lines
from drainwise.cli.text import json_text
from drainwise.errors import PoolError, PoolUnreachable, UsageError
from drainwise.launch.additions import Additions
from drainwise.launch.backend import Backend, Place
from drainwise.launch.engine import Engine
from drainwise.launch.file import LaunchFile, load_launch
from drainwise.launch.forecast import at_once, forecast
from drainwise.launch.job_reader import LOCAL
from drainwise.launch.local_pool import misfit, pool_of
from drainwise.launch.memory import recall
from drainwise.launch.route import Routes
from drainwise.launch.runner import Runner
from drainwise.launch.starts import Starts
from drainwise.launch.state_directory import JOBS, StateDirectory
from drainwise.launch.store import FILE, OpenStart, Store
from drainwise.launch.stray import end_strays
from drainwise.launch.work import DONE, Work

STATE = ".launch"
"""What the name of the state directory has behind that of the file."""
BACKENDS = {
    LOCAL: "drainwise.launch.local_backend",
    "slurm": "drainwise.slurm.launch_backend",
    "sge": "drainwise.sge.launch_backend",
    "htcondor": "drainwise.htcondor.launch_backend",
}
"""The modules with `open_backend(settings, options, place)`, imported when a job needs them."""
_INTERRUPTED = 128


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "run a list of jobs with dependencies: on this machine, in Slurm, Grid Engine or HTCondor"
    parser = subparsers.add_parser(
        "launch",
        help=text,
        description=f"{text}. Ends with 0 when all is done, 1 when a job has failed. Interrupted, it ends what it"
        " started; run again, it goes on where it was.",
    )
    parser.add_argument("file", metavar="FILE", help="TOML; JSON and JSON lines where its name ends in .json or .jsonl")
    parser.add_argument("targets", metavar="JOB", nargs="*", help="only these jobs and all before them")
    parser.add_argument("--backend", choices=tuple(BACKENDS), help="the backend of every job, whatever the file says")
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
    place = Place(args.file, _key(args.file), state.path, tag)
    routes = Routes(_openers(launch, args.backend_options, place), console.say)
    try:
        _open_again(routes, store.open_starts())
        engine = Engine(store.rules())
        engine.add(map(routes.place, launch.works))
        if LOCAL not in routes.backends:  # which ends what a killed launch has left here when it is opened
            end_strays(tag)
        additions = Additions(state.jobs, engine, store, launch.reader, routes.place, console.say)
        additions.mend()
        additions.look_first()
        earlier = recall(engine, store, engine.graph.jobs)
        _request(engine, launch, args.targets)
        gc.freeze()
        gc.enable()
        starts = Starts(os.environ, state.output, state.jobs)
        runner = Runner(
            engine, routes.backends, store, starts, tag, console.say, additions.look, take_up=not args.again
        )
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
    untold = put(f"{text}\n", sys.stdout)
    if caught:
        return _INTERRUPTED + caught[0]
    _check_told(untold)
    wanted = [job for request in engine.requests for job in request.targets or engine.graph.jobs]
    return 0 if not additions.refused and all(job.state == DONE for job in wanted) else 1


def _check_told(fault: OSError | None) -> None:
    """Raises PoolError where the result could not be written, BrokenPipeError where its reader has gone."""
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
    """What is wanted: the targets on the command line, else the file's requests, else everything."""
    if targets:
        engine.request(targets=targets)
        return
    for name, wanted in launch.requests.items():
        engine.request(name, wanted)
    if not launch.requests:
        engine.request()


def _openers(launch: LaunchFile, options: str, place: Place) -> dict[str, Callable[[], Backend]]:
    return {
        name: partial(_open, module, launch.backends.get(name, {}), options if name != LOCAL else "", place)
        for name, module in BACKENDS.items()
    }


def _open(module: str, settings: Mapping[str, object], options: str, place: Place) -> Backend:
    """Raises PoolUnreachable where the batch system cannot be used here, UsageError for wrong settings."""
    try:
        backend: Backend = importlib.import_module(module).open_backend(settings, options, place)
    except ModuleNotFoundError as fault:
        raise PoolUnreachable(f"the Python package {fault.name} is not installed") from None
    except ImportError as fault:  # bindings of another HTCondor or Python than those here
        raise PoolUnreachable(f"the Python package {fault.name} cannot be used: {fault}") from None
    return backend


def _key(file: str) -> str:
    """A short name of the launch, for the names of jobs in a batch system."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", os.path.basename(file).rpartition(".")[0] or "launch")[:30]


@contextlib.contextmanager
def _ended_by_signals(runner: Runner) -> Iterator[list[int]]:
    """Ctrl-C, SIGTERM and SIGHUP end what was started; which of them came."""
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
    """Say what would start when. Nothing is started, asked or written."""
    pools: dict[str, Mapping[str, int] | None] = dict.fromkeys(BACKENDS)
    scratch = directory if os.path.isdir(directory) else os.path.dirname(os.path.abspath(args.file))
    pools[LOCAL] = pool = pool_of(launch.backends.get(LOCAL, {}), scratch, args.file)
    store = None
    if not args.again and os.path.exists(f"{directory}/{FILE}"):
        store = Store(directory)
    try:
        engine = Engine(store.rules() if store else None)
        engine.add(_placed(work, pool) for work in launch.works)
        if store:
            place_here = partial(_placed, pool=pool)
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
    _check_told(put(f"{text}\n", sys.stdout))
    return 0


def _placed(work: Work, pool: Mapping[str, int]) -> Work:
    """The job as it is, if it may run. Raises UsageError."""
    if work.backend not in BACKENDS:
        raise UsageError(f"job {work.name[:100]!a}: backend = {work.backend!a}: expected one of {', '.join(BACKENDS)}")
    why = misfit(work.resources, pool) if work.backend == LOCAL else ""
    if why:
        raise UsageError(f"job {work.name[:100]!a}: it can never run in {LOCAL}: {why}")
    return work
