"""What the batch system itself means to close: a maintenance reservation of Slurm, for example."""

from __future__ import annotations

from dataclasses import dataclass

from drainwise.pool.checked_json import checked, checked_object

_CLOSURE = {"name": "text", "places": "list", "start": "int", "end": "int?", "reason": "text"}


@dataclass(frozen=True)
class Closure:
    """Nodes on which nothing may run from `start` to `end` (UNIX s; None: for good), as the batch system plans it.

    name: by which the batch system knows it; places: the nodes; reason: what it is, for an administrator.
    """

    name: str
    places: frozenset[str]
    start: int
    end: int | None = None
    reason: str = ""


def closure_as_json(closure: Closure) -> dict[str, object]:
    """Return a closure as plain values."""
    plain: dict[str, object] = {name: getattr(closure, name) for name in _CLOSURE}
    return {**plain, "places": sorted(closure.places)}


def closure_from_json(value: object, where: str) -> Closure:
    """Return the closure of plain values; `where` names them. Raises UsageError for what is none."""
    values = checked_object(value, _CLOSURE, where)
    values["places"] = frozenset(checked(one, "text", f"{where}, places") for one in values["places"])
    return Closure(**values)
