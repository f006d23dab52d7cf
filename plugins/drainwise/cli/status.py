"""`drainwise status`: who is owed and uses what, and every pilot with what its end would waste."""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from drainwise import __version__
from drainwise.cli.agent_place import history_of, journal_to_look_at
from drainwise.cli.arguments import filters, fine_seconds, wanted_of
from drainwise.cli.command_line.options import Command, option
from drainwise.cli.pool_options import DECISION, open_pool, settings_of
from drainwise.cli.screen.columns import DEFAULT, Column, Row, columns_called, explained, sorted_rows, state
from drainwise.cli.screen.layout import BOLD, YELLOW, Heading, Paper, folded, left_out, standard_output, table
from drainwise.cli.screen.wanted import PilotFilter, fits_any
from drainwise.cli.text import document, json_text
from drainwise.facts.clients import PAPER
from drainwise.facts.errors import UsageError
from drainwise.journal.file import journal_line
from drainwise.pool.abilities import TellsSteps
from drainwise.pool.facts import Account, Pilot, Pool, Snapshot
from drainwise.pool.notices import UNKNOWN, mixed_line, notices_of
from drainwise.pool.scope import with_scope
from drainwise.reclaim.candidates import candidate_of
from drainwise.reclaim.counted_demand import paused, unplaced
from drainwise.reclaim.history import History
from drainwise.reclaim.plan_json import candidate_as_json
from drainwise.reclaim.seen_pilots import with_expected_ends, with_stuck
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.systems.find import offering
from drainwise.systems.system import System

if TYPE_CHECKING:
    from drainwise.pilotad.report import PilotReport

_DETAILS = f"""\
columns of --format and --sort:
{explained()}

With --format every value is one word in base units (seconds, core-seconds, UNIX seconds), and nothing is cut; ? is not
known or not believed. Without it a name that is too long for the window ends with ~.
"""
_ACCOUNT = ("account", "owed", "in use", "wanted", "over/under", "effective priority")
_CUTTABLE = {"name", "user", "account", "node", "run"}
_SHORTEST = {"name": 16}
_SPARE = {"client": 4, "priority": 3, "report": 2, "remaining": 1}
_BY_SCHEDULER = "name,user,account,node,cores,gpus,elapsed,saved,timeleft,killwaste"
_WATCH = 5.0  # seconds


def run(args: argparse.Namespace) -> int:
    """Show the pool; the exit code.

    Raises PoolUnreachable (not with --watch), UsageError for a wrong column or a name that the pool does not know.
    """
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
        self._columns = columns_called(_BY_SCHEDULER if args.scheduler_only else DEFAULT)
        sorted_rows((), args.sort)  # a wrong name is said before anybody is asked
        if args.ce_collector is not None and not args.scheduler_only:
            raise UsageError("--ce-collector goes with --scheduler-only")
        self._wanted, self._is_first = wanted_of(args), True

    def lines(self, paper: Paper) -> list[str]:
        """Render the answer of now as lines.

        Raises PoolUnreachable, and the first time UsageError for a filter's name that the pool does not know: later its
        last pilot may have gone.
        """
        now = int(time.time())
        snapshot, history = self._look(now)
        if self._is_first:
            self._wanted.require_known(snapshot)
            self._is_first = False
        asked = (one for one in snapshot.pilots if self._wanted.fits_names(one))
        known = (candidate_of(one, now, self._settings, history) for one in asked)
        found = [one for one in known if self._wanted.fits_state(one.pilot, one.draining)]
        pauses = paused(snapshot, history.unmet, now)
        without_place = unplaced(snapshot, history.untaken, now, self._settings)
        named = [one.sentence for one in pauses] + [one.sentence for one in without_place]
        rows = sorted_rows((Row(one, now) for one in found), self._args.sort)[: self._wanted.limit]
        if self._args.json:
            demand = {
                "notices": list(notices_of(snapshot, named)),
                "paused_demand": [dataclasses.asdict(one) for one in pauses],
                "unplaced_jobs": [dataclasses.asdict(one) for one in without_place],
            }
            return [self._as_json(snapshot, rows, demand, now)]
        if self._format is not None:
            return self._formatted(rows)
        free = f"{snapshot.free_cores:.0f} free cores fit those who wait and are owed cores"
        shown = [*_accounts(snapshot.accounts, self._wanted, paper), "", *_pilots(rows, self._columns, paper)]
        shown += folded(self._left_out(len(rows), len(found), len(snapshot.pilots)), paper)
        mixed = mixed_line(snapshot.versions, __version__)
        shown.append("")
        for text in (free, *notices_of(snapshot, named), mixed):
            shown += folded(text, paper)
        return shown

    def _left_out(self, shown: int, found: int, total: int) -> str:
        """Say how many pilots the filters leave out; "" where they leave out none."""
        if shown < found:
            return f"{shown} of {found} pilots; a higher --limit shows more"
        return f"{shown} of the pool's {total} pilots, by the filters" if self._wanted.is_some else ""

    def _look(self, now: int) -> tuple[Snapshot, History]:
        """Return what there is as a plan takes it: with the ends that the agent learned, and what its journal tells."""
        if self._pool is None:
            self._pool = open_pool(self._args)
        found, said = self._pool.snapshot(now), list[str]()
        if self._args.scheduler_only:
            since = self._pool.steps_since(now) if isinstance(self._pool, TellsSteps) else {}
            ce = self._args.ce_collector
            told = {} if ce is None else next(offering(System.payload_reports)).payload_reports(ce, now)
            pilots = tuple(_as_scheduled(one, since.get(one.name), told) for one in found.pilots)
            found = dataclasses.replace(found, pilots=pilots)
            return found, History()
        history = history_of(journal_to_look_at(self._args), found, said.append)
        found = with_scope(found, self._settings.scope)
        found = with_stuck(with_expected_ends(found, history.run_times, now), now, self._settings.stuck)
        return dataclasses.replace(found, notices=(*found.notices, *said)), history

    def _as_json(self, snapshot: Snapshot, rows: Sequence[Row], demand: Mapping[str, object], now: int) -> str:
        shown = {
            "taken": now,
            "free_cores": snapshot.free_cores,
            "accounts": [dataclasses.asdict(account) for account in snapshot.accounts],
            "pilots": [candidate_as_json(row.one) for row in rows],
            **demand,
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


def _as_scheduled(pilot: Pilot, since: int | None, told: Mapping[str, PilotReport]) -> Pilot:
    """Return a pilot with what its batch system has of it, and nothing that it or its node says.

    since: when its steps began, UNIX s: what earlier ones have done is done. told: what pilots advertise in the
    collector of a CE, by their job: `ce#12.0` of the run `ce#12.0#<queued>@<start>`, `12` of `12@<start>`.
    """
    report = told.get(pilot.run.rpartition("#")[0]) or told.get(pilot.run.partition("@")[0])
    found = dataclasses.replace(pilot, report=report, seen=None, contradictory=False, client=PAPER.name)
    return found if since is None else dataclasses.replace(found, saved=since, next_save=None)


def _accounts(accounts: Sequence[Account], wanted: PilotFilter, paper: Paper) -> list[str]:
    headings = [Heading(text, number=text != "account", cuttable=text == "account") for text in _ACCOUNT]
    rows = []
    for one in accounts:
        if fits_any(wanted.accounts, one.name):
            cores = (f"{one.cores_owed:.1f}", f"{one.cores_in_use:.1f}", f"{one.cores_wanted:.1f}")
            rows.append([one.name, *cores, f"{one.cores_in_use - one.cores_owed:+.1f}", f"{one.priority:.1f}"])
    lines, missing = table(headings, rows, paper)
    return [paper.styled("Accounts (cores)", BOLD), *lines, *left_out(missing, paper, "see --json")]


def _pilots(rows: Sequence[Row], wanted: Sequence[Column], paper: Paper) -> list[str]:
    others = any(row.one.pilot.client != PAPER.name for row in rows)
    columns = [one for one in wanted if others or one.name != "client"]
    headings = [
        Heading(
            column.heading,
            column.number,
            cuttable=column.name in _CUTTABLE,
            spare=_SPARE.get(column.name, 0),
            shortest=_SHORTEST.get(column.name, Heading.shortest),
        )
        for column in columns
    ]
    styles = [YELLOW if state(row) in {"ordered", "leaving"} else "" for row in rows]
    lines, missing = table(headings, [[column.text(row) for column in columns] for row in rows], paper, styles)
    return [paper.styled("Pilots", BOLD), *lines, *left_out(missing, paper, "see --format")]


COMMAND = Command(
    "who is owed and uses what, and every pilot with its waste",
    (
        *DECISION,
        *filters("pilots"),
        option("--sort COLUMN[:desc]", "order of the pilots (default: account, user, node)"),
        option("--format COLUMN,...", "only these columns of the pilots, for programs"),
        option(
            "--scheduler-only",
            "by what the batch system alone knows: run time, last checkpoint, steps of Slurm's jobs",
        ),
        option(
            "--ce-collector HOST[:PORT]",
            "with --scheduler-only: and what glideins advertise of their payloads in the collector of an HTCondor-CE",
        ),
        option("--noheader", "with --format: without the line of names"),
        option(
            "--watch DURATION",
            f"again so often, seconds or such as 2m (default: {_WATCH:g}), until Ctrl-C",
            fine_seconds(0.1, 86400),
            nargs="?",
            const=_WATCH,
        ),
    ),
    run,
    epilog=_DETAILS,
)
