"""The ends of the daemons' logs: what a failed test needs to be understood, since the logs go with the pool."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from condor_pool.layout import Node

_DAEMON_LOG = re.compile(r"(Master|Collector|Negotiator|Sched|Shadow|Start|Starter)Log(\.slot\w+)?|master\.out")


def log_tails(root: str, nodes: Sequence[Node], lines: int = 25) -> str:
    """The last lines of each daemon's log, under a headline with machine and log."""
    parts = []
    for node in nodes:
        directory = root + node.log_dir
        names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
        for name in filter(_DAEMON_LOG.fullmatch, names):
            with open(f"{directory}/{name}", encoding="utf-8", errors="replace") as file:
                tail = "".join(file.readlines()[-lines:]).rstrip()
            if tail:
                parts.append(f"--- {node.name} {name}\n{tail}")
    return "\n".join(parts)
