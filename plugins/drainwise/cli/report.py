"""`drainwise report`: per user and day, who got an order, how they ended, what was promised and wasted.

Needs the journal alone.
"""

from __future__ import annotations

import argparse
import time

from drainwise.cli.arguments import whole
from drainwise.cli.journal_options import (
    add_identity_options,
    add_journal_options,
    journal_files,
    say_passed_over,
    wanted_identity,
)
from drainwise.cli.screen.layout import BOLD, Heading, Paper, standard_output, table
from drainwise.cli.text import document, json_text, write_whole
from drainwise.common.printable import printable
from drainwise.facts.units import core_hours, duration
from drainwise.journal.history import IN_TIME, LATE, OPEN, VACATED, WITHDRAWN, reported_orders, reported_parts
from drainwise.journal.read import PassedOver
from drainwise.journal.report import DAY, PartSums, Report, Sums, as_json, report_on
from drainwise.journal.unmet import unused_in

_ENDS = ((IN_TIME, 0), (LATE, 3), (VACATED, 0), (WITHDRAWN, 4), (OPEN, 5))
"""The ends of orders, and the turn in which each column is left out where the window is narrow."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "who got an order, left in time and was vacated, and what was promised and wasted"
    parser = subparsers.add_parser("report", help=text, description=text)
    parser.add_argument(
        "--days", type=whole(1, 3650), default=7, metavar="N", help="the last N days, in UTC (default: 7)"
    )
    parser.add_argument("--user", metavar="U", help="only this user's pilots")
    add_identity_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON: times in s, wastes in core-seconds")
    parser.add_argument("--html", metavar="FILE", help="write one self-contained page with plots there; - prints it")
    add_journal_options(parser)


def run(args: argparse.Namespace) -> int:
    """Show the report; the exit code. Raises UsageError for the journal, and for a page that cannot be written."""
    now, identity = int(time.time()), wanted_identity(args)
    begin = now - now % DAY - (args.days - 1) * DAY
    passed_over = PassedOver()
    files = journal_files(args)
    orders, unused = reported_orders(files, begin, passed_over), unused_in(files, begin, now)
    parts = reported_parts(files, begin, passed_over)
    report = report_on(orders, begin, now, args.user, unused, identity, parts)
    say_passed_over(passed_over)
    if args.html is not None:
        from drainwise.journal.report_html import page

        write_whole(args.html, page(report), "report")
    if args.json:
        print(json_text(document("report", as_json(report))))
    elif args.html is None:
        print("\n".join(_lines(report, args.user, identity.in_words(), standard_output())))
    return 0


def _lines(report: Report, user: str | None, sent: str, paper: Paper) -> list[str]:
    if not report.pilots:
        whose = [printable(one) for one in (user, sent) if one]
        none = "no order was given" + (f" to pilots of {' and '.join(whose)}" if whose else "")
        return [none, *_part_lines(report, paper)]
    days = [Heading("day"), Heading("user", cuttable=True), Heading("account", cuttable=True, spare=2)]
    by_day, missing = table(
        days + _headings(), [(day, user, whose, *_cells(sums)) for day, whose, user, sums in report.rows], paper
    )
    users = [(user, whose, *_cells(sums)) for whose, user, sums in report.users]
    by_user, _ = table(days[1:] + _headings(), [*users, ("all", "", *_cells(report.total))], paper)
    lines = [paper.styled("By user and day (UTC)", BOLD), *by_day, "", paper.styled("By user", BOLD), *by_user]
    if report.vos:
        by_vo, _ = table(
            [Heading("VO", cuttable=True), *_headings()],
            [(vo or "not known", *_cells(sums)) for vo, sums in report.vos],
            paper,
        )
        lines += ["", paper.styled("By virtual organisation", BOLD), *by_vo]
    lines += _part_lines(report, paper)
    if report.unused:
        lines += ["", f"{report.unused:g} cores came back and nobody under quota used them in time"]
    if missing:
        lines.append(f"(left out in this window: {', '.join(missing)})")
    return lines


def _part_lines(report: Report, paper: Paper) -> list[str]:
    """Show what pilots returned while they went on; nothing where nobody was asked."""
    if not report.parts:
        return []
    sums = ("wishes", "pilots", "cores returned", "returned", "wasted")
    headings = [Heading("user", cuttable=True), Heading("account", cuttable=True, spare=2)]
    users = [(user, whose, *_part_cells(sums)) for whose, user, sums in report.parts]
    rows, _ = table(
        headings + [Heading(text, number=True) for text in sums],
        [*users, ("all", "", *_part_cells(report.part_total))],
        paper,
    )
    return ["", paper.styled("Cores returned by pilots that went on", BOLD), *rows]


def _part_cells(sums: PartSums) -> list[str]:
    counts = (sums.wishes, sums.pilots, sums.cores)
    return [*map(str, counts), core_hours(sums.core_seconds), core_hours(sums.wasted)]


def _headings() -> list[Heading]:
    counts = [Heading("ordered", number=True), *(Heading(end, number=True, spare=spare) for end, spare in _ENDS)]
    sums = ("cores freed", "promised", "wasted", "time to free")
    return counts + [Heading(text, number=True) for text in sums]


def _cells(sums: Sums) -> list[str]:
    freed = "-" if sums.time_to_free is None else duration(round(sums.time_to_free))
    counts = (sums.ordered, *(sums.ended_as(end) for end, _ in _ENDS), sums.cores_freed)
    return [*map(str, counts), core_hours(sums.predicted), core_hours(sums.realised), freed]
