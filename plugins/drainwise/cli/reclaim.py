"""`drainwise reclaim --once | --loop [--act]`: one cycle, or the agent; without --act nobody is asked."""

from __future__ import annotations

import argparse
import gc
import time
from typing import TYPE_CHECKING

from drainwise.agent.kill_switch import is_thrown
from drainwise.cli.agent_place import journal_at, journal_path, lock_of, memory_of, setup_of
from drainwise.cli.durations import seconds
from drainwise.cli.pool_options import add_pool_options
from drainwise.cli.text import json_text
from drainwise.errors import PoolError, UsageError
from drainwise.htcondor.pool import HTCondorPool

if TYPE_CHECKING:
    from drainwise.agent.cycle import Cycle
    from drainwise.reclaim.plan import Plan

_DRY_RUN = "dry run: nobody was asked; --act gives these orders"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "ask the pilots that cost least to give back cores that others are owed"
    parser = subparsers.add_parser("reclaim", help=text, description=text)
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--once", action="store_true", help="one cycle, then end")
    how.add_argument("--loop", action="store_true", help="cycle after cycle until it gets SIGTERM; see docs/agent.md")
    parser.add_argument("--act", action="store_true", help="give the orders; without it, only show them")
    parser.add_argument(
        "--journal", metavar="FILE", help="append a JSON line for each event there (default: the site's journal)"
    )
    parser.add_argument(
        "--period",
        type=seconds,
        metavar="S",
        help="with --loop: from the beginning of one cycle to the next, seconds or such as 2m (default: the site's)",
    )
    parser.add_argument("--standby", action="store_true", help="with --loop: wait while another agent acts")
    add_pool_options(parser)


def run(args: argparse.Namespace) -> int:
    """Decide, act when asked to, show; 1 when an order failed. Raises PoolError when it was not done to the end."""
    if args.loop:
        if args.json:
            raise UsageError("--json goes with --once; a loop writes its decisions to the journal")
        if args.period == 0:
            raise UsageError("--period 0: expected 1 s or more")
        from drainwise.cli.reclaim_loop import run_loop

        return run_loop(args)
    if args.standby or args.period is not None:
        raise UsageError("--standby and --period go with --loop")
    gc.disable()  # one cycle, then the end: looking for garbage among all those pilots is not worth its time
    try:
        return _once(args)
    finally:
        gc.freeze()  # nor is it when the interpreter ends
        gc.enable()


def _once(args: argparse.Namespace) -> int:
    setup = setup_of(args)
    paused = setup.kill_switch if setup.acting and is_thrown(setup.kill_switch) else ""
    acting = setup.acting and not paused
    path, lock = journal_path(args), lock_of(args)
    if acting:
        lock.make_place()
    elif isinstance(setup.pool, HTCondorPool):
        setup.pool.ask_ahead()
    journal = journal_at(path, args) if args.journal or acting else None
    if acting:
        lock.must_take()
    from drainwise.agent.cycle import run_cycle  # meanwhile: that takes as long as half of an answer

    try:
        cycle = run_cycle(
            setup.pool,
            setup.settings,
            memory_of(path, must_read=acting),
            journal,
            lambda: int(time.time()),
            acting,
            lambda: is_thrown(setup.kill_switch),
        )
    finally:
        lock.release()
    if cycle.plan is not None:
        _show(args, cycle, cycle.plan, paused)
    if cycle.fault:
        raise PoolError(cycle.fault)
    return 0 if cycle.outcome is None else cycle.outcome.exit_code


def _show(args: argparse.Namespace, cycle: Cycle, plan: Plan, paused: str) -> None:
    if args.json:
        print(json_text(_as_json(cycle, plan, paused)))
        return
    from drainwise.cli.tables import console, show_outcome, show_plan

    out = console()
    show_plan(out, plan, cycle.started)
    if cycle.outcome is not None:
        show_outcome(out, cycle.outcome)
    elif paused:
        out.print(f"paused by kill switch: nobody was asked while {paused} is there")
    elif not cycle.acting:
        out.print(_DRY_RUN)


def _as_json(cycle: Cycle, plan: Plan, paused: str) -> dict[str, object]:
    from drainwise.reclaim.plan_json import as_json

    outcome = cycle.outcome
    acts = () if outcome is None else outcome.acts
    released = () if outcome is None else outcome.released
    finished: dict[str, object] = {}
    if outcome is not None:
        fault = cycle.fault or outcome.fault
        finished = {"tended": list(outcome.tended), "fault": fault, "halted": outcome.halted}
    return {
        **as_json(plan),
        "dry_run": not cycle.acting,
        "paused": bool(paused),
        "acts": [{"run": act.order.pilot.run, "outcome": act.outcome, "detail": act.detail} for act in acts],
        "released": [{"run": one.cancel.pilot.run, "outcome": one.outcome, "detail": one.detail} for one in released],
        **finished,
    }
