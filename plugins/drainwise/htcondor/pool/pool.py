"""HTCondor as a `Pool`: the collector answers, the startds take the orders."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import cast

from drainwise.common.bounded_call import BoundedCall, each_within, several_within, within
from drainwise.common.garbage import without_collection
from drainwise.facts.client_rules import ClientRules
from drainwise.facts.errors import OrderUnanswered, PoolError, PoolUnreachable
from drainwise.htcondor.ads.query import Bundle, require_bindings, unpacked
from drainwise.htcondor.ads.values import Ad, Others, resources_of, shown, text
from drainwise.htcondor.demand.demand import Told
from drainwise.htcondor.pool import collector, order_channel
from drainwise.htcondor.pool.endings import ended_since, endings_in, in_question, places_of, with_who_ended
from drainwise.htcondor.pool.identity import Identities
from drainwise.htcondor.pool.knobs import OrderEntry, to_be_asked, with_knobs
from drainwise.htcondor.pool.places import NO_MORE_LENT
from drainwise.htcondor.pool.snapshot import snapshot_of
from drainwise.htcondor.pool.startds import KnownStartds
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.abilities import PREFIX, AgentNotice, Closing, KeptRoom, carried_out, most_at_once
from drainwise.pool.facts import Ending, Pilot, Snapshot
from drainwise.pool.identity import IdentityRules

SNAPSHOT_SECONDS = 8.0
HISTORY_SECONDS, NODE_SECONDS = 30.0, 8.0  # for how runs ended: all nodes together, one node
_AHEAD_SECONDS = 3.0  # an answer that was asked for longer ago is not of now
_OF_ACCESS_POINTS = 0.3  # of the time of a snapshot, for one access point
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
        """The nodes that are drained, each with the reason."""
        self._ahead: _SnapshotQuestion | None = None
        self._told: set[str] = set()

    def require_bindings(self) -> None:
        """Raise UsageError when HTCondor's Python bindings here are too old."""
        within(self._snapshot_seconds, require_bindings, "HTCondor's Python bindings")

    def ask_ahead(self) -> None:
        """Ask the collector now for the next snapshot: whoever takes that at once can get ready while it answers."""
        self._ahead = self._question()

    def snapshot(self, now: int) -> Snapshot:
        """See `Pool`."""
        with closing(self._asked()) as asked, without_collection():
            answers = asked.ads.values()
            others = cast("Others", next(answers))
            attributes = (*collector.SLOT_ATTRIBUTES, *resources_of(others.startds))
            bundles = cast("Iterable[Bundle]", answers)
            slots: Iterable[Ad] = (ad for bundle in bundles for ad in unpacked(bundle, attributes))
            others, slots = self._startds.completed(others, slots, partial(collector.startd_answer, attributes), now)
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
            return with_knobs(
                seen, within(NODE_SECONDS, partial(order_channel.knobs_of, doubtful), "a node with orders")
            )
        return seen

    def _asked(self) -> _SnapshotQuestion:
        """Return the question that was asked ahead, if that was just now; else ask."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            if time.monotonic() - ahead.begun < _AHEAD_SECONDS:
                return ahead
            ahead.close()
        return self._question()

    def _question(self) -> _SnapshotQuestion:
        return _SnapshotQuestion(self._snapshot_seconds, self._identities)

    def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:  # noqa: ARG002 - HTCondor has no place for it
        """See `Pool`; the order is read back before this returns."""
        order = OrderEntry(pilot.run, deadline)
        self._send(pilot.node, partial(order_channel.give_order, order, pilot.name, pilot.node))

    def withdraw_order(self, pilot: Pilot, reason: str) -> None:  # noqa: ARG002 - HTCondor has no place for it
        """See `Pool`; the slot may stay Retiring, see `retirement`. The update hook tells the pilot."""
        self._send(pilot.node, partial(order_channel.withdraw_order, pilot.run, pilot.name, pilot.node))

    def ask_for_part(self, pilot: Pilot, wish: PartialReturn, reason: str) -> None:  # noqa: ARG002 - HTCondor has no place for it
        """See `LendsParts`; the update hook tells the pilot, and the second slot lends what it returns."""
        self._send(pilot.node, partial(order_channel.ask_for_part, pilot.run, wish, pilot.name, pilot.node))

    def keep_room(self, room: KeptRoom) -> None:
        """See `KeepsRooms`; it counts from the node's next reconfig on, which each order brings."""
        within(self._order_seconds / 2, partial(order_channel.keep_room, room), f"node {room.node}")

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
        places = within(self._snapshot_seconds, lambda: places_of(collector.slots_with_orders(), runs), "the collector")
        found: dict[str, Ending] = {}
        end = time.monotonic() + HISTORY_SECONDS
        for place in places:
            left = min(NODE_SECONDS, end - time.monotonic())
            if left <= 0:
                break
            with suppress(PoolUnreachable):
                history = within(left, partial(collector.startd_history, place), f"node {place.machine}")
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
                jobs = within(left, partial(collector.jobs_at_their_end, name, own), f"access point {name}")
                known.update((one.run, with_who_ended(one, jobs)) for one in own)
        return known

    def cores_of_ended(self, account: str, nodes: Sequence[str], since: int, now: int) -> float:  # noqa: ARG002 - what ended has ended
        """See `TellsEnded`; each node keeps it as long as its STARTD_HISTORY."""
        runs: list[tuple[int, int, int]] = []
        calls = [partial(collector.ended_there, node, since) for node in nodes]
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
        within(self._snapshot_seconds, partial(collector.show_agent, notice), "the collector")

    def close_nodes(self, closings: Sequence[Closing], snapshot: Snapshot, now: int) -> list[str]:  # noqa: ARG002 - the nodes' own ads tell
        """See `ClosesNodes`: by a drain of each node when the time has come. What fails is tried again."""
        drains = to_drain(closings, self._drained, self._startds.nodes, now)
        calls = [
            (
                f"{node} is drained: it starts no job until {why.name} is cancelled",
                partial(order_channel.drain, node, reason_of(why)),
            )
            for node, why in sorted(drains.items())
        ]
        opened = to_open(closings, self._drained, now)
        calls += [
            (f"the drain of {node} is cancelled: it takes jobs again", partial(order_channel.end_drain, node))
            for node in opened
        ]
        answers = each_within(NODE_SECONDS, (call for _, call in calls), "a node to drain")
        return sorted(carried_out((calls[place][0], answer) for place, answer in answers))


class _SnapshotQuestion:
    """What a snapshot asks, three processes at once: the collector for all slots, and the access points for what
    waits and, apart, for who sent what runs. All end when it is closed.
    """

    def __init__(self, seconds: float, identities: Identities) -> None:
        self.begun, self._seconds = time.monotonic(), seconds
        with ExitStack() as begun:  # what has begun ends when the next cannot begin
            self.ads = begun.enter_context(closing(BoundedCall(seconds, collector.pool_ads, "the collector")))
            demand = BoundedCall(seconds, partial(_ask_demand, seconds), "what jobs ask for")
            self._demand = begun.enter_context(closing(demand))
            self.identities = begun.enter_context(closing(identities.ask(seconds)))
            self.close = begun.pop_all().close

    def told(self) -> Told | str:
        """Return which jobs wait and where they could run; why not, when that was not told in time."""
        left = self.begun + self._seconds - time.monotonic()
        try:
            return next(self._demand.values(left))
        except PoolError as fault:
            return shown(str(fault))


def _ask_demand(seconds: float) -> Iterator[Told]:
    from drainwise.htcondor.demand.ask import ask_demand  # noqa: PLC0415 - it needs classad2 to be imported

    yield ask_demand(seconds * _OF_ACCESS_POINTS)


# Nodes are closed by a drain: when the time has come, their startds take no job until that is cancelled. A drain begins
# when it is ordered: until then the node may be used, and what starts there gets an order with that deadline. It is
# graceful: a run that is still there keeps its retirement. The reason names the request; by it a drain of ours is known
# again, and no other one is ever cancelled.

_LONGEST_REASON = 200


def to_drain(
    closings: Sequence[Closing], drained: Mapping[str, str], nodes: Collection[str], now: int
) -> dict[str, Closing]:
    """Return the nodes to drain at `now` (UNIX s), each with why.

    drained: the reason of each drain that there is, by node. nodes: those that are up.
    """
    due = sorted((one for one in closings if one.by <= now), key=lambda one: (-one.by, one.name))
    return {node: one for one in due for node in sorted(one.nodes) if node in nodes and node not in drained}


def to_open(closings: Sequence[Closing], drained: Mapping[str, str], now: int) -> list[str]:
    """Return the nodes whose drain was of ours, and that no request closes any more."""
    closed = {node for one in closings if one.by <= now for node in one.nodes}
    return sorted(node for node, reason in drained.items() if reason.startswith(PREFIX) and node not in closed)


def reason_of(closing: Closing) -> str:
    """Return the reason of a drain: one line of ASCII, that begins with the request's name."""
    text = f"{PREFIX}{closing.name}: {closing.reason}"
    plain = "".join(
        letter if letter.isascii() and letter.isprintable() and letter not in "\"'\\" else " " for letter in text
    )
    return plain[:_LONGEST_REASON]
