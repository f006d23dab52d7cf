"""Run two policies on the same pool, one after the other: which pilots each takes, and what that really wasted.

Alice's pilots hold one node. Two of them are old and run short payloads, two are old and two young with long ones. Bob,
under his quota, waits for the cores of two. Youngest first, as batch systems do by themselves, takes the young ones and
loses what they run; the least wasteful are those whose payloads are about to end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from drainwise.facts.waste import kill_waste

CPUS, PILOT_CORES, WANTED = 48, 8, 2
OLD = {"soon-1": "8x10", "soon-2": "8x11", "long-1": "8x1500", "long-2": "8x1800"}
YOUNG = {"young-1": "8x1500", "young-2": "8x1800"}
ALICE, BOB = 32, 16
"""Cores that the two are owed."""
AGE = 15
"""Seconds that the young pilots have worked when bob comes."""
BOBS_SECONDS = 5
RECLAIM = """\
[reclaim]
grace = 2m
margin = 30s
min_age = 5s
drain_only = no
"""
"""The site's setting lets a policy kill."""

LEAST_WASTE, YOUNGEST_FIRST = "least-waste", "youngest-first"


@dataclass(frozen=True)
class Realised:
    """What the end of one pilot wasted, core-seconds: `idle` since its order, `lost` with its payloads.

    kind: how it was to end, kill, leave or cut. expected: what the plan said of that. source: who says what it was.
    vacated: whether the batch system ended it, as the agent's journal has it.
    """

    name: str
    kind: str
    expected: int
    idle: float
    lost: float
    source: str
    vacated: bool | None = None

    @property
    def waste(self) -> float:
        """Both together."""
        return self.idle + self.lost


@dataclass(frozen=True)
class Result:
    """What became of one policy's orders."""

    policy: str
    pilots: tuple[Realised, ...]

    @property
    def chosen(self) -> frozenset[str]:
        """The names of the pilots that were ordered to end."""
        return frozenset(one.name for one in self.pilots)

    @property
    def waste(self) -> float:
        """Realised waste of all, core-seconds."""
        return sum(one.waste for one in self.pilots)


class ComparedPool(Protocol):
    """A real batch system of one node of CPUS cores, with drainwise on it."""

    def submit(self, mixes: Mapping[str, str]) -> None:
        """Alice submits a pilot for each mix of payloads."""

    def reporting(self) -> Mapping[str, int]:
        """Alice's pilots that run and whose report is there: name → start, UNIX s."""

    def demand(self) -> None:
        """Bob submits WANTED jobs as large as a pilot, of BOBS_SECONDS each."""

    def demand_is_met(self) -> bool:
        """Whether all of bob's jobs have run to their end."""

    def drainwise(self, *words: str) -> Any:
        """What a command of the administrator prints as JSON."""

    def name_of(self, order: Mapping[str, Any]) -> str:
        """Which of alice's pilots an order (as JSON) means."""

    def account(self, name: str) -> Any:
        """What a pilot that ended by itself says of its lease (its pilot-report.json); None while it has not."""

    def end(self, name: str) -> int | None:
        """When the batch system ended a pilot, UNIX s; None while it has not."""

    def remove(self, names: Sequence[str]) -> None:
        """Alice takes these pilots back, wherever they are, and they are gone when this returns."""

    def wait_for(self, condition: Callable[[], object], seconds: float, what: str) -> Any:
        """Wait until it is so."""

    def journal(self, policy: str) -> str:
        """Where the agent that follows a policy writes what it does.

        Each has its own: what came back in the other's round may still serve demand, so an agent that remembers that
        round waits up to `time_to_start` before it gives orders for as much.
        """


def compare(pool: ComparedPool, policies: Sequence[str], say: Callable[[str], None]) -> list[Result]:
    """Run each policy in turn on the same pool; return what it took and what that wasted.

    What a policy took is set up anew before the next one's turn, and is the youngest then: so `youngest-first` goes
    first.
    """
    pool.submit(OLD)
    pool.wait_for(lambda: set(pool.reporting()) == set(OLD), 90, "four pilots that report")
    results = []
    for turn, policy in enumerate(policies):
        pool.submit({name: mix for name, mix in (OLD | YOUNG).items() if name not in pool.reporting()})
        pool.wait_for(lambda: set(pool.reporting()) == {*OLD, *YOUNG}, 90, "six pilots that report")
        youngest = max(pool.reporting().values())
        pool.wait_for(lambda: time.time() > youngest + AGE, AGE + 5, "young payloads worth a kill")  # noqa: B023 - called at once
        say(f"bob comes; {policy} decides")
        result = one_round(pool, policy)
        say("\n".join(lines([result])))
        results.append(result)
        pool.wait_for(pool.demand_is_met, 120, "bob's jobs to run and end")
        if turn + 1 < len(policies):
            pool.remove(sorted(result.chosen))
    return results


def one_round(pool: ComparedPool, policy: str) -> Result:
    """Bob's demand, one cycle that acts, and the end of those that were chosen."""
    journal = pool.journal(policy)
    cycle = ("reclaim", "--once", "--policy", policy, "--journal", journal)
    pool.demand()
    pool.wait_for(lambda: len(orders(pool.drainwise(*cycle))) == WANTED, 90, "a plan for two pilots")
    acted = pool.drainwise(*cycle, "--act")
    taken = int(acted["taken"])
    given = {pool.name_of(order): order for order in orders(acted)}
    failed = [act for act in acted["acts"] if act["outcome"] != "done"]
    if failed or len(given) != WANTED:
        raise AssertionError(f"{policy} was not carried out: {acted}")

    def gone() -> list[Realised]:
        found = (realised(name, order, taken, pool.account(name), pool.end(name)) for name, order in given.items())
        known = [one for one in found if one is not None]
        return known if len(known) == len(given) else []

    pilots = pool.wait_for(gone, 90, "the end of those that were chosen")

    def learnt() -> dict[str, bool]:
        pool.drainwise(*cycle)
        found = {one["run"]: one["vacated"] for one in events(journal, "ended")}
        return found if all(order["run"] in found for order in given.values()) else {}

    ended = pool.wait_for(learnt, 60, "their ends in the journal")
    return Result(policy, tuple(replace(one, vacated=ended[given[one.name]["run"]]) for one in pilots))


def events(journal: str, kind: str) -> list[Any]:
    """The events of a kind in a journal."""
    with open(journal, encoding="utf-8") as stream:
        found = [json.loads(line) for line in stream]
    return [one for one in found if one["event"] == kind]


def orders(plan: Any) -> list[Any]:
    """The orders of a plan (as JSON)."""
    return [order for user in plan["users"] for order in user["orders"]]


def realised(name: str, order: Mapping[str, Any], taken: int, account: Any, end: int | None) -> Realised | None:
    """What a pilot's end wasted: by its own account where it could still write one, else by its last report.

    order: as the plan has it in JSON, with the report's figures at `taken` (UNIX s). None while its end is not known.
    """
    planned = (name, str(order["kind"]), int(order["expected_waste"]))
    if account is not None and account["drain"] is not None:
        # A payload that failed was ended with its pilot: Slurm sends both the same signal. None fails by itself here.
        spent = account["core_seconds"]
        return Realised(*planned, account["drain"]["idle"], spent["lost"] + spent["failed"], "its own account")
    if end is None:
        return None
    # What ran when it was reported went on until the end: a payload that had ended would have let it write its account.
    used = order["cores"] if order["used_cpu"] is None else order["used_cpu"]
    lost = kill_waste(order["kill_waste"], used, taken, max(taken, end))
    return Realised(*planned, 0.0, float(lost), "its last report")


def lines(results: Sequence[Result]) -> list[str]:
    """The outcome as a table, wastes in core-seconds."""
    rows = [f"{'policy':<16}{'pilot':<10}{'way':<6}{'expected':>9}{'realised':>9}{'idle':>7}{'lost':>7}  {'end':<9}by"]
    for result in results:
        for one in sorted(result.pilots, key=lambda pilot: pilot.name):
            figures = f"{one.expected:9}{one.waste:9.0f}{one.idle:7.0f}{one.lost:7.0f}"
            end = "ended" if one.vacated else "left"
            rows.append(f"{result.policy:<16}{one.name:<10}{one.kind:<6}{figures}  {end:<9}{one.source}")
        total = sum(one.expected for one in result.pilots)
        rows.append(f"{result.policy:<16}{'together':<16}{total:9}{result.waste:9.0f}")
    return rows
