"""`drainwise status`: who is owed and uses what, and every pilot with what its end would waste."""

from __future__ import annotations

import argparse
import dataclasses
import time

from drainwise.cli.pool_options import add_pool_options, open_pool, settings_of
from drainwise.cli.text import json_text
from drainwise.reclaim.candidates import assess
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
    pilots = sorted(snapshot.pilots, key=lambda pilot: (pilot.principal, pilot.user, pilot.node, pilot.name))
    candidates = [assess(pilot, now, settings) for pilot in pilots]
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
