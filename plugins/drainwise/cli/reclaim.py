"""`drainwise reclaim --once [--act]`: one cycle; without --act it only shows what it would do."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from drainwise.cli.pool_options import add_pool_options, open_pool, settings_of
from drainwise.cli.text import json_text
from drainwise.pool import Pool, Snapshot
from drainwise.reclaim.action import Outcome, carry_out, finish_earlier
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
    snapshot = pool.snapshot(now)
    plan = make_plan(snapshot, now, settings)
    outcome = _act(snapshot, plan, pool, settings, journal) if args.act else None
    if args.json:
        print(json_text(_as_json(plan, outcome)))
    else:
        from drainwise.cli.tables import console, show_outcome, show_plan

        out = console()
        show_plan(out, plan, now)
        if outcome is None:
            out.print(_DRY_RUN)
        else:
            show_outcome(out, outcome)
    return 0 if outcome is None else outcome.exit_code


def _act(snapshot: Snapshot, plan: Plan, pool: Pool, settings: Settings, journal: JournalOf) -> Outcome:
    """First what earlier cycles left to do, then the new orders."""

    def clock() -> int:
        return int(time.time())

    earlier = finish_earlier(pool, snapshot, clock, journal)
    return replace(earlier, acts=carry_out(plan, pool, settings, clock, journal).acts)


def _as_json(plan: Plan, outcome: Outcome | None) -> dict[str, object]:
    acts = () if outcome is None else outcome.acts
    finished = {} if outcome is None else {"tended": list(outcome.tended), "fault": outcome.fault}
    return {
        **as_json(plan),
        "dry_run": outcome is None,
        "acts": [{"run": act.order.pilot.run, "outcome": act.outcome, "detail": act.detail} for act in acts],
        **finished,
    }
