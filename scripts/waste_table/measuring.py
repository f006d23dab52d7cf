"""One replication of a workload: the log is played once, and at each moment every row goes on from the same state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drainwise_simulate.demand_burst import Burst, fitting, moments, snapshot_of
from drainwise_simulate.engine import begin, outcome_of
from drainwise_simulate.outcome import Outcome
from drainwise_simulate.scenario import Scenario
from drainwise_simulate.trace import TraceJob
from drainwise_simulate.workload import BEGIN


def replication_of(
    jobs: Sequence[TraceJob], rows: Mapping[str, Scenario], policies: Sequence[str], replication: int
) -> dict[str, list[Outcome]]:
    """Return the outcomes by row. The rows' scenarios differ only in the share, the horizon and the step."""
    first = next(iter(rows.values()))
    able, _ = fitting(jobs, first)
    site = begin(able, first, replication)
    found: dict[str, list[Outcome]] = {name: [] for name in rows}
    for number, moment in enumerate(moments(able, first, replication)):
        site.advance(BEGIN + moment)
        for name, scenario in rows.items():
            burst = Burst(replication, number, moment, scenario)
            snapshot = snapshot_of(site, burst)
            found[name] += [outcome_of(site, snapshot, burst, policy) for policy in policies]
    return found
