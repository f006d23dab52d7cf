"""The page of all figures, docs/benchmarks.md: `scripts/bench --write` writes all but the part that is kept."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.figures import Figure, table

KEPT = "<!-- what follows is kept by scripts/bench --write -->\n"
"""Where the part of the page begins that other commands measured."""


@dataclass(frozen=True)
class Measured:
    """The tables of the page, and the memory of a million jobs to launch, bytes."""

    whole: Sequence[Figure] = ()
    inside: Sequence[Figure] = ()
    pilot: Sequence[Figure] = ()
    waiting: Sequence[Sequence[Figure]] = ()
    pool: Sequence[Figure] = ()
    cycle: Sequence[Sequence[Figure]] = ()
    decision: Sequence[Sequence[Figure]] = ()
    screens: Sequence[Sequence[Figure]] = ()
    estimate: Sequence[Figure] = ()
    simulate: Sequence[Sequence[Figure]] = ()
    launch: Sequence[Sequence[Figure]] = ()
    launch_memory: int = 0

    @property
    def tables(self) -> tuple[Sequence[Figure], ...]:
        """All that were measured, in the page's order."""
        some = (
            self.whole,
            self.inside,
            self.pilot,
            *self.waiting,
            self.pool,
            *self.cycle,
            *self.decision,
            *self.screens,
            self.estimate,
        )
        return tuple(figures for figures in (*some, *self.simulate, *self.launch) if figures)


PART_OF = {
    "Whole processes": "node",
    "One report, inside a process": "node",
    "One event of the reference pilot": "node",
    "Waiting jobs, inside a process": "waiting",
    "A snapshot of a Slurm cluster": "slurm",
    "A cycle on a large HTCondor pool": "pool",
    "The decision on a large pool": "decision",
    "The screens": "screens",
    "Estimates from finished payloads": "estimate",
    "The simulator": "simulate",
    "Launching": "launch",
}
"""What `--only` calls the part that a section shows, by the section's title."""
_HEADING = "\n## "


def with_part(page: str, fresh: str, part: str) -> str:
    """An earlier page with the sections of one part, and what stands before all sections, as they are in `fresh`."""
    top, *sections = fresh.split(_HEADING)
    measured = {title: text for text in sections if PART_OF.get(title := text.partition("\n")[0]) == part}
    old = page.split(_HEADING)[1:]
    return _HEADING.join([top, *(measured.get(text.partition("\n")[0], text) for text in old)])


def kept_of(page: str) -> str:
    """The part of an earlier page that is kept, its mark included; "" when it has none."""
    _, mark, rest = page.partition(KEPT)
    return mark + rest


def document(it: Measured, runs: int, version: str, few: dict[str, int], report: int, kept: str) -> str:
    """The whole text. version: of the Python that was measured. few: how often the slow ones ran, by their name.

    report: bytes of the report that is read.
    """
    return f"""# Benchmarks

What drainwise costs. `scripts/bench --write` measures everything anew and writes this page, with `--only` one part of
it: medians of {runs} runs, taken in turn with what they are compared to, on a machine of {os.cpu_count()} cores with
{version}. The ratios are what counts; the durations are the machine's, which may have had other work to do, and need
not be the same one for each part.

## Whole processes

Run as on a node: byte-compiled, HTCondor's hooks as the job's user and its cron as HTCondor's, Slurm's prolog and
epilog as root and its task prolog as the job's user. The ratio is to the bare start of the interpreter, measured beside
each of them; the first row is one such measurement.

{table(it.whole)}

The prepare hook makes some twenty files; on disk that costs what the file system asks for it. Most of the rest of a
hook's time is the interpreter's start and its imports, so hooks import nothing expensive and end without the interpreter's
clean-up, which they have no use for. A shell starts Slurm's hooks, because something must end with 0 where the
interpreter cannot; its own start is in their figures.

Slurm's agent is resident: its rows are the whole time of a round inside it, the child in which it becomes the jobs'
user included. What slurmctld takes is not in them, nor the start of Slurm's commands, which has a row of its own: a
round has one such start, and a second when something is published.

Payloads are seen by one read of `/proc/<pid>/stat` for each process, half of a look's CPU time; the first look reads command lines,
too. A look is measured by its node, and done so seldom that it takes at most 40 ms of a minute.

## One report, inside a process

The ratio is to a plain `open().read()` of the same file of {report} bytes.

{table(it.inside)}

## One event of the reference pilot

A payload ends, another starts, the sums are kept, and both channels are written, each whole at every moment:
`.pilot.ad`, and the nine files of `$JOBSTATUS` under their lock. The ratios are to bare writes (temporary file and rename) into the
same directories, without lock, checks or sums. On disk the rename of the bare ones is what costs; `$JOBSTATUS` is
overwritten in place.

{table(it.pilot)}

## Waiting jobs, inside a process

CPU time, medians of {few["waiting"]}, taken in turn: the answers of a batch system about 20,000 jobs that wait, without what it takes to give
them, against `json.loads` of the same. Slurm's jobs are of sixty kinds. A schedd of HTCondor's tells its jobs by groups that ask
for the same; these are as many groups as one may have.

{f"{chr(10)}{chr(10)}".join(map(table, it.waiting))}

## A snapshot of a Slurm cluster

Medians of {few["snapshots"]}, taken in turn, on real clusters whose slurmctld knows so many jobs; 67 of them run and the
others wait. Ratios are to plain `squeue` with its output read and thrown away; that of the snapshot is to twice plain
`squeue` and the question for the reports of those that run. The last two rows are CPU time of slurmctld, means of 60 rounds:
one question for each of a node's jobs, as where there is no mark of orders, and one for the job that carries the mark.

{table(it.pool)}

## A cycle on a large HTCondor pool

Medians of {few["cycles"]}, taken in turn: a whole dry-run cycle, from the start of the process to the end of its output, on a
real collector that knows so many slots. The ratio is to `condor_status` with the same attributes. The collector is
asked for these attributes alone, and only for slots that have cores; the negotiator rests meanwhile. Twenty users run
pilots in seven of eight slots; the plan tells of the pilots of one of them, chosen and spared.

{f"{chr(10)}{chr(10)}".join(map(table, it.cycle))}

Deadline and lease, which a node publishes as expressions, are not asked for: `condor_status` takes twice as long with
them. The agent reads both from the node's orders.

## The decision on a large pool

On one core, from columns of facts and claims to the pilots that go. The sort says what a machine of this speed needs to
look at as many numbers once; the solver is run once, since it takes so long.

{f"{chr(10)}{chr(10)}".join(map(table, it.decision))}

Pilots go by price per core; about the place where that stops all sets are weighed (`reclaim/choose/by_cores.py`). Users may
choose their sizes, so the third table has pools whose sizes make the choice hard (CPU time of the slowest of five totals, median
of {few["hard"]}; memory of the whole process, at most 500 MiB). The fourth says how far from the best the choice is on small pools of
these kinds.

The last table (CPU time, medians of {few["decisions"]}, in turn) is the whole decision, from a snapshot's objects to the plan with its
orders in words, on made-up pools of mixed nodes whose pilots report; one kind can run nowhere, one wants whole nodes, three want four nodes at
once. How good the choice is against a solver: `scripts/chooser_quality`.

## The screens

CPU time, medians of {few["screens"]}, taken in turn, byte-compiled, on made-up pools of twenty users: so without the bindings of a batch system.
The first table is of whole processes, against the bare start of the same interpreter; `status` and `explain` do without numpy.

{table(it.screens[0]) if it.screens else ""}

The second one is of a process that has imported what it needs: a saved snapshot is read, checked, decided on and shown, against reading the
same file by `json.load` alone. The import of numpy and of the decision is not in it; it takes some 0.2 s once.

{table(it.screens[1]) if it.screens else ""}

## Estimates from finished payloads

CPU time, medians of {few["estimates"]}, taken in turn: every record is parsed and checked, tasks are estimated, and of each
job it is said what was expected of it before and how far that was off. The ratio is to parsing the same lines alone.

{table(it.estimate)}

## The simulator

Medians of {few["simulations"]}: first come, first served on one machine, against the same model in SimPy, both with the same
start of every job; and all policies on a log of jobs, two replications in two processes. `--trace` names the logs; without
it they are the excerpts of [traces](../traces/README.md).

{f"{chr(10)}{chr(10)}".join(map(table, it.simulate))}

## Launching

Choosing and starting the next job, medians of two thousand choices; the ratios are to the first row, that of the last
row is to the sort. A job on this machine, medians of {few["launches"]}, in turn with the bare process: chosen, started with an
output file and a CPU of its own, waited for, and its result kept. Both times hold the program's own.

{f"{chr(10)}{chr(10)}".join(map(table, it.launch))}

A million jobs in chains of ten, with names, commands and the first choices made, take {it.launch_memory / 2**30:.2f} GiB
(target: at most 2).

{kept}"""
