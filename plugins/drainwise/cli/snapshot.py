"""`drainwise snapshot`: all that the agent knows of a pool, as JSON, so that its decisions can be made again
elsewhere.
"""

from __future__ import annotations

import argparse
import time

from drainwise.cli.pool_options import add_pool_option, open_pool
from drainwise.cli.text import json_text
from drainwise.pool.snapshot_json import snapshot_as_json


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "print what is known of the pool as JSON; `drainwise plan --snapshot` reads it"
    add_pool_option(subparsers.add_parser("snapshot", help=text, description=text))


def run(args: argparse.Namespace) -> int:
    """Print the snapshot; the exit code. Raises PoolUnreachable."""
    print(json_text(snapshot_as_json(open_pool(args).snapshot(int(time.time())))))
    return 0
