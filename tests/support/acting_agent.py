"""An agent that goes on beside a test, in the network of a real pool or cluster; what its journal says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import drainwise
from condor_pool import CondorPool
from slurm_cluster import SlurmCluster

ENVIRONMENT = {"PYTHONPATH": str(Path(drainwise.__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}


@contextmanager
def acting_agent(site: CondorPool | SlurmCluster, *words: str) -> Iterator[None]:
    """Run `drainwise reclaim --loop --act` with these words; it ends by SIGTERM with code 0."""
    command = site.outside_command([sys.executable, "-m", "drainwise", "reclaim", "--loop", "--act", *words])
    with subprocess.Popen(command, env={**os.environ, **site.outside_env(), **ENVIRONMENT}) as process:
        try:
            yield
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()


def journal_events(state_dir: Path, kind: str) -> list[dict[str, Any]]:
    """The events of one kind in the agent's own journal."""
    lines = [line for path in state_dir.glob("agent-*.journal") for line in path.read_text().splitlines()]
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def wasted(events: list[dict[str, Any]]) -> tuple[float, float]:
    """What these endings were to waste, and what they wasted, in core-seconds."""
    return sum(one["predicted"] for one in events), sum(one["realised"] for one in events)
