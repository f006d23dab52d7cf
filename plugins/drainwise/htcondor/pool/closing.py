"""Close nodes by a drain: when the time has come, their startds take no job until that is cancelled. Pure.

A drain begins when it is ordered, so it is ordered when the time has come: until then the node may be used, and what
starts there gets an order with that deadline. It is graceful: a run that is still there keeps its retirement. The
reason names the request; by it a drain of ours is known again, and no other one is ever cancelled.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from drainwise.pool.closing import PREFIX, Closing

_LONGEST_REASON = 200


def to_drain(
    closings: Sequence[Closing], drained: Mapping[str, str], nodes: Collection[str], now: int
) -> dict[str, Closing]:
    """Return the nodes to drain at `now` (UNIX s), each with why.

    drained: the reason of each drain that there is, by node. nodes: those that are up.
    """
    due = sorted((one for one in closings if one.by <= now), key=lambda one: (-one.by, one.name))
    return {node: one for one in due for node in sorted(one.nodes) if node in nodes and node not in drained}


def to_open(closings: Sequence[Closing], drained: Mapping[str, str], now: int) -> list[str]:
    """Return the nodes whose drain was of ours, and that no request closes any more."""
    closed = {node for one in closings if one.by <= now for node in one.nodes}
    return sorted(node for node, reason in drained.items() if reason.startswith(PREFIX) and node not in closed)


def reason_of(closing: Closing) -> str:
    """Return the reason of a drain: one line of ASCII, that begins with the request's name."""
    text = f"{PREFIX}{closing.name}: {closing.reason}"
    plain = "".join(
        letter if letter.isascii() and letter.isprintable() and letter not in "\"'\\" else " " for letter in text
    )
    return plain[:_LONGEST_REASON]
