"""`drainwise features locate | end-machine`: where a virtual machine finds its features, and how its user ends it."""

from __future__ import annotations

import argparse
import shlex

from drainwise.cli.feature_commands.places import add_place_options, readable
from drainwise.features.facts import MACHINE
from drainwise.features.virtual_machine import ADDRESS, KEPT, find_locations

Actions = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it


def add_virtual_machine(actions: Actions[argparse.ArgumentParser]) -> None:
    """Add both sub-commands."""
    text = "print the variables by which a virtual machine finds its features, as lines for a shell"
    locate = actions.add_parser("locate", help=text, description=text)
    locate.add_argument(
        "--metadata", metavar="URL", default=ADDRESS, help="the cloud's metadata (default: %(default)s)"
    )
    locate.add_argument(
        "--kept", metavar="FILE", default=KEPT, help="what was found, so that the cloud is asked once (%(default)s)"
    )
    text = "run the command that $MACHINEFEATURES/shutdown_command names: this virtual machine is destroyed"
    end = actions.add_parser("end-machine", help=text, description=text)
    add_place_options(end)


def locate(args: argparse.Namespace) -> int:
    """Print the variables; 1 and nothing where the cloud has no such keys."""
    found = find_locations(args.metadata, args.kept)
    for variable, location in found.items():
        print(f"export {variable}={shlex.quote(location)}")
    return 0 if found else 1


def end_machine(args: argparse.Namespace) -> int:
    """Run the site's command; its exit code. Raises FeatureError where there is none that is safe to run."""
    from drainwise.features.virtual_machine import shut_down

    return shut_down(readable(args, MACHINE))
