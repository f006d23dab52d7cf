"""The command: which rows are measured, where they are kept, and where the tables are written."""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from drainwise_simulate.cli.simulate import saves_in
from drainwise_simulate.outcome import HOUR, Outcome
from drainwise_simulate.policies.named import POLICIES, require_known
from drainwise_simulate.scenario import Scenario
from drainwise_simulate.summary import lines_of
from drainwise_simulate.trace import TraceJob
from grid_mix import Mix
from waste_table.document import tables, written
from waste_table.measuring import replication_of
from waste_table.workloads import Workload, workloads

STANDARD = tuple(name for name in POLICIES if name not in {"random", "drain-all", "oldest-first"})
"""All but what was drawn by lot, or is beaten by everything else."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the rows that are asked for, keep them, and write the tables."""
    args = _parsed(arguments)
    results: dict[str, Any] = {}
    if os.path.exists(args.results):
        with open(args.results) as stream:
            results = json.load(stream)
    for workload in workloads(args.days):
        rows = {
            name: replace(scenario, moments=args.moments, checkpoints=args.checkpoint)
            for name, scenario in workload.rows().items()
            if not args.only or any(word in name for word in args.only)
        }
        path = os.path.join(args.logs, workload.file)
        if rows and os.path.exists(path):
            begin = time.monotonic()
            for name, outcomes in _measured(workload, path, rows, args).items():
                results[name] = _row(outcomes, args, results.get(name, {}))
            print(f"{', '.join(rows)}: {time.monotonic() - begin:.0f} s", flush=True)
            _keep(args.results, results)
    made = tables(results, workloads())
    if not args.write:
        print(made)
        return 0
    with open(args.write) as stream:
        text = stream.read()
    with open(args.write, "w") as stream:
        stream.write(written(text, made))
    return 0


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="waste_tables", description="what each policy wastes on standard workloads")
    parser.add_argument("--logs", required=True, metavar="DIR", help="where the whole logs and PanDA's records are")
    parser.add_argument("--results", required=True, metavar="FILE", help="where the rows are kept")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="rows whose name has one of these (all)")
    parser.add_argument("--policies", default=",".join(STANDARD), metavar="P,…")
    parser.add_argument("--moments", type=int, default=20, metavar="N", help="of each replication (20)")
    parser.add_argument("--replications", type=int, default=5, metavar="N")
    parser.add_argument(
        "--checkpoint", type=saves_in, metavar="INTERVAL:SECONDS[:SHARE]", help="see drainwise simulate"
    )
    parser.add_argument("--on-demand", action="store_true", help="they save when an order asks for it, too")
    parser.add_argument("--days", type=float, default=Mix.days, metavar="N", help="of a grid mix (11)")
    parser.add_argument("--processes", type=int, default=1, metavar="N")
    parser.add_argument("--write", metavar="FILE", help="the document in which the tables stand between two marks")
    args = parser.parse_args(arguments)
    args.policies = args.policies.split(",")
    args.checkpoint = args.checkpoint and args.checkpoint._replace(on_demand=args.on_demand)
    for policy in args.policies:
        require_known(policy)
    return args


def _measured(
    workload: Workload, path: str, rows: Mapping[str, Scenario], args: argparse.Namespace
) -> dict[str, list[Outcome]]:
    jobs: tuple[TraceJob, ...] = workload.read(path).jobs
    found: dict[str, list[Outcome]] = {name: [] for name in rows}
    with concurrent.futures.ProcessPoolExecutor(args.processes) as pool:
        parts = [pool.submit(replication_of, jobs, rows, args.policies, one) for one in range(args.replications)]
        for part in parts:
            for name, outcomes in part.result().items():
                found[name] += outcomes
    return found


def _row(outcomes: Sequence[Outcome], args: argparse.Namespace, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of a row; policies that were measured before at the same moments, and not now, stay."""
    saves = None if args.checkpoint is None else list(args.checkpoint)
    drawn = {"moments": args.moments, "replications": args.replications, "checkpoint": saves}
    same = {key: before.get(key) for key in drawn} == drawn
    policies = {
        line.policy: {
            "wasted": [getattr(line.core_hours_per_core, name) for name in ("value", "low", "high")],
            "predicted": line.predicted.value,
            "given": line.cores_given / line.cores_asked if line.cores_asked else None,
            "p95": line.time_p95 if math.isfinite(line.time_p95) else None,
            "sums": _sums([one for one in outcomes if one.policy == line.policy]),
        }
        for line in lines_of(outcomes)
    }
    return {**drawn, "policies": {**(before["policies"] if same else {}), **policies}}


def _sums(outcomes: Sequence[Outcome]) -> list[list[float]]:
    """Return core-hours wasted and predicted in each replication."""
    parts: dict[int, list[Outcome]] = {}
    for one in outcomes:
        parts.setdefault(one.replication, []).append(one)
    return [
        [sum(values) / HOUR for values in zip(*((one.waste, one.predicted) for one in parts[number]))]
        for number in sorted(parts)
    ]


def _keep(path: str, results: Mapping[str, Any]) -> None:
    beside = f"{path}.new"
    with open(beside, "w") as stream:
        json.dump(results, stream, indent=1, sort_keys=True)
    os.replace(beside, path)
