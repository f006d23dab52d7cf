"""What a slot shows as an order counts only when its startd has it: with WRITE there, anybody can set the attribute."""

from __future__ import annotations

from dataclasses import replace

from drainwise.htcondor.node.order_list import WITHDRAWN
from drainwise.htcondor.pool.knobs import to_be_asked, with_knobs
from drainwise.pool.facts import Pilot, Snapshot

NOW = 1795259000


def pilot(number: int, node: str = "n1", deadline: int | None = NOW + 600, leaving: bool = False) -> Pilot:
    run = f"central.pool.test#{number}.0#1795258311@1795258515"
    return Pilot(
        run, f"slot1_{number}@{node}", node, "a", "alice", 8, NOW - 500, deadline, deadline=deadline, leaving=leaving
    )


def test_a_run_that_retires_needs_no_question() -> None:
    """Nobody can set that from outside; and a run without an order is none to ask about."""
    seen = Snapshot(NOW, (pilot(1, leaving=True), pilot(2, "n2", None), pilot(3, "n3"), pilot(4, "n3")), ())
    assert to_be_asked(seen) == {"n3": "slot1_3@n3"}


def test_a_storm_of_pretended_orders_costs_a_bounded_number_of_questions() -> None:
    seen = Snapshot(NOW, tuple(pilot(number, f"n{number}") for number in range(500)), ())
    assert len(to_be_asked(seen)) == 32
    again = Snapshot(NOW, (*seen.pilots, pilot(501, "n31")), ())
    assert to_be_asked(again) == to_be_asked(seen)


def test_an_order_that_was_never_given_does_not_count_and_its_node_is_named() -> None:
    """The true ones stand, those of nodes that did not answer as well; a lease that ends otherwise is kept."""
    true, false, other = pilot(1), pilot(2), replace(pilot(3), lease_end=NOW + 50)
    unasked = pilot(4, "n2")
    seen = Snapshot(NOW, (true, false, other, unasked), (), notices=("before",))
    found = with_knobs(seen, {"n1": f"{true.run}={NOW + 600}"})
    assert found.pilots == (
        true,
        replace(false, deadline=None, lease_end=None),
        replace(other, deadline=None),
        unasked,
    )
    before, notice = found.notices
    assert before == "before"
    assert notice.startswith("n1 shows orders that were never given")
    assert with_knobs(Snapshot(NOW, (true, unasked), ()), {"n1": f"{true.run}={NOW}"}).notices == ()


def test_an_order_that_was_just_withdrawn_was_given() -> None:
    """The slot shows it until the startd's next update; nobody with level WRITE is to be looked for."""
    seen = Snapshot(NOW, (pilot(1),), ())
    assert with_knobs(seen, {"n1": f"{pilot(1).run}={WITHDRAWN}"}) is seen
