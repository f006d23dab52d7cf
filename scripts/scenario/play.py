"""The demonstration: plays the scenario on a real pool and shows what an administrator would see."""

from __future__ import annotations

import argparse
import sys
import time

from condor_pool import CondorPool
from condor_pool.errors import PoolError
from drainwise.reclaim.policy import POLICIES
from scenario import contest, stage
from scenario.condor_scene import condor_scene


def say(text: str) -> None:
    """One step of the play."""
    print(f"\n\033[1m── {text}\033[0m" if sys.stdout.isatty() else f"\n── {text}", flush=True)


def show_pilots(pool: CondorPool) -> None:
    """The pilots as any user of the pool can see them, by HTCondor's own tool."""
    print(pool.run(["condor_status", "-print-format", "/etc/drainwise/pilots.cpf", "-sort", "PilotKillWaste"]).stdout)


def show(pool: CondorPool, arguments: list[str]) -> None:
    """A drainwise command and what it prints."""
    # The site file lies inside the pool; an administrator there would not have to name it.
    shown = arguments[: arguments.index("--site")]
    print(f"$ drainwise {' '.join(shown)}", flush=True)
    print(stage.in_pool(pool, arguments).stdout, flush=True)


def play(release: str) -> int:
    """The whole play; 0 when bob got his cores and nobody else was touched."""
    began = time.monotonic()
    say(f"Starting a real HTCondor pool of {stage.NODES} nodes with {stage.CPUS} cores each ({release})")
    with CondorPool(nodes=stage.NODES, cpus=stage.CPUS, release=release) as pool:
        site = ["--site", stage.install(pool)]
        print("HTCondor {}.{}.{} is up, with drainwise installed on every node.".format(*pool.version))

        say("alice's group fills the pool with nine 8-core pilots; its quota is 48 of 72 cores")
        clusters = stage.submit_pilots(pool)
        pool.wait_for(lambda: stage.all_pilots_report(pool, len(clusters)), 90, "nine pilots that report")
        say("condor_status shows live what each would waste (core-seconds); ten seconds apart:")
        show_pilots(pool)
        end = time.monotonic() + 10
        pool.wait_for(lambda: time.monotonic() > end, 15, "ten seconds")
        show_pilots(pool)

        say("bob's group, under its quota of 24, asks for three times 8 cores")
        demand = stage.submit_demand(pool)
        pool.wait_for(lambda: len(stage.planned(pool, site)) == 3, 120, "a plan for three pilots")
        show(pool, ["status", *site])
        show(pool, ["plan", *site])

        say("the pilots that cost least are asked to leave")
        show(pool, ["reclaim", "--once", "--act", *site])
        pool.wait_for(lambda: stage.finished(pool, demand) == 3, 240, "bob's jobs to run and end")
        pool.wait_for(lambda: not stage.under_order(pool), 120, "the end of all pilots that were asked")
        show(pool, ["status", *site])

        say("what happened")
        for name, line in stage.what_became(pool, clusters).items():
            print(f"  {name:8} {line}")
        print(f"  bob      3 jobs done, {time.monotonic() - began:.0f} s after the first line of this page")
    return 0


def compare(policy: str, release: str) -> int:
    """A policy and then least waste on the same scene, and what each really wasted."""
    say(f"Starting a real HTCondor pool of one node with {contest.CPUS} cores ({release}); six pilots of alice fill it")
    with condor_scene(release) as scene:
        results = contest.play(scene, tuple(dict.fromkeys((policy, contest.LEAST_WASTE))), say)
        say("what each really wasted, core-seconds")
        print("\n".join(contest.lines(results)))
    return 0


def main(arguments: list[str]) -> int:
    """`play.py [--release trixie|sid] [--policy NAME]`."""
    parser = argparse.ArgumentParser(prog="scripts/demo htcondor", description="Play the loop on a real HTCondor pool.")
    parser.add_argument("--release", choices=("trixie", "sid"), default="trixie", help="whose HTCondor it is")
    parser.add_argument(
        "--policy", choices=sorted(POLICIES), help="instead: this one against least-waste, and what each really wastes"
    )
    args = parser.parse_args(arguments)
    try:
        return play(args.release) if args.policy is None else compare(args.policy, args.release)
    except PoolError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
