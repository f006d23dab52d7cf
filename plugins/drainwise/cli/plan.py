"""`drainwise plan`: what a cycle would do now and why; it touches nothing."""

from __future__ import annotations

import argparse
import time

from drainwise.cli.pool_options import add_pool_options, open_pool, settings_of
from drainwise.cli.text import json_text
from drainwise.reclaim.plan import make_plan
from drainwise.reclaim.plan_json import as_json


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "what a reclaim cycle would do now, and why"
    add_pool_options(subparsers.add_parser("plan", help=text, description=text))


def run(args: argparse.Namespace) -> int:
    """Show the plan; the exit code. Raises PoolUnreachable."""
    settings = settings_of(args)
    now = int(time.time())
    plan = make_plan(open_pool(args).snapshot(now), now, settings)
    if args.json:
        print(json_text(as_json(plan)))
        return 0
    from drainwise.cli.tables import console, show_plan

    show_plan(console(), plan, now)
    return 0
