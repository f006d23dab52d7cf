"""Keep the history of earlier cycles: orders, nodes that took none, and how far each user's claims proved true.

These are facts that are passed in: a decision depends on nothing that it was not given. They bound what one cycle may
order: per cycle, per user and cycle, per user and hour, and not too soon after the last. A batch system that does not
answer, or refuses whoever gives orders, is no fault of the pilot: nobody gets an order in its place.

Claims order the pilots of one user and nothing else, so a wrong one harms nobody but its own user; it still wastes.
When a pilot has gone, what was promised is held against what was lost. The batch system alone knows one thing for
certain: not more can be lost than cores × run time. How far the truth turned out to lie between a promise and that,
over all pilots of the user, is the *doubt*; by so much of the way every claim of the user is moved. Promises that were
too low are then right on average, and a user whose claims are worth nothing is ranked by what the batch system knows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from drainwise.common.run_times import RunTimes
from drainwise.facts.units import clock, core_hours, duration
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.scope import is_out_of_scope
from drainwise.reclaim import reasons
from drainwise.reclaim.counted_demand import UntakenRoom
from drainwise.reclaim.reasons import Reason
from drainwise.reclaim.seen_pilots import EndsSeen
from drainwise.reclaim.settings import OPEN_NEED, ReclaimSettings
from drainwise.reclaim.unmet_demand import UnmetDemand
from drainwise.requests.request import AdminRequest


@dataclass(frozen=True)
class PastOrder:
    """Cores and GPUs that one user was ordered to give back at `time` (UNIX s).

    extra: cores beyond what facts took, which its reports cost it then. billed: for each core.
    """

    time: int
    user: str
    cores: int
    gpus: int = 0
    extra: int = 0
    billed: float = 1.0


@dataclass(frozen=True)
class NodeFault:
    """A node that did not take the last `count` orders in a row; `time` of the last, UNIX s.

    denied: it refuses whoever gives them; else it did not answer.
    """

    time: int
    count: int
    denied: bool


@dataclass(frozen=True)
class History:
    """orders: those of the last day and the last one. trust: by user. broken: the probability that a pilot does not
    leave as it says, by user.

    failed: when the last order to a run was refused, UNIX s, by run. unanswered: the deadlines of orders that nobody
    answered and that may still be carried out, UNIX s, by run. nodes: those that took no order when they were last
    sent one, by name. unmet: by account that orders were given for. requested: the request that an order to a run is
    for, and the run's cores, by run. requests: those that stand. withdrawn: when the last order to a run was withdrawn
    within `PAUSE`, UNIX s, by run. since: when the need of an account that waits opened, UNIX s. run_times: how
    long payloads ran that nodes saw, by user and client; None: nothing is known. ends: what was seen of
    pilots that ended by themselves, by user. counted: cores that a run was asked for and that a cycle counted on, those
    included that it had returned, by run, as long as the wish stands. untaken: kinds of jobs that do not start where
    they should, by name.
    """

    orders: tuple[PastOrder, ...] = ()
    trust: Mapping[str, TrustFigures] = field(default_factory=dict)
    broken: Mapping[str, float] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    unanswered: Mapping[str, int] = field(default_factory=dict)
    nodes: Mapping[str, NodeFault] = field(default_factory=dict)
    unmet: Mapping[str, UnmetDemand] = field(default_factory=dict)
    requested: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    requests: tuple[AdminRequest, ...] = ()
    withdrawn: Mapping[str, int] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)
    run_times: RunTimes | None = None
    ends: Mapping[str, EndsSeen] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=dict)
    untaken: Mapping[str, UntakenRoom] = field(default_factory=dict)


def void_orders(snapshot: Snapshot, history: History) -> dict[str, str]:
    """Return by run why its order is withdrawn whoever waits.

    It was for a request, or a closing of nodes, that is there no more; or the site has taken its job out of the scope.
    """
    names = {one.name for one in history.requests} | {one.name for one in snapshot.closures}
    out = {one.run: one.cannot for one in snapshot.pilots if one.deadline and is_out_of_scope(one)}
    return out | {run: f"{name} was cancelled" for run, (name, _) in history.requested.items() if name not in names}


HOUR = 3600
DAY = 24 * HOUR
PAUSE = HOUR
"""Seconds after a withdrawal in which a pilot gets no other order, where a need stays open."""


RETRY_AFTER = 600
"""Seconds for which a pilot whose order was refused, and a node that refuses all, are left alone, so that another one
goes instead; such a node longer each time.
"""
IN_DOUBT = 600
"""Seconds for which an order that was not answered counts as on its way, when nothing tells what became of it."""

_NAMED = 3
_MOST_DOUBLINGS = 5  # from 10 minutes to 5 hours


def with_unanswered(snapshot: Snapshot, unanswered: Mapping[str, int]) -> Snapshot:
    """Return the snapshot with the unanswered orders (run -> deadline, UNIX s) at the pilots that show none."""
    if not unanswered:
        return snapshot
    pilots = (
        replace(one, unanswered=unanswered[one.run])
        if one.run in unanswered and one.deadline is None and not one.leaving
        else one
        for one in snapshot.pilots
    )
    return replace(snapshot, pilots=tuple(pilots))


_OPEN = Reason()  # it may get an order


def why_held_off(pilot: Pilot, now: int, history: History) -> Reason:
    """Return why a pilot gets no order at `now` (UNIX s) for what became of those to it or its node; "" if it may."""
    if pilot.unanswered is not None:
        ends = clock(pilot.unanswered)
        return Reason(f"an order to end by {ends} was not answered and may still be carried out", reasons.UNANSWERED)
    if (failed := history.failed.get(pilot.run)) is not None and now - failed < RETRY_AFTER:
        again = duration(RETRY_AFTER)
        return Reason(f"the order of {clock(failed)} was refused; not tried again for {again}", reasons.REFUSED)
    fault = history.nodes.get(pilot.node)
    if fault is None or now - fault.time >= _left_alone(fault):
        return _OPEN
    at, pause = clock(fault.time), duration(_left_alone(fault))
    if fault.denied:
        return Reason(f"{pilot.node} refused the agent's orders at {at}; none is sent there for {pause}", reasons.NODE)
    if fault.count > 1:
        said = f"did not answer at {at}, {fault.count} times in a row; none is sent there for {pause}"
        return Reason(f"{pilot.node} {said}", reasons.NODE)
    if pilot.heard is not None and pilot.heard > fault.time:
        return _OPEN
    return Reason(f"{pilot.node} did not answer at {at}; none is sent there until it is heard of", reasons.NODE)


def _left_alone(fault: NodeFault) -> int:
    """Return the seconds for which a node is left alone: twice as long each time that it refuses."""
    return RETRY_AFTER << (min(fault.count - 1, _MOST_DOUBLINGS) if fault.denied else 0)


def refusing_nodes(nodes: Mapping[str, NodeFault], now: int) -> str:
    """Return a sentence that names the nodes that refuse the agent's orders at `now` (UNIX s), or ""."""
    names = sorted(name for name, one in nodes.items() if one.denied and now - one.time < _left_alone(one))
    if not names:
        return ""
    some = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    who = "1 node refuses" if len(names) == 1 else f"{len(names)} nodes refuse"
    return f"{who} the agent's orders: {some}; `drainwise check` tells why"


@dataclass(frozen=True)
class PilotOutcome:
    """What became of one pilot that had an order. Wastes in core-seconds; ended in UNIX s.

    predicted: the claim, before any doubt. realised: what the batch system's records say was lost. possible: cores ×
    run time at its end, the most that can have been. kept: whether one that was to leave by itself did so in time; None
    for any other.
    """

    run: str
    user: str
    ended: int
    predicted: int
    realised: int
    possible: int
    kept: bool | None = None


@dataclass(frozen=True)
class TrustFigures:
    """The sums over one user's outcomes in core-seconds: what was promised, lost, wrong, and could have been wrong.

    leaving: its pilots that were to leave by themselves, as they said; broken: those of them that did not in time.
    """

    pilots: int
    predicted: int
    realised: int
    error: int
    room: int
    leaving: int = 0
    broken: int = 0


WINDOW = 7 * DAY
"""Seconds for which the waste of a pilot counts for or against its user."""
OUTCOMES = 5
"""Fewer outcomes than this say nothing about a user yet."""
TOLERANCE = 0.25
"""Share by which a user's promises may be wrong in sum before its claims are moved."""
PROMISES = 20
"""The last promises to leave that count of a user."""


def trust_by_user(outcomes: Iterable[PilotOutcome], now: int) -> dict[str, TrustFigures]:
    """Return the figures of every user with outcomes that count at `now` (UNIX s). A run counts once.

    Wastes count within the window. Of promises to leave a user's last `PROMISES` count, for ten times as long: whoever
    is not believed is ended at once and can break none, and would only have to wait.
    """
    kept: dict[str, dict[str, PilotOutcome]] = defaultdict(dict)
    for one in that_count(outcomes, now):
        kept[one.user][one.run] = one
    return {user: _sums(list(runs.values()), now - WINDOW) for user, runs in kept.items()}


def that_count(outcomes: Iterable[PilotOutcome], now: int) -> list[PilotOutcome]:
    """Return the outcomes that say something of their users at `now` (UNIX s), the oldest first."""
    found, promises = list[PilotOutcome](), Counter[str]()
    past = [one for one in outcomes if now - 10 * WINDOW <= one.ended <= now]
    past.sort(key=lambda one: one.ended)
    for one in past[::-1]:
        if one.kept is not None:
            promises[one.user] += 1
        if one.ended >= now - WINDOW or (one.kept is not None and promises[one.user] <= PROMISES):
            found.append(one)
    return found[::-1]


def _sums(outcomes: list[PilotOutcome], begin: int) -> TrustFigures:
    predicted = realised = error = room = 0
    late = [one for one in outcomes if one.ended >= begin]
    for one in late:
        promised, lost = max(0, one.predicted), max(0, one.realised)
        wrong = abs(promised - lost)
        predicted, realised, error = predicted + promised, realised + lost, error + wrong
        room += max(wrong, one.possible - min(promised, lost))
    kept = [one.kept for one in outcomes if one.kept is not None][-PROMISES:]
    return TrustFigures(len(late), predicted, realised, error, room, len(kept), kept.count(False))


def doubt(figures: TrustFigures | None) -> float:
    """Return the doubt from 0, the user's claims count as they are, to 1, only what the batch system knows counts.

    The greater of two: the share of what could be wrong that was, and what comes of its pilots that should have left by
    themselves: 0 when up to half of them did not, 1 when three in four did not. An estimate that is right three times
    out of four keeps more than half.
    """
    if figures is None:
        return 0.0
    broken = 0.0
    if figures.leaving >= OUTCOMES:
        broken = min(1.0, max(0.0, 4 * figures.broken / figures.leaving - 2))
    if figures.pilots < OUTCOMES or figures.error <= figures.predicted * TOLERANCE:
        return broken
    return max(broken, min(1.0, figures.error / figures.room))


def doubt_in_words(figures: TrustFigures, share: float) -> str:
    """Return why claims are moved, with the figures."""
    left = f"; {figures.broken} of {figures.leaving} did not leave as they said" if figures.broken else ""
    return (
        f"claims moved by {share:.0%} towards cores x run time: its user's last {figures.pilots} pilots promised"
        f" {core_hours(figures.predicted)} and lost {core_hours(figures.realised)}{left}"
    )


def unbound(history: History) -> History:
    """Return the history for requests: a pilot whose order was withdrawn may get one at once."""
    return replace(history, withdrawn={})


def why_closed(pilot: Pilot, now: int, settings: ReclaimSettings, history: History) -> Reason:
    """Return why a pilot may get no order, by what the batch system knows or did before; "" when it may."""
    if pilot.reserved:
        return Reason(
            "it goes for a request, or its node closes: what it holds is for nobody who waits", reasons.RESERVED
        )
    if pilot.deadline is not None:
        return Reason(f"already ordered to end by {clock(pilot.deadline)}", reasons.ORDERED)
    if pilot.leaving:
        return Reason("the batch system ends it already", reasons.ENDING)
    if is_out_of_scope(pilot):
        return Reason(pilot.cannot, reasons.SCOPE)
    if pilot.cannot:
        return Reason(
            f"cannot be given an order: {pilot.cannot}",
            reasons.LIMIT if pilot.cannot.startswith("[reclaim]") else reasons.CANNOT,
        )
    early = settings.vacate if pilot.vacate is None else pilot.vacate
    # Where pilots may be killed, the site's own time is no reason: then that is what the plan says.
    if early > (0 if settings.drain_only else settings.vacate):
        longest = max(settings.notice, min(settings.grace, settings.max_grace, settings.horizon))
        if early + settings.order_latency >= longest:
            said = f"its claim lets it be ended {duration(early)} before a deadline, and no deadline lies further ahead"
            return Reason(f"{said} than {duration(longest)}: it would end before it knows of the order", reasons.EARLY)
    min_age = settings.min_age if pilot.min_age is None else pilot.min_age
    if now - pilot.started < min_age:
        return Reason(f"left alone for the first {duration(min_age)} of its run", reasons.YOUNG)
    withdrawn = history.withdrawn.get(pilot.run) if settings.policy == OPEN_NEED else None
    if withdrawn is not None and now - withdrawn < PAUSE:
        said = f"its order was withdrawn at {clock(withdrawn)}: no other one before {clock(withdrawn + PAUSE)}"
        return Reason(said, reasons.WITHDRAWN)
    return why_held_off(pilot, now, history)
