"""`drainwise launch FILE`: run a list of jobs with dependencies on this machine or in a batch system, to the end."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TextIO

from drainwise.cli.arguments import whole
from drainwise.cli.command_line.options import Command, option
from drainwise.cli.text import document, json_text
from drainwise.common.printable import printable
from drainwise.facts.errors import PoolError, PoolUnreachable, UsageError
from drainwise_launch.backend import Backend, LaunchPlace
from drainwise_launch.backends import OpenBackend, opener, openers
from drainwise_launch.choice.engine import Engine
from drainwise_launch.choice.work import BLOCKED, DONE, FAILED, READY, SKIPPED, STARTED
from drainwise_launch.files.job_reader import LOCAL
from drainwise_launch.files.launch_file import LaunchFile, load_launch, options_by_backend
from drainwise_launch.run.earlier_runs import recall, take_in_unseen_ends
from drainwise_launch.run.route import Routes
from drainwise_launch.run.runner import LaunchRunner, Progress
from drainwise_launch.run.starts import Starts
from drainwise_launch.run.state_directory import FORMER_JOBS, StateDirectory
from drainwise_launch.run.store import OpenStart, Store
from drainwise_launch.this_machine.process import end_escaped

_EVERY = 0.2
_SHARE = 20
"""The bar takes a twentieth of the time at most."""
_COLUMNS = 80


class Console:
    """The progress bar on a terminal's last line; without a terminal only what is said.

    Nobody need be there to read it: a terminal that was closed ends nothing that runs.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._next = 0.0
        self._shown = False

    def say(self, text: str) -> None:
        """Print one line that stays."""
        self._put(f"{self._taken_away()}drainwise: {printable(' '.join(text.split()))}\n")

    def show(self, progress: Progress) -> None:
        """Move the bar, a few times a second; ever more rarely where that takes its time."""
        begin = time.monotonic()
        if not self._is_terminal or begin < self._next:
            return
        self._put(f"\r{progress.line(time.time(), self._width() - 1)}\x1b[K")
        self._shown = True
        end = time.monotonic()
        self._next = end + max(_EVERY, _SHARE * (end - begin))

    def clear(self) -> None:
        """Take the bar away."""
        self._put(self._taken_away())

    def _taken_away(self) -> str:
        was_shown, self._shown = self._shown, False
        return "\r\x1b[K" if was_shown else ""

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or _COLUMNS
        except OSError:
            return _COLUMNS

    def _put(self, text: str) -> None:
        if text:
            put(text, self._stream)


def put(text: str, stream: TextIO) -> OSError | None:
    """Write it at once; why it cannot be written, where nobody is there to read: then nothing is any more."""
    try:
        stream.write(text)
        stream.flush()
    except OSError as fault:
        with open(os.devnull, "wb") as null:  # what is buffered still would fail at the end again
            os.dup2(null.fileno(), stream.fileno())
        return fault
    return None


def check_written(fault: OSError | None) -> None:
    """Raise PoolError where the result could not be written, BrokenPipeError where its reader has gone."""
    if isinstance(fault, BrokenPipeError):
        raise fault
    if fault is not None:
        raise PoolError(f"the result cannot be written: {fault.strerror}")


def result_lines(engine: Engine, earlier: int) -> list[str]:
    """Return the number of jobs by their ends, in a line."""
    counts = _counts(engine)
    parts = [f"{counts[DONE]} done" + (f" ({earlier} of them earlier)" if earlier else "")]
    for state, words in ((FAILED, "failed"), (SKIPPED, "not run, as one before them failed")):
        if counts[state]:
            parts.append(f"{counts[state]} {words}")
    left = counts[BLOCKED] + counts[READY] + counts[STARTED]
    if left:
        parts.append(f"{left} left")
    return [", ".join(parts)]


def result_json(engine: Engine, starts: Starts, earlier: int) -> dict[str, object]:
    """Return the end of each job, for programs; times in seconds."""
    return {
        "jobs": [
            {
                "name": job.name,
                "state": job.state,
                "code": job.code,
                "seconds": None if job.seconds is None else round(job.seconds, 6),
                "backend": job.work.backend,
                "output": starts.output_of(job),
                "why": job.why,
            }
            for job in engine.graph.jobs
        ],
        "counts": _counts(engine),
        "done_earlier": earlier,
    }


def _counts(engine: Engine) -> dict[str, int]:
    counts = dict.fromkeys((DONE, FAILED, SKIPPED, BLOCKED, READY, STARTED), 0)
    for job in engine.graph.jobs:
        counts[job.state] += 1
    return counts


STATE = ".launch"
"""The suffix of the state directory behind the name of the file."""
_INTERRUPTED = 128


def run(args: argparse.Namespace) -> int:
    """Launch; return the exit code. Raises UsageError, PoolError."""
    if args.dry_run:
        raise UsageError("--dry-run: a launch is no longer planned in advance, and nothing was started; leave it out")
    gc.disable()  # a million jobs are no garbage, and would be gone through again and again
    try:
        if args.backend:
            opener(args.backend)
        launch = load_launch(args.file, None if args.backend == LOCAL else args.backend)
        state = StateDirectory(args.state or args.file + STATE)
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
    place = LaunchPlace(args.file, _key(args.file), state.path, tag, console.say)
    routes = Routes(_openers(launch, args.backend_options, place), console.say, only_here=args.backend == LOCAL)
    try:
        _open_again(routes, store.open_starts())
        engine = Engine(store.rules())
        engine.add(map(routes.place, launch.works))
        if LOCAL not in routes.backends:  # which ends what a killed launch has left here when it is opened
            end_escaped(tag)
        if os.path.exists(former := f"{state.path}/{FORMER_JOBS}"):
            console.say(
                f"{former}: jobs that jobs add are run no more: write them into {args.file}, and remove this file"
            )
        take_in_unseen_ends(engine, store, state.unseen, args.again)
        earlier = recall(engine, store)
        launch.request(engine, args.targets)
        gc.freeze()
        gc.enable()
        starts = Starts(os.environ, state.output)
        runner = LaunchRunner(
            engine,
            routes.backends,
            store,
            starts,
            tag,
            console.say,
            state.must_hold,
            take_up=not args.again,
            at_once=args.jobs,
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
        text = json_text(document("launch", result_json(engine, starts, earlier)))
    else:
        text = "\n".join(result_lines(engine, earlier))
    unwritten = put(f"{text}\n", sys.stdout)
    if caught:
        return _INTERRUPTED + caught[0]
    check_written(unwritten)
    wanted = [job for request in engine.requests for job in request.targets or engine.graph.jobs]
    return 0 if all(job.state == DONE for job in wanted) else 1


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


def _openers(launch: LaunchFile, texts: list[str], place: LaunchPlace) -> dict[str, Callable[[], Backend]]:
    found = openers()
    options = options_by_backend(texts, found, {work.backend for work in launch.works} - {LOCAL})
    return {
        name: partial(_open, opens, launch.backends.get(name, {}), options.get(name, ""), place)
        for name, opens in found.items()
    }


def _open(opens: OpenBackend, settings: Mapping[str, object], options: str, place: LaunchPlace) -> Backend:
    """Open the backend; raises PoolUnreachable where it cannot be used here, UsageError for wrong settings."""
    try:
        return opens(settings, options, place)
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


_ABOUT = "run a list of jobs with dependencies: on this machine or in a batch system"
COMMAND = Command(
    _ABOUT,
    (
        option("file FILE", "TOML; JSON and JSON lines where its name ends in .json or .jsonl"),
        option("targets JOB", "only these jobs and all before them", nargs="*"),
        option("--backend NAME", "the backend of every job, whatever the file says"),
        option(
            "-l --local",
            "run every job on this machine: --backend local",
            dest="backend",
            action="store_const",
            const=LOCAL,
        ),
        option(
            "--backend-options [NAME:]TEXT",
            "options of the batch system's own, for one of several with its NAME:; repeatable",
            action="append",
            default=[],
        ),
        option("-j --jobs N", "at most so many jobs at once in each backend", whole(1, 10**9)),
        option("--state DIRECTORY", f"what is known so far (default: FILE{STATE})"),
        option("--again", "do everything anew; how long it takes is remembered"),
        option("--dry-run", argparse.SUPPRESS),
        option("--json", "print JSON"),
    ),
    run,
    f"{_ABOUT}. Ends with 0 when all is done, 1 when a job has failed. Interrupted, it ends what it started; run again,"
    " it goes on where it was.",
)
