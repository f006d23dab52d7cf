"""Slurm's prolog on a node: before a job starts there, make its tree of directories.

Runs as root on every node of the job. It asks nobody: what its environment does not say (limits of memory and disk;
before Slurm 24.11 the time limit, too) the node's agent fills in, which is woken for it. It touches nothing that is a
user's: the tree lies in root's own directory, and $JOBSTATUS is given to the job's user while only root can get there.
What an earlier run left under the job's name is only set aside; epilogs remove it.
"""

from __future__ import annotations

import posix
import time

from drainwise.common.local_file import Held
from drainwise.common.wake import wake
from drainwise.facts.errors import FeatureError
from drainwise.node.hook import planned_shutdown, run_to_end, say, settings_or_defaults
from drainwise.node.job_features import job_token, make_features
from drainwise.slurm import AGENT_FIFO
from drainwise.slurm.node import job_tree
from drainwise.slurm.node.environment import node_name
from drainwise.slurm.node.facts import NodeRecord, host_side, job_side, read_record
from drainwise.slurm.node.lease import lease_of, read_lease, write_lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from drainwise.node.settings import NodeSettings
    from drainwise.slurm.node.lease import SlurmLease


def node_facts(node: int, settings: NodeSettings) -> NodeRecord:
    """Return what the agent recorded; cores and scratch area are looked up here where it has not (yet)."""
    record = read_record(node)
    if record.phys_cores is not None and record.scratch_bytes is not None:
        return record
    from drainwise.features.host import cores, scratch_bytes  # noqa: PLC0415 - only until the agent has looked

    counted = (record.phys_cores, record.log_cores) if record.phys_cores is not None else cores()
    return NodeRecord(
        record.total_cpu, *counted, record.scratch_bytes or scratch_bytes(settings.scratch_dir), record.features
    )


def is_made(node: int, lease: SlurmLease) -> bool:
    """Decide whether the tree of this very run is there: then slurmd has run the prolog twice, and the job runs."""
    try:
        tree = job_tree.open_tree(node, lease.job)
        if tree is None:
            return False
        with Held(tree):
            known = read_lease(tree)
    except (FeatureError, OSError):
        return False  # what has the job's name is no directory, or not of ours
    return known is not None and known.is_same_run(lease)


def make_tree(
    node: int, place: str, lease: SlurmLease, settings: NodeSettings, now: int, has_own_status: bool = False
) -> None:
    """Make the job's tree below the open directory of its node, whose path is `place`, and wake the agent.

    has_own_status: its $JOBSTATUS becomes a file system of its own.
    """
    # Which client it is says slurmctld: where that counts, the agent writes what this one may see.
    planned = None if settings.clients else planned_shutdown(settings, now)
    if lease.cores is None:
        say(f"job {lease.job}: its cores on this node are not known and left out of its features")
    job_tree.set_aside(node, lease.job)
    name, tree = job_tree.new_tree(node, lease.job)
    try:
        record, owner = node_facts(node, settings), (lease.uid, lease.gid)
        here = settings.of_node(place.rpartition("/")[2], record.features)
        host, job = host_side(record, here, lease.cores), job_side(lease, record, here)
        made = make_features(f"{place}/{name}", host, job, planned, now, owner)
        if has_own_status and "JOBSTATUS" in made and not job_tree.mount(made["JOBSTATUS"], *owner):
            say(f"job {lease.job}: its $JOBSTATUS has no limit of its own: it could not be mounted")
        if settings.features_url:
            job_token(f"{place}/{name}", owner, f"job {lease.job}")
        write_lease(tree, lease)
        job_tree.put_in_place(node, name, tree, lease.job)
    except OSError:
        job_tree.set_aside(node, name)
        raise
    if not wake(f"{settings.runtime_dir}/{AGENT_FIFO}"):
        job_tree.mark_complete(tree)


def prepare(settings_path: str) -> None:
    """Make the tree of the job that the environment names, unless it is there."""
    settings, now, environment = settings_or_defaults(settings_path), int(time.time()), posix.environ
    lease, name = lease_of(environment, now), node_name(environment)
    node = job_tree.open_node(settings.runtime_dir, name, create=True)
    if node is not None and not is_made(node, lease):
        is_seen = job_tree.can_be_seen(environment, lease)
        make_tree(node, f"{settings.runtime_dir}/{name}", lease, settings, now, is_seen)


def main(settings_path: str) -> NoReturn:
    """Run the hook, and end this process."""
    run_to_end(lambda: prepare(settings_path))
