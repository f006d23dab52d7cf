"""`drainwise report`: per user and day, who got an order, how they ended, what was promised and wasted.

Needs the journal alone.
"""

from __future__ import annotations

import argparse
import socket
import time
from collections.abc import Sequence
from dataclasses import replace

from drainwise.cli.arguments import at_most, name_filters, wanted_of, whole
from drainwise.cli.command_line.options import Command, option
from drainwise.cli.journal_options import (
    IDENTITY,
    JOURNAL,
    journal_files,
    require_known,
    say_passed_over,
    wanted_identity,
)
from drainwise.cli.screen.layout import BOLD, Heading, Paper, folded, left_out, standard_output, table
from drainwise.cli.screen.wanted import PilotFilter
from drainwise.cli.text import document, json_text, write_whole
from drainwise.facts.units import core_hours, duration
from drainwise.journal.read import PassedOver
from drainwise.journal.remembered import ReportedPart
from drainwise.journal.report import (
    DAY,
    IN_TIME,
    LATE,
    OPEN,
    VACATED,
    WITHDRAWN,
    PartSums,
    Report,
    ReportedJournal,
    ReportedOrder,
    Sums,
    as_json,
    report_on,
)

_ENDS = ((IN_TIME, 0), (LATE, 3), (VACATED, 0), (WITHDRAWN, 4), (OPEN, 5))
"""The ends of orders, and the turn in which each column is left out where the window is narrow."""
_WIDER = "a wider window, a pipe or --json shows them"


def run(args: argparse.Namespace) -> int:
    """Show the report; the exit code.

    Raises UsageError for the journal, for a name that it does not know, and for a page that cannot be written.
    """
    now, identity, wanted = int(time.time()), wanted_identity(args), wanted_of(args)
    begin = now - now % DAY - (args.days - 1) * DAY
    passed_over = PassedOver()
    files = journal_files(args)
    read = ReportedJournal.read(files, begin, now, passed_over)
    orders = [one for one in read.orders if _is_wanted(one, wanted)]
    parts = [one for one in read.parts if _is_wanted(one, wanted)]
    if not orders and not parts:
        require_known(files, wanted)
    report = report_on(orders, begin, now, None, None if wanted.is_some else read.unused, identity, parts)
    report = replace(report, passed_over=passed_over.lines)
    say_passed_over(passed_over)
    if args.html is not None:
        from drainwise.journal.report_html import page

        write_whole(args.html, page(report, now, files[-1] if files else "", socket.gethostname()), "report")
    if args.json:
        print(json_text(document("report", as_json(report))))
    elif args.html is None:
        whose = [*wanted.users, *wanted.accounts, *wanted.nodes, identity.in_words()]
        print("\n".join(_lines(report, [one for one in whose if one], wanted.limit, standard_output())))
    return 0


def _is_wanted(one: ReportedOrder | ReportedPart, wanted: PilotFilter) -> bool:
    return wanted.fits_place(one.account, one.user, (one.node,))


def _lines(report: Report, whose: Sequence[str], limit: int | None, paper: Paper) -> list[str]:
    if not report.pilots:
        pilots = f" to pilots of {' and '.join(whose)}" if whose else ""
        none = f"no order was given{pilots}"
        if report.passed_over:
            none = f"no order{pilots} is known; lines of the journal that cannot be used: {report.passed_over}"
        return [*folded(none, paper), *_part_lines(report, limit, paper)]
    names = [Heading("day"), Heading("user", cuttable=True), Heading("account", cuttable=True, spare=2)]
    users = [(user, whose, *_cells(sums)) for whose, user, sums in report.users]
    tables = [
        (
            "By user and day (UTC)",
            names,
            [(day, user, whose, *_cells(sums)) for day, whose, user, sums in report.rows],
            [],
        ),
        ("By user", names[1:], users, [("all", "", *_cells(report.total))]),
    ]
    if report.vos:
        vos = [(vo or "not known", *_cells(sums)) for vo, sums in report.vos]
        tables.append(("By virtual organisation", [Heading("VO", cuttable=True)], vos, []))
    lines, left = list[str](), list[str]()
    for title, first, rows, last in tables:
        found, missing = table([*first, *_headings()], [*rows[:limit], *last], paper)
        lines += [*([""] if lines else []), paper.styled(title, BOLD), *found, *_further(rows, limit)]
        left += [one for one in missing if one not in left]
    lines += _part_lines(report, limit, paper)
    if report.unused:
        lines += ["", *folded(f"{report.unused:g} cores came back and nobody under quota used them in time", paper)]
    return [*lines, *left_out(left, paper, _WIDER)]


def _further(rows: Sequence[object], limit: int | None) -> list[str]:
    further = 0 if limit is None else len(rows) - limit
    return [f"and {further} more; a higher --limit shows them"] if further > 0 else []


def _part_lines(report: Report, limit: int | None, paper: Paper) -> list[str]:
    """Show what pilots returned while they went on; nothing where nobody was asked."""
    if not report.parts:
        return []
    sums = ("wishes", "pilots", "cores returned", "returned", "wasted")
    headings = [Heading("user", cuttable=True), Heading("account", cuttable=True, spare=2)]
    users = [(user, whose, *_part_cells(sums)) for whose, user, sums in report.parts]
    rows, missing = table(
        headings + [Heading(text, number=True) for text in sums],
        [*users[:limit], ("all", "", *_part_cells(report.part_total))],
        paper,
    )
    title = paper.styled("Cores returned by pilots that went on", BOLD)
    return ["", title, *rows, *_further(users, limit), *left_out(missing, paper, _WIDER)]


def _part_cells(sums: PartSums) -> list[str]:
    counts = (sums.wishes, sums.pilots, sums.cores_returned)
    return [*map(str, counts), core_hours(sums.core_seconds_returned), core_hours(sums.realised_waste)]


def _headings() -> list[Heading]:
    counts = [Heading("ordered", number=True), *(Heading(end, number=True, spare=spare) for end, spare in _ENDS)]
    sums = (("cores freed", 0), ("promised", 1), ("wasted", 0), ("time to free", 1))
    return counts + [Heading(text, number=True, spare=spare) for text, spare in sums]


def _billed(sums: Sums) -> list[str]:
    return [core_hours(seconds, sums.unit) for seconds in (sums.predicted_billed, sums.realised_billed)]


def _cells(sums: Sums) -> list[str]:
    freed = "-" if sums.time_to_free_median is None else duration(round(sums.time_to_free_median))
    counts = (sums.ordered, *(sums.ends[end] for end, _ in _ENDS), sums.cores_freed)
    return [*map(str, counts), *_billed(sums), freed]


COMMAND = Command(
    "who got an order, left in time and was vacated, and what was promised and wasted",
    (
        option("--days N", "the last N days, in UTC (default: 7)", whole(1, 3650), default=7),
        *name_filters(),
        at_most("rows of each table"),
        *IDENTITY,
        option("--json", "print JSON: times in s, wastes in core-seconds"),
        option("--html FILE", "write one self-contained page with plots there; - prints it"),
        *JOURNAL,
    ),
    run,
)
