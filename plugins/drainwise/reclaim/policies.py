"""The policies by name: each an entry of POLICIES, or of an installed package (entry points `drainwise.policies`).

Needs no numpy: command lines and the site file name policies, and one is imported when it is to choose.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from drainwise.common.plugin_entries import PluginEntries
from drainwise.facts.errors import DrainwiseError, UsageError

if TYPE_CHECKING:
    from drainwise.reclaim.candidates import Candidates
    from drainwise.reclaim.policy import Chosen, Need, Policy

GROUP = "drainwise.policies"
LEAST_WASTE = "least-waste"
OPEN_NEED = "open-need"
BY_WASTE = (LEAST_WASTE, OPEN_NEED)
"""The policies that choose by the expected waste alone."""


class BuiltIn(NamedTuple):
    """A built-in policy: the object of `reclaim.policy` that chooses, and its rule in words."""

    choose_by: str
    meaning: str


POLICIES: Mapping[str, BuiltIn] = {
    LEAST_WASTE: BuiltIn(
        "LEAST_WASTE", "the agent's: the set that is expected to waste least, each pilot drained, cut or killed"
    ),
    OPEN_NEED: BuiltIn(
        "LEAST_WASTE",
        "least-waste, decided again each cycle until the horizon is over: waits for cheap pilots, replaces dear orders",
    ),
    "paper": BuiltIn(
        "PAPER", "the paper's rule: least draining waste of those that can go in time, else the least expensive kill"
    ),
    "least-kill": BuiltIn("LEAST_KILL", "those that are least expensive to kill for each core, killed"),
    "youngest-first": BuiltIn(
        "YOUNGEST_FIRST", "the shortest run time first, killed: Slurm's youngest_first, HTCondor's default order"
    ),
    "oldest-first": BuiltIn("OLDEST_FIRST", "the longest run time first, killed"),
    "nebraska": BuiltIn("NEBRASKA", "the youngest payload first, killed"),
    "random": BuiltIn("RANDOM", "drawn by lot, killed"),
}


class Installed:
    """The policy of an installed package, held to what every policy promises."""

    def __init__(self, name: str, policy: Policy) -> None:
        self._name, self._policy = name, policy

    def choose(self, candidates: Candidates, need: Need) -> tuple[Chosen, ...]:
        """See `Policy`. Raises UsageError for a choice of other cores, pilots or ways to end one than it was given.

        Also when the policy fails: a cycle reports that, and the agent goes on.
        """
        try:
            return self._choose(candidates, need)
        except DrainwiseError:
            raise
        except Exception as fault:
            raise UsageError(f"policy {self._name!r} failed: {type(fault).__name__}: {fault}") from fault

    def _choose(self, candidates: Candidates, need: Need) -> tuple[Chosen, ...]:
        from drainwise.reclaim.totals.subset_sums import total_to_give  # noqa: PLC0415 - needs numpy

        chosen = tuple(self._policy.choose(candidates, need))
        total, cores = total_to_give(candidates.sizes, need.cores, need.most), 0
        rows = {pilot.run: row for row, pilot in enumerate(candidates.pilots)}
        for one in chosen:
            row = rows.pop(one.candidate.pilot.run, None)
            if row is None or candidates[row] != one.candidate or one.option not in one.candidate.options:
                raise UsageError(
                    f"policy {self._name!r} chose a pilot twice, or one or an option that it was not given"
                )
            cores += one.candidate.pilot.cores
        if cores != total:
            raise UsageError(
                f"policy {self._name!r} chose {cores} cores; every policy chooses exactly {total} of these"
            )
        return chosen


def _accept(name: str, found: object) -> Policy:
    policy = found() if isinstance(found, type) else found
    if not callable(getattr(policy, "choose", None)):
        raise TypeError(f"expected a drainwise.reclaim.policy.Policy for {name!r}, found {type(policy).__name__}")
    return Installed(name, cast("Policy", policy))


_installed = PluginEntries(GROUP, _accept, POLICIES)


def is_policy(name: str) -> bool:
    """Return whether there is a policy of that name, built in or installed; nothing of it is imported."""
    return name in POLICIES or name in _installed.names()


def policy_names() -> tuple[str, ...]:
    """Return the names of all policies, the built-in ones first."""
    return (*POLICIES, *_installed.names())


def policy_called(name: str) -> Policy:
    """Return the policy of that name. Raises UsageError, which names those there are; a broken one is none."""
    if name in POLICIES:
        return cast("Policy", getattr(importlib.import_module("drainwise.reclaim.policy"), POLICIES[name].choose_by))
    policy = _installed.get(name)
    if policy is None:
        broken = f"policy {name!r} cannot be loaded" if is_policy(name) else f"no policy is called {name!r}"
        raise UsageError(f"{broken}; there are {', '.join(one for one in policy_names() if one != name)}")
    return policy
