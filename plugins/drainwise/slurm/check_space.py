"""Judging the space that jobs' directories have on a node: whether a job can take it from the others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from drainwise.errors import FeatureError
from drainwise.finding import DANGEROUS, MISSING, OK, Finding
from drainwise.node import JOB_STATUS
from drainwise.slurm.environment import is_node_name
from drainwise.slurm.job_tree import jobs, open_node
from drainwise.slurm.status_mount import is_full, own_mounts

_SHOWN = 5


@dataclass(frozen=True)
class Space:
    """The runtime directory as it lies on this machine.

    own: whether it is a file system of its own. full: whether nothing more can be written there. shared: the jobs whose
    $JOBSTATUS is no file system of its own. fault: what in it is not used, "" for nothing.
    """

    directory: str
    own: bool
    full: bool
    shared: tuple[str, ...]
    fault: str = ""


def space_of(runtime_dir: str) -> Space | None:
    """What there is on this machine; None where no prolog of ours has run, and for who is not root. Raises OSError."""
    real = os.path.realpath(runtime_dir)
    if not os.path.isdir(real) or os.geteuid() != 0:
        return None
    mounts = own_mounts(real)
    shared: list[str] = []
    fault = ""
    for name in filter(is_node_name, sorted(os.listdir(real))):
        try:
            node = open_node(real, name) if os.path.isdir(f"{real}/{name}") else None
        except FeatureError as error:
            fault = fault or str(error)
            continue
        if node is not None:
            shared += [job for job in jobs(node) if f"{real}/{name}/{job}/{JOB_STATUS}" not in mounts]
            os.close(node)
    return Space(runtime_dir, os.path.ismount(real), is_full(real), tuple(sorted(shared, key=int)), fault)


def judge_space(space: Space | None, machine: str) -> tuple[Finding, ...]:
    """The findings, with the command that mends each. Pure."""
    return () if space is None else tuple(_findings(space, machine))


def _findings(space: Space, machine: str) -> Iterator[Finding]:
    restart = "systemctl restart drainwise-slurm-agent   # while no job runs here, or reboot"
    if space.fault:
        why = f"not used, so its jobs have no features: {space.fault}"
        yield Finding(
            DANGEROUS,
            machine,
            "runtime_dir",
            why,
            f"chown root:root {space.directory}/*; chmod 755 {space.directory}/*",
            space.directory,
        )
    if space.full:
        why = "full: new jobs get no feature directories, and no order is told"
        yield Finding(DANGEROUS, machine, "runtime_dir", why, f"du -x -s {space.directory}/*/*", space.directory)
    if space.own:
        yield Finding(OK, machine, "runtime_dir", "a file system of its own", value=space.directory)
    else:
        why = "no file system of its own: what fills it fills the one that it lies in, and the other way round"
        yield Finding(MISSING, machine, "runtime_dir", why, restart, space.directory)
    if space.shared:
        why = "their $JOBSTATUS has no limit of its own: such a job can fill the directory for all others"
        line = "look for 'could not be mounted' in the system's log; before Slurm 24.11 job_container/tmpfs prevents it"
        more = f" and {len(space.shared) - _SHOWN} more" if len(space.shared) > _SHOWN else ""
        yield Finding(MISSING, machine, "$JOBSTATUS", why, line, ", ".join(space.shared[:_SHOWN]) + more)
