"""What was decided is done where nothing has changed by the second look: no fact is read there in another way."""

from __future__ import annotations

import dataclasses

from hypothesis import event, given
from hypothesis import strategies as st

from drainwise.agent.act import carry_out
from drainwise.agent.cycle_facts import CycleBasis
from drainwise.facts.scope_rules import ScopeRules
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History
from memory_pool import MemoryPool

from .facts import NOW, SETTINGS, account, pilot, reports

NODES = ("n0", "n1", "n2", "n3")
GIB = 1024


class Nowhere:
    """A journal that keeps nothing."""

    def write(self, event: object) -> None:
        """Drop it."""


@st.composite
def pilots(draw: st.DrawFn) -> tuple[Pilot, ...]:
    """Of two accounts, on four nodes; some have an order, some are leaving."""
    found = []
    for number in range(draw(st.integers(1, 8))):
        cores, whose = draw(st.sampled_from((4, 8, 16))), draw(st.sampled_from(("alice", "alma", "carol")))
        one = pilot(number, draw(reports(cores)), cores=cores, user=whose, account=f"group_{whose[0]}")
        node, holds = NODES[number % 4], Amounts(cores, cores * draw(st.sampled_from((1, 4))) * GIB)
        ends = draw(st.sampled_from((*[None] * 8, NOW + 900, NOW + 90_000)))
        leaving = draw(st.sampled_from((*[False] * 8, True)))
        lease = draw(st.sampled_from((None, NOW + 1800, NOW + 90_000)))
        one = dataclasses.replace(one, node=node, place=node, holds=holds)
        found.append(dataclasses.replace(one, deadline=ends, leaving=leaving, lease_end=lease))
    return tuple(found)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Kinds of jobs wait, or cores are counted; some of those who wait use less than their own share."""
    running = draw(pilots())
    used = {name: sum(one.cores for one in running if one.account == name) for name in ("group_a", "group_c")}
    lent = [draw(st.sampled_from((0, 0, cores // 3, cores))) for cores in used.values()]
    shares = [draw(st.integers(0, owed)) for owed in lent]
    kinds = tuple(
        JobKind(
            f"kind{number}",
            draw(st.sampled_from(("group_b", "group_d"))),
            draw(st.integers(1, 5)),
            Amounts(cores := draw(st.sampled_from((1, 4, 8, 16))), cores * draw(st.sampled_from((1, 2))) * GIB),
            frozenset({"x"}),
            draw(st.sampled_from((1, 1, 1, 2))),
            whole=draw(st.sampled_from((False, False, True))),
        )
        for number in range(draw(st.integers(1, 3)))
    )
    who = ("group_b", "group_d")
    wanted = {name: sum(one.jobs * one.cores for one in kinds if one.account == name) for name in who}
    owed = {name: draw(st.sampled_from((0, cores // 2, cores, cores))) for name, cores in wanted.items()}
    over = [
        dataclasses.replace(account(name, cores, owes, priority=900.0), cores_share=share)
        for (name, cores), owes, share in zip(used.items(), lent, shares)
    ]
    waits = [account(name, 0, owed[name], cores, per_job=1.0) for name, cores in wanted.items()]
    free = draw(st.sampled_from((0, 0, 0, 4)))
    places = tuple(Place(node, node, "x", Amounts(free, free * GIB), Amounts(64, 256 * GIB)) for node in NODES)
    counted = Snapshot(NOW, running, (*over, *waits), float(4 * free), {"alice": 900.0})
    return draw(st.sampled_from((counted, dataclasses.replace(counted, kinds=kinds, places=places))))


@given(
    snapshots(), st.sampled_from(("least-waste", "open-need", "youngest-first")), st.sampled_from(("", "user=alice"))
)
def test_what_was_decided_is_done_where_nothing_has_changed(seen: Snapshot, policy: str, exempt: str) -> None:
    settings = dataclasses.replace(SETTINGS, policy=policy, scope=ScopeRules(exempt=exempt))
    plan = make_plan(seen, NOW, settings)
    pool = MemoryPool(seen)
    done = carry_out(plan, CycleBasis(seen, NOW, settings, History()), pool, lambda: NOW, Nowhere())
    event(f"{'kinds' if seen.kinds else 'cores'}: {len(plan.orders)} orders, {len(plan.withdrawals)} withdrawals")
    assert [(one.outcome, one.detail) for one in done.acts if one.outcome != "done"] == []
    assert [(one.outcome, one.detail) for one in done.withdrawn if one.outcome != "done"] == []
    assert pool.runs() == [order.pilot.run for order in plan.orders]
    assert pool.runs("withdrawn") == [one.pilot.run for one in plan.withdrawals]
