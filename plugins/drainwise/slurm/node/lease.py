"""The facts of one job on one node when it starts, and the file in the job's tree that keeps it for the agent.

The file is root's and for root alone: sites may hide a job's facts from other users (PrivateData).
"""

from __future__ import annotations

import posix

from drainwise.common.local_file import create_file, read_small
from drainwise.facts import fact
from drainwise.facts.errors import FeatureError, UsageError
from drainwise.slurm import ENDLESS, LEASE
from drainwise.slurm.node.environment import identity, job_id, node_name, text, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.slurm.node.environment import Environment

_LIMIT = 65536
_CORE_DIGITS = 6
_MOST_NODES = 65536
_SAFE = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@"
_WHOLE = ("uid", "gid", "restarts", "cores", "started", "ends")


@fact
class SlurmLease:
    """A job's cores on this node for a time.

    `job`: its number. `uid`, `gid`: whose it is. `restarts`: how often it was requeued. `cores`: on this node, or None.
    `started`: UNIX s, Slurm's own word where `start_known`, else when the prolog ran. `ends`: UNIX s, None when not
    known (yet) or without end. `work_dir`: as the user named it, bytes, not checked.
    """

    job: str
    uid: int
    gid: int
    started: int
    restarts: int = 0
    cores: int | None = None
    start_known: bool = False
    ends: int | None = None
    work_dir: bytes = b""

    def is_same_run(self, other: SlurmLease) -> bool:
        """Decide whether both are surely the same run of one job: its number may come back, with a requeue too."""
        return (
            self.start_known
            and other.start_known
            and (self.job, self.uid, self.restarts, self.started)
            == (other.job, other.uid, other.restarts, other.started)
        )


def lease_of(environment: Environment, now: int) -> SlurmLease:
    """Return the lease that a prolog's environment describes; `now` in UNIX s. Raises UsageError without job or user.

    Before Slurm 24.11 there are no start and end: the prolog's own time is the start then.
    """
    uid, gid = identity(environment, "SLURM_JOB_UID"), identity(environment, "SLURM_JOB_GID")
    if uid is None or gid is None:
        raise UsageError("SLURM_JOB_UID and SLURM_JOB_GID are not a user and a group; expected to be run by slurmd")
    started, ends = whole(environment, "SLURM_JOB_START_TIME"), whole(environment, "SLURM_JOB_END_TIME")
    node_list = text(environment, "SLURM_NODELIST") or text(environment, "SLURM_JOB_NODELIST")
    return SlurmLease(
        job=job_id(environment),
        uid=uid,
        gid=gid,
        restarts=whole(environment, "SLURM_JOB_RESTART_COUNT") or 0,
        cores=cores_on(node_name(environment), node_list, text(environment, "SLURM_JOB_CPUS_PER_NODE")),
        started=started or now,
        start_known=bool(started),
        ends=ends if started and ends and started < ends < started + ENDLESS else None,
        work_dir=environment.get(b"SLURM_JOB_WORK_DIR", b""),
    )


def write_lease(tree: int, lease: SlurmLease) -> None:
    """Put the lease into the open new tree of its job, which nobody else may enter yet. Raises OSError."""
    lines = [f"job = {lease.job}", f"start_known = {int(lease.start_known)}"]
    lines += [f"{name} = {value}" for name in _WHOLE if (value := getattr(lease, name)) is not None]
    lines.append(f"work_dir = {_quoted(lease.work_dir)}")
    content = ("\n".join(lines) + "\n").encode("ascii")
    create_file(LEASE, content, tree)
    posix.chmod(LEASE, 0o600, dir_fd=tree)


def read_lease(tree: int) -> SlurmLease | None:
    """Return the lease in the open tree of a job; None when there is none.

    Raises FeatureError for one that is broken.
    """
    found = read_small(LEASE, _LIMIT, tree)
    if found is None:
        return None
    values = dict(line.partition(" = ")[::2] for line in found[0].decode("ascii", "replace").splitlines())
    try:
        numbers = {name: int(values[name]) for name in _WHOLE if name in values}
        job, work_dir = str(int(values["job"])), _unquoted(values["work_dir"])
        return SlurmLease(job=job, start_known=values["start_known"] == "1", work_dir=work_dir, **numbers)
    except (KeyError, TypeError, ValueError):
        raise FeatureError(f"{LEASE}: expected what a prolog wrote") from None


def _quoted(path: bytes) -> str:
    """Return the path with every byte that is not plain as %XX."""
    return "".join([chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in path])


def _unquoted(quoted: str) -> bytes:
    first, *others = quoted.encode("ascii").split(b"%")
    return first + b"".join([bytes([int(part[:2], 16)]) + part[2:] for part in others])


def cores_per_node(text: str) -> list[int]:
    """Read the cores of each node of a job.

    >>> cores_per_node("4(x2),2")
    [4, 4, 2]

    Raises ValueError for anything else, and for more nodes than Slurm has.
    """
    found: list[int] = []
    for part in text.split(","):
        cores, opened, rest = part.partition("(x")
        times = 1
        if opened:
            count, closed, behind = rest.partition(")")
            if not closed or behind:
                raise ValueError("not cores per node")
            times = _count(count)
        if len(found) + times > _MOST_NODES:
            raise ValueError("too many nodes")
        found += [_count(cores)] * times
    return found


def cores_on(node: str, node_list: str, cpus_per_node: str) -> int | None:
    """Find the job's cores on `node`, by its place among the hosts; None when the two lists do not surely say so."""
    try:
        names = [node] if node_list == node else _hosts(node_list)
        cores = cores_per_node(cpus_per_node)
    except ValueError:
        return None
    if len(names) != len(cores) or names.count(node) != 1:
        return None
    return cores[names.index(node)] or None


def _hosts(node_list: str) -> list[str]:
    from drainwise.slurm.node.host_list import hosts  # noqa: PLC0415 - most jobs have one node and need no import for it

    return hosts(node_list)


def _count(digits: str) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _CORE_DIGITS):
        raise ValueError("not a number")
    return int(digits)
