#!/usr/bin/env python3
"""Make a log of today's grid mix: jobs of 1 and of 8 cores whose run times are drawn from PanDA's records.

usage: scripts/grid_mix.py PANDA.csv [--share S] [--cores N] [--days N] [--load L] [--request HOURS] [--seed N]

S is the share of the core-hours that jobs of 8 cores have. Each job's run time is drawn from the rows of its number of
cores, times a log-normal factor (few rows have 8 cores); its user is drawn apart from it, so that neither the user nor
the request, which is the same for all, says how long it runs. Where the request is as long as a pilot's lease, a pilot
of 8 cores runs one job of 8 cores (or eight of 1) and goes, as nothing else would surely end in time. Jobs come as a
Poisson process that keeps N cores busy L times over. The log is in the Standard Workload Format: group 1 has jobs of 1
core, group 8 those of 8.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

NARROW, WIDE = 1, 8
"""Cores of the two kinds of jobs."""
SIGMA = 0.3
"""Of the log-normal factor: chosen so that a row's run times spread by a third, on no log."""
COLUMNS = ("starttime", "endtime", "user", "corecount", "jobstatus")


@dataclass(frozen=True)
class PandaRow:
    """A job that finished: its cores, the s between its start and its end, and its user."""

    cores: int
    seconds: float
    user: str


@dataclass(frozen=True)
class Mix:
    """What is made: see the text above; request in s."""

    share: float = 0.8
    cores: int = 1024
    days: float = 11.0
    load: float = 1.1
    request: float = 96 * 3600.0
    seed: int = 1


def panda_rows(lines: Iterable[str], name: str) -> list[PandaRow]:
    """Return the finished jobs of 1 and 8 cores. Raises ValueError, with the line, for what is no such record."""
    reader, found = csv.DictReader(lines), []
    missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
    if missing:
        raise ValueError(f"{name}: the columns {', '.join(missing)} are not there")
    for row in reader:
        try:
            begin, end = (datetime.fromisoformat(row[column]) for column in ("starttime", "endtime"))
            cores, seconds = int(row["corecount"]), (end - begin).total_seconds()
        except (TypeError, ValueError) as fault:
            raise ValueError(f"{name}: line {reader.line_num}: {fault}") from None
        if row["jobstatus"] == "finished" and cores in {NARROW, WIDE} and seconds > 0:
            found.append(PandaRow(cores, seconds, row["user"]))
    for cores in (NARROW, WIDE):
        if not any(one.cores == cores for one in found):
            raise ValueError(f"{name}: no job of {cores} cores finished")
    return found


def wide_jobs(rows: Sequence[PandaRow], mix: Mix) -> float:
    """Return which share of the jobs has 8 cores, so that these have the share of the core-hours that is wanted."""
    mean = {cores: cores * np.mean(_seconds(rows, cores, mix)) for cores in (NARROW, WIDE)}
    return float(mix.share * mean[NARROW] / (mix.share * mean[NARROW] + (1 - mix.share) * mean[WIDE]))


def _seconds(rows: Sequence[PandaRow], cores: int, mix: Mix) -> list[float]:
    return [min(one.seconds, mix.request) for one in rows if one.cores == cores]


def swf_lines(rows: Sequence[PandaRow], mix: Mix, name: str) -> Iterator[str]:
    """Yield the lines of the log."""
    dice, odds = np.random.default_rng(mix.seed), wide_jobs(rows, mix)
    seconds = {cores: _seconds(rows, cores, mix) for cores in (NARROW, WIDE)}
    users = {cores: [one.user for one in rows if one.cores == cores] for cores in (NARROW, WIDE)}
    numbers = {user: place for place, user in enumerate(sorted({one.user for one in rows}), 1)}
    work = odds * WIDE * np.mean(seconds[WIDE]) + (1 - odds) * NARROW * np.mean(seconds[NARROW])
    yield f"; Computer: made of {len(rows)} PanDA records ({name}) by scripts/grid_mix.py"
    yield f"; Note: {mix}"
    now, number = 0.0, 0
    while True:
        now += dice.exponential(work / (mix.cores * mix.load))
        if now > mix.days * 86400:
            return
        number += 1
        cores = WIDE if dice.random() < odds else NARROW
        run = min(mix.request, float(dice.choice(seconds[cores]) * np.exp(dice.normal(0.0, SIGMA))))
        user = numbers[str(dice.choice(users[cores]))]
        yield (
            f"{number} {now:.0f} -1 {max(1.0, run):.0f} {cores} -1 -1 {cores} {mix.request:.0f} -1 1 {user} {cores} "
            "-1 -1 -1 -1 -1"
        )


def main() -> int:
    """Write the log to the output."""
    parser = argparse.ArgumentParser(description="a log of today's grid mix, drawn from PanDA's records")
    parser.add_argument("records", metavar="PANDA.csv", help="a job a line, with " + ", ".join(COLUMNS))
    parser.add_argument("--share", type=float, default=Mix.share, help="of the core-hours, in jobs of 8 cores (0.8)")
    parser.add_argument("--cores", type=int, default=Mix.cores, help="that are kept busy (1024)")
    parser.add_argument("--days", type=float, default=Mix.days, help="for so long (11)")
    parser.add_argument("--load", type=float, default=Mix.load, help="so many times over (1.1)")
    parser.add_argument("--request", type=float, default=96, metavar="HOURS", help="that each job asks for (96)")
    parser.add_argument("--seed", type=int, default=Mix.seed)
    args = parser.parse_args()
    if not 0 <= args.share <= 1 or min(args.cores, args.days, args.load, args.request) <= 0:
        parser.error("expected a share from 0 to 1, and all else above 0")
    mix = Mix(args.share, args.cores, args.days, args.load, args.request * 3600, args.seed)
    try:
        with open(args.records, newline="") as stream:
            rows = panda_rows(stream, args.records)
    except (OSError, ValueError) as fault:
        parser.error(str(fault))
    for line in swf_lines(rows, mix, args.records.rpartition("/")[2]):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
