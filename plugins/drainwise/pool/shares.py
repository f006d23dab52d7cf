"""Share out cores by weight among those who can use them: among equals, and down a tree of accounts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

LEAST_WEIGHT = 1e-6
"""Of an account without any share: it comes after all that have one, but not before nobody."""


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


@dataclass
class Branch:
    """An account in a tree, with those below it, whose names are all different.

    part: cores that are its own and of all below it, whoever wants them. weight: by which it shares in what its
    siblings leave, where that is more than its part; own_weight: by which its own jobs do beside the accounts below.
    is_fixed: it is never given more than its part.
    """

    name: str
    weight: float = 0.0
    own_weight: float = 0.0
    part: float = 0.0
    is_fixed: bool = False
    children: list[Branch] = field(default_factory=list)

    def owed(self, cores: float, needs: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        """Yield each account of the tree with what its own jobs are owed when the tree has `cores`.

        needs: cores that the own jobs of an account use and want. What one leaves unused goes to its siblings first.
        """
        own_part = max(0.0, self.part - sum(child.part for child in self.children))
        members = [(self.name, own_part, self.own_weight, needs.get(self.name, 0.0), self.is_fixed)]
        members += [(one.name, one.part, one.weight, one.need(needs), one.is_fixed) for one in self.children]
        left = max(0.0, cores - math.fsum(min(part, need) for _, part, _, need, _ in members))
        short = [one for one in members if one[3] > one[1] and not one[4]]
        lent = shared_out(
            left,
            {name: max(weight, part, LEAST_WEIGHT) for name, part, weight, _, _ in short},
            {name: need - part for name, part, _, need, _ in short},
        )
        yield self.name, own_part + lent.get(self.name, 0.0)
        for child in self.children:
            yield from child.owed(child.part + lent.get(child.name, 0.0), needs)

    def need(self, needs: Mapping[str, float]) -> float:
        """Return the cores that the own jobs of all accounts of this tree use and want."""
        return needs.get(self.name, 0.0) + math.fsum(child.need(needs) for child in self.children)
