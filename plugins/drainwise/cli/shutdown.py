"""`drainwise shutdown`: plan, change, drop or show the shutdown of this machine that its jobs are notified of."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time

from drainwise.cli.arguments import seconds
from drainwise.cli.command_line.options import MAY, Command, option
from drainwise.cli.text import document
from drainwise.common.local_file import make_public
from drainwise.facts.errors import ConfigurationError, FeatureError, UsageError
from drainwise.facts.units import duration, parse_duration
from drainwise.features import planned_shutdown
from drainwise.node.settings import NodeSettings, load

DEFAULT_GRACE_SECS = 3600
DEFAULT_SETTINGS = "/etc/drainwise/node.conf"
TIMES = "expected UNIX seconds, a date such as 2026-11-21T18:00 or 2026-11-21T18:00+01:00, or +2h, +30m, +1h30m"


def run(args: argparse.Namespace) -> int:
    """Plan, cancel, or show; the exit code."""
    now, settings = int(time.time()), node_settings(args.settings)
    file = args.file or settings.shutdown_file
    if args.at is not None:
        grace = settings.whole("grace_secs") if args.grace is None else args.grace
        grace = DEFAULT_GRACE_SECS if grace is None else grace
        place = os.path.dirname(os.path.abspath(file))
        try:
            make_public(place)  # nobody else does, and the jobs' hooks must be able to enter it
        except OSError as fault:
            raise FeatureError(f"{place}: cannot be made: {fault.strerror}") from None
        planned_shutdown.plan(file, parse_time(args.at, now), now, grace, args.force)
    elif args.cancel:
        planned_shutdown.cancel(file)
    elif args.force:
        raise UsageError("--force goes with --at TIME")
    planned_shutdown.expire(file, now)
    planned, remark = planned_shutdown.read(file, now)
    if args.at is not None and args.file is None and not os.path.exists(args.settings):
        remark = remark or (
            f"no job is notified: no hook is installed here, as {args.settings} is missing; drainwise config writes it,"
            " --file PATH plans for hooks that read another file, --cancel drops the plan"
        )
    if args.json:
        print(json.dumps(document("shutdown", {"file": file, "shutdowntime": planned, "remark": remark})))
    elif planned is None:
        print("no shutdown is planned")
    else:
        print(f"shutdown planned for {local_time(planned)} ({planned}), in {duration(planned - now)}")
    if remark is not None:
        print(f"drainwise: {remark}", file=sys.stderr)
        return 1
    return 0


def node_settings(path: str) -> NodeSettings:
    """Read this node's settings; defaults where there are none. Raises ConfigurationError for a wrong file."""
    try:
        return load(path)
    except FileNotFoundError:
        return NodeSettings()
    except (OSError, ValueError) as fault:  # ValueError: no UTF-8, or a NUL in the path
        why = getattr(fault, "strerror", None) or str(fault)[:80]
        raise ConfigurationError(path, "", "", why, "the node's settings, a text file") from None


def parse_time(text: str, now: int, option: str = "--at") -> int:
    """Parse a time of a plan.

    Parameters: `option` names it in a message; `text` is UNIX seconds, an ISO 8601 date and time (local when it names
    no zone), or `+` and a duration with its units, counted from `now` (UNIX seconds).
    Returns: UNIX seconds. Raises: UsageError.
    """
    if text.isascii() and text.isdecimal() and len(text) <= 12:
        return int(text)
    if text.startswith("+"):
        try:
            return now + parse_duration(text[1:])  # with its unit: +2 may have been meant as hours
        except ValueError:
            raise UsageError(f"{option} {text[:40]!a}: {TIMES}") from None
    try:
        if not (len(text) > len("2026-11-21") and text[4] == text[7] == "-"):
            # A day without an hour is a slip: midnight has often gone by. Newer Pythons also take "1111111111111".
            raise ValueError(text)
        moment = datetime.datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)
        return int(moment.timestamp())
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"{option} {text[:40]!a}: {TIMES}") from None


def local_time(time_secs: int) -> str:
    """Print UNIX seconds as local date and time with zone."""
    return datetime.datetime.fromtimestamp(time_secs).astimezone().isoformat(sep=" ")


COMMAND = Command(
    "plan, change, cancel or show the shutdown of this machine that its jobs are notified of",
    (
        option("--at TIME", f"plan it: {TIMES.partition('expected ')[2]}", one_of=MAY),
        option("--cancel", "drop the plan", one_of=MAY),
        option("--file PATH", "the plan (default: the shutdown_file of the settings)"),
        option(
            "--grace DURATION",
            f"least notice, seconds or such as 1h (default: grace_secs of the settings, else {DEFAULT_GRACE_SECS})",
            seconds(),
        ),
        option("--settings PATH", "the node's settings (default: %(default)s)", default=DEFAULT_SETTINGS),
        option("--force", "plan it although it is nearer than the grace"),
        option("--json", "print JSON"),
    ),
    run,
)
