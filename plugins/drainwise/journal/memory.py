"""The journal as the memory of earlier cycles: limits, trust and orders whose end is not yet known.

It only ever remembers. What stands is what the batch system shows: without a journal nobody gets two orders, and no
wrong run either; the limits of an hour and the trust in a user begin anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from drainwise.journal.entries import (
    ended_event,
    found_late_event,
    found_order_event,
    found_withdrawal_event,
    gist_of,
    need_event,
    not_done_event,
)
from drainwise.journal.event import Event, Kind, Outcome, moment, objects, text, truth, whole
from drainwise.journal.file import Journal
from drainwise.journal.outcomes import OpenOrder, broken_probability, open_order_of, outcome_of, past_order
from drainwise.journal.read import PassedOver, event_of, kind_of, lines_of
from drainwise.journal.remembered import (
    PilotsSeen,
    ReturnedSeen,
    SeenPayloads,
    unmet_event,
    unmet_of,
    untaken_event,
    untaken_of,
)
from drainwise.pilotad.values import LATEST
from drainwise.pool.facts import Ending, Pilot, Snapshot
from drainwise.reclaim.candidates import KILL
from drainwise.reclaim.counted_demand import UntakenRoom, watched_room
from drainwise.reclaim.history import (
    DAY,
    HOUR,
    IN_DOUBT,
    PAUSE,
    WINDOW,
    History,
    NodeFault,
    PastOrder,
    PilotOutcome,
    that_count,
    trust_by_user,
)
from drainwise.reclaim.settings import OPEN_NEED, ReclaimSettings
from drainwise.reclaim.unmet_demand import CoresOfEnded, UnmetDemand, watched, with_orders

if TYPE_CHECKING:
    from drainwise.reclaim.plan import Plan

_REMEMBERED = (
    Kind.ORDER,
    Kind.WITHDRAWAL,
    Kind.ENDED,
    Kind.DEMAND,
    Kind.UNTAKEN,
    Kind.NEED,
    Kind.PAYLOADS,
    Kind.PILOTS,
    Kind.RETURNED,
    Kind.PART,
)
_NOT_GIVEN = (Outcome.SKIPPED, Outcome.REFUSED, Outcome.DENIED, Outcome.UNREACHABLE, Outcome.NOT_DONE)
_MAY_STAND = (Outcome.FAILED, Outcome.UNANSWERED, Outcome.NOT_DONE)
_SETTLED = 30
"""Seconds from the first report of a pilot that shows no order to the one after which the order was not carried out."""


@dataclass
class _Run:
    """What is remembered of one run; times in UNIX s, None where there is nothing.

    given: the last order that counts for the limits of a cycle and an hour, which are the agent's own. open: the order
    that was given, not withdrawn, and whose pilot's end is not known. late: the event of an order that may stand
    although nobody said so; without: the first report after an unanswered one that does not show it. refused,
    withdrawn: when its last order was. request: name, cores and deadline of an order for one. counted: the cores in all
    that a wish is counted on for, and until when. outcome: how its pilot ended.
    """

    given: PastOrder | None = None
    open: OpenOrder | None = None
    late: Event | None = None
    without: int | None = None
    refused: int | None = None
    withdrawn: int | None = None
    request: tuple[str, int, int] | None = None
    counted: tuple[int, int] | None = None
    outcome: PilotOutcome | None = None

    def forget(self, now: int) -> None:
        """Forget what is too old at `now`. What lies ahead was given by a clock that was set back since."""
        if self.given is not None and self.given.time > now:
            self.given = replace(self.given, time=now)  # it counts from now, not until then
        if self.open is not None and self.open.deadline < now - WINDOW:
            self.open = None
        if self.request is not None and self.request[2] < now - WINDOW:
            self.request = None
        if self.withdrawn is not None:
            self.withdrawn = min(self.withdrawn, now) if self.withdrawn > now - PAUSE else None
        if self.counted is not None and not (self.counted[0] and self.counted[1] > now):
            self.counted = None

    def unanswered(self) -> Event | None:
        """Return its last order when nobody answered it: it counts as given."""
        return self.late if self.late is not None and self.late.get("outcome") == Outcome.UNANSWERED else None

    def seen(self, pilot: Pilot | None, taken: int, now: int) -> list[dict[str, object]]:
        """Return as an event what a look at `now` shows of an order in doubt; taken: when the pilot was read.

        An order stands where its deadline shows, or its pilot is ended as it was ordered. Where the report of a pilot
        is newer than its order and shows none, it was not carried out; what nothing tells of counts so after IN_DOUBT.
        """
        self.refused = None if pilot is None or self.refused is None else min(self.refused, now)
        if self.late is not None:
            given = min(moment(self.late, "time"), now)  # what lies ahead counts from now
            self.late = {**self.late, "time": given} if given > now - HOUR else None
        if self.late is None:
            self.without = None
        elif pilot is None:
            return []
        elif pilot.deadline is not None or (pilot.leaving and self.late.get("kind") == KILL):
            return [found_late_event(self.late, now)]
        elif self.late.get("outcome") == Outcome.UNANSWERED:
            report, why = taken if pilot.heard is None else min(taken, pilot.heard), ""
            if report > given:
                self.without = min(report, self.without or report)
            if now - given > IN_DOUBT:
                why = "nothing has shown this order for long enough"
            elif self.without is not None and report - self.without >= _SETTLED:
                why = "this order was not carried out"
            return [not_done_event(self.late, f"found in the batch system: {why}", now)] if why else []
        return []


class Memory:
    """What earlier cycles left behind; grows by `note`, is made from the journal's files by `load`.

    payloads, returned: what is seen of payloads, and of cores that pilots return while they go on.
    """

    def __init__(self) -> None:
        self.passed_over = PassedOver()
        self.payloads = SeenPayloads()
        self.returned = ReturnedSeen()
        self._runs = defaultdict[str, _Run](_Run)
        self._nodes: dict[str, NodeFault] = {}  # those that took no order
        self._decision: Event = {}
        self._unwritten: dict[str, dict[str, object]] = {}  # chosen by an acting decision, of which no order tells yet
        self._unmet: dict[str, UnmetDemand] = {}  # by kind of jobs, or account
        self._untaken: dict[str, UntakenRoom] = {}  # by kind of jobs
        self._blind: int | None = None  # since when no look succeeded
        self._since: dict[str, int] = {}  # by account: when its need opened
        self._pilots = PilotsSeen()

    @classmethod
    def load(cls, paths: Iterable[str], now: int) -> Memory:
        """Return the memory that these files hold at `now` (UNIX s), the oldest file first; see `files_of`.

        A line that is torn, of another version or not sound is passed over and counted. A time after `now` counts as
        now. Raises UsageError for a file that cannot be read.
        """
        memory, last = cls(), b""
        after: list[Event] = []
        for line in lines_of(paths):
            kind = kind_of(line)
            if kind in _REMEMBERED:
                after.append(memory._note_line(line, now))
            elif kind == Kind.DECISION:
                last, after = line, []
            elif kind is None:
                memory.passed_over.lines += 1
        # Of all decisions only the last one can have orders of which nothing was written; the others need no reading.
        if last:
            memory._note_line(last, now)
        for event in after:
            memory._unwritten.pop(str(event.get("run")), None)
        return memory

    def _note_line(self, line: bytes, now: int) -> Event:
        event = event_of(line)
        if event is None:
            self.passed_over.lines += 1
            return {}
        if "time" in event and moment(event, "time") > now:
            event = {**event, "time": now}
        try:
            self.note(event)
        except ValueError:
            self.passed_over.lines += 1
            return {}
        return event

    def note(self, event: Event) -> None:
        """Remember what was just written. Raises ValueError for an event that is not sound."""
        kind = event.get("event")
        if kind == Kind.DECISION:
            self._decided(event)
        elif kind == Kind.ORDER:
            self._ordered(event)
        elif kind == Kind.WITHDRAWAL and event.get("outcome") == Outcome.DONE:
            one = self._runs[text(event, "run")]
            one.open = one.request = None
            one.withdrawn = moment(event, "time")
            if event.get("draining") is False:  # what it returns later is not because of us
                self._no_more_from(text(event, "run"))
        elif kind == Kind.ENDED:
            outcome = outcome_of(event)
            self._runs[outcome.run].open = None
            if truth(event, "believed") and event.get("by_others") is not True:
                self._runs[outcome.run].outcome = outcome
        else:
            self._note_demand(kind, event)

    def _note_demand(self, kind: object, event: Event) -> None:
        if kind == Kind.NEED:
            self._since = {text(one, "account"): moment(one, "since") for one in objects(event, "since")}
        elif kind == Kind.PAYLOADS:
            self.payloads.note(event)
        elif kind == Kind.PILOTS:
            self._pilots.note(event)
        elif kind == Kind.RETURNED:
            self.returned.note(event)
        elif kind == Kind.PART and event.get("outcome") in (Outcome.DONE, Outcome.UNANSWERED):
            counted = whole(event, "counted") if "counted" in event else 0
            by = None if event.get("by") is None else moment(event, "by")
            self._runs[text(event, "run")].counted = min(counted, whole(event, "asked")), by or LATEST
        elif kind == Kind.DEMAND:
            unmet = unmet_of(event)
            self._unmet[unmet.key] = unmet
            if unmet == UnmetDemand(unmet.account, kind=unmet.kind):
                del self._unmet[unmet.key]
        elif kind == Kind.UNTAKEN:
            untaken = untaken_of(event)
            self._untaken[untaken.kind] = untaken
            if not (untaken.jobs or untaken.made):
                del self._untaken[untaken.kind]

    def _ordered(self, event: Event) -> None:
        order, past, request, outcome = (
            open_order_of(event),
            past_order(event),
            _request_of(event),
            event.get("outcome"),
        )
        one = self._runs[order.run]
        one.late = event if outcome in _MAY_STAND else None
        one.refused = past.time if outcome in (Outcome.FAILED, Outcome.REFUSED) else None
        if outcome != Outcome.UNANSWERED:
            one.without = None
        if outcome == Outcome.DONE:
            one.open = order
            one.given = one.given if request else past
        if outcome in (Outcome.DONE, Outcome.UNANSWERED):
            self._pilots.ordered(order)
            if request:
                one.request = request, order.cores, order.deadline
        elif outcome in _NOT_GIVEN:
            one.request = None
            self._no_more_from(order.run)
        self._unwritten.pop(order.run, None)
        self._note_node(order.node, event, past.time)

    def _no_more_from(self, run: str) -> None:
        """Take in that nothing comes back from a run for those who wait."""
        self._unmet = {name: one.without(run) for name, one in self._unmet.items()}

    def _note_node(self, node: str, order: Event, time: int) -> None:
        outcome, before = order.get("outcome"), self._nodes.get(node)
        if outcome == Outcome.DONE:
            self._nodes.pop(node, None)
        elif order.get("only") != node:
            return
        elif outcome in (Outcome.DENIED, Outcome.UNREACHABLE, Outcome.UNANSWERED):
            self._nodes[node] = NodeFault(time, 1 if before is None else before.count + 1, outcome == Outcome.DENIED)
        elif outcome == Outcome.NOT_DONE and before is not None:
            # While it was in doubt no order was given in its place: the node is left alone from now on.
            self._nodes[node] = replace(before, time=moment(order, "found"))

    def _decided(self, event: Event) -> None:
        chosen = objects(event, "chosen") if truth(event, "acting") else []
        for one in chosen:
            found = found_order_event(one, event, moment(event, "time"))
            open_order_of(found)  # or what is found later is not sound
            _request_of(found)
        self._decision = event
        self._unwritten = {text(one, "run"): one for one in chosen}

    def is_news(self, decision: Event) -> bool:
        """Return whether a decision need be written: it will be acted on, or it is another one than the last."""
        if not (decision["deficit"] or decision["withdrawals"] or decision["chosen"]):
            return False
        if decision["acting"] and (decision["chosen"] or decision["withdrawals"]):
            return True
        return gist_of(decision) != gist_of(self._decision)

    def history(self, now: int) -> History:
        """Return the history for a decision at `now` (UNIX s), and forget what is too old for it.

        Cores of an order of which it is not known whether it was given or carried out count as ordered.
        """
        unanswered = {run: event for run, one in self._runs.items() if (event := one.unanswered()) is not None}
        doubtful = {run: past_order(event) for run, event in unanswered.items() if self._runs[run].request is None}
        for one in self._runs.values():
            one.forget(now)
        known = {**self._column("given"), **self._maybe_given(), **doubtful}
        oldest = min(now - DAY + 1, max((one.time for one in known.values()), default=0))
        count = {one.run for one in that_count(self._column("outcome").values(), now)}
        for run, one in self._runs.items():
            if one.given is not None and one.given.time < oldest:
                one.given = None
            if one.outcome is not None and run not in count and one.outcome.ended <= now:
                one.outcome = None
        self._runs = defaultdict(_Run, {run: one for run, one in self._runs.items() if any(vars(one).values())})
        trust = trust_by_user(self._column("outcome").values(), now)
        return History(
            tuple(one for one in known.values() if one.time >= oldest),
            trust,
            {user: broken_probability(one.leaving, one.broken) for user, one in trust.items()},
            {run: min(time, now) for run, time in self._column("refused").items()},
            {run: moment(event, "deadline") for run, event in unanswered.items()},
            self._nodes_at(now),
            dict(self._unmet),
            {run: (request, cores) for run, (request, cores, _) in self._column("request").items()},
            withdrawn=self._column("withdrawn"),
            since=dict(self._since),
            run_times=self.payloads.learned,
            ends=self._pilots.ends(now),
            counted={run: cores for run, (cores, _) in self._column("counted").items()},
            untaken=dict(self._untaken),
        )

    def _column(self, name: str) -> dict[str, Any]:
        """Return one thing that is remembered of runs, by run."""
        return {run: value for run, one in self._runs.items() if (value := getattr(one, name)) is not None}

    def _nodes_at(self, now: int) -> dict[str, NodeFault]:
        return {name: replace(one, time=min(one.time, now)) for name, one in self._nodes.items()}

    def looked(self, snapshot: Snapshot, now: int, settings: ReclaimSettings) -> list[dict[str, object]]:
        """Return the event of a look at the pilots that may end by themselves; by another policy nobody asks."""
        return self._pilots.looked(snapshot, now) if settings.policy == OPEN_NEED else []

    def opened(self, plan: Plan, now: int) -> list[dict[str, object]]:
        """Return the event to write where the needs that stay open are others than those remembered."""
        if plan.since is None or dict(plan.since) == self._since:
            return []
        return [need_event(plan.since, now)]

    def _maybe_given(self) -> dict[str, PastOrder]:
        if not self._unwritten:
            return {}
        time = moment(self._decision, "time")
        return {run: past_order({**one, "time": time}) for run, one in self._unwritten.items() if not _request_of(one)}

    def watched(
        self, snapshot: Snapshot, now: int, settings: ReclaimSettings, ended: CoresOfEnded | None = None
    ) -> list[dict[str, object]]:
        """Take in how the accounts fare that orders were given for; what has changed, as events to write.

        What an account uses is written with the next change only. ended: see `unmet_demand.watched`.
        """
        before, self._unmet = self._unmet, watched(self._unmet, snapshot, now, settings, self._blind, ended)
        self._blind = None
        changed = [
            one
            for name, one in self._unmet.items()
            if replace(before[name], use=one.use, looked=one.looked, unused=one.unused) != one
        ]
        return [unmet_event(one, now) for one in changed] + [
            unmet_event(UnmetDemand(one.account, kind=one.kind), now)
            for name, one in before.items()
            if name not in self._unmet
        ]

    def watched_room(self, snapshot: Snapshot, now: int) -> list[dict[str, object]]:
        """Take in which kinds of jobs do not start where they should; what has changed, as events to write."""
        before, self._untaken = self._untaken, watched_room(self._untaken, self._unmet, snapshot, now)
        gone = [UntakenRoom(one.account, name) for name, one in before.items() if name not in self._untaken]
        changed = [one for name, one in self._untaken.items() if before.get(name) != one]
        return [untaken_event(one, now) for one in (*gone, *changed)]

    def not_seen(self, now: int) -> None:
        """Take in that the batch system did not answer at `now` (UNIX s)."""
        self._blind = now if self._blind is None else min(self._blind, now)

    def failed_accounts(self) -> frozenset[str]:
        """Return the accounts for which rounds have failed."""
        return frozenset(one.account for one in self._unmet.values() if one.failed)

    def resumed(self, account: str, now: int) -> list[dict[str, object]]:
        """Return the events to write so that all of an account's demand counts again from `now` (UNIX s) on."""
        failed = (one for one in self._unmet.values() if one.failed and one.account == account)
        return [unmet_event(one.resumed(), now) for one in failed]

    def ordering(self, plan: Plan, snapshot: Snapshot, now: int) -> list[dict[str, object]]:
        """Return the events to write before the plan's orders are given: one for each account that they are for."""
        return [unmet_event(one, now) for one in with_orders(self._unmet, snapshot, plan.parts, now)]

    def open_orders(self) -> dict[str, OpenOrder]:
        """Return the orders that were given, not withdrawn, and whose pilot's end is not yet known, by run."""
        return self._column("open")

    def seen(self, snapshot: Snapshot, now: int) -> list[dict[str, object]]:
        """Take in what pilots with orders report by now; what was done and never written, as events.

        These are orders that stand, and orders that stand no more: so an agent that was killed between an act and its
        line loses nothing, nor does one that did not learn in time that its order was taken.
        """
        running = {pilot.run: pilot for pilot in snapshot.pilots}
        gone = []
        for run, order in self.open_orders().items():
            if run in running:
                self._runs[run].open = order.with_report_of(running[run], now)
                if running[run].deadline is None and not running[run].leaving:
                    gone.append(found_withdrawal_event(order, now))
        unwritten, self._unwritten = self._unwritten, {}
        stand = {run for run, pilot in running.items() if pilot.deadline is not None}
        found = [found_order_event(one, self._decision, now) for run, one in unwritten.items() if run in stand]
        for run, one in self._runs.items():
            found += one.seen(running.get(run), snapshot.taken, now)
        self._nodes = self._nodes_at(now)
        return gone + found


def ended_events(
    memory: Memory, endings: Mapping[str, Ending], snapshot: Snapshot, now: int
) -> list[dict[str, object]]:
    """Return as events what one cycle learns of earlier orders at `now` (UNIX s): unwritten orders, ended pilots.

    Called once in each cycle, with endings or without; each event is to be written and noted. Of a run that ended
    before its order was found, the order is lost: it counts neither for nor against its user.
    """
    found = memory.seen(snapshot, now)
    ended = [(order, endings[run]) for run, order in memory.open_orders().items() if run in endings]
    return found + [ended_event(order, ending, now) for order, ending in ended]


class Noted:
    """A journal whose events the memory takes in as well."""

    def __init__(self, journal: Journal, memory: Memory) -> None:
        self._journal, self._memory = journal, memory

    def write(self, *events: Event) -> None:
        """Keep each event, then remember it. Raises DrainwiseError when it cannot be kept."""
        for event in events:
            self._journal.write(event)
            self._memory.note(event)


def _request_of(event: Event) -> str:
    """Return the request that an order serves; "" where it serves none. Raises ValueError when it is no text."""
    return text(event, "request") if event.get("request") else ""
