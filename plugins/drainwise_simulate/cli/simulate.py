"""`drainwise simulate`: a log of real jobs is played, and each way of taking cores back is held against the optimum."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from drainwise.cli.arguments import number, seconds, whole
from drainwise.cli.command_line.options import MAY, Command, option
from drainwise.cli.screen.layout import BOLD, Heading, Paper, standard_output, table
from drainwise.cli.text import document, json_text, write_whole
from drainwise.common.printable import printable
from drainwise.facts.errors import UsageError
from drainwise.facts.units import duration
from drainwise.pilot.decide.settings import WHILE_DRAINING
from drainwise_simulate.policies.meanings import CLAIRVOYANT, MEANINGS, SLURM_MEANS
from drainwise_simulate.scenario import DOMINANT, ESTIMATES, Checkpoints, Scenario, site_settings, with_site_defaults
from drainwise_simulate.trace import Trace
from drainwise_tasks.estimate.records.record import skipped_words

if TYPE_CHECKING:
    from drainwise_simulate.comparison import Watch
    from drainwise_simulate.leases import LeaseLog
    from drainwise_simulate.study import Study

_MOST_CORES = 1_000_000
_SPAN, _SHARE = seconds(1), number(0, 1)
_AS_IN_SCENARIO = "shrinking chunk cores mix moments estimates error stuck liars silent while_draining arrivals seed"
_LEFT_OUT = {"killed": 2, "draining": 2, "predicted": 4, "restarted": 3, "given": 5, "p50": 1}
"""Columns that go where the window is narrow, the largest number first."""
_BAR = 40
_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(args: argparse.Namespace) -> int:
    """Simulate and print; the exit code. Raises UsageError for the log, and for a page that cannot be written."""
    from drainwise_simulate.leases import LeaseLog, read_log
    from drainwise_simulate.policies.named import ONE_SHOT, POLICIES
    from drainwise_simulate.study import study

    scenario = scenario_of(args)
    trace = read_log(args.trace)
    if isinstance(trace, LeaseLog):
        lines = _costs(trace, scenario, args)
        if args.html != "-" or args.json:
            print("\n".join(lines))
        return 0
    if args.longest is not None:
        trace = _shortened(trace, args.longest)
    if args.html is not None:
        from drainwise_simulate.page import page  # what it needs is missed now, and not after minutes of work

        _writable(args.html)
    with _bar() if sys.stderr.isatty() else contextlib.nullcontext() as watch:
        found = study(
            trace,
            scenario,
            args.policies or (ONE_SHOT if scenario.arrivals else POLICIES),
            args.replications,
            args.processes,
            args.vary or args.html is not None,
            args.dominant,
            watch,
        )
    if args.html is not None:
        write_whole(args.html, page(found, _command(args), int(time.time())), "page")
    if args.json:
        from drainwise_simulate.results import as_json

        print(json_text(document("simulation", as_json(found))))
    elif args.csv:
        from drainwise_simulate.results import as_csv

        sys.stdout.write(as_csv(found))
    elif args.html != "-":
        print("\n".join(_lines(found, standard_output())))
    return 0


def _costs(log: LeaseLog, scenario: Scenario, args: argparse.Namespace) -> list[str]:
    """Return the lines on what each way would have wasted in a log whose jobs are leases of their own."""
    from drainwise_simulate.leases import YOUNGEST, costs_of

    if args.html is not None:
        from drainwise_simulate.page import lease_page

        _writable(args.html)
    site, preemptible = with_site_defaults(scenario.site, scenario.min_grace), args.preemptible
    found = costs_of(log, scenario.reclaimed, scenario.moments, site, scenario.seed, scenario.checkpoints, preemptible)
    if not found.cores:
        raise UsageError(f"{log.name}: no job runs at any of {found.moments} moments of it; --moments asks for more")
    hours, gpus = ({name: one / 3600 for name, one in some.items()} for some in (found.wasted, found.gpus))
    whole = hours[YOUNGEST] or 1.0
    rows = [
        [name, f"{waste:.4g}", f"{gpus[name]:.4g}", f"{waste / (found.given[name] or 1):.3g}", f"{waste / whole:.0%}"]
        for name, waste in hours.items()
    ]
    names = "policy", "core-h wasted", "GPU-h wasted", "core-h per core", "of youngest-first"
    said = f"{log.name}: {len(log.jobs)} jobs, each a lease of its own.{skipped_words(log.skipped)}"
    cores = f"{scenario.reclaimed:.0%} of the cores in use, at {found.moments} moments: {found.cores} cores in all"
    meanings = [f"{name}: {MEANINGS.get(name, SLURM_MEANS)}" for name in hours]
    if args.html is not None:
        plots = {names[1]: hours, names[2]: gpus}
        made = lease_page(said, cores, names, rows, meanings, plots, _command(args), int(time.time()))
        write_whole(args.html, made, "page")
    if args.json:
        shown = {"jobs": len(log.jobs), "moments": found.moments, "cores": found.cores, "core_hours_wasted": hours}
        given = {"gpu_hours_wasted": gpus, "cores_given": found.given}
        return [json_text(document("lease costs", {**shown, **given, "skipped": dict(log.skipped)}))]
    headings = [Heading(text, number=bool(place)) for place, text in enumerate(names)]
    return [printable(said), f"{cores}.", "", *table(headings, rows, standard_output())[0], "", *meanings]


@contextlib.contextmanager
def _bar() -> Iterator[Watch]:
    """Draw on standard error how much is done, and wipe it out at the end."""
    begin = time.monotonic()

    def draw(share: float) -> None:
        passed = time.monotonic() - begin
        left = duration(round(passed * (1 - share) / share)) if share else "-"
        done = f"{'#' * round(_BAR * share):<{_BAR}} {share:4.0%} {duration(round(passed))} left: {left}"
        sys.stderr.write(f"\r\x1b[2Ksimulating {done}")
        sys.stderr.flush()

    try:
        draw(0.0)
        yield draw
    finally:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()


def _shortened(trace: Trace, longest: int) -> Trace:
    jobs = tuple(job for job in trace.jobs if job.run <= longest)
    if not jobs:
        raise UsageError(f"--longest {duration(longest)}: no job of {trace.name} ran as short as that")
    left_out = len(trace.jobs) - len(jobs)
    reason = f"ran for longer than {duration(longest)}: left out"
    return replace(trace, jobs=jobs, skipped=trace.skipped + type(trace.skipped)({reason: left_out}))


def _writable(path: str) -> None:
    """Raise UsageError at once where minutes of work could not be written."""
    if path == "-":
        return
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        reason = "it is a directory" if os.path.isdir(path) else f"no permission, or no such directory: {folder}"
        raise UsageError(f"--html {path!r} cannot be written: {reason}")


def _command(args: argparse.Namespace) -> str:
    """Write the command that makes the same page again, without the places of files on this machine."""
    words, names = ["drainwise", *sys.argv[1:]], {args.trace, args.html}
    return shlex.join(os.path.basename(word) if word in names else word for word in words)


def _lines(found: Study, paper: Paper) -> list[str]:
    from drainwise_simulate.text import HEADINGS, cells, legend, notes, scenario_in_words, title

    lines = [f"{scenario_in_words(found)}."]
    headings = [Heading(text, number=bool(place), spare=_LEFT_OUT.get(text, 0)) for place, text in enumerate(HEADINGS)]
    missing: list[str] = []
    for part in found.parts:
        styles = [BOLD if line.policy == "least-waste" else "" for line in part.lines]
        rows, missing = table(headings, [cells(line) for line in part.lines], paper, styles)
        lines += ["", paper.styled(printable(title(part)), BOLD), *rows]
    lines += ["", *legend(found)]
    lines += [printable(note) for note in notes(found)]
    if missing:
        lines.append(f"(left out in this window: {', '.join(missing)})")
    return lines


def scenario_of(args: argparse.Namespace) -> Scenario:
    """Return the scenario by the options. Raises UsageError for what does not go together."""
    same = {name: getattr(args, name) for name in _AS_IN_SCENARIO.split()}
    site = site_settings(args.horizon, args.grace)
    return Scenario(
        **same,
        lease=float(args.lease),
        reclaimed=args.reclaim,
        period=float(args.period),
        step=float(args.step),
        min_grace=int(args.min_grace),
        checkpoints=args.checkpoint and args.checkpoint._replace(on_demand=args.on_demand),
        site=site,
    )


def policies(text: str) -> tuple[str, ...]:
    """Parse names after commas, each once; the clairvoyant optimum, that all are held against, is always there."""
    from drainwise_simulate.policies.named import require_known

    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        try:
            require_known(name)
        except UsageError as fault:
            raise argparse.ArgumentTypeError(str(fault)) from None
    return tuple(names if CLAIRVOYANT in names else [*names, CLAIRVOYANT])


def _some_share(text: str) -> float:
    value = _SHARE(text)
    if not value:
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: expected a share above 0, at most 1")
    return value


def _mix(text: str) -> tuple[tuple[int, float], ...]:
    found: dict[int, float] = {}
    for pair in text.split(","):
        size, _, part = pair.partition(":")
        try:
            cores, portion = whole(1, 1024)(size.strip()), _SHARE(part.strip())
        except argparse.ArgumentTypeError:
            portion = cores = 0
        if not portion or cores in found:
            raise argparse.ArgumentTypeError(
                f"{text[:80]!r}: expected a size from 1 to 1024 cores, each once, and its share: 8:0.5,64:0.5"
            )
        found[cores] = portion
    return tuple(found.items())


def saves_in(text: str) -> Checkpoints:
    """Parse INTERVAL:SECONDS[:SHARE]."""
    interval, _, rest = text.partition(":")
    writing, colon, share = rest.partition(":")
    return Checkpoints(_SPAN(interval), seconds(0)(writing), _SHARE(share) if colon else 1.0)


_USUAL = Scenario()
_NAMES = "\n".join(f"  {name:<18}{meaning}" for name, meaning in MEANINGS.items())
COMMAND = Command(
    "what each way of taking cores back wastes, on a log of real jobs, held against the best possible",
    (
        option(
            "trace TRACE",
            "a log in the Standard Workload Format, or of sacct --parsable2 or condor_history -json or -long, where "
            "each job is a lease (only --reclaim, --moments, --horizon, --grace, --min-grace, --seed, --checkpoint, "
            "--preemptible, --html, --json count); -: input",
        ),
        "the site",
        option("--cores N", "cores of the site (%(default)s)", whole(1, _MOST_CORES), default=_USUAL.cores),
        option(
            "--mix SIZE:SHARE,…",
            "cores of a pilot, and the share of the site in such pilots: 8:0.5,64:0.5 (8:1)",
            _mix,
            default=_USUAL.mix,
        ),
        option(
            "--lease DURATION",
            "of a pilot; longer jobs are left out (4d)",
            _SPAN,
            default=_USUAL.lease,
        ),
        option("--stuck SHARE", "pilots whose payloads hang (0)", _SHARE, default=0.0),
        option("--liars SHARE", "pilots that claim to lose everything when ended (0)", _SHARE, default=0.0),
        option("--silent SHARE", "pilots that report nothing (0)", _SHARE, default=0.0),
        option("--shrinking SHARE", "pilots that can give back a part of their cores (0)", _SHARE, default=0.0),
        option(
            "--checkpoint INTERVAL:SECONDS[:SHARE]",
            "pilots, or a share of them, save all their work so often, which takes so long: 1h:1m:0.5 (none); jobs "
            "of sacct or condor_history do so each by itself",
            saves_in,
        ),
        option(
            "--preemptible QOS,…",
            "in a log of sacct with the column QOS, whose jobs Slurm itself would preempt, in a row of its own (none)",
            lambda text: frozenset(text.split(",")),
            default=frozenset(),
        ),
        option("--on-demand", "pilots with --checkpoint save when an order asks for it, too"),
        "what is reclaimed",
        option("--reclaim SHARE", "of the pilots' cores, at once (%(default)s)", _some_share, default=_USUAL.reclaimed),
        option(
            "--chunk N",
            "cores of a waiting job: what is given back is of use in such chunks (%(default)s)",
            whole(1, 1024),
            default=_USUAL.chunk,
        ),
        option(
            "--moments N",
            "how often in each replication, each time from the untouched site (%(default)s)",
            whole(1, 10_000),
            default=_USUAL.moments,
        ),
        option("--horizon DURATION", "within which the cores must be back (2h)", _SPAN, default=7200),
        option("--grace DURATION", "longest time to drain (1d)", _SPAN, default=86400),
        option(
            "--estimates",
            "of run times: what jobs asked for, what their like took, or the truth (%(default)s)",
            choices=ESTIMATES,
            default=_USUAL.estimates,
        ),
        option("--error SIGMA", "of a log-normal factor that makes them worse (0)", number(0, 10), default=0.0),
        option(
            "--arrivals GROUP",
            "no moments: this group of the log (user, where there is one group alone) is owed --reclaim of the cores "
            "and its own jobs ask for them",
            default="",
        ),
        option("--period DURATION", "how often the agent looks, with --arrivals (1m)", _SPAN, default=_USUAL.period),
        option(
            "--step DURATION", "how often a policy that decides over time is asked (5m)", _SPAN, default=_USUAL.step
        ),
        option(
            "--min-grace DURATION",
            "shortest time that site-default and site-least-waste let a pilot drain (5m)",
            _SPAN,
            default=_USUAL.min_grace,
        ),
        option(
            "--while-draining",
            "what pilots start when they were ordered to leave: see the reference pilot (%(default)s)",
            choices=WHILE_DRAINING,
            default=_USUAL.while_draining,
        ),
        option("--longest DURATION", "leave out jobs that ran longer (none): payloads are short then", _SPAN),
        "the comparison",
        option("--policies P,…", "some of those below (all); the optimum is always there", policies),
        option("--replications N", "runs (%(default)s)", whole(1, 10_000), default=5),
        option("--seed N", "of what is drawn (%(default)s)", whole(0, 2**31), default=1),
        option("--processes N", "at a time (as many as there are cores)", whole(1, 1024), default=_CORES),
        option(
            "--dominant SHARE",
            "show all again without a user or group that has more of the core-hours (%(default)s)",
            _SHARE,
            default=DOMINANT,
        ),
        option("--vary", "also vary the error, the estimates, the liars and the horizon; takes longer"),
        "what is shown",
        option("--json", "print JSON: times in s, core-hours per core given back", one_of=MAY),
        option("--csv", "print every decision as a row: times in s, core-seconds", one_of=MAY),
        option("--html FILE", "write one self-contained page with plots there; implies --vary"),
    ),
    run,
    epilog=f"policies:\n{_NAMES}",
)
