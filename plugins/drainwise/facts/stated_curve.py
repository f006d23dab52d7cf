"""Calculate what a pilot wastes at any time by the curve that it states: numbers, arrays.

Between two points both change evenly; after the last one nothing changes any more.
"""

from __future__ import annotations

from drainwise.facts.waste import at_least, at_most

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from drainwise.facts.waste import Quantity


def between(times: Sequence[Quantity], values: Sequence[Quantity], moment: Quantity) -> Quantity:
    """Return the value at `moment` of the line through the points; times never fall, two may be equal."""
    value = values[0]
    for begin, end, low, high in zip(times, times[1:], values, values[1:]):
        value = value + at_most(at_least((moment - begin) / at_least(end - begin, 1e-6), 0), 1) * (high - low)
    return value
