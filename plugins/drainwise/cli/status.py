"""`drainwise status`: who is owed and uses what, and every pilot with what its end would waste."""

from __future__ import annotations

import argparse
import dataclasses
import time

from drainwise.cli.pool_options import add_pool_options, open_pool, settings_of
from drainwise.cli.text import json_text
from drainwise.reclaim.candidates import candidates_of
from drainwise.reclaim.plan_json import candidate_as_json


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "who is owed and uses what, and every pilot with its waste"
    add_pool_options(subparsers.add_parser("status", help=text, description=text))


def run(args: argparse.Namespace) -> int:
    """Show the pool; the exit code. Raises PoolUnreachable."""
    settings = settings_of(args)
    now = int(time.time())
    snapshot = open_pool(args).snapshot(now)
    candidates = sorted(
        candidates_of(snapshot.pilots, now, settings),
        key=lambda one: (one.pilot.principal, one.pilot.user, one.pilot.node, one.pilot.name),
    )
    if args.json:
        accounts = [dataclasses.asdict(principal) for principal in snapshot.principals]
        figures = [candidate_as_json(one) for one in candidates]
        shown = {"taken": now, "free_cores": snapshot.free_cores, "accounts": accounts, "pilots": figures}
        print(json_text(shown))
        return 0
    from drainwise.cli.tables import console, show_accounts, show_pilots

    out = console()
    show_accounts(out, snapshot)
    show_pilots(out, candidates, now)
    out.print(f"{snapshot.free_cores:.0f} free cores fit those who wait and are owed cores")
    return 0
