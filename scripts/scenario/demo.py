"""Run the scenario on a real pool and show what an administrator would see."""

from __future__ import annotations

import argparse
import sys
import time

from condor_pool import CondorPool
from condor_pool.errors import PoolError
from drainwise.reclaim.prices import POLICIES
from scenario import comparison, condor_site
from scenario.compared_condor import compared_condor


def say(text: str) -> None:
    """Print the heading of one step."""
    print(f"\n\033[1m── {text}\033[0m" if sys.stdout.isatty() else f"\n── {text}", flush=True)


def show_pilots(pool: CondorPool) -> None:
    """Show the pilots as any user of the pool can see them, by HTCondor's own tool."""
    print(pool.run(["condor_status", "-print-format", "/etc/drainwise/pilots.cpf", "-sort", "PilotKillWaste"]).stdout)


def show(pool: CondorPool, arguments: list[str]) -> None:
    """Show a drainwise command and what it prints."""
    # The site file lies inside the pool; an administrator there would not have to name it.
    shown = arguments[: arguments.index("--site")]
    print(f"$ drainwise {' '.join(shown)}", flush=True)
    print(condor_site.in_pool(pool, arguments).stdout, flush=True)


def demonstrate(release: str) -> int:
    """Run the whole scenario; 0 when bob got his cores and nobody else was touched."""
    began = time.monotonic()
    say(f"Starting a real HTCondor pool of {condor_site.NODES} nodes with {condor_site.CPUS} cores each ({release})")
    with CondorPool(nodes=condor_site.NODES, cpus=condor_site.CPUS, release=release) as pool:
        site = ["--site", condor_site.install(pool)]
        print("HTCondor {}.{}.{} is up, with drainwise installed on every node.".format(*pool.version))

        say("alice's group fills the pool with nine 8-core pilots; its quota is 48 of 72 cores")
        clusters = condor_site.submit_pilots(pool)
        pool.wait_for(lambda: condor_site.all_pilots_report(pool, len(clusters)), 90, "nine pilots that report")
        say("condor_status shows live what each would waste (core-seconds); ten seconds apart:")
        show_pilots(pool)
        end = time.monotonic() + 10
        pool.wait_for(lambda: time.monotonic() > end, 15, "ten seconds")
        show_pilots(pool)

        say("bob's group, under its quota of 24, asks for three times 8 cores")
        demand = condor_site.submit_demand(pool)
        pool.wait_for(lambda: len(condor_site.planned(pool, site)) == 3, 120, "a plan for three pilots")
        show(pool, ["status", *site])
        show(pool, ["plan", *site])

        say("the pilots that cost least are ordered to end")
        show(pool, ["reclaim", "--once", "--act", *site])
        pool.wait_for(lambda: condor_site.finished(pool, demand) == 3, 240, "bob's jobs to run and end")
        pool.wait_for(lambda: not condor_site.under_order(pool), 120, "the end of all pilots with an order")
        show(pool, ["status", *site])

        say("what happened")
        for name, line in condor_site.what_became(pool, clusters).items():
            print(f"  {name:8} {line}")
        print(f"  bob      3 jobs done, {time.monotonic() - began:.0f} s after the first line of this page")
    return 0


def compare(policy: str, release: str) -> int:
    """Run a policy and then least waste on the same pool, and show what each really wasted."""
    say(f"Starting a real HTCondor pool of one node with {comparison.CPUS} cores ({release}); alice has six pilots")
    with compared_condor(release) as compared:
        results = comparison.compare(compared, tuple(dict.fromkeys((policy, comparison.LEAST_WASTE))), say)
        say("what each really wasted, core-seconds")
        print("\n".join(comparison.lines(results)))
    return 0


def main(arguments: list[str]) -> int:
    """Run `demo.py [--release trixie|sid] [--policy NAME]`."""
    parser = argparse.ArgumentParser(prog="scripts/demo htcondor", description="Run the loop on a real HTCondor pool.")
    parser.add_argument("--release", choices=("trixie", "sid"), default="trixie", help="whose HTCondor it is")
    parser.add_argument(
        "--policy", choices=sorted(POLICIES), help="instead: this one against least-waste, and what each really wastes"
    )
    args = parser.parse_args(arguments)
    try:
        return demonstrate(args.release) if args.policy is None else compare(args.policy, args.release)
    except PoolError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
