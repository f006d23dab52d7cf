"""`drainwise pilot run`: the reference pilot, which runs payloads on leased cores and reports what it would waste."""

from __future__ import annotations

import argparse
import contextlib
import os
import socket

from drainwise.cli.arguments import fine_seconds, whole
from drainwise.cli.command_line.options import MUST, Command, Option, option
from drainwise.cli.feature_places import METADATA, with_metadata
from drainwise.facts.errors import UsageError
from drainwise.pilot.decide.settings import WHILE_DRAINING, PilotSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drainwise.pilot.decide.estimates import RunTimeEstimates

_DEFAULTS = PilotSettings()
_SECONDS = {
    "margin": "stop everything so long before the lease or a deadline ends",
    "kill_wait": "from asking a payload to end (TERM) to ending it (KILL)",
    "term_grace": "what is left after SIGTERM when no deadline is known",
    "heartbeat": "longest time between two reports",
    "rest": "let the other values rest so long after CAN_POSTPONE_LAST_JOB went back to True",
    "poll": "look at the site's orders and the queue that often",
    "idle_limit": "leave when there was nothing to run for so long",
}


def run(args: argparse.Namespace) -> int:
    """Run the pilot to its end; 0 when it left in order. Raises UsageError and FeatureError before anything runs."""
    from drainwise.common.printable import Log
    from drainwise.pilot.channels import Channels, SiteNoticeReader
    from drainwise.pilot.decide.lease import ReturnedCores, lease_from
    from drainwise.pilot.lease_record import REPORT, write_exit_report
    from drainwise.pilot.processes import Processes
    from drainwise.pilot.queues.command import CommandQueue
    from drainwise.pilot.queues.directory import DirectoryQueue
    from drainwise.pilot.queues.records import PayloadQueue
    from drainwise.pilot.runner import PilotClock, PilotRunner
    from drainwise.processes.tree import adopt_orphans

    directory = os.path.realpath(args.directory)
    if not os.path.isdir(directory):
        raise UsageError(f"--directory {args.directory}: expected a directory")
    settings = PilotSettings(
        **{name: getattr(args, name) for name in _SECONDS},
        while_draining=args.while_draining,
        priority_factor=args.priority_factor,
    )
    clock, log, pilot = PilotClock(), Log(), pilot_id()
    environment = with_metadata(os.environ, args.metadata)
    lease = lease_from(environment, args.cores, args.seconds, clock.now())
    learned = None if args.estimate is None else _estimates(args.estimate, environment, lease.cores, log)
    # $JOBSTATUS is this pilot's: a pilot among its payloads must not write there.
    inner = {name: value for name, value in environment.items() if not name.endswith("JOBSTATUS")}
    queue: PayloadQueue | None = None
    if args.queue is not None:  # refused before anything of this process has changed
        queue = DirectoryQueue(os.path.realpath(args.queue), pilot, log)
    adopt_orphans()
    processes = Processes(directory, inner, pilot, settings.kill_wait)
    if queue is None:
        queue = command = CommandQueue(args.payload_command, directory, inner, pilot, log)
        processes.leave_alone(command.pid, command.gone)
    channels = Channels(directory, environment.get("JOBSTATUS"), lease.cores, log)
    notices = SiteNoticeReader(directory, environment, log)
    part = None if args.whole_lease else ReturnedCores(lease.cores, clock.now(), args.return_memory)
    runner = PilotRunner(
        pilot, lease, settings, queue, processes, channels, notices, log, clock, args.ignore_orders, learned, part
    )
    report = runner.run()
    fault = write_exit_report(directory, report)
    if fault:
        log(f"{REPORT}: {fault}")
    with contextlib.suppress(OSError):  # that nobody reads the line is no reason to end otherwise
        os.write(1, f"{report.as_line()}\n".encode("ascii"))
    return _end_machine(environment) if args.end_machine else 0


def _end_machine(environment: Mapping[str, str]) -> int:
    """Run the site's command that destroys this virtual machine; its exit code. Raises FeatureError."""
    from drainwise.features.read import open_features
    from drainwise.features.virtual_machine import shut_down

    location = environment.get("MACHINEFEATURES")
    if not location:
        raise UsageError("--end-machine: $MACHINEFEATURES is not set")
    return shut_down(open_features(location))


def _estimates(path: str, environment: Mapping[str, str], cores: int, log: Callable[[str], None]) -> RunTimeEstimates:
    """Read run-time estimates from the file of finished payloads; the site states the power of a core here."""
    from drainwise.common.neighbours import load
    from drainwise.common.service import Faults

    followed = load("drainwise_tasks.estimate.followed")
    power = followed.core_power_here(environment, cores)
    estimates: RunTimeEstimates = followed.FollowedRecords(os.path.realpath(path), power, Faults(log))
    return estimates


def pilot_id() -> str:
    """Return a name that no other pilot has, with random letters: process numbers may be a job's own."""
    host = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in socket.gethostname()[:40])
    return f"{host}-{os.getpid()}-{os.urandom(4).hex()}"


def _of_seconds(name: str, text: str) -> Option:
    default = getattr(_DEFAULTS, name)
    about = f"seconds, or such as 2m: {text} (default: {default:g})"
    return option(f"--{name.replace('_', '-')} DURATION", about, fine_seconds(), default=default)


_RUN = Command(
    "run payloads on leased cores until none is left, the lease ends or the site wants the cores back",
    (
        option("--cores N", "cores (default: all that $JOBFEATURES says; narrows it)", whole()),
        option(
            "--seconds DURATION",
            "length from now, seconds or such as 2h (default: what $JOBFEATURES says; narrows it)",
            fine_seconds(),
        ),
        option("--queue DIR", "directory of payloads, NAME.json each", one_of=MUST),
        option("--payload-command COMMAND", "shell command that prints one JSON payload per line", one_of=MUST),
        option("--directory DIR", "startup directory (default: the current one)", default="."),
        *(_of_seconds(name, text) for name, text in _SECONDS.items()),
        option(
            "--while-draining",
            "what may start while the pilot is ordered to leave (default: %(default)s)",
            choices=WHILE_DRAINING,
            default=_DEFAULTS.while_draining,
        ),
        option(
            "--priority-factor N",
            "worth of this pilot among its user's own, higher is better (default: %(default)s)",
            whole(),
            default=_DEFAULTS.priority_factor,
        ),
        option(
            "--estimate RECORDS",
            "expect of payloads what this file of finished ones says of their task",
        ),
        METADATA,
        option(
            "--end-machine",
            "in a virtual machine: at the end run the command that $MACHINEFEATURES/shutdown_command names",
        ),
        option("--ignore-orders", "report, and obey nothing (for rehearsals)"),
        option(
            "--return-memory MIB",
            "MiB of memory given back with each core (default: %(default)s)",
            whole(0),
            default=0,
        ),
        option("--whole-lease", "give back no cores before the end"),
    ),
    run,
)
COMMAND = Command(
    "run payloads on leased cores, and tell the site what it would waste", actions={"run": _RUN}, metavar="run"
)
