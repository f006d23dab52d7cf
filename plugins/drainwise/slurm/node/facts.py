"""The facts of a Slurm node and of a job there, and the node's record, which its agent writes and every prolog reads.

The record is a small file beside the jobs' trees: a prolog asks nobody. Slurm's own count of a node's CPUs is only to
be had from the controller, and counting a large host's cores takes a file per core.
"""

from __future__ import annotations

from drainwise.common.local_file import replace_file, small_text
from drainwise.facts import fact
from drainwise.node.job_features import host_facts, job_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.features.facts import HostFacts, JobFacts
    from drainwise.node.settings import NodeSettings
    from drainwise.slurm.node.lease import SlurmLease

RECORD = ".node"
"""The file's name in the directory of a node's jobs."""

_LIMIT = 16384
_FEATURES = "features"
_FIELDS = ("total_cpu", "phys_cores", "log_cores", "scratch_bytes")


@fact
class NodeRecord:
    """A node's CPUs as Slurm may allocate them, the host's cores as the kernel has them, and its scratch area in bytes.

    None when not known. features: what Slurm says of the node, such as the kind of its CPUs.
    """

    total_cpu: int | None = None
    phys_cores: int | None = None
    log_cores: int | None = None
    scratch_bytes: int | None = None
    features: tuple[str, ...] = ()


def read_record(node: int) -> NodeRecord:
    """Return the record below the open directory of a node; all unknown when there is none, or a broken one."""
    values = dict(line.partition(" = ")[::2] for line in (small_text(RECORD, _LIMIT, node) or "").splitlines())
    stated = (values.get(name, "") for name in _FIELDS)
    numbers = (int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None for text in stated)
    total, physical, logical, scratch = numbers
    features = tuple(word for word in values.get(_FEATURES, "").split(",") if word)
    return NodeRecord(total, physical, logical, scratch, features)


def write_record(node: int, record: NodeRecord) -> None:
    """Replace the record below the open directory of a node. Raises OSError."""
    lines = [f"{name} = {value}\n" for name in _FIELDS if (value := getattr(record, name)) is not None]
    if record.features:
        lines.append(f"{_FEATURES} = {','.join(record.features)}\n")
    replace_file(RECORD, "".join(lines).encode("ascii"), node)


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
