"""Completing a job's features by what only slurmctld knows: memory and disk, before Slurm 24.11 start and end, too.

And keeping what the lease was before anybody shortened it: in a file of root's in the job's tree, so that an agent that
starts later knows it as well.
"""

from __future__ import annotations

from drainwise.common.local_file import read_small, replace_file
from drainwise.facts.errors import FeatureError
from drainwise.features.facts import job_values, machine_values
from drainwise.features.write import update_directory
from drainwise.node import JOB_FEATURES, MACHINE_FEATURES
from drainwise.node.settings import NodeSettings
from drainwise.node.site_notice import take_all
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.lease_change import granted_by_limit
from drainwise.slurm.jobs.states import ALIVE
from drainwise.slurm.node.facts import NodeRecord, host_side, job_side
from drainwise.slurm.node.lease import SlurmLease
from drainwise.slurm.node_agent.jobs import NodeJob

GRANTED = "granted"
"""The file that keeps a lease as it was granted; root's."""
_LIMIT = 256


def is_this_run(lease: SlurmLease, facts: SlurmJob) -> bool:
    """Decide whether slurmctld speaks of the run that the tree was made for, and it has its cores."""
    return (
        not facts.states.isdisjoint(ALIVE)
        and (facts.uid, facts.restarts) == (lease.uid, lease.restarts)
        and facts.start is not None
        and (not lease.start_known or facts.start >= lease.started)  # a node that had to be powered up moves it
    )


def granted_end(lease: SlurmLease, facts: SlurmJob) -> int | None:
    """Return when the lease was to end when it began, UNIX s; None without end.

    The prolog's environment says so since Slurm 24.11; else the time limit does.
    """
    return lease.ends if lease.start_known and lease.ends is not None else granted_by_limit(facts)


def longer_end(granted: int | None, facts: SlurmJob) -> int | None:
    """Return the end that counts as granted by now, UNIX s: a lease that was made longer since is granted so long."""
    if granted is None or (facts.end is None and granted_by_limit(facts) is None):
        return None
    return max(granted, facts.end or 0)


def learn_granted(job: NodeJob, facts: SlurmJob) -> None:
    """Find out what was granted; keep it where another agent finds it. Raises OSError.

    It is written at the first sight of the job, and again when the lease has become longer: else nobody would learn of
    an order that shortens such a lease to an end after the first one.
    """
    kept = (job.granted,) if job.granted_known else _read(job.tree)
    granted = longer_end(granted_end(job.lease, facts) if kept is None else kept[0], facts)
    if kept != (granted,):
        line = "none" if granted is None else str(granted)
        replace_file(GRANTED, f"{line}\n".encode("ascii"), job.tree)
    job.granted, job.granted_known = granted, True


def _read(tree: int) -> tuple[int | None] | None:
    """Return what was granted, as the file says; None when it does not say."""
    try:
        found = read_small(GRANTED, _LIMIT, tree)
    except FeatureError:
        return None
    text = found[0].strip().decode("ascii", "replace") if found else ""
    if text == "none":
        return (None,)
    return (int(text),) if text.isdigit() and text.isascii() and len(text) <= 12 else None


def complete(job: NodeJob, facts: SlurmJob, record: NodeRecord, settings: NodeSettings) -> None:
    """Write what is known by now into the job's features; nothing is touched that stands there already.

    Raises FeatureError after having tried both directories.
    """
    lease, start = job.lease, facts.start or job.lease.started
    cores = lease.cores if lease.cores is not None else facts.cores or None if facts.node_count == 1 else None
    known = SlurmLease(job=lease.job, uid=lease.uid, gid=lease.gid, cores=cores, started=start, ends=job.granted)
    memory, disk = facts.memory_on_node(cores), facts.disk << 20 or None
    settings = settings.of_node(job.node, record.features)
    wanted = (known, memory, disk, record, settings)
    if job.completed == wanted:
        return
    host = host_side(record, settings, cores)
    about_job = job_side(known, record, settings, memory, disk)
    take_all(
        lambda: update_directory(f"{job.place}/{MACHINE_FEATURES}", machine_values(host)),
        lambda: update_directory(f"{job.place}/{JOB_FEATURES}", job_values(about_job, host)),
    )
    job.completed = wanted
