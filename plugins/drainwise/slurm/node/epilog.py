"""Slurm's epilog on a node: when a job has ended there, remove its tree, and what killed hooks left behind.

Runs as root on every node of the job. The job's name is free at once; removing takes a bounded time, and what is not
removed by then keeps a hidden name under which the next epilog finds it.
"""

from __future__ import annotations

import posix
import time

from drainwise.common.foreign_tree import Removal
from drainwise.common.wake import wake
from drainwise.facts.errors import FeatureError
from drainwise.node.hook import run_to_end, say, settings_or_defaults
from drainwise.slurm import AGENT_FIFO
from drainwise.slurm.node.environment import job_id, node_name
from drainwise.slurm.node.job_tree import leftovers, open_node, set_aside, unmount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

REMOVAL_LIMIT = 1.5
"""Seconds that an epilog may take to remove trees."""


def clean(settings_path: str) -> None:
    """Remove the tree of the job that the environment names; say in one line what resisted."""
    settings, environment = settings_or_defaults(settings_path), posix.environ
    job, name = job_id(environment), node_name(environment)
    node = open_node(settings.runtime_dir, name)
    if node is None:
        return  # no prolog of ours has ever run here
    set_aside(node, job)
    wake(f"{settings.runtime_dir}/{AGENT_FIFO}")  # it may have put something elsewhere for this job
    place = posix.readlink(f"/proc/self/fd/{node}")
    removal = Removal(time.monotonic() + REMOVAL_LIMIT)
    fault = ""
    for hidden in leftovers(node, time.time()):
        try:
            unmount(f"{place}/{hidden}")
            removal.remove(node, hidden)
        except TimeoutError as error:
            fault = fault or f"{error.strerror}"
            break
        except (FeatureError, OSError) as error:
            fault = fault or f"{hidden} is not removed: {error}"
    if fault:
        say(f"job {job}: {fault}")


def main(settings_path: str) -> NoReturn:
    """Run the hook, and end this process."""
    run_to_end(lambda: clean(settings_path))
