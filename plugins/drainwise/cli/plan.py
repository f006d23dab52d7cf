"""`drainwise plan`: what a cycle would do now and why, or what if so many cores were needed; it touches nothing."""

from __future__ import annotations

import argparse
import dataclasses
import json
import time

from drainwise.cli.agent_place import journal_to_look_at, memory_of
from drainwise.cli.durations import seconds
from drainwise.cli.pool_options import add_pool_options, open_pool, settings_of
from drainwise.cli.text import json_text
from drainwise.errors import UsageError
from drainwise.pool import Snapshot
from drainwise.reclaim.plan import make_plan
from drainwise.reclaim.plan_json import as_json
from drainwise.reclaim.policy import for_comparison
from drainwise.reclaim.question import Question
from drainwise.reclaim.snapshot_json import snapshot_from_json


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "what a reclaim cycle would do now, and why"
    parser = subparsers.add_parser("plan", help=text, description=text)
    add_pool_options(parser)
    parser.add_argument(
        "--cores", type=_cores, metavar="N", help="plan for N cores, whatever is owed and without a cycle's limits"
    )
    parser.add_argument("--user", help="with --cores: from this user alone, over quota or not")
    parser.add_argument(
        "--horizon",
        type=seconds,
        metavar="S",
        help="the cores must be back within this: seconds, or a duration such as 2h (default: the site's)",
    )
    parser.add_argument(
        "--snapshot", metavar="FILE", help="decide on what `drainwise snapshot` wrote, at the time when it did"
    )


def run(args: argparse.Namespace) -> int:
    """Show the plan; the exit code. Raises PoolUnreachable, and UsageError for what cannot be planned."""
    settings = settings_of(args)
    if args.policy is not None:
        settings = for_comparison(settings)
    if args.horizon is not None:
        settings = dataclasses.replace(settings, horizon=args.horizon)
    if args.user is not None and args.cores is None:
        raise UsageError("--user needs --cores: how many are wanted of this user?")
    question = None if args.cores is None else Question(args.cores, args.user)
    snapshot = open_pool(args).snapshot(int(time.time())) if args.snapshot is None else _saved(args.snapshot)
    # What the agent remembers counts in its next cycle; a question and a saved snapshot have nothing to do with it.
    journal = journal_to_look_at(args) if question is None and args.snapshot is None else None
    record = memory_of(journal, must_read=False).record(snapshot.taken, settings)
    plan = make_plan(snapshot, snapshot.taken, settings, record, question)
    if args.json:
        print(json_text(as_json(plan)))
        return 0
    from drainwise.cli.tables import console, show_plan

    show_plan(console(), plan, snapshot.taken)
    return 0


def _saved(path: str) -> Snapshot:
    """The snapshot in a file. Raises UsageError when there is none."""
    try:
        with open(path, encoding="utf-8") as stream:
            value = json.load(stream)
    except OSError as fault:
        raise UsageError(f"{path}: {fault.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path}: not JSON, so not what `drainwise snapshot` writes") from None
    try:
        return snapshot_from_json(value)
    except UsageError as fault:
        raise UsageError(f"{path}: {fault}") from None


def _cores(text: str) -> int:
    """A number of cores that can be asked for."""
    if not (text.isascii() and text.isdigit() and int(text[:10]) > 0 and len(text) < 10):
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: expected a whole number of cores, 1 or more")
    return int(text)
