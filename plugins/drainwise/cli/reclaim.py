"""`drainwise reclaim --once | --loop | --cores N [--act]`: one cycle, the agent, or a request for cores by a time.

Without --act no order is given.
"""

from __future__ import annotations

import argparse
import os
import socket
import time
from functools import partial
from typing import TYPE_CHECKING

from drainwise.cli.agent_place import journal_at, journal_path, lock_of, memory_of, named_journal, setup_of, to_log
from drainwise.cli.arguments import filters, only_one, require_no_filter, seconds, wanted_of, whole
from drainwise.cli.command_line.options import MUST, Command, option
from drainwise.cli.on_request import (
    acts_as_json,
    cancel_request,
    exit_code_of,
    list_requests,
    one_cycle,
    request_of,
    request_options,
    resume_demand,
    run_request,
)
from drainwise.cli.pool_options import DECISION, open_pool, settings_of, system_of
from drainwise.cli.screen.layout import folded, standard_output
from drainwise.cli.site_file import site_of
from drainwise.cli.text import show
from drainwise.common.garbage import without_collection
from drainwise.facts.errors import UsageError
from drainwise.reclaim.quota import WhatIf, balance_for

if TYPE_CHECKING:
    from drainwise.agent.cycle import Cycle
    from drainwise.cli.screen.wanted import PilotFilter
    from drainwise.reclaim.plan import Plan

_DRY_RUN = "dry run: no order was given; --act gives these orders"


def run(args: argparse.Namespace) -> int:
    """Decide, act when asked to, show; 1 when an order failed. Raises PoolError when it was not done to the end."""
    if not args.once and not args.loop:
        return _request(args)
    if args.by is not None or args.reason:
        raise UsageError("--by and --reason go with --cores")
    if args.loop or args.act:
        require_no_filter(args, "it chooses what a dry run of --once shows; with --act or --loop every order is given")
    if args.loop:
        if args.json:
            raise UsageError("--json goes with --once; a loop writes its decisions to the journal")
        return _loop(args)
    if args.standby or args.period is not None:
        raise UsageError("--standby and --period go with --loop")
    with without_collection(to_stay=True):
        return _once(args)


def _request(args: argparse.Namespace) -> int:
    """Make, cancel or list requests for cores. Raises UsageError for a user or an account without pilots."""
    if args.cores is not None:
        now = int(time.time())
        request = request_of(args, now)
        require_no_filter(args, "it goes with --once", "user", "account")
        wanted = WhatIf(args.cores, only_one(args, "user"), only_one(args, "account"))
        balance_for(wanted, open_pool(args).snapshot(now), now, settings_of(args))
        return run_request(args, request)
    require_no_filter(args, "it goes with --once or --cores")
    if args.act or args.by is not None or args.reason:
        raise UsageError("--act, --by and --reason go with --cores")
    if args.resume_demand is not None:
        return resume_demand(args)
    return list_requests(args) if args.list else cancel_request(args)


def _once(args: argparse.Namespace) -> int:
    from drainwise.agent.loop import is_thrown

    setup = setup_of(args)
    paused = setup.kill_switch if setup.acting and is_thrown(setup.kill_switch) else ""
    acting = setup.acting and not paused
    path, lock = journal_path(args), lock_of(args)
    if acting:
        lock.make_place()
    else:
        system_of(args).ask_ahead(setup.pool)
    journal = journal_at(path, args) if args.journal or acting else None
    if acting:
        lock.must_take()
    try:
        cycle = one_cycle(setup, path, journal, acting, setup.requests)
    finally:
        lock.release()
    if cycle.basis is not None:
        wanted_of(args).require_known(cycle.basis.snapshot)
    plan = cycle.plan
    if plan is not None:
        values = partial(_as_json, cycle, plan, paused, wanted_of(args))
        show(args.json, "reclaim", values, partial(_lines, args, cycle, plan, paused))
    return exit_code_of(cycle)


def _loop(args: argparse.Namespace) -> int:
    """Run until TERM or INT. Raises UsageError for a wrong setup, PoolError when another agent acts."""
    from drainwise.agent.cycle import NullJournal
    from drainwise.agent.export.observers import observers_of
    from drainwise.agent.loop import Loop
    from drainwise.agent.signals import AgentSignals
    from drainwise.common.service import Notifier

    setup = setup_of(args)  # a wrong site file ends it before a file is made
    acting = setup.acting
    system_of(args).require(setup.pool)
    path = journal_path(args) if acting else named_journal(args)
    site = site_of(args)
    pool = f"{system_of(args).agent_label(site, args.directory)} on {socket.gethostname()}"
    observers = observers_of(site, setup, pool, to_log)
    lock = lock_of(args)
    if acting:
        lock.make_place()
    journal = NullJournal() if path is None else journal_at(path, args)
    signals, notifier = AgentSignals(), Notifier(os.environ)
    signals.install()
    try:
        remember = partial(memory_of, path, must_read=True)
        loop = Loop(lambda: setup_of(args), lock, remember, journal, signals, notifier, to_log, observers)
        loop.run(args.standby)
    finally:
        lock.release()
        notifier.close()
        signals.close()
    return 0


def _lines(args: argparse.Namespace, cycle: Cycle, plan: Plan, paused: str) -> list[str]:
    from drainwise.cli.screen.tables import MOST_SPARED, outcome_lines, plan_lines

    paper = standard_output()
    lines = plan_lines(plan, cycle.started, paper, wanted_of(args), None if args.all else MOST_SPARED)
    if cycle.outcome is not None:
        lines += outcome_lines(cycle.outcome, paper)
    elif paused:
        lines += ["", *folded(f"paused by kill switch: no order was given while {paused} is there", paper)]
    elif not cycle.acting:
        lines += ["", *folded(_DRY_RUN, paper)]
    return lines


def _as_json(cycle: Cycle, plan: Plan, paused: str, wanted: PilotFilter) -> dict[str, object]:
    from drainwise.cli.screen.tables import plan_as_json

    outcome = cycle.outcome
    finished: dict[str, object] = {}
    if outcome is not None:
        fault = cycle.fault or outcome.fault
        finished = {"followups": list(outcome.followups), "fault": fault, "halted": outcome.halted}
    paused_and_acts = {"dry_run": not cycle.acting, "paused": bool(paused), **acts_as_json(cycle)}
    return {**plan_as_json(plan, wanted), **paused_and_acts, **finished}


COMMAND = Command(
    "order the pilots that cost least to give back cores that others are owed",
    (
        option("--once", "one cycle, then end", one_of=MUST),
        option("--loop", "cycle after cycle until it gets SIGTERM; see docs/agent.md", one_of=MUST),
        option("--cores N", "N cores back by a time, whatever is owed: a request", whole(1, 999_999_999), one_of=MUST),
        option(
            "--resume-demand ACCOUNT", "lift the pause of an account whose jobs did not start on cores", one_of=MUST
        ),
        *request_options(MUST),
        *filters("pilots of each user, those with an order first", "; with --cores: order theirs alone"),
        option("--all", "show every pilot that is spared, and not just 50 of each user"),
        option("--act", "give the orders; without it, only show them"),
        option("--journal FILE", "append a JSON line for each event there (default: the site's journal)"),
        option(
            "--period DURATION",
            "with --loop: from the beginning of one cycle to the next, seconds or such as 2m (default: the site's)",
            seconds(1, 86400),
        ),
        option("--standby", "with --loop: wait while another agent acts"),
        *DECISION,
    ),
    run,
)
