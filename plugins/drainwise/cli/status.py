"""`drainwise status`: who is owed and uses what, and every pilot with what its end would waste."""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Sequence

from drainwise import __version__
from drainwise.cli.agent_place import history_of, journal_to_look_at
from drainwise.cli.arguments import fine_seconds
from drainwise.cli.pool_options import add_pool_options, open_pool, settings_of
from drainwise.cli.screen.columns import BY_NAME, DEFAULT, Row, columns_called, explained, sorted_rows, state
from drainwise.cli.screen.layout import BOLD, YELLOW, Heading, Paper, cut, standard_output, table
from drainwise.cli.text import document, json_text
from drainwise.common.printable import printable
from drainwise.facts.clients import PAPER
from drainwise.journal.file import journal_line
from drainwise.pool.facts import Account, Pool, Snapshot
from drainwise.pool.node_versions import UNKNOWN, mixed_line
from drainwise.reclaim.candidates import candidates_of
from drainwise.reclaim.decide.summary import notices_of
from drainwise.reclaim.history import History
from drainwise.reclaim.paused_demand import Paused, paused
from drainwise.reclaim.plan_json import candidate_as_json, paused_as_json
from drainwise.reclaim.seen.expected_ends import with_expected_ends
from drainwise.reclaim.seen.stuck import with_stuck
from drainwise.reclaim.settings import ReclaimSettings

_DETAILS = f"""\
columns of --format and --sort:
{explained()}

With --format every value is one word in base units (seconds, core-seconds, UNIX seconds), and nothing is cut; ? is not
known or not believed. Without it a name that is too long for the window ends with ~.
"""
_ACCOUNT = ("account", "owed", "in use", "wanted", "over/under", "priority")
_CUTTABLE = {"name", "user", "account", "node", "run"}
_SPARE = {"client": 4, "priority": 3, "report": 2, "remaining": 1}
_WATCH = 5.0  # seconds


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "who is owed and uses what, and every pilot with its waste"
    raw = argparse.RawDescriptionHelpFormatter
    parser = subparsers.add_parser("status", help=text, description=text, epilog=_DETAILS, formatter_class=raw)
    add_pool_options(parser)
    parser.add_argument("--user", metavar="U", action="append", help="only pilots of this user; may be repeated")
    parser.add_argument("--sort", metavar="COLUMN[:desc]", help="order of the pilots (default: account, user, node)")
    parser.add_argument("--format", metavar="COLUMN,...", help="only these columns of the pilots, for programs")
    parser.add_argument("--noheader", action="store_true", help="with --format: without the line of names")
    parser.add_argument(
        "--watch",
        metavar="DURATION",
        nargs="?",
        const=_WATCH,
        type=fine_seconds(0.1, 86400),
        help=f"again so often, seconds or such as 2m (default: {_WATCH:g}), until Ctrl-C",
    )


def run(args: argparse.Namespace) -> int:
    """Show the pool; the exit code. Raises PoolUnreachable (not with --watch), UsageError for a wrong column."""
    status = Status(args)
    if args.watch is not None:
        from drainwise.cli.screen.watch import repeat

        return repeat(status.lines, args.watch, bare=args.json or (args.format is not None and args.noheader))
    print("\n".join(status.lines(standard_output())))
    return 0


class Status:
    """One request for the pool's status, which can be answered again and again."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._settings: ReclaimSettings = settings_of(args)
        self._pool: Pool | None = None
        self._format = None if args.format is None else columns_called(args.format)
        sorted_rows((), args.sort)  # a wrong name is said before anybody is asked

    def lines(self, paper: Paper) -> list[str]:
        """Render the answer of now as lines. Raises PoolUnreachable."""
        now = int(time.time())
        snapshot, history = self._look(now)
        pilots_wanted = (one for one in snapshot.pilots if self._is_wanted(one.user))
        wanted = candidates_of(pilots_wanted, now, self._settings, history)
        pauses = paused(snapshot, history.unmet, now)
        rows = sorted_rows((Row(one, now) for one in wanted), self._args.sort)
        if self._args.json:
            return [self._as_json(snapshot, rows, pauses, now)]
        if self._format is not None:
            return self._formatted(rows)
        pilots = _pilots(rows, paper) if rows or not self._args.user else [_within(self._nobody(snapshot), paper)]
        free = f"{snapshot.free_cores:.0f} free cores fit those who wait and are owed cores"
        notices = [_within(printable(notice), paper) for notice in notices_of(snapshot, pauses)]
        mixed = mixed_line(snapshot.versions, __version__)
        notices += [_within(mixed, paper)] if mixed else []
        return [*_accounts(snapshot.accounts, paper), "", *pilots, "", _within(free, paper), *notices]

    def _nobody(self, snapshot: Snapshot) -> str:
        """Say as `plan` does that none of the users has pilots."""
        known = ", ".join(sorted({pilot.user for pilot in snapshot.pilots})) or "nobody"
        return printable(f"no user with pilots is called {', '.join(map(repr, self._args.user))}; there is {known}")

    def _is_wanted(self, user: str) -> bool:
        """Decide whether `user` is wanted, named as the batch system does, or without the domain that it adds."""
        return self._args.user is None or user in self._args.user or user.partition("@")[0] in self._args.user

    def _look(self, now: int) -> tuple[Snapshot, History]:
        """Return what there is as a plan takes it: with the ends that the agent learned, and what its journal tells."""
        if self._pool is None:
            self._pool = open_pool(self._args)
        found, said = self._pool.snapshot(now), list[str]()
        history = history_of(journal_to_look_at(self._args), found, self._settings, said.append)
        found = with_stuck(with_expected_ends(found, history.run_times, now), now, self._settings.stuck)
        return dataclasses.replace(found, notices=(*found.notices, *said)), history

    def _as_json(self, snapshot: Snapshot, rows: Sequence[Row], pauses: Sequence[Paused], now: int) -> str:
        shown = {
            "taken": now,
            "free_cores": snapshot.free_cores,
            "accounts": [dataclasses.asdict(account) for account in snapshot.accounts],
            "pilots": [candidate_as_json(row.one) for row in rows],
            "notices": list(notices_of(snapshot, pauses)),
            "paused_demand": [paused_as_json(one) for one in pauses],
            "versions": {version or UNKNOWN: nodes for version, nodes in snapshot.versions},
        }
        # Under --watch a program reads one document per line.
        shown = document("status", shown)
        return json_text(shown) if self._args.watch is None else journal_line(shown).rstrip()

    def _formatted(self, rows: Sequence[Row]) -> list[str]:
        columns = self._format or ()
        headings = [Heading(column.name, column.number) for column in columns]
        lines, _ = table(headings, [[column.word(row) for column in columns] for row in rows], Paper())
        return lines[1:] if self._args.noheader else lines


def _accounts(accounts: Sequence[Account], paper: Paper) -> list[str]:
    headings = [Heading(text, number=text != "account", cuttable=text == "account") for text in _ACCOUNT]
    lines, _ = table(headings, [_account(one) for one in accounts], paper)
    return [paper.styled("Accounts (cores)", BOLD), *lines]


def _account(one: Account) -> list[str]:
    figures = (one.cores_owed, one.cores_in_use, one.cores_wanted)
    over = one.cores_in_use - one.cores_owed
    return [one.name, *(f"{cores:.1f}" for cores in figures), f"{over:+.1f}", f"{one.priority:.1f}"]


def _pilots(rows: Sequence[Row], paper: Paper) -> list[str]:
    others = any(row.one.pilot.client != PAPER.name for row in rows)
    columns = [BY_NAME[name] for name in DEFAULT if others or name != "client"]
    headings = [
        Heading(column.heading, column.number, column.name in _CUTTABLE, _SPARE.get(column.name, 0))
        for column in columns
    ]
    styles = [YELLOW if state(row) in {"ordered", "leaving"} else "" for row in rows]
    lines, missing = table(headings, [[column.text(row) for column in columns] for row in rows], paper, styles)
    lines.insert(0, paper.styled("Pilots", BOLD))
    if missing:
        lines.append(_within(f"(left out in this window: {', '.join(missing)}; see --format)", paper))
    return lines


def _within(line: str, paper: Paper) -> str:
    return line if paper.width is None else cut(line, paper.width)
