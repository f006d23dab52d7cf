"""The facts of a Slurm node and of a job there, from its record, the job's lease and the site's settings: pure."""

from __future__ import annotations

from drainwise.node.job_features import host_facts, job_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.features.facts import HostFacts, JobFacts
    from drainwise.node.settings import NodeSettings
    from drainwise.slurm.node.lease import SlurmLease
    from drainwise.slurm.node.node_record import NodeRecord


def host_side(record: NodeRecord, settings: NodeSettings, cores: int | None) -> HostFacts:
    """Return the facts of this host. `cores`: of the job at hand.

    `total_cpu` is Slurm's own count where the agent has learnt it, else every CPU that the kernel has, which is what
    Slurm's nodes have unless the site says otherwise.
    """
    total = record.total_cpu or record.log_cores or record.phys_cores
    return host_facts(settings, total, record.phys_cores, record.log_cores, cores)


def job_side(
    lease: SlurmLease,
    record: NodeRecord,
    settings: NodeSettings,
    memory_bytes: int | None = None,
    disk_bytes: int | None = None,
) -> JobFacts:
    """Return the facts of this job.

    memory_bytes: its limit here; None while it is not known, or without limit. disk_bytes: what it asked for on the
    node (`--tmp`), None for nothing or while it is not known: then its scratch is the whole area.
    """
    limit = lease.ends - lease.started if lease.ends is not None and lease.ends > lease.started else None
    disks = [disk_bytes, record.scratch_bytes]
    return job_facts(settings, lease.job, lease.cores, lease.started, [limit], memory_bytes, disks)
