"""Where the state of the local batch system lies: the option that names it, and what holds without it."""

from __future__ import annotations

import argparse
import os

VARIABLE = "DRAINWISE_LOCAL"


def default_directory() -> str:
    """Where the state lies when nothing else is said."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "drainwise")


def add_directory(parser: argparse.ArgumentParser) -> None:
    """Add --directory."""
    parser.add_argument(
        "--directory",
        metavar="DIR",
        help=f"the local batch system's state (default: ${VARIABLE}, else ~/.local/state/drainwise)",
    )
