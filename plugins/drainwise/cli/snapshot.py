"""`drainwise snapshot`: all that the agent knows of a pool, as JSON, so that its decisions can be made again
elsewhere.
"""

from __future__ import annotations

import argparse
import time

from drainwise.cli.command_line.options import Command
from drainwise.cli.pool_options import POOL, open_pool
from drainwise.cli.text import json_text
from drainwise.pool.snapshot_json import snapshot_as_json


def run(args: argparse.Namespace) -> int:
    """Print the snapshot; the exit code. Raises PoolUnreachable."""
    print(json_text(snapshot_as_json(open_pool(args).snapshot(int(time.time())))))
    return 0


COMMAND = Command("print what is known of the pool as JSON; `drainwise plan --snapshot` reads it", POOL, run)
