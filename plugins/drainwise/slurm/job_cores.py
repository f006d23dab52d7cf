"""The cores that a job has on one node: `SLURM_JOB_CPUS_PER_NODE` at the node's place in the job's list of hosts."""

from __future__ import annotations

_MOST_DIGITS = 6
_MOST_NODES = 65536


def cores_per_node(text: str) -> list[int]:
    """The cores of each node of a job.

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
            times = _whole(count)
        if len(found) + times > _MOST_NODES:
            raise ValueError("too many nodes")
        found += [_whole(cores)] * times
    return found


def cores_on(node: str, node_list: str, cpus_per_node: str) -> int | None:
    """The job's cores on `node`; None when the two lists do not surely say so."""
    try:
        names = [node] if node_list == node else _hosts(node_list)
        cores = cores_per_node(cpus_per_node)
    except ValueError:
        return None
    if len(names) != len(cores) or names.count(node) != 1:
        return None
    return cores[names.index(node)] or None


def _hosts(node_list: str) -> list[str]:
    from drainwise.slurm.host_list import hosts  # noqa: PLC0415 - most jobs have one node and need no import for it

    return hosts(node_list)


def _whole(digits: str) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        raise ValueError("not a number")
    return int(digits)
