"""`drainwise plan`: show a cycle's plan and its reasons, or a what-if with more cores needed; it touches nothing."""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from functools import partial

from drainwise.cli.agent_place import history_of, journal_to_look_at, requests_of
from drainwise.cli.arguments import filters, only_one, seconds, wanted_of, whole
from drainwise.cli.command_line.options import Command, option
from drainwise.cli.pool_options import DECISION, open_pool, settings_of
from drainwise.cli.screen.layout import standard_output
from drainwise.cli.text import show
from drainwise.common.garbage import without_collection
from drainwise.facts.errors import UsageError
from drainwise.pool.facts import Snapshot
from drainwise.pool.snapshot_json import snapshot_from_json
from drainwise.reclaim.history import History
from drainwise.reclaim.prices import for_comparison
from drainwise.reclaim.quota import WhatIf, balance_for


def run(args: argparse.Namespace) -> int:
    """Show the plan; return the exit code. Raises PoolUnreachable, and UsageError for what cannot be planned."""
    with without_collection(to_stay=True):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    from drainwise.reclaim.decide.decision import make_plan

    settings = settings_of(args)
    if args.policy is not None:
        settings = for_comparison(settings)
    if args.horizon is not None:
        settings = dataclasses.replace(settings, horizon=args.horizon)
    if args.by is not None and args.horizon is not None:
        raise UsageError("--by and --horizon: expected one of them")
    if args.by is not None and args.cores is None:
        raise UsageError("--by needs --cores: how many are wanted?")
    cores = None if args.cores is None else WhatIf(args.cores, only_one(args, "user"), only_one(args, "account"))
    what_if = None if args.by is not None else cores
    snapshot = open_pool(args).snapshot(int(time.time())) if args.snapshot is None else _saved(args.snapshot)
    wanted = wanted_of(args)
    wanted.require_known(snapshot)
    if args.by is not None and cores is not None:
        balance_for(cores, snapshot, snapshot.taken, settings)
    # What the agent remembers counts in its next cycle; a saved snapshot has nothing to do with it, and a what-if only
    # with what says how far pilots are believed and how long they should run.
    is_of_now = what_if is None and args.snapshot is None
    history = history_of(journal_to_look_at(args) if args.snapshot is None else None, snapshot)
    if what_if is not None:
        known = history
        history = History(trust=known.trust, broken=known.broken, run_times=known.run_times)
    requests = requests_of(args).standing(snapshot.taken)[0] if is_of_now else ()
    if args.by is not None:
        from drainwise.cli.on_request import request_of

        requests = (*requests, request_of(args, snapshot.taken))
    history = dataclasses.replace(history, requests=requests)
    plan = make_plan(snapshot, snapshot.taken, settings, history, what_if, is_for_demand=args.by is None)
    from drainwise.cli.screen.tables import MOST_SPARED, plan_as_json, plan_lines

    most = None if args.all else MOST_SPARED
    lines = partial(plan_lines, plan, snapshot.taken, wanted=wanted, most=most)
    show(args.json, "plan", lambda: plan_as_json(plan, wanted), lambda: lines(standard_output()))
    return 0


def _saved(path: str) -> Snapshot:
    """Read the snapshot in a file. Raises UsageError when there is none."""
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


COMMAND = Command(
    "what a reclaim cycle would do now, and why",
    (
        *DECISION,
        option("--cores N", "plan for N cores, whatever is owed and without a cycle's limits", whole(1, 999_999_999)),
        *filters("pilots of each user, those with an order first", "; with --cores: plan for theirs alone"),
        option("--by TIME", "with --cores: as `drainwise reclaim --cores N --by TIME` would order them"),
        option(
            "--horizon DURATION",
            "the cores must be back within this: seconds, or such as 2h (default: the site's)",
            seconds(),
        ),
        option("--all", "show every pilot that is spared, and not just 50 of each user"),
        option("--snapshot FILE", "decide on what `drainwise snapshot` wrote, at the time when it did"),
    ),
    run,
)
