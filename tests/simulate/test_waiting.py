"""The queue shows a pilot as few payloads as it can, and never changes what the pilot decides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilot.decide.decision import decide
from drainwise.pilot.decide.lease import Lease, SiteOrders
from drainwise.pilot.decide.payload import Backlog, Payload
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilot.decide.workload import Workload
from drainwise_simulate.waiting import WaitingPayloads

needs = st.lists(st.tuples(st.sampled_from((1, 2, 4, 8)), st.sampled_from((60.0, 600.0, 6000.0))), max_size=30)


def queue_of(rows: list[tuple[int, float]]) -> tuple[WaitingPayloads, list[Payload]]:
    """A queue of payloads of (cores, seconds), and the same as a list."""
    waiting = WaitingPayloads()
    payloads = [Payload(str(turn), cores, (), seconds, seconds) for turn, (cores, seconds) in enumerate(rows)]
    for turn, payload in enumerate(payloads):
        waiting.add(turn, payload)
    return waiting, payloads


@given(rows=needs, cores=st.sampled_from((1, 2, 8, 16)), seconds=st.sampled_from((50.0, 1000.0, 9000.0)))
def test_the_pilot_decides_as_on_the_whole_queue(rows: list[tuple[int, float]], cores: int, seconds: float) -> None:
    """What starts, and whether the pilot is done, is the same for what is shown as for all that wait."""
    waiting, payloads = queue_of(rows)
    lease = Lease(cores, 0.0, seconds)
    orders = SiteOrders(leave=False, deadline=seconds, draining=False, source="lease")
    shown = waiting.first(cores, seconds)
    some, whole = (
        decide(Workload(0.0), Backlog(each), lease, orders, PilotSettings(margin=0.0), 0.0, True)
        for each in (shown, payloads)
    )
    assert some.start == whole.start
    assert some.done == whole.done


@given(rows=needs, data=st.data())
def test_all_come_out_once_and_in_their_turn(rows: list[tuple[int, float]], data: st.DataObject) -> None:
    """Whatever is taken out and put back, the queue shows the others in the order of the trace."""
    waiting, payloads = queue_of(rows)
    out = data.draw(st.sets(st.sampled_from(payloads)) if payloads else st.just(set()))
    for payload in sorted(out, key=lambda one: int(one.name)):
        waiting.take(payload)
    rest = [payload for payload in payloads if payload not in out]
    assert waiting.first(10**6, 1e9) == rest
    assert len(waiting) == len(rest)
    for payload in out:
        waiting.add(int(payload.name), payload)
    assert waiting.first(10**6, 1e9) == payloads
    assert sorted(waiting.turns()) == list(range(len(payloads)))


def test_a_copy_goes_its_own_way() -> None:
    """Taking from one leaves the other as it was."""
    waiting, payloads = queue_of([(1, 60.0), (1, 60.0)])
    other = waiting.copy()
    other.take(payloads[0])
    assert (len(waiting), len(other)) == (2, 1)
    assert waiting.first(1, 100.0) == [payloads[0]]
    assert other.first(1, 100.0) == [payloads[1]]
