"""A decision written out by hand: nodes, pilots and waiting jobs in a few words; one resource, cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from drainwise.reclaim.choose.problem import KILL, Limits, Needs, Places, Problem, Rows, sums

ENDLESS = 1e12
Pilot = tuple[str, float, float]
"""Its node, cores, and what its report says that its end wastes."""


def problem(
    nodes: Mapping[str, float],
    pilots: Sequence[Pilot],
    jobs: Sequence[tuple[int, float]],
    *,
    users: Sequence[int] | None = None,
    most: Sequence[float] | None = None,
    ways: Sequence[int] | None = None,
    several: int = 1,
    whole: bool = False,
    extra: float = float("nan"),
) -> Problem:
    """nodes: free cores by name. jobs: how many of how many cores. users: of each pilot. most: cores a user may lose.

    ways: the number of the pilot of each row. Facts say that all pilots cost the same for a core.
    """
    names = list(nodes)
    where = np.array([names.index(node) for node, _, _ in pilots], dtype=np.int64)
    cores = np.array([size for _, size, _ in pilots], dtype=float)
    user = np.array(users if users is not None else [0] * len(pilots), dtype=np.int64)
    count = int(user.max(initial=0)) + 1
    every = np.arange(len(pilots))
    rows = Rows(
        np.array(ways if ways is not None else every),
        np.full(len(pilots), KILL),
        user,
        np.column_stack((cores, 0 * cores)),
        1000 * cores,
        np.array([waste for _, _, waste in pilots], dtype=float),
        every,
        where,
        cores[:, None],
    )
    free = np.array(list(nodes.values()), dtype=float)
    total = free + sums(where, cores, len(free))
    number = np.array([one for one, _ in jobs], dtype=np.int64)
    sizes = np.array([size for _, size in jobs], dtype=float)
    one_each = np.ones(len(jobs), dtype=np.int64)
    needs = Needs(
        0 * one_each,
        number,
        sizes[:, None],
        np.ones((len(jobs), len(free)), dtype=bool),
        np.full(len(jobs), whole),
        several * one_each,
        sizes * several,
        number.copy(),
        np.array([ENDLESS]),
    )
    limits = Limits(
        np.arange(count),
        np.arange(count, dtype=float),
        np.arange(count)[:, None],
        np.array(most if most is not None else [ENDLESS] * count),
        np.zeros(count, dtype=np.int64),
        np.full(count, extra),
    )
    return Problem(rows, Places(free[:, None], total, np.ones(len(free), dtype=bool)), needs, limits)
