"""Which nodes are drained for a request, and which of these drains are cancelled: never one of somebody else's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.pool.pool import reason_of, to_drain, to_open
from drainwise.pool.abilities import Closing

NOW = 1_795_249_000
DUE = Closing("r1", frozenset({"n1", "n2"}), NOW, "request r1: n1, n2 empty: new disks")
LATER = Closing("r2", frozenset({"n3"}), NOW + 1, "request r2")
NODES = frozenset({"n1", "n2", "n3"})


def test_a_node_is_drained_when_its_time_has_come_and_not_twice() -> None:
    assert to_drain([DUE, LATER], {}, NODES, NOW) == {"n1": DUE, "n2": DUE}
    assert to_drain([DUE, LATER], {"n1": "by hand", "n2": reason_of(DUE)}, NODES, NOW) == {}
    assert to_drain([DUE], {}, {"n2"}, NOW) == {"n2": DUE}, "a node that is down starts nothing"


def test_a_drain_ends_when_no_request_closes_its_node_any_more() -> None:
    drained = {"n1": reason_of(DUE), "n2": "by hand", "n3": "drainwise-r9: gone long ago"}
    assert to_open([DUE], drained, NOW) == ["n3"]
    assert to_open([], drained, NOW) == ["n1", "n3"]
    assert to_open([LATER], drained, NOW) == ["n1", "n3"]
    assert to_open([LATER], drained, NOW + 1) == ["n1"], "it is closed for another request by now"


def test_the_reason_of_a_drain_is_short() -> None:
    assert reason_of(Closing("r1", frozenset(), NOW, "x" * 500)) == "drainwise-r1: ".ljust(200, "x")


@given(st.text(max_size=400))
def test_the_reason_is_one_line_that_begins_with_the_request(text: str) -> None:
    reason = reason_of(Closing("r1", frozenset(), NOW, text))
    assert reason.startswith("drainwise-r1: ")
    assert reason.isascii() and reason.isprintable() and len(reason) <= 200 and not set(reason) & set("\"'\\")
