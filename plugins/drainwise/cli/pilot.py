"""`drainwise pilot run`: the reference pilot, which runs payloads on leased cores and tells what it would waste."""

from __future__ import annotations

import argparse
import contextlib
import os
import socket

from drainwise.errors import UsageError
from drainwise.pilot.settings import WHILE_DRAINING, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drainwise.pilot.estimates import Estimates

_DEFAULTS = Settings()
_SECONDS = {
    "margin": "stop everything that long before the end of the lease or a deadline",
    "kill_wait": "from asking a payload to end (TERM) to ending it (KILL)",
    "term_grace": "what is left after SIGTERM when no deadline is known",
    "heartbeat": "longest time between two reports",
    "poll": "look at the site's orders and the queue that often",
    "idle_limit": "leave when there was nothing to run for so long",
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its one sub-command."""
    parser = subparsers.add_parser("pilot", help="run payloads on leased cores, and tell the site what it would waste")
    actions = parser.add_subparsers(dest="action", metavar="run", required=True)
    text = "run payloads on leased cores until none is left, the lease ends or the site wants the cores back"
    action = actions.add_parser("run", help=text, description=text)
    action.add_argument(
        "--cores", type=int, metavar="N", help="cores (default: all that $JOBFEATURES says; narrows it)"
    )
    action.add_argument(
        "--seconds", type=float, metavar="S", help="length from now (default: what $JOBFEATURES says; narrows it)"
    )
    source = action.add_mutually_exclusive_group(required=True)
    source.add_argument("--queue", metavar="DIR", help="directory of payloads, NAME.json each")
    source.add_argument(
        "--payload-command", metavar="COMMAND", help="shell command that prints one JSON payload per line"
    )
    action.add_argument("--directory", metavar="DIR", default=".", help="startup directory (default: the current one)")
    for name, text in _SECONDS.items():
        default = getattr(_DEFAULTS, name)
        option = f"--{name.replace('_', '-')}"
        action.add_argument(
            option, type=float, metavar="S", default=default, help=f"seconds: {text} (default: {default:g})"
        )
    action.add_argument(
        "--while-draining",
        choices=WHILE_DRAINING,
        default=_DEFAULTS.while_draining,
        help="what may start while the pilot is asked to leave (default: %(default)s)",
    )
    action.add_argument(
        "--priority-factor",
        type=int,
        metavar="N",
        default=_DEFAULTS.priority_factor,
        help="worth of this pilot among its user's own, higher is better (default: %(default)s)",
    )
    action.add_argument(
        "--estimate",
        metavar="RECORDS",
        help="expect of payloads what this file of finished ones says of their task; it is followed while it grows",
    )
    action.add_argument("--deaf", action="store_true", help="report, and take no notice of anything (for rehearsals)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the pilot to its end; 0 when it left in order. Raises UsageError and FeatureError before anything runs."""
    from drainwise.pilot.channels import Channels
    from drainwise.pilot.exit_report import REPORT, write_exit_report
    from drainwise.pilot.lease import lease_from
    from drainwise.pilot.log import Log
    from drainwise.pilot.payload_queue import PayloadQueue
    from drainwise.pilot.pilot_clock import PilotClock
    from drainwise.pilot.process_tree import adopt_orphans
    from drainwise.pilot.processes import Processes
    from drainwise.pilot.queue_command import CommandQueue
    from drainwise.pilot.queue_directory import DirectoryQueue
    from drainwise.pilot.runner import Runner
    from drainwise.pilot.watch import Watch

    directory = os.path.realpath(args.directory)
    if not os.path.isdir(directory):
        raise UsageError(f"--directory {args.directory}: expected a directory")
    settings = Settings(
        **{name: getattr(args, name) for name in _SECONDS},
        while_draining=args.while_draining,
        priority_factor=args.priority_factor,
    )
    clock, log, pilot = PilotClock(), Log(), pilot_id()
    environment = dict(os.environ)
    lease = lease_from(environment, args.cores, args.seconds, clock.now())
    learned = None if args.estimate is None else _estimates(args.estimate, environment, lease.cores, log)
    # $JOBSTATUS is this pilot's: a pilot among its payloads must not write there.
    inner = {name: value for name, value in environment.items() if not name.endswith("JOBSTATUS")}
    adopt_orphans()
    processes = Processes(directory, inner, pilot, settings.kill_wait)
    queue: PayloadQueue
    if args.queue is not None:
        queue = DirectoryQueue(os.path.realpath(args.queue), pilot, log)
    else:
        queue = command = CommandQueue(args.payload_command, directory, inner, pilot, log)
        processes.leave_alone(command.pid, command.gone)
    channels = Channels(directory, environment.get("JOBSTATUS"), lease.cores, log)
    watch = Watch(directory, environment, log)
    report = Runner(pilot, lease, settings, queue, processes, channels, watch, log, clock, args.deaf, learned).run()
    fault = write_exit_report(directory, report)
    if fault:
        log(f"{REPORT}: {fault}")
    with contextlib.suppress(OSError):  # that nobody reads the line is no reason to end otherwise
        os.write(1, f"{report.as_line()}\n".encode("ascii"))
    return 0


def _estimates(path: str, environment: Mapping[str, str], cores: int, log: Callable[[str], None]) -> Estimates:
    """What the file of finished payloads says; the power of a core here is what the site says of it."""
    from drainwise.estimate.followed import FollowedRecords
    from drainwise.estimate.node_power import core_power_here
    from drainwise.pilot.log import Faults

    return FollowedRecords(os.path.realpath(path), core_power_here(environment, cores), Faults(log))


def pilot_id() -> str:
    """A name that no other pilot has: process numbers may be a job's own, so that something random belongs to it."""
    host = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in socket.gethostname()[:40])
    return f"{host}-{os.getpid()}-{os.urandom(4).hex()}"
