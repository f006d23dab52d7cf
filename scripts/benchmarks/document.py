"""The page of all figures, scripts/benchmarks/README.md: `scripts/bench --write` writes all but the part that is kept."""

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
    checkpoints: Sequence[Sequence[Figure]] = ()
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
            *self.checkpoints,
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
    "Jobs that checkpoint": "checkpoints",
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

`scripts/bench --write` measures everything anew and writes this page, with `--only` one part of it. Figures are
medians of {runs} runs, in turn with what they are compared to, on {os.cpu_count()} cores with {version}. The ratios
are what counts: the machine may have had other work to do.

## Whole processes

Run as on a node. The ratio is to the bare start of the interpreter, measured beside each of them.

{table(it.whole)}

Most of a hook's time is the interpreter's start; the prepare hook makes some twenty files. A shell starts Slurm's
hooks; its start is in their figures. Slurm's agent is resident: its rows are a round inside it, without slurmctld. A
look at processes takes at most 40 ms of a minute.

## One report, inside a process

The ratio is to a plain `open().read()` of the same file of {report} bytes.

{table(it.inside)}

## One event of the reference pilot

A payload ends, another starts, and both channels are written. The ratios are to bare writes (temporary file and
rename) into the same directories.

{table(it.pilot)}

## Waiting jobs, inside a process

CPU time, medians of {few["waiting"]}: reading a batch system's answers about 20,000 jobs that wait, against `json.loads`
of the same.

{f"{chr(10)}{chr(10)}".join(map(table, it.waiting))}

## A snapshot of a Slurm cluster

Medians of {few["snapshots"]}, taken in turn, on real clusters whose slurmctld knows so many jobs; 67 of them run and the
others wait. Ratios are to plain `squeue` with its output read and thrown away; that of the snapshot is to twice plain
`squeue` and the question for the reports of those that run. The last two rows are CPU time of slurmctld, means of 60 rounds:
one question for each of a node's jobs, as where there is no mark of orders, and one for the job that carries the mark.

{table(it.pool)}

## A cycle on a large HTCondor pool

Medians of {few["cycles"]}: a whole dry-run cycle on a real collector that knows so many slots. The ratio is to
`condor_status` with the same attributes. Twenty users run pilots in seven of eight slots.

{f"{chr(10)}{chr(10)}".join(map(table, it.cycle))}

Deadline and lease, which a node publishes as expressions, are not asked for: `condor_status` takes twice as long with
them. The agent reads both from the node's orders.

## Jobs that checkpoint

Medians of {few["cycles"]}, taken in turn, of a question to a real access point, as one whole process each. The agent asks it beside
each snapshot.

{f"{chr(10)}{chr(10)}".join(map(table, it.checkpoints))}

## The decision on a large pool

On one core, from columns of facts and claims to the pilots that go. The sort says how fast the machine is.

{f"{chr(10)}{chr(10)}".join(map(table, it.decision))}

The third table has pools whose sizes make the choice hard (slowest of five totals, median of {few["hard"]}). The fourth
says how far from the best the choice is on small pools. The last one (medians of {few["decisions"]}) is the whole decision on
made-up pools. Against a solver: `scripts/chooser_quality`.

## The screens

CPU time, medians of {few["screens"]}, on made-up pools of twenty users, against the bare start of the interpreter.

{table(it.screens[0]) if it.screens else ""}

The same in a process that has imported what it needs (numpy takes some 0.2 s once), against `json.load` of the file.

{table(it.screens[1]) if it.screens else ""}

## Estimates from finished payloads

CPU time, medians of {few["estimates"]}. The ratio is to parsing the same lines alone.

{table(it.estimate)}

## The simulator

Medians of {few["simulations"]}: first come, first served, against the same model in SimPy; and all policies on a log.
`--trace` names the logs; without it they are the excerpts of [traces](../../traces/README.md).

{f"{chr(10)}{chr(10)}".join(map(table, it.simulate))}

## Launching

Choosing the next job, medians of two thousand choices; the ratios are to the first row, that of the last row to the
sort. A job on this machine, medians of {few["launches"]}, against the bare process.

{f"{chr(10)}{chr(10)}".join(map(table, it.launch))}

A million jobs in chains of ten, with names, commands and the first choices made, take {it.launch_memory / 2**30:.2f} GiB
(target: at most 2).

{kept}"""
