"""Which files are the logs of a pool's daemons."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from condor_pool.layout import Node

_DAEMON_LOG = re.compile(r"(Master|Collector|Negotiator|Sched|Shadow|Start|Starter)Log(\.slot\w+)?|master\.out")


def daemon_logs(root: str, nodes: Sequence[Node]) -> Iterator[tuple[str, str]]:
    """Headline (machine and log) and path of each daemon's log."""
    for node in nodes:
        directory = root + node.log_dir
        names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
        for name in filter(_DAEMON_LOG.fullmatch, names):
            yield f"{node.name} {name}", f"{directory}/{name}"
