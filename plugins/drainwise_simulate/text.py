"""A study in words and cells: one text for the terminal and the page."""

from __future__ import annotations

import math

from drainwise.facts.units import duration
from drainwise_simulate.intervals import Interval
from drainwise_simulate.policies.meanings import CLAIRVOYANT
from drainwise_simulate.scenario import EXACT, REQUESTS, SCOUTS, Scenario
from drainwise_simulate.study import Part, Study
from drainwise_simulate.summary import YOUNGEST_FIRST, PolicyLine

NONE = "-"
HEADINGS = (
    "policy",
    "wasted",
    "killed",
    "draining",
    f"to {CLAIRVOYANT}",
    f"to {YOUNGEST_FIRST}",
    "predicted",
    "p50",
    "p95",
    "restarted",
    "given",
)
"""Of the table of policies; the first is a name, the others are numbers."""
LEGEND = (
    "wasted, killed, draining, predicted: core-hours for each core that was given back; ± 95 % confidence",
    f"to {CLAIRVOYANT}, to {YOUNGEST_FIRST}: all its waste as a multiple of what these wasted in the same states",
    "p50, p95: when half and 95 % of the cores asked for were free; restarted: payloads lost per burst",
    "given: cores of the pilots that were ordered to end, for each core that was asked for",
)
WAITED = "p50, p95: how long half and 95 % of the cores that came as jobs waited; restarted: payloads lost in all"
_KNOWN = {
    REQUESTS: "payloads are expected to run as long as they asked for",
    SCOUTS: "payloads are expected to run as long as their like did",
    EXACT: "it is known how long payloads run",
}


def cells(line: PolicyLine) -> tuple[str, ...]:
    """Return a policy's row under `HEADINGS`."""
    return (
        line.policy,
        str(line.core_hours_per_core),
        f"{line.killed.value:.3g}",
        f"{line.drained.value:.3g}",
        times(line.to_clairvoyant),
        times(line.to_youngest_first),
        f"{line.predicted.value:.3g}",
        when(line.time_p50),
        when(line.time_p95),
        f"{line.restarted_per_burst.value:.3g}",
        f"{line.cores_given / line.cores_asked:.2f}" if line.cores_asked else NONE,
    )


def times(found: Interval | None) -> str:
    """Return a multiple: `1.03 ± 0.02`."""
    if found is None:
        return NONE
    digits = 3 if found.value < 1 else 2
    text = f"{found.value:.{digits}f}" if found.value < 100 else f"{found.value:.0f}"
    return f"{text} ± {found.half:.2g}" if found.half else text


def when(seconds: float) -> str:
    """Return a time, or that it never came."""
    return duration(round(seconds)) if math.isfinite(seconds) else "never"


def title(part: Part) -> str:
    """Return whose jobs, how much they are, and on how many cores."""
    work = f"{part.jobs} jobs, {part.core_seconds / 3600:.0f} core-hours"
    return f"{part.title}: {work}, {len(part.scenario.pilots)} pilots on {sum(part.scenario.pilots)} cores"


def scenario_in_words(study: Study) -> str:
    """Describe in one sentence what was simulated."""
    one = study.scenario
    bursts = len({(found.replication, found.burst) for found in study.parts[0].outcomes})
    demand = (
        f"{100 * one.reclaimed:g} % of the pilots' cores are wanted back at each of {bursts} moments in "
        f"{_replications(study)}"
    )
    if one.arrivals:
        demand = (
            f"the jobs of {one.arrivals}, who is owed {100 * one.reclaimed:g} % of the cores, are the demand; the "
            f"agent looks every {duration(round(one.period))} who waits, in {_replications(study)}"
        )
    whole = math.fsum(share for _, share in one.mix)
    mix = ", ".join(f"{100 * share / whole:.3g} % in {size}-core pilots" for size, share in one.mix)
    return (
        f"{len(one.pilots)} pilots on {sum(one.pilots)} cores ({mix}); {demand}, within "
        f"{duration(one.site.horizon)}; {_KNOWN[one.estimates]}{_faults(one)}; seed {one.seed}"
    )


def notes(study: Study) -> list[str]:
    """Return what was left out of the log or changed, and why."""
    odd = study.trace.skipped + study.unfit
    return [f"{count} of the log's jobs: {reason}" for reason, count in sorted(odd.items())] + list(study.notes)


def legend(study: Study) -> tuple[str, ...]:
    """Return the meanings of the columns."""
    *first, given = LEGEND[:2] + LEGEND[3:]
    waited = LEGEND[2] if not study.scenario.arrivals else WAITED
    return (*first, waited, given)


def _replications(study: Study) -> str:
    return f"{study.replications} replication{'s' if study.replications > 1 else ''}"


def _faults(one: Scenario) -> str:
    able = "can return single cores" if one.chunk == 1 else f"can return cores, of use {one.chunk} together"
    found = [
        f"{100 * share:g} % of the pilots {what}"
        for share, what in (
            (one.stuck, "stuck"),
            (one.liars, "liars"),
            (one.silent, "silent"),
            (one.shrinking, able),
        )
        if share
    ]
    off = [f"off by a log-normal factor of sigma {one.error:g}"] if one.error else []
    return "".join(f", {words}" for words in off + found)
