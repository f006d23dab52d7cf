"""The two directories that a command is about: named on the command line, or by the environment."""

from __future__ import annotations

import argparse
import os

from drainwise.cli.command_line.options import option
from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features.facts import JOB, MACHINE
from drainwise.features.read import FeatureReader, open_features

VARIABLES = {MACHINE: "MACHINEFEATURES", JOB: "JOBFEATURES"}


PLACES = tuple(
    option(f"--{name} DIR_OR_URL", f"features of the {name} (default: ${VARIABLES[name]})") for name in VARIABLES
)


def readers(args: argparse.Namespace) -> dict[str, FeatureReader]:
    """Open the directories named on the command line, else those that the environment names.

    One directory named on the command line is looked at alone: the other of the environment need not belong to it.
    Raises UsageError where a variable is not set, or a location cannot be one.
    """
    given = {MACHINE: args.machine, JOB: args.job}
    if args.machine is None and args.job is None:
        return {directory: reader(args, directory) for directory in VARIABLES}
    return {directory: open_features(location) for directory, location in given.items() if location is not None}


def reader(args: argparse.Namespace, directory: str) -> FeatureReader:
    """Open one directory, which must be there. Raises UsageError as `readers`, FeatureError where it cannot be read."""
    location: str | None = getattr(args, directory)
    variable = VARIABLES[directory]
    location = location or os.environ.get(variable)
    if not location:
        raise UsageError(
            f"${variable} is not set: run this inside a job, or name a directory or URL with --{directory}"
        )
    return open_features(location)


def readable(args: argparse.Namespace, directory: str) -> FeatureReader:
    """Open one directory as `reader`. Raises FeatureError, too, when it is not there."""
    found = reader(args, directory)
    problem = found.problem()
    if problem is not None:
        raise FeatureError(problem)
    return found
