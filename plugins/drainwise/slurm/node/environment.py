"""The environment that slurmd gives a hook of a node, read with the types that it should have.

Slurm sets these variables itself; a user's own reach a root hook as SPANK_… at most, which nothing here reads. They are
checked all the same: names of directories and owners are made of them.
"""

from __future__ import annotations

from drainwise.facts.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Environment = Mapping[bytes, bytes]

_NODE_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
_LONGEST_NODE = 255
_LARGEST_ID = 2**32 - 2
"""The largest job id, user or group that there can be: one more means "none"."""


def text(environment: Environment, name: str) -> str:
    """Return a variable as text; "" when it is missing or has more than printable ASCII."""
    value = environment.get(name.encode("ascii"), b"").decode("ascii", "replace")
    return value if value.isascii() and value.isprintable() else ""


def whole(environment: Environment, name: str) -> int | None:
    """Return a variable as a whole number; None when it is missing or is none."""
    value = text(environment, name)
    return int(value) if value.isdigit() and len(value) <= 18 else None


def job_id(environment: Environment) -> str:
    """Return the job's number, as it may stand in a path. Raises UsageError."""
    number = whole(environment, "SLURM_JOB_ID")
    if number is None or not 0 < number <= _LARGEST_ID:
        raise UsageError("SLURM_JOB_ID is not a job's number; expected to be run by slurmd")
    return str(number)


def node_name(environment: Environment) -> str:
    """Return the node's name in Slurm, as it may stand in a path. Raises UsageError."""
    name = text(environment, "SLURMD_NODENAME")
    if not is_node_name(name):
        raise UsageError("SLURMD_NODENAME is not a node's name; expected to be run by slurmd")
    return name


def is_node_name(name: str) -> bool:
    """Decide whether a directory of this name can be that of a node's jobs."""
    return 0 < len(name) <= _LONGEST_NODE and not name.strip(_NODE_LETTERS) and name[0].isalnum()


def identity(environment: Environment, name: str) -> int | None:
    """Return a user's or group's number; None when it is missing or cannot be one."""
    number = whole(environment, name)
    return number if number is not None and number <= _LARGEST_ID else None
