"""The two directories that a command is about: named on the command line, by the environment, or by a cloud."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

from drainwise.cli.command_line.options import option
from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features.facts import JOB, MACHINE
from drainwise.features.read import FeatureReader, open_features

VARIABLES = {MACHINE: "MACHINEFEATURES", JOB: "JOBFEATURES"}


METADATA = option(
    "--metadata URL",
    "in a virtual machine: the cloud's metadata, such as http://169.254.169.254",
)
PLACES = (
    *(option(f"--{name} DIR_OR_URL", f"features of the {name} (default: ${VARIABLES[name]})") for name in VARIABLES),
    METADATA,
)


def with_metadata(environment: Mapping[str, str], metadata: str | None) -> dict[str, str]:
    """Return the environment with the variables that it lacks and the cloud at the URL `metadata` knows.

    Raises FeatureError when the cloud does not answer; it is not asked where nothing is lacking.
    """
    found = dict(environment)
    if metadata is not None and not all(found.get(variable) for variable in VARIABLES.values()):
        from drainwise.features.virtual_machine import find_locations

        for variable, location in find_locations(metadata).items():
            if not found.get(variable):
                found[variable] = location
    return found


def readers(args: argparse.Namespace) -> dict[str, FeatureReader]:
    """Open the directories named on the command line, else those that the environment names.

    One directory named on the command line is looked at alone: the other of the environment need not belong to it.
    Raises UsageError where a variable is not set, or a location cannot be one.
    """
    given = {MACHINE: args.machine, JOB: args.job}
    if args.machine is None and args.job is None:
        return {directory: reader(args, directory) for directory in VARIABLES}
    return {directory: open_features(_full(location)) for directory, location in given.items() if location is not None}


def reader(args: argparse.Namespace, directory: str) -> FeatureReader:
    """Open one directory, which must be there. Raises UsageError as `readers`, FeatureError where it cannot be read."""
    given: str | None = getattr(args, directory)
    variable = VARIABLES[directory]
    location = _full(given) if given else with_metadata(os.environ, args.metadata).get(variable)
    if not location:
        raise UsageError(
            f"${variable} is not set: run this inside a job, or name a directory or URL with --{directory}"
        )
    return open_features(location)


def _full(location: str) -> str:
    """Return what is named on a command line as a variable has it: a directory by its full path."""
    return location if "://" in location else os.path.abspath(location)


def readable(args: argparse.Namespace, directory: str) -> FeatureReader:
    """Open one directory as `reader`. Raises FeatureError, too, when it is not there."""
    found = reader(args, directory)
    problem = found.problem()
    if problem is not None:
        raise FeatureError(problem)
    return found
