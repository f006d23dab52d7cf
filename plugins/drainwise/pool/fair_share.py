"""Share out cores by weight among those who can use them: nobody gets more than it needs."""

from __future__ import annotations

import math
from collections.abc import Mapping


def shared_out(cores: float, weights: Mapping[str, float], needs: Mapping[str, float]) -> dict[str, float]:
    """Return what each name of `weights` (> 0) is owed of `cores`, in proportion to its weight.

    Whoever needs less than its part gets that; the rest is shared among the others in the same proportion, as a
    negotiator does when it goes round again with what is left. Where all are content, some of the cores are nobody's.
    """
    owed: dict[str, float] = {}
    waiting = dict(weights)
    while waiting:
        part = max(0.0, cores) / math.fsum(waiting.values())
        content = {name: needs[name] for name, weight in waiting.items() if needs[name] <= part * weight}
        if not content:
            return {**owed, **{name: part * weight for name, weight in waiting.items()}}
        owed.update(content)
        cores -= math.fsum(content.values())
        waiting = {name: weight for name, weight in waiting.items() if name not in content}
    return owed
