"""What a job on a Slurm node may know of its host and of itself, from its lease and the site's settings: pure."""

from __future__ import annotations

from drainwise.features.facts import HostFacts, JobFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.node.settings import NodeSettings
    from drainwise.slurm.lease import Lease
    from drainwise.slurm.node_record import NodeRecord


def host_facts(record: NodeRecord, settings: NodeSettings, cores: int | None) -> HostFacts:
    """What this host is. `cores`: of the job at hand.

    `total_cpu` is Slurm's own count where the agent has learnt it, else every CPU that the kernel has, which is what
    Slurm's nodes have unless the site says otherwise. A count that the job at hand contradicts is left out.
    """
    total = record.total_cpu or record.log_cores or record.phys_cores
    if total is not None and cores is not None and cores > total:
        total = None
    return HostFacts(
        total_cpu=total,
        jobslots=settings.whole("jobslots") or total,
        phys_cores=record.phys_cores,
        log_cores=record.log_cores,
        hs06=settings.decimal("hs06"),
        hs23=settings.decimal("hs23"),
        shutdown_command=settings.text("shutdown_command"),
        grace_secs=settings.whole("grace_secs"),
    )


def job_facts(lease: Lease, settings: NodeSettings, memory_bytes: int | None = None) -> JobFacts:
    """What this job was given: its cores, the tighter of its own and the site's limit of the run time, its memory.

    `memory_bytes`: the job's limit on this node; None while it is not known, or without limit. The CPU limit is the
    site's per-core limit, else what the run time limit lets all cores use.
    """
    own = lease.ends - lease.started if lease.ends is not None and lease.ends > lease.started else None
    limits = (own, settings.whole("wall_limit_secs"))
    wall = min((limit for limit in limits if limit), default=None)
    per_core = settings.whole("cpu_limit_secs_per_core") or wall
    return JobFacts(
        allocated_cpu=lease.cores,
        jobstart_secs=lease.started,
        job_id=lease.job,
        wall_limit_secs=wall,
        cpu_limit_secs=per_core * lease.cores if per_core and lease.cores else None,
        cpufactor_lrms=settings.decimal("cpufactor_lrms"),
        max_rss_bytes=memory_bytes,
        max_swap_bytes=settings.whole("max_swap_bytes"),
        scratch_limit_bytes=settings.whole("scratch_limit_bytes"),
        grace_secs_job=settings.whole("grace_secs_job"),
    )
