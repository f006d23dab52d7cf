"""Completing a job's features by what only slurmctld knows: its memory, before Slurm 24.11 its start and end, too.

And keeping what the lease was before anybody shortened it: in a file of root's in the job's tree, so that an agent that
starts later knows it as well.
"""

from __future__ import annotations

from drainwise.errors import FeatureError
from drainwise.features.local_file import read_small, replace_file
from drainwise.features.values import job_values, machine_values
from drainwise.features.write import update_directory
from drainwise.node import JOB_FEATURES, MACHINE_FEATURES
from drainwise.node.settings import NodeSettings
from drainwise.slurm.agent_jobs import NodeJob
from drainwise.slurm.agent_query import ALIVE, RunFacts
from drainwise.slurm.facts import host_facts, job_facts
from drainwise.slurm.lease import ENDLESS, Lease
from drainwise.slurm.node_record import NodeRecord

GRANTED = "granted"
"""The file that keeps a lease as it was granted; root's."""
_LIMIT = 256


def is_this_run(lease: Lease, facts: RunFacts) -> bool:
    """Whether slurmctld speaks of the run that the tree was made for, and it has its cores."""
    return (
        facts.state in ALIVE
        and (facts.uid, facts.restarts) == (lease.uid, lease.restarts)
        and facts.start is not None
        and (not lease.start_known or facts.start >= lease.started)  # a node that had to be powered up moves it
    )


def granted_end(lease: Lease, facts: RunFacts) -> int | None:
    """When the lease was to end when it began, UNIX s; None without end.

    The prolog's word where it had one. Else the time limit: an order that is older than our first look has made it the
    whole minutes up to the new end, which still lie after that end.
    """
    if lease.start_known and lease.ends is not None:
        return lease.ends
    return facts.start + facts.limit if facts.start is not None and facts.limit is not None else None


def shortened_end(granted: int | None, facts: RunFacts) -> int | None:
    """The end of a lease that somebody made end sooner, UNIX s; None for one that ends as it was granted, or later."""
    if facts.end is None or facts.start is None:
        return None
    return facts.end if facts.end < (facts.start + ENDLESS if granted is None else granted) else None


def longer_end(granted: int | None, facts: RunFacts) -> int | None:
    """The end that counts as granted by now, UNIX s: a lease that was made longer since is granted so long."""
    if granted is None or (facts.end is None and facts.limit is None):
        return None
    return max(granted, facts.end or 0)


def learn_granted(job: NodeJob, facts: RunFacts) -> None:
    """Find out what was granted; keep it where another agent finds it. Raises OSError.

    It is written at the first sight of the job, and again when the lease has become longer: else nobody would hear of
    an order that shortens such a lease to an end after the first one.
    """
    kept = (job.granted,) if job.granted_known else _read(job.tree)
    granted = longer_end(granted_end(job.lease, facts) if kept is None else kept[0], facts)
    if kept != (granted,):
        line = "none" if granted is None else str(granted)
        replace_file(GRANTED, f"{line}\n".encode("ascii"), job.tree)
    job.granted, job.granted_known = granted, True


def _read(tree: int) -> tuple[int | None] | None:
    """What was granted, as the file says; None when it does not say."""
    try:
        found = read_small(GRANTED, _LIMIT, tree)
    except FeatureError:
        return None
    text = found[0].strip().decode("ascii", "replace") if found else ""
    if text == "none":
        return (None,)
    return (int(text),) if text.isdigit() and text.isascii() and len(text) <= 12 else None


def complete(job: NodeJob, facts: RunFacts, record: NodeRecord, settings: NodeSettings) -> None:
    """Write what is known by now into the job's features; nothing is touched that stands there already.

    Raises FeatureError after having tried both directories.
    """
    lease, start = job.lease, facts.start or job.lease.started
    cores = lease.cores if lease.cores is not None else facts.cores if facts.nodes == 1 else None
    known = Lease(job=lease.job, uid=lease.uid, gid=lease.gid, cores=cores, started=start, ends=job.granted)
    memory = facts.memory_on_node(cores)
    wanted = (known, memory, record)
    if job.completed == wanted:
        return
    host = host_facts(record, settings, cores)
    about_job = job_facts(known, settings, memory)
    faults = []
    for directory, values in (
        (MACHINE_FEATURES, machine_values(host)),
        (JOB_FEATURES, job_values(about_job, host)),
    ):
        try:
            update_directory(f"{job.place}/{directory}", values)
        except FeatureError as error:
            faults.append(str(error))
    if faults:
        raise FeatureError("; ".join(faults))
    job.completed = wanted
