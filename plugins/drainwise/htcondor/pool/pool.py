"""HTCondor as a `Pool`: the collector answers, the startds take the orders."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import cast

from drainwise.common.bounded_call import each_within, several_within, within
from drainwise.facts.client_rules import ClientRules
from drainwise.facts.errors import OrderUnanswered, PoolError, PoolUnreachable
from drainwise.htcondor.ads.agent_ad import ad_of
from drainwise.htcondor.ads.packed_ads import Bundle, unpacked
from drainwise.htcondor.ads.values import SLOT_ATTRIBUTES, Ad, Others, text
from drainwise.htcondor.demand.resources import resources_of
from drainwise.htcondor.identity.asked import Identities
from drainwise.htcondor.knobs.orders import OrderEntry, to_be_asked, with_knobs
from drainwise.htcondor.pool.closing import reason_of, to_drain, to_open
from drainwise.htcondor.pool.endings import OrderedNode, ended_since, endings_in, in_question, places_of, with_who_ended
from drainwise.htcondor.pool.known_startds import Answer, KnownStartds, completed
from drainwise.htcondor.pool.places import NO_MORE_LENT
from drainwise.htcondor.pool.snapshot import snapshot_of
from drainwise.htcondor.pool.snapshot_question import SnapshotQuestion, without_collection
from drainwise.identity.rules import IdentityRules
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.abilities import AgentNotice, most_at_once
from drainwise.pool.closing import Closing
from drainwise.pool.facts import Ending, Pilot, Snapshot
from drainwise.pool.kept_room import KeptRoom

SNAPSHOT_SECONDS = 8.0
HISTORY_SECONDS, NODE_SECONDS = 30.0, 8.0  # for how runs ended: all nodes together, one node
_AHEAD_SECONDS = 3.0  # an answer that was asked for longer ago is not of now
ORDER_SECONDS = 30.0  # a startd does not respond for some seconds while it reconfigures


class HTCondorPool:
    """The pool that HTCondor's own configuration (CONDOR_CONFIG) names, with the credentials that it names.

    snapshot_seconds, order_seconds: how long the collector may take for a snapshot, and a node for an order. A snapshot
    needs level READ at the collector, an order level ADMINISTRATOR at the node. clients: which pilots are of which kind
    of client. rules: who sent a pilot, as far as the site wants to know. startds_file: where the startds of the last
    whole answer are kept, "" for nowhere. attributes: those of jobs that the site's scope asks for.
    """

    def __init__(
        self,
        snapshot_seconds: float = SNAPSHOT_SECONDS,
        order_seconds: float = ORDER_SECONDS,
        clients: ClientRules | None = None,
        rules: IdentityRules = IdentityRules(),  # noqa: B008 - immutable
        startds_file: str = "",
        attributes: Sequence[str] = (),
    ) -> None:
        self._clients = clients or ClientRules()
        self._snapshot_seconds, self._order_seconds = snapshot_seconds, order_seconds
        self._identities = Identities(rules, attributes)
        self._startds = KnownStartds(startds_file)
        self._drained: dict[str, str] = {}
        """Of these, the ones that are drained, each with the reason."""
        self._ahead: SnapshotQuestion | None = None
        self._told: set[str] = set()

    def require_bindings(self) -> None:
        """Raise UsageError when HTCondor's Python bindings here are too old."""
        within(self._snapshot_seconds, _require_bindings, "HTCondor's Python bindings")

    def ask_ahead(self) -> None:
        """Ask the collector now for the next snapshot: whoever takes that at once can get ready while it answers."""
        self._ahead = self._question()

    def snapshot(self, now: int) -> Snapshot:
        """See `Pool`."""
        with closing(self._asked()) as asked, without_collection():
            answers = asked.ads.values()
            others = cast("Others", next(answers))
            attributes = (*SLOT_ATTRIBUTES, *resources_of(others.startds))
            bundles = cast("Iterable[Bundle]", answers)
            slots: Iterable[Ad] = (ad for bundle in bundles for ad in unpacked(bundle, attributes))
            others, slots = self._completed(others, slots, attributes, now)
            sent, known = self._identities, self._startds
            seen = snapshot_of(slots, others, now, known.nodes, asked.told, self._clients, sent.known, known.silent)
            seen = sent.completed(seen, asked.identities)
        known.learn(others.startds)
        reasons = ((text(ad, "Machine"), text(ad, "DrainReason")) for ad in others.startds)
        self._drained = {node: reason for node, reason in reasons if node is not None and reason is not None}
        doubtful = to_be_asked(seen)
        if not doubtful:
            return seen
        with suppress(PoolError):  # else what was seen counts: nobody is asked instead
            return with_knobs(seen, within(NODE_SECONDS, lambda: _ask_knobs(doubtful), "a node with orders"))
        return seen

    def _completed(
        self, others: Others, slots: Iterable[Ad], attributes: Sequence[str], now: int
    ) -> tuple[Others, Iterable[Ad]]:
        """Complete the answer of a collector that has just started by what the startds that it lacks say themselves."""
        if not self._startds.is_young(others, now):
            return others, slots
        there = list(slots)
        missing = self._startds.missing(others, there)
        if not missing:
            return others, there
        answers = self._startds.ask(missing, partial(_ask_startd, attributes), now)
        machines, there = completed(others, there, answers)
        return replace(others, startds=machines), there

    def _asked(self) -> SnapshotQuestion:
        """Return the question that was asked ahead, if that was just now; else ask."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            if time.monotonic() - ahead.begun < _AHEAD_SECONDS:
                return ahead
            ahead.close()
        return self._question()

    def _question(self) -> SnapshotQuestion:
        return SnapshotQuestion(self._snapshot_seconds, self._identities)

    def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:  # noqa: ARG002 - HTCondor has no place for it
        """See `Pool`; the order is read back before this returns."""
        order = OrderEntry(pilot.run, deadline)
        self._send(pilot.node, lambda: _give(order, pilot.name, pilot.node))

    def withdraw_order(self, pilot: Pilot, reason: str) -> None:  # noqa: ARG002 - HTCondor has no place for it
        """See `Pool`; the slot may stay Retiring, see `retirement`. The update hook tells the pilot."""
        self._send(pilot.node, lambda: _take_back(pilot.run, pilot.name, pilot.node))

    def ask_for_part(self, pilot: Pilot, wish: PartialReturn, reason: str) -> None:  # noqa: ARG002 - HTCondor has no place for it
        """See `LendsParts`; the update hook tells the pilot, and the second slot lends what it returns."""
        self._send(pilot.node, lambda: _ask_part(pilot.run, wish, pilot.name, pilot.node))

    def keep_room(self, room: KeptRoom) -> None:
        """See `KeepsRooms`; it counts from the node's next reconfig on, which each order brings."""
        within(self._order_seconds / 2, lambda: _keep(room), f"node {room.node}")

    def _send(self, node: str, order: Callable[[], Iterable[None]]) -> None:
        """Have an order sent to a node. Raises as `Pool.give_order`."""
        sent = False
        try:
            with closing(several_within(self._order_seconds, order, f"node {node}")) as steps:
                for _ in steps:
                    sent = True
        except PoolUnreachable as fault:
            raise (OrderUnanswered if sent else PoolUnreachable)(str(fault), node) from None

    def endings(self, runs: Collection[str], now: int) -> dict[str, Ending]:  # noqa: ARG002 - what ended has ended
        """See `Pool`; a node keeps it as long as its STARTD_HISTORY. One that does not tell holds nobody up."""
        if not runs:
            return {}
        places = within(self._snapshot_seconds, lambda: places_of(_ask_places(), runs), "the collector")
        found: dict[str, Ending] = {}
        end = time.monotonic() + HISTORY_SECONDS
        for place in places:
            left = min(NODE_SECONDS, end - time.monotonic())
            if left <= 0:
                break
            with suppress(PoolUnreachable):
                history = within(left, partial(_ask_history, place), f"node {place.machine}")
                found.update(endings_in(history, place))
        return {**found, **self._with_who_ended(in_question(found.values(), places), end)}

    @staticmethod
    def _with_who_ended(endings: Sequence[Ending], end: float) -> dict[str, Ending]:
        """Add who had each run ended, as far as access points answer until `end` (s of the monotonic clock); by run."""
        known = {one.run: one for one in endings}
        for name in sorted({one.run.partition("#")[0] for one in endings}):
            left = min(NODE_SECONDS, end - time.monotonic())
            own = [one for one in endings if one.run.partition("#")[0] == name]
            if left <= 0:
                break
            with suppress(PoolUnreachable):
                jobs = within(left, partial(_ask_jobs, name, own), f"access point {name}")
                known.update((one.run, with_who_ended(one, jobs)) for one in own)
        return known

    def cores_of_ended(self, account: str, nodes: Sequence[str], since: int, now: int) -> float:  # noqa: ARG002 - what ended has ended
        """See `TellsEnded`; each node keeps it as long as its STARTD_HISTORY."""
        runs: list[tuple[int, int, int]] = []
        calls = [partial(_ask_ended, node, since) for node in nodes]
        for _, answer in each_within(NODE_SECONDS, calls, "a node that gave cores back"):
            if isinstance(answer, PoolError):
                raise answer
            runs += ended_since(answer, account, since)
        return float(most_at_once(runs))

    def follow_up(self, snapshot: Snapshot) -> list[str]:
        """See `Pool`: nothing is ever left to do. What nodes have decided about lending is told once."""
        told = [one for one in snapshot.notices if NO_MORE_LENT in one and one not in self._told]
        self._told.update(told)
        return told

    def show_agent(self, notice: AgentNotice) -> None:
        """See `ShowsAgent`: by an ad of a type of its own in the collector."""
        within(self._snapshot_seconds, lambda: _show_agent(ad_of(notice)), "the collector")

    def close_nodes(self, closings: Sequence[Closing], snapshot: Snapshot, now: int) -> list[str]:  # noqa: ARG002 - the nodes' own ads tell
        """See `ClosesNodes`: by a drain of each node when the time has come. What fails is tried again."""
        drains = to_drain(closings, self._drained, self._startds.nodes, now)
        calls = [
            (
                f"{node} is drained: it starts no job until {why.name} is cancelled",
                partial(_drain, node, reason_of(why)),
            )
            for node, why in sorted(drains.items())
        ]
        opened = to_open(closings, self._drained, now)
        calls += [
            (f"the drain of {node} is cancelled: it takes jobs again", partial(_end_drain, node)) for node in opened
        ]
        done, faults = [], []
        for place, answer in each_within(NODE_SECONDS, (call for _, call in calls), "a node to drain"):
            if isinstance(answer, PoolError):
                faults.append(answer)
            elif answer:
                done.append(calls[place][0])
        if faults and not done:
            raise faults[0]
        return sorted(done)


# The bindings are imported in the child that asks: each question reads the configuration as it is then, and a command
# that asks nothing does not need them.


def _require_bindings() -> None:
    from drainwise.htcondor.ads.bindings import require_bindings  # noqa: PLC0415

    require_bindings()


def _give(order: OrderEntry, slot: str, machine: str) -> Iterator[None]:
    from drainwise.htcondor.pool.order_channel import give_order  # noqa: PLC0415

    return give_order(order, slot, machine)


def _ask_part(run: str, wish: PartialReturn, slot: str, machine: str) -> Iterator[None]:
    from drainwise.htcondor.pool.part_channel import ask_for_part  # noqa: PLC0415

    return ask_for_part(run, wish, slot, machine)


def _keep(room: KeptRoom) -> None:
    from drainwise.htcondor.pool.order_channel import keep_room  # noqa: PLC0415

    keep_room(room)


def _take_back(run: str, slot: str, machine: str) -> Iterator[None]:
    from drainwise.htcondor.pool.order_channel import withdraw_order  # noqa: PLC0415

    return withdraw_order(run, slot, machine)


def _ask_startd(attributes: Sequence[str], address: str) -> Answer:
    from drainwise.htcondor.pool.collector import startd_answer  # noqa: PLC0415

    return startd_answer(address, attributes)


def _ask_knobs(nodes: Mapping[str, str]) -> dict[str, str]:
    from drainwise.htcondor.pool.order_channel import knobs_of  # noqa: PLC0415

    return knobs_of(nodes)


def _drain(machine: str, reason: str) -> bool:
    from drainwise.htcondor.pool.drain_channel import drain  # noqa: PLC0415

    return drain(machine, reason)


def _end_drain(machine: str) -> bool:
    from drainwise.htcondor.pool.drain_channel import end_drain  # noqa: PLC0415

    return end_drain(machine)


def _show_agent(attributes: Mapping[str, str | int | bool]) -> None:
    from drainwise.htcondor.pool.collector import show_agent  # noqa: PLC0415

    show_agent(attributes)


def _ask_places() -> list[Ad]:
    from drainwise.htcondor.pool.collector import slots_with_orders  # noqa: PLC0415

    return slots_with_orders()


def _ask_jobs(access_point: str, endings: Sequence[Ending]) -> list[Ad]:
    from drainwise.htcondor.pool.collector import jobs_at_their_end  # noqa: PLC0415

    return jobs_at_their_end(access_point, endings)


def _ask_ended(machine: str, since: int) -> list[Ad]:
    from drainwise.htcondor.pool.collector import ended_there  # noqa: PLC0415

    return ended_there(machine, since)


def _ask_history(place: OrderedNode) -> list[Ad]:
    from drainwise.htcondor.pool.collector import startd_history  # noqa: PLC0415

    return startd_history(place)
