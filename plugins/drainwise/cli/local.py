"""`drainwise local`: the embedded batch system: start and stop it, its accounts, submit, look at and remove jobs."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence

from drainwise.cli.arguments import seconds, whole
from drainwise.cli.command_line.options import MAY, Command, Option, option
from drainwise.cli.screen.layout import Paper, headings_of, table
from drainwise.cli.text import document, json_text
from drainwise.common.printable import printable
from drainwise.facts.errors import UsageError
from drainwise.facts.units import duration
from drainwise.local.control import start_daemon, stop_daemon
from drainwise.local.job import ENDED, AccountQuota, JobRequest, LocalJob, login_name, parse_nodes
from drainwise.local.leases import DaemonSettings
from drainwise.local.schedule import choose_starts, cores_of, holdings
from drainwise.local.store import JobEvent, LocalStore
from drainwise.local.system import DIRECTORY_HELP, default_directory
from drainwise.local.wake import wake_daemon

DEFAULT_WALL_LIMIT = "1d"
_LOOK = 0.2  # seconds between looks at the state while waiting
_LONGEST = 40
_HEADINGS = headings_of(
    *(">job", "account", "user", ">cores", "state", "node", ">run time", ">time left", "command", "remark")
)


def _start(args: argparse.Namespace, directory: str) -> int:
    pid = start_daemon(
        directory, DaemonSettings(kill_wait=args.kill_wait), parse_nodes(args.nodes) if args.nodes else ()
    )
    print(f"the local batch system in {printable(directory)} is served by pid {pid}")
    return 0


def _serve(args: argparse.Namespace, directory: str) -> int:
    from drainwise.local.control import to_file, to_terminal
    from drainwise.local.daemon import Daemon

    say = to_terminal if args.foreground else to_file(directory)
    nodes = parse_nodes(args.nodes) if args.nodes else ()
    daemon = Daemon(directory, DaemonSettings(kill_wait=args.kill_wait), say, nodes)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: daemon.stop())
    try:
        daemon.run()
        if args.kill_leases:
            daemon.end_leases()
    finally:
        daemon.close()
    return 0


def _stop(args: argparse.Namespace, directory: str) -> int:
    print(stop_daemon(directory, args.kill))
    return 0


def _account(args: argparse.Namespace, directory: str) -> int:
    change = args.remove or args.quota is not None
    if change and args.name is None:
        raise UsageError("which account? `drainwise local account NAME --quota CORES`")
    with LocalStore(directory, create=args.quota is not None) as store:
        if args.remove:
            store.drop_account(args.name)
        elif args.quota is not None:
            store.set_account(AccountQuota(args.name, args.quota))
        accounts = [one for one in store.accounts() if args.name in {None, one.name} or change]
        cores = sum(node.cores for node in store.nodes())
    if args.name is not None and not accounts and not change:
        raise UsageError(f"account {args.name[:100]!a}: there is none of that name")
    if args.json:
        shown = [document("local account", {"name": one.name, "quota": one.quota}) for one in accounts]
        print(json_text(shown))
        return 0
    for one in accounts:
        print(f"{one.name:<20} {one.quota:>7} cores")
    owed = sum(one.quota for one in accounts)
    if cores and owed > cores and (change or args.name is None):
        print(f"drainwise: the quotas promise {owed} cores, the nodes have {cores}", file=sys.stderr)
    return 0


def _submit(args: argparse.Namespace, directory: str) -> int:
    """Put jobs into the queue and print their numbers; the exit code."""
    command = args.command_line[1:] if args.command_line[:1] == ["--"] else args.command_line
    if not command:
        raise UsageError("no command: put it behind --, as in `drainwise local submit --account alice -- sleep 60`")
    request = JobRequest(
        account=args.account,
        user=args.user or login_name(),
        cores=args.cores,
        command=tuple(command),
        wall_limit=args.wall,
        priority=args.priority,
        environment=dict(_variable(text) for text in args.env),
    )
    with LocalStore(directory) as store:
        ids = store.submit(request, time.time(), args.count)
    wake_daemon(directory)
    print(*ids, sep="\n")
    return 0


def _queue(args: argparse.Namespace, directory: str) -> int:
    """Show the jobs; the exit code."""
    with LocalStore(directory) as store:
        jobs = store.jobs(ended=args.all)
        if args.json:
            shown = [document("local job", _as_json(job, store.events(job.job_id))) for job in jobs]
            print(json_text(shown))
            return 0
        now = int(time.time())
        state = store.state(now)
    returned = state.returned(now)
    schedule = choose_starts(state.waiting, holdings(state.live, returned), state.nodes, state.accounts, now)
    kept = {one.job_id: f"next on {one.node}" for one in schedule.reservations}
    rows = [_row(job, kept.get(job.job_id, ""), cores_of(job, returned), now) for job in jobs]
    print("\n".join(table(_HEADINGS, rows, Paper())[0]))
    return 0


def _ask_for_part(args: argparse.Namespace, directory: str) -> int:
    """Ask the pilot in a job for some of its cores; the exit code."""
    now = time.time()
    with LocalStore(directory) as store:
        job = store.job(args.job)
        if job is None:
            raise UsageError(f"job {args.job}: there is none of that number")
        by = None if args.within is None else int(now) + args.within
        store.ask_for_part(job.run, args.cores, by, args.chunk, now, "on request")
    wake_daemon(directory)
    return 0


def _row(job: LocalJob, kept: str, cores: str, now: int) -> tuple[str, ...]:
    request, ended = job.request, job.state == ENDED
    ran = "" if not job.started else duration(max(0, int(job.ended or now) - job.started))
    left = "" if ended or not job.started else duration(job.lease_end - now)
    command = printable(" ".join(request.command))
    return (
        str(job.job_id),
        request.account,
        request.user,
        cores,
        job.state,
        job.node,
        ran,
        left,
        command if len(command) <= _LONGEST else command[: _LONGEST - 1] + "…",
        printable(_remark(job) or kept),
    )


def _remark(job: LocalJob) -> str:
    if job.state != ENDED:
        ordered = "" if job.deadline is None else "ordered to leave"
        return ", ".join(text for text in (ordered, "removed" if job.removed else "", job.note) if text)
    how = "" if job.code is None else f"ended with {job.code}"
    if job.signal is not None:
        how = f"ended by {_signal_name(job.signal)}"
    return f"{how}: {job.note}" if how and job.note else how or job.note


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _as_json(job: LocalJob, events: Sequence[JobEvent]) -> dict[str, object]:
    """Return one job as plain values: times in UNIX s, null where it has not come to that; no variables."""
    request, plain = job.request, ("deadline", "removed", "ended", "code", "signal", "note")
    return {
        "job_id": job.job_id,
        **{name: getattr(request, name) for name in ("account", "user", "cores")},
        "command": list(request.command),
        "wall_limit": request.wall_limit,
        "priority": request.priority,
        "submitted": job.submitted,
        "state": job.state,
        **{name: getattr(job, name) or None for name in ("node", "run", "started")},
        "lease_end": job.lease_end if job.started else None,
        **{name: getattr(job, name) for name in plain},
        "events": [{"time": event.time, "text": event.text} for event in events],
    }


def _remove(args: argparse.Namespace, directory: str) -> int:
    """End jobs; the exit code."""
    with LocalStore(directory) as store:
        removed = store.remove(args.job, time.time())
    wake_daemon(directory)
    for job_id in args.job:
        print(f"job {job_id} {'is removed' if job_id in removed else 'has ended or is removed already'}")
    return 0


def _wait(args: argparse.Namespace, directory: str) -> int:
    """Wait until jobs have ended; 1 when one did not end with 0, or not in time."""
    ends = None if args.timeout is None else time.monotonic() + args.timeout
    with LocalStore(directory) as store:
        wanted = args.job or [job.job_id for job in store.jobs()]
        open_jobs, failed = set(wanted), []
        while open_jobs:
            for job_id in sorted(open_jobs):
                job = store.job(job_id)
                if job is None:
                    raise UsageError(f"job {job_id}: there is none of that number")
                if job.state == ENDED:
                    open_jobs.discard(job_id)
                    failed += [] if job.code == 0 else [job_id]
            if open_jobs and ends is not None and time.monotonic() >= ends:
                print(f"drainwise: not ended in time: {_some(sorted(open_jobs))}", file=sys.stderr)
                return 1
            if open_jobs:
                time.sleep(_LOOK)
    if failed:
        print(f"drainwise: did not end with 0: {_some(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _some(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:10])
    return f"{shown} and {len(numbers) - 10} more" if len(numbers) > 10 else shown


def _variable(text: str) -> tuple[str, str]:
    """Parse `NAME=VALUE`, or `NAME` with the value it has here."""
    name, equals, value = text.partition("=")
    if not equals:
        if name not in os.environ:
            raise UsageError(f"--env {name[:60]!a}: it is not set here; say NAME=VALUE")
        value = os.environ[name]
    return name, value


def _action(text: str, act: Callable[[argparse.Namespace, str], int], *options: Option) -> Command:
    """Return a sub-command that acts in the directory of the batch system's state."""
    own = option("--directory DIR", DIRECTORY_HELP)
    return Command(text, (own, *options), lambda args: act(args, args.directory or default_directory()))


_DAEMON = (
    option("--nodes NxC", "N made-up nodes of C cores, such as 4x16 (default: those of the last start)"),
    option("--kill-wait DURATION", "from SIGTERM to SIGKILL (default: 10s)", seconds(), default=10),
)
COMMAND = Command(
    "the embedded batch system: leases are processes on this machine",
    actions={
        "start": _action("start the daemon in the background", _start, *_DAEMON),
        "serve": _action(
            "run the daemon here until it is interrupted; leases go on",
            _serve,
            *_DAEMON,
            option("--foreground", "show the log here instead of writing it to a file"),
            option("--kill-leases", "end the leases, too, when it is interrupted"),
        ),
        "stop": _action(
            "stop the daemon; leases go on and are found again",
            _stop,
            option("--kill", "end the leases, too, also when no daemon runs"),
        ),
        "account": _action(
            "show the accounts, or make, change or remove one",
            _account,
            option("name NAME", None, nargs="?"),
            option("--quota CORES", "cores it is owed; it may use more while they are free", whole(), MAY),
            option("--remove", "remove it", one_of=MAY),
            option("--json", "print JSON"),
        ),
        "submit": _action(
            "put jobs into the queue and print their numbers; also while no daemon runs",
            _submit,
            option("--account NAME", "whose quota they use", required=True),
            option("--user NAME", "whose pilots they are called (default: the login name)"),
            option("--cores CORES", "of one node (default: 1)", whole(), default=1),
            option("--wall DURATION", "longest run time (default: 1d)", seconds(), default=DEFAULT_WALL_LIMIT),
            option("--priority PRIORITY", "of one account the highest starts first (default: 0)", whole(), default=0),
            option("--count COUNT", "how many of them (default: 1)", whole(), default=1),
            option("--env NAME[=VALUE]", "a variable for the job", action="append", default=[]),
            option("command_line COMMAND", "-- COMMAND ARGUMENTS…", nargs=argparse.REMAINDER),
        ),
        "queue": _action(
            "show the jobs",
            _queue,
            option("--all", "those that have ended, too"),
            option("--json", "print JSON: times in UNIX s"),
        ),
        "remove": _action(
            "end jobs: SIGTERM, and SIGKILL after the daemon's --kill-wait",
            _remove,
            option("job", "number of a job", whole(), nargs="+"),
        ),
        "return": _action(
            "ask the pilot in a job to return some of its cores and to go on with the others",
            _ask_for_part,
            option("job", "number of the job", whole()),
            option("--cores N", "in all, with those that it has returned; 0: none", whole(0), required=True),
            option("--within DURATION", "no more are asked for after that, such as 2h (default: never)", seconds()),
            option("--chunk N", "cores that are of use only together", whole(1), default=1),
        ),
        "wait": _action(
            "wait until jobs have ended; 1 when one did not end with 0",
            _wait,
            option("job", "number of a job (default: all that wait or run)", whole(), nargs="*"),
            option("--timeout DURATION", "give up after that, such as 10m, and end with 1", seconds()),
        ),
    },
)
