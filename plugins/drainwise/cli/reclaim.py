"""`drainwise reclaim --once [--act]`: one cycle; without --act it only shows what it would do."""

from __future__ import annotations

import argparse
import time

from drainwise.cli.pool_options import add_pool_options, open_pool, settings_of
from drainwise.cli.text import json_text
from drainwise.pool import Pool
from drainwise.reclaim.action import Outcome, carry_out
from drainwise.reclaim.journal import JournalFile, JournalOf
from drainwise.reclaim.plan import Plan, make_plan
from drainwise.reclaim.plan_json import as_json
from drainwise.reclaim.settings import Settings

_STANDARD_ERROR = 2
_DRY_RUN = "dry run: nobody was asked; --act gives these orders"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "ask the pilots that cost least to give back cores that others are owed"
    parser = subparsers.add_parser("reclaim", help=text, description=text)
    parser.add_argument("--once", action="store_true", required=True, help="one cycle, then end")
    parser.add_argument("--act", action="store_true", help="give the orders; without it, only show them")
    parser.add_argument(
        "--journal", metavar="FILE", help="append one JSON line per order there (default: standard error)"
    )
    add_pool_options(parser)


def run(args: argparse.Namespace) -> int:
    """Decide, act when asked to, show; 1 when an order failed. Raises PoolUnreachable, and then nothing was done."""
    settings, pool = settings_of(args), open_pool(args)
    journal = JournalFile(args.journal) if args.act and args.journal else JournalOf(_STANDARD_ERROR)
    now = int(time.time())
    plan = make_plan(pool.snapshot(now), now, settings)
    outcome = _act(plan, pool, settings, journal) if args.act else None
    if args.json:
        print(json_text(_as_json(plan, outcome)))
    else:
        from drainwise.cli.tables import console, show_outcome, show_plan

        out = console()
        show_plan(out, plan, now)
        if outcome is None:
            out.print(_DRY_RUN)
        elif outcome.acts:
            show_outcome(out, outcome)
    return 0 if outcome is None else outcome.exit_code


def _act(plan: Plan, pool: Pool, settings: Settings, journal: JournalOf) -> Outcome:
    return carry_out(plan, pool, settings, lambda: int(time.time()), journal)


def _as_json(plan: Plan, outcome: Outcome | None) -> dict[str, object]:
    acts = [] if outcome is None else outcome.acts
    return {
        **as_json(plan),
        "dry_run": outcome is None,
        "acts": [{"run": act.order.pilot.run, "outcome": act.outcome, "detail": act.detail} for act in acts],
    }
