"""The command line of the demonstration, its display, and an end that leaves nothing behind whatever happens."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from drainwise.facts.errors import DrainwiseError
from local_demo.demo_pool import DemoPool, DemoPoolError
from local_demo.document import document
from local_demo.excerpt import ExcerptError, read_excerpt
from local_demo.interrupts import Interrupted, Interrupts, Late
from local_demo.lines import Lines, Silence, folded, summary
from local_demo.outcome import DemoOutcome, Display
from local_demo.parts import PartsDemo, PartsOutcome
from local_demo.release import ReleaseDemo
from local_demo.spent import side_by_side
from local_demo.workload import LEAST_CORES, MOST_CORES, DemoWorkload, draw_workload

DEFAULT_SEED, DEFAULT_SPEED = 1, 600.0


def options(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; wrong usage ends with 2."""
    parser = argparse.ArgumentParser(
        prog="scripts/demo",
        description="Alice's pilots fill a made-up machine, bob comes, and the pilots that cost least give cores back.",
    )
    parser.add_argument("--headless", action="store_true", help="plain lines (the default where there is no terminal)")
    parser.add_argument("--json", action="store_true", help="one JSON document at the end, nothing else")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="another run for each (default: %(default)s)")
    parser.add_argument(
        "--speed",
        type=float,
        default=DEFAULT_SPEED,
        help="seconds of the log in one second here, 60 to 1800; 300 takes twice as long (default: %(default)g)",
    )
    parser.add_argument("--cores", type=int, default=64, help="made-up cores, a multiple of 8 (default: %(default)s)")
    parser.add_argument(
        "--parts",
        action="store_true",
        help="the same scene once more, in which pilots give back some of their cores and none goes; both side by side",
    )
    args = parser.parse_args(words)
    if not 60 <= args.speed <= 1800:
        parser.error("--speed: expected 60 to 1800")
    if args.cores % 8 or not LEAST_CORES <= args.cores <= MOST_CORES:
        parser.error(f"--cores: expected a multiple of 8 from {LEAST_CORES} to {MOST_CORES}")
    return args


def main(words: Sequence[str], interrupts: Interrupts) -> int:
    """Run the demonstration; 0 when bob got his cores, 1 when something failed, 130 after Ctrl-C."""
    args = options(words)
    try:
        workload = draw_workload(read_excerpt(), args.cores, args.speed, args.seed)
        result, parts = _show(workload, interrupts, args)
    except Interrupted as interrupted:
        print("demo: interrupted; nothing is left behind", file=sys.stderr)
        return 128 + interrupted.number
    except (Late, DemoPoolError, ExcerptError, DrainwiseError, OSError) as fault:
        if isinstance(fault, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return 141
        print(f"demo: {fault}", file=sys.stderr)
        return 1
    chosen = {name: getattr(args, name) for name in ("seed", "speed", "cores")}
    if args.json:
        print(json.dumps(document(result, workload, chosen, parts), indent=2, allow_nan=False))
    else:
        both = [] if parts is None else side_by_side(result.spent, parts.spent)
        print("\n".join([*summary(result, args.speed), *folded(both)]))
    sys.stdout.flush()
    return 0


def _show(
    workload: DemoWorkload, interrupts: Interrupts, args: argparse.Namespace
) -> tuple[DemoOutcome, PartsOutcome | None]:
    live = sys.stdout.isatty() and not (args.headless or args.json)
    if not live:
        return _run_on_pool(workload, interrupts, Silence() if args.json else Lines(), args.parts)
    from local_demo.screen import Screen  # noqa: PLC0415 - rich is needed for the live table alone

    with Screen(args.seed, args.speed) as screen:
        return _run_on_pool(workload, interrupts, screen, args.parts)


def _run_on_pool(
    workload: DemoWorkload, interrupts: Interrupts, display: Display, with_parts: bool
) -> tuple[DemoOutcome, PartsOutcome | None]:
    with DemoPool(workload.cores) as system:
        result = ReleaseDemo(workload, system, interrupts, display).run()
    if not with_parts:
        return result, None
    with DemoPool(workload.cores) as system:
        return result, PartsDemo(workload, system, interrupts, display).run_parts()
