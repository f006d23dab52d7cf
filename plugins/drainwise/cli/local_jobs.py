"""What a user of the local batch system does with jobs: `drainwise local submit | queue | remove | wait`."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
import time
from collections.abc import Sequence

from drainwise.cli.local_queue import job_as_json, queue_table
from drainwise.cli.text import json_text
from drainwise.errors import UsageError
from drainwise.local.job import ENDED, JobRequest
from drainwise.local.schedule import choose_starts, holdings
from drainwise.local.store import Store
from drainwise.local.wake import wake_daemon

_LOOK = 0.2  # seconds between looks at the state while waiting


def submit(args: argparse.Namespace, directory: str) -> int:
    """Put jobs into the queue and print their numbers; the exit code."""
    command = args.command_line[1:] if args.command_line[:1] == ["--"] else args.command_line
    if not command:
        raise UsageError("no command: put it behind --, as in `drainwise local submit --account alice -- sleep 60`")
    request = JobRequest(
        account=args.account,
        user=args.user or _login_name(),
        cores=args.cores,
        command=tuple(command),
        wall_limit=args.wall,
        priority=args.priority,
        environment=dict(_variable(text) for text in args.env),
    )
    with Store(directory) as store:
        ids = store.submit(request, time.time(), args.count)
    wake_daemon(directory)
    print(*ids, sep="\n")
    return 0


def queue(args: argparse.Namespace, directory: str) -> int:
    """Show the jobs; the exit code."""
    with Store(directory) as store:
        jobs = store.jobs(ended=args.all)
        if args.json:
            print(json_text([job_as_json(job, store.events(job.job_id)) for job in jobs]))
            return 0
        now = int(time.time())
        state = store.state(now)
    schedule = choose_starts(state.waiting, holdings(state.live), state.nodes, state.accounts, now)
    kept = {one.job_id: f"next on {one.node}" for one in schedule.reservations}
    print(queue_table(jobs, kept, now))
    return 0


def remove(args: argparse.Namespace, directory: str) -> int:
    """End jobs; the exit code."""
    with Store(directory) as store:
        removed = store.remove(args.job, time.time())
    wake_daemon(directory)
    for job_id in args.job:
        print(f"job {job_id} {'is removed' if job_id in removed else 'has ended or is removed already'}")
    return 0


def wait(args: argparse.Namespace, directory: str) -> int:
    """Wait until jobs have ended; 1 when one did not end with 0, or not in time."""
    ends = None if args.timeout is None else time.monotonic() + args.timeout
    with Store(directory) as store:
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
    """`NAME=VALUE`, or `NAME` with the value it has here."""
    name, equals, value = text.partition("=")
    if not equals:
        if name not in os.environ:
            raise UsageError(f"--env {name[:60]!a}: it is not set here; say NAME=VALUE")
        value = os.environ[name]
    return name, value


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
