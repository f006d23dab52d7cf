"""The facts that the node's agent learnt of its node and every prolog needs: one small file beside the jobs' trees.

A prolog asks nobody: Slurm's own count of a node's CPUs is only to be had from the controller, and counting a large
host's cores takes a file per core.
"""

from __future__ import annotations

from drainwise.common.local_file import read_small, replace_file
from drainwise.facts import fact
from drainwise.facts.errors import FeatureError

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
    try:
        found = read_small(RECORD, _LIMIT, node)
    except FeatureError:
        found = None
    values: dict[str, int] = {}
    features: tuple[str, ...] = ()
    for line in (found[0] if found else b"").decode("ascii", "replace").splitlines():
        name, _, value = line.partition(" = ")
        if name in _FIELDS and value.isascii() and value.isdigit() and len(value) <= 18:
            values[name] = int(value)
        elif name == _FEATURES:
            features = tuple(word for word in value.split(",") if word)
    total, physical, logical, scratch = (values.get(name) for name in _FIELDS)
    return NodeRecord(total, physical, logical, scratch, features)


def write_record(node: int, record: NodeRecord) -> None:
    """Replace the record below the open directory of a node. Raises OSError."""
    lines = [f"{name} = {value}\n" for name in _FIELDS if (value := getattr(record, name)) is not None]
    if record.features:
        lines.append(f"{_FEATURES} = {','.join(record.features)}\n")
    replace_file(RECORD, "".join(lines).encode("ascii"), node)
