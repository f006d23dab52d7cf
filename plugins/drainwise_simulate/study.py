"""A whole comparison on one log: the scenario asked for, the same without an owner who dominates, what is varied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from drainwise.facts.errors import UsageError
from drainwise_simulate.comparison import Case, Watch, run_cases
from drainwise_simulate.demand_burst import fitting
from drainwise_simulate.outcome import HOUR, Outcome
from drainwise_simulate.policies.meanings import CLAIRVOYANT
from drainwise_simulate.scenario import DOMINANT, EXACT, REQUESTS, SCOUTS, Scenario
from drainwise_simulate.summary import PolicyLine, lines_of
from drainwise_simulate.trace import Trace, TraceJob, largest_owner

APART = (
    f"policies run apart here, each through the whole time: what {CLAIRVOYANT} decides is the best each time, "
    "and no bound of the whole"
)
FEWEST_PILOTS = 10
"""A site of fewer is not compared."""
ERRORS = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0)
"""Sigmas of the factor by which run times that are known exactly are made wrong."""
LIARS = (0.0, 0.1, 0.25, 0.5, 0.75)
HORIZONS = (1800, 7200, 21600, 86400)
"""Seconds within which the cores must be back."""
ERROR_SWEEP, ESTIMATE_SWEEP, LIAR_SWEEP, HORIZON_SWEEP = "error", "estimates", "liars", "horizon"


@dataclass(frozen=True)
class Part:
    """The scenario on one list of jobs: whose jobs they are, what they come to, and what each policy came to."""

    title: str
    scenario: Scenario
    jobs: int
    core_seconds: float
    lines: tuple[PolicyLine, ...]
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class Point:
    """One value of what is varied, in words and as a number, with each policy's figures there."""

    label: str
    value: float
    lines: tuple[PolicyLine, ...]
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class Sweep:
    """One thing varied while all else stays: its name and its values."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Study:
    """All that was asked and found.

    unfit: jobs that no pilot of this site can run, or not for as long as they did, by reason. notes: what else a reader
    must know.
    """

    trace: Trace
    scenario: Scenario
    policies: tuple[str, ...]
    replications: int
    unfit: Counter[str]
    notes: tuple[str, ...]
    parts: tuple[Part, ...]
    sweeps: tuple[Sweep, ...]


def study(
    trace: Trace,
    scenario: Scenario,
    policies: Sequence[str],
    replications: int = 1,
    processes: int = 1,
    sweeps: bool = False,
    dominant: float = DOMINANT,
    watch: Watch | None = None,
) -> Study:
    """Run all of it. Raises UsageError when a pilot or no job fits the site, and as `run_cases`."""
    if (largest := max(size for size, _ in scenario.mix)) > scenario.cores:
        raise UsageError(f"--cores {scenario.cores}: fewer than a pilot of {largest} cores has; --mix names others")
    jobs, odd = fitting(trace.jobs, scenario)
    if not jobs:
        raise UsageError(f"{trace.name}: none of its {len(trace.jobs)} jobs fits the site's pilots")
    others, notes = _without_the_largest(jobs, scenario, dominant) if not scenario.arrivals else ([], [APART])
    asked = [("all jobs", scenario, jobs), *others]
    lists = [one for _, _, one in asked]
    cases = [Case(one, place) for place, (_, one, _) in enumerate(asked)]
    varied = _varied(scenario) if sweeps else []
    cases += [Case(one) for _, points in varied for _, _, one in points]
    lines = partial(lines_of, arrivals=bool(scenario.arrivals))
    found = iter(run_cases(lists, cases, policies, replications, processes, watch))
    parts = tuple(
        Part(title, on, len(one), sum(job.run * job.cores for job in one), lines(outcomes), outcomes)
        for (title, on, one), outcomes in zip(asked, found)
    )
    swept = []
    for name, points in varied:
        ran = [(label, value, next(found)) for label, value, _ in points]
        points_found = (Point(label, value, lines(one), one) for label, value, one in ran)
        swept.append(Sweep(name, tuple(points_found)))
    return Study(trace, scenario, tuple(policies), replications, odd, tuple(notes), parts, tuple(swept))


Asked = tuple[str, Scenario, list[TraceJob]]


def _without_the_largest(
    jobs: Sequence[TraceJob], scenario: Scenario, dominant: float
) -> tuple[list[Asked], list[str]]:
    """Return the jobs without the user, and without the group, of more than the share `dominant`, if any; and notes.

    The site is smaller by that share, so that it is as busy as before; where that leaves but a few pilots, a note says
    so instead.
    """
    owners: dict[str, Callable[[TraceJob], str]] = {"user": lambda job: job.user, "group": lambda job: job.group}
    found: list[Asked] = []
    notes: list[str] = []
    for kind, owner in owners.items():
        name, share = largest_owner(jobs, owner)
        rest = [job for job in jobs if owner(job) != name]
        if share <= dominant or not rest:
            continue
        smaller = replace(scenario, cores=max(1, round(scenario.cores * (1 - share))))
        who = f"{kind} {name}, who has {100 * share:.0f} % of the core-hours"
        if len(smaller.pilots) < FEWEST_PILOTS:
            notes.append(f"not shown without {who}: too few pilots would be left")
        else:
            found.append((f"without {who}", smaller, rest))
    return found, notes


def _varied(scenario: Scenario) -> list[tuple[str, list[tuple[str, float, Scenario]]]]:
    """Return what is varied: (its name, (label, value, the scenario with it))."""
    known = replace(scenario, estimates=EXACT)
    return [
        (ERROR_SWEEP, [(f"{sigma:g}", sigma, replace(known, error=sigma)) for sigma in ERRORS]),
        (ESTIMATE_SWEEP, [(name, 0.0, replace(scenario, estimates=name)) for name in (REQUESTS, SCOUTS)]),
        (LIAR_SWEEP, [(f"{100 * share:g} %", share, replace(scenario, liars=share)) for share in LIARS]),
        (
            HORIZON_SWEEP,
            [
                (f"{seconds / HOUR:g} h", seconds, replace(scenario, site=replace(scenario.site, horizon=seconds)))
                for seconds in HORIZONS
            ],
        ),
    ]
