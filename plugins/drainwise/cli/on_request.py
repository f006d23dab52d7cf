"""What `drainwise reclaim --cores` and `drainwise drain` share: a request is made, carried out, shown, cancelled."""

from __future__ import annotations

import argparse
import os
import pwd
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from drainwise.agent.lock import AgentLock
from drainwise.agent.settings import AgentSettings
from drainwise.cli.agent_place import journal_at, journal_path, lock_of, memory_of, requests_of, setup_of
from drainwise.cli.arguments import only_one
from drainwise.cli.command_line.options import Option, option
from drainwise.cli.pool_options import settings_of
from drainwise.cli.screen.layout import folded, standard_output
from drainwise.cli.shutdown import TIMES, parse_time
from drainwise.cli.text import document, json_text, show
from drainwise.common.printable import printable
from drainwise.facts.errors import PoolError, UsageError
from drainwise.facts.units import clock
from drainwise.journal.file import Journal
from drainwise.journal.memory import Noted
from drainwise.pool.facts import Snapshot
from drainwise.requests.request import AdminRequest, RequestFiles, request_as_json

if TYPE_CHECKING:
    from drainwise.agent.cycle import Cycle

_DRY_RUN = "dry run: nothing was ordered; --act orders it"
_AFTERWARDS = "the agent, or drainwise reclaim --once --act, does that afterwards"
_NO_AGENT = (
    "no agent acts on this pool: whatever is still to be done for it, `drainwise reclaim --loop --act` does, or"
    " `drainwise reclaim --once --act`, again and again"
)
_PATIENCE = 60.0  # seconds that a cycle of another command may take
_LONGEST_REASON = 500


def request_options(one_of: str) -> tuple[Option, ...]:
    """Return --by, --reason, --cancel and --list; one_of: of these last, MAY or MUST."""
    return (
        option("--by TIME", f"when it must be done: {TIMES.partition('expected ')[2]}"),
        option("--reason REASON", "why, for the journal and whoever reads it", default=""),
        option("--cancel NAME", "cancel a request: what it ordered is withdrawn", one_of=one_of),
        option("--list", "show the requests that stand", one_of=one_of),
    )


def request_of(args: argparse.Namespace, now: int) -> AdminRequest:
    """Return the request of the command line at `now` (UNIX s), the nodes left out.

    Without --by its time is the site's grace ahead. Raises UsageError for a time that is none or is over.
    """
    by = now + settings_of(args).grace if args.by is None else parse_time(args.by, now, "--by")
    if by <= now:
        raise UsageError(f"--by {args.by[:40]!a}: {clock(by)} is over; {TIMES}")
    name = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    reason = printable(getattr(args, "reason", ""))[:_LONGEST_REASON]
    whose = only_one(args, "user"), only_one(args, "account")
    return AdminRequest(name, now, by, getattr(args, "cores", 0), *whose, reason=reason, who=_who())


def _who() -> str:
    """Return who gives the command, by its user id: its environment could name anybody."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def run_request(args: argparse.Namespace, request: AdminRequest) -> int:
    """Show what the request would order, or keep it and order it; return the exit code.

    The agent that acts on this pool, where there is one, carries it out in its next cycle. Raises PoolError when the
    batch system does not answer, UsageError when the request cannot be kept.
    """
    from drainwise.agent.loop import is_thrown  # what it needs is missed now, and not when the request is kept

    setup, files, lock = setup_of(args), requests_of(args), lock_of(args)
    if not args.act:
        return _shown(args, _one_cycle(args, setup, request), request, [_DRY_RUN])
    lock.make_place()
    if is_thrown(setup.kill_switch):
        raise PoolError(f"paused by kill switch: nothing is ordered while {setup.kill_switch} is there")
    request = files.add(request)
    cancels = f"the request stands; drainwise {args.command} --cancel {request.name} cancels it"
    return _carry_out(args, setup, lock, request, f"{request.in_words()}: kept", [cancels, _NO_AGENT])


def cancel_request(args: argparse.Namespace) -> int:
    """Cancel the request that --cancel names and withdraw its orders; return the exit code. Raises as `run_request`."""
    from drainwise.agent.loop import is_thrown

    setup, files, lock = setup_of(args), requests_of(args), lock_of(args)
    request = files.cancel(args.cancel, int(time.time()))
    cancelled = f"{request.in_words()}: cancelled"
    if is_thrown(setup.kill_switch):
        _say(args, [f"{cancelled}; its orders stand while {setup.kill_switch} is there: {_AFTERWARDS}"], request)
        return 0
    args.act = True
    return _carry_out(args, setup, lock, request, cancelled, [cancelled])


def _carry_out(
    args: argparse.Namespace, setup: AgentSettings, lock: AgentLock, request: AdminRequest, done: str, notes: list[str]
) -> int:
    """Do a cycle for the requests, or say who does. done: what has become of the request; notes: below the cycle."""
    if not _take(lock):
        _say(args, [f"{done}; {_carried_out(lock)}"], request)
        return 0
    try:
        cycle = _one_cycle(args, setup)
    finally:
        lock.release()
    return _shown(args, cycle, request, notes)


def resume_demand(args: argparse.Namespace) -> int:
    """Have the paused demand of the account that --resume-demand names count again; return 0.

    Raises UsageError for an account without failed rounds, and when it cannot be written.
    """
    account, path, lock, files = args.resume_demand, journal_path(args), lock_of(args), requests_of(args)
    lock.make_place()
    known = memory_of(path, must_read=True).failed_accounts()
    if account not in known:
        others = ", ".join(sorted(known)) or "nobody"
        raise UsageError(f"--resume-demand {account!a}: no round failed for it; rounds failed for {others}")
    files.resume(account)
    if _take(lock):
        try:
            memory = memory_of(path, must_read=True)
            noted = Noted(journal_at(path, args), memory)
            for one in files.resumed():
                noted.write(*memory.resumed(one, int(time.time())))
        finally:
            lock.release()
        said = f"all demand of {account} counts again"
    else:
        said = f"the demand of {account} is to count again; {_carried_out(lock)}"
    show(args.json, "reclaim", lambda: {"notes": [said]}, lambda: [printable(said)])
    return 0


def list_requests(args: argparse.Namespace) -> int:
    """Show the requests that stand; return 0."""
    found, faults = requests_of(args).standing(int(time.time()))
    values = {"requests": [request_as_json(one) for one in found], "notes": list(faults)}
    lines = [printable(line) for line in (*(one.in_words() for one in found), *faults)]
    show(args.json, "requests", lambda: values, lambda: lines or ["no request stands"])
    return 0


def _take(lock: AgentLock) -> bool:
    """Take the lock; wait for a command that does one cycle, and not for an agent that goes on."""
    return lock.take() or (not lock.is_of_loop() and lock.take(_PATIENCE))


def _carried_out(lock: AgentLock) -> str:
    if lock.is_of_loop():
        return f"the agent ({lock.holder()}) carries that out in its next cycles"
    return f"{lock.holder()} acts on this pool just now: {_AFTERWARDS}"


def _one_cycle(args: argparse.Namespace, setup: AgentSettings, new: AdminRequest | None = None) -> Cycle:
    """Do one cycle for the requests alone: those that stand, and one that is not kept yet."""
    path = journal_path(args)
    requests = setup.requests if new is None else replace(setup.requests, also=(new,))
    journal = journal_at(path, args) if args.act else None
    return one_cycle(setup, path, journal, args.act, requests, is_for_demand=False)


def one_cycle(
    setup: AgentSettings,
    path: str,
    journal: Journal | None,
    acting: bool,
    requests: RequestFiles,
    is_for_demand: bool = True,
) -> Cycle:
    """Do one cycle with the memory in the journal at `path`."""
    from drainwise.agent.cycle import AgentCycle
    from drainwise.agent.loop import is_thrown

    return AgentCycle(
        setup.pool,
        setup.settings,
        memory_of(path, must_read=acting),
        journal,
        lambda: int(time.time()),
        acting,
        lambda: is_thrown(setup.kill_switch),
        requests=requests,
        is_for_demand=is_for_demand,
    ).run()


def exit_code_of(cycle: Cycle) -> int:
    """Return the exit code. Raises PoolError where the cycle was not done to its end."""
    if cycle.fault:
        raise PoolError(cycle.fault)
    return 0 if cycle.outcome is None else cycle.outcome.exit_code


def acts_as_json(cycle: Cycle) -> dict[str, object]:
    """Return what became of its orders and withdrawals."""
    names = ("acts", "withdrawn")
    return {name: [act.as_json() for act in getattr(cycle.outcome, name, ())] for name in names}


def _shown(args: argparse.Namespace, cycle: Cycle, request: AdminRequest, notes: list[str]) -> int:
    """Show what a cycle decided and did. Raises PoolError when it was not done to its end."""
    from drainwise.cli.screen.tables import MOST_SPARED, outcome_lines, plan_lines
    from drainwise.reclaim.plan_json import as_json

    if cycle.plan is not None and args.json:
        followups = [] if cycle.outcome is None else list(cycle.outcome.followups)
        shown = {"request": request_as_json(request), **as_json(cycle.plan), "dry_run": not args.act}
        done = {**acts_as_json(cycle), "followups": followups, "notes": notes}
        print(json_text(document("reclaim", {**shown, **done})))
    elif cycle.plan is not None:
        paper = standard_output()
        lines = [*folded(request.in_words(), paper), *plan_lines(cycle.plan, cycle.started, paper, most=MOST_SPARED)]
        lines += [] if cycle.outcome is None else outcome_lines(cycle.outcome, paper)
        print("\n".join([*lines, "", *(line for note in notes for line in folded(note, paper))]))
    return exit_code_of(cycle)


def _say(args: argparse.Namespace, lines: list[str], request: AdminRequest) -> None:
    values = {"request": request_as_json(request), "notes": lines}
    show(args.json, "reclaim", lambda: values, lambda: map(printable, lines))


def nodes_in(snapshot: Snapshot) -> set[str]:
    """Return the nodes that a snapshot knows: those with pilots, and those where jobs can start."""
    return {node for one in snapshot.pilots for node in one.nodes} | {one.node for one in snapshot.places}
