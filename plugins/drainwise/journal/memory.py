"""The journal as the memory of earlier cycles: limits, trust, spared counts and orders whose end is not yet known.

It only ever remembers. What stands is what the batch system shows: without a journal nobody is asked twice, and no
wrong run either; the limits of an hour and the trust in a user begin anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from drainwise.journal.entries import ended_event, found_cancel_event, found_failed_event, found_order_event
from drainwise.journal.event import (
    CANCEL,
    DECISION,
    DEMAND,
    DONE,
    ENDED,
    FAILED,
    ORDER,
    SKIPPED,
    Event,
    number,
    objects,
    text,
    texts,
    truth,
    whole,
)
from drainwise.journal.file import Journal
from drainwise.journal.outcomes import Claims, OpenOrder
from drainwise.journal.read import event_of, is_of, lines_of
from drainwise.journal.unmet import unmet_event, unmet_of
from drainwise.pool import Ending, Snapshot
from drainwise.reclaim.limits import HOUR
from drainwise.reclaim.record import Asked, Record
from drainwise.reclaim.settings import Settings
from drainwise.reclaim.trust import PilotOutcome, trust_by_user
from drainwise.reclaim.unmet_demand import Unmet, ordered, watched

if TYPE_CHECKING:
    from drainwise.reclaim.plan import Plan

_REMEMBERED = tuple(kind.encode() for kind in (ORDER, CANCEL, ENDED, DEMAND))


class Memory:
    """What earlier cycles left behind; grows by `note`, is made from the journal's files by `load`."""

    def __init__(self) -> None:
        self._asked: dict[str, Asked] = {}  # by run: the last order to it
        self._open: dict[str, OpenOrder] = {}
        self._outcomes: dict[str, PilotOutcome] = {}
        self._spared: dict[tuple[str, str], dict[str, int]] = {}
        self._unwritten: dict[str, dict[str, object]] = {}  # chosen by an acting decision, of which no order tells yet
        self._failed: dict[str, Event] = {}  # by run: an order that failed; a node may have taken it and not said so
        self._decision: Event = {}
        self._unmet: dict[str, Unmet] = {}  # by account

    @classmethod
    def load(cls, paths: Iterable[str], now: int) -> Memory:
        """The memory that these files hold at `now` (UNIX s), the oldest file first; see `files_of`.

        A line that is torn, of another version or not sound is passed over. A time after `now` counts as now. Raises
        UsageError for a file that cannot be read.
        """
        memory, last = cls(), b""
        after: list[Event] = []
        for line in lines_of(paths):
            if is_of(line, _REMEMBERED):
                after.append(memory._note_line(line, now))
            elif is_of(line, (DECISION.encode(),)):
                last, after = line, []
                if b'"spared_runs":' in line:
                    memory._note_line(line, now)
        # Of all decisions only the last one can have orders of which nothing was written; the others need no reading.
        memory._note_line(last, now, again=b'"spared_runs":' in last)
        for event in after:
            memory._unwritten.pop(str(event.get("run")), None)
        return memory

    def _note_line(self, line: bytes, now: int, again: bool = False) -> Event:
        event = event_of(line)
        if event is None:
            return {}
        if isinstance(event.get("time"), int) and whole(event, "time") > now:
            event = {**event, "time": now}
        if again:
            event = {name: value for name, value in event.items() if name != "spared_runs"}
        try:
            self.note(event)
        except ValueError:
            return {}
        return event

    def note(self, event: Event) -> None:
        """Remember what was just written. Raises ValueError for an event that is not sound."""
        kind = event.get("event")
        if kind == DECISION:
            self._decided(event)
        elif kind == ORDER:
            run = text(event, "run")
            self._failed.pop(run, None)
            order = _open_order(event)
            if event.get("outcome") == FAILED:
                self._failed[run] = event
            elif event.get("outcome") == DONE:
                self._asked[run] = Asked(order.asked, order.user, order.cores)
                self._open[run] = order
            elif event.get("outcome") == SKIPPED:
                self._unmet = {name: one.without(run) for name, one in self._unmet.items()}
            self._unwritten.pop(run, None)
        elif kind == CANCEL and event.get("outcome") == DONE:
            self._open.pop(text(event, "run"), None)
        elif kind == ENDED:
            outcome = _outcome(event)
            self._open.pop(outcome.run, None)
            if truth(event, "believed"):
                self._outcomes[outcome.run] = outcome
        elif kind == DEMAND:
            unmet = unmet_of(event)
            self._unmet[unmet.principal] = unmet
            if unmet == Unmet(unmet.principal):
                del self._unmet[unmet.principal]

    def _decided(self, event: Event) -> None:
        self._decision = event
        chosen = objects(event, "chosen") if truth(event, "acting") else []
        self._unwritten = {text(one, "run"): one for one in chosen}
        if not truth(event, "acting") or "spared_runs" not in event:
            return
        for one in objects(event, "spared_runs"):
            whose = text(one, "principal"), text(one, "user")
            counts = self._spared.get(whose, {})
            # Only those of now are kept: a run that is not there any more has ended, or has gone for its user.
            self._spared[whose] = {run: counts.get(run, 0) + 1 for run in texts(one, "runs")}

    def is_news(self, decision: Event) -> bool:
        """Whether a decision need be written: it will be acted on, or it is another one than the last."""
        if not (decision["deficit"] or decision["cancels"]):
            return False
        if decision["acting"] and (decision["chosen"] or decision["cancels"]):
            return True
        return _gist(decision) != _gist(self._decision)

    def record(self, now: int, settings: Settings) -> Record:
        """What a decision at `now` (UNIX s) is to know; what is too old for it is forgotten.

        Cores of an order of which it is not known whether it was given count as asked for.
        """
        # What lies ahead was given by a clock that was set back since: it counts from now, not until then.
        self._asked = {run: replace(one, time=min(one.time, now)) for run, one in self._asked.items()}
        known = {**self._asked, **self._maybe_asked()}
        oldest = min(now - HOUR + 1, max((one.time for one in known.values()), default=0))
        self._asked = {run: one for run, one in self._asked.items() if one.time >= oldest}
        asked = tuple(one for one in known.values() if one.time >= oldest)
        begin = now - settings.trust.window
        self._outcomes = {run: one for run, one in self._outcomes.items() if one.ended >= begin}
        self._open = {run: one for run, one in self._open.items() if one.deadline >= begin}
        spared = {run: count for counts in self._spared.values() for run, count in counts.items()}
        trust = trust_by_user(self._outcomes.values(), now, settings.trust)
        failed = {run: min(whole(event, "time"), now) for run, event in self._failed.items()}
        return Record(asked, trust, spared if settings.trust.spared else {}, failed, dict(self._unmet))

    def _maybe_asked(self) -> dict[str, Asked]:
        if not self._unwritten:
            return {}
        time = whole(self._decision, "time")
        return {run: Asked(time, text(one, "user"), whole(one, "cores")) for run, one in self._unwritten.items()}

    def watched(self, snapshot: Snapshot, now: int, settings: Settings) -> list[dict[str, object]]:
        """Take in how the accounts fare that orders were given for; what has changed, as events to write.

        What an account uses is written with the next change only.
        """
        before, self._unmet = self._unmet, watched(self._unmet, snapshot, now, settings)
        changed = [
            one for name, one in self._unmet.items() if replace(before[name], use=one.use, looked=one.looked) != one
        ]
        return [unmet_event(one, now) for one in changed] + [
            unmet_event(Unmet(name), now) for name in before if name not in self._unmet
        ]

    def ordering(self, plan: Plan, snapshot: Snapshot, now: int) -> list[dict[str, object]]:
        """The accounts for which the plan's orders are about to be given, as events to write before."""
        return [unmet_event(one, now) for one in ordered(self._unmet, snapshot, plan.parts, now)]

    def open_orders(self) -> dict[str, OpenOrder]:
        """The orders that were given, not taken back, and whose pilot's end is not yet known, by run."""
        return dict(self._open)

    def seen(self, snapshot: Snapshot, now: int) -> list[dict[str, object]]:
        """Take in what pilots that were asked say by now; what was done and never written, as events.

        These are orders that stand, and requests that stand no more: so an agent that was killed between an act and its
        line loses nothing, nor does one that was not told in time that its order was taken.
        """
        running = {pilot.run: pilot for pilot in snapshot.pilots}
        gone = []
        for run, order in self._open.items():
            if run in running:
                self._open[run] = order.heard(running[run], now)
                if running[run].deadline is None and not running[run].leaving:
                    gone.append(found_cancel_event(order, now))
        unwritten, self._unwritten = self._unwritten, {}
        self._failed = {run: one for run, one in self._failed.items() if run in running}
        stand = {run for run, pilot in running.items() if pilot.deadline is not None}
        found = [found_order_event(one, self._decision, now) for run, one in unwritten.items() if run in stand]
        return gone + found + [found_failed_event(one, now) for run, one in self._failed.items() if run in stand]


def ended_events(
    memory: Memory, endings: Mapping[str, Ending], snapshot: Snapshot, now: int
) -> list[dict[str, object]]:
    """What one cycle learns at `now` (UNIX s) of earlier orders: what was never written, and what has ended.

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

    def write(self, event: Event) -> None:
        """Keep one event, then remember it. Raises DrainwiseError when it cannot be kept."""
        self._journal.write(event)
        self._memory.note(event)


def _gist(decision: Event) -> object:
    """What makes a decision another one: time and figures alone do not."""
    chosen = decision.get("chosen")
    runs = [one.get("run") for one in chosen if isinstance(one, dict)] if isinstance(chosen, list) else None
    return decision.get("policy"), decision.get("acting"), runs, decision.get("cancels")


def _open_order(event: Event) -> OpenOrder:
    claims, asked = event.get("claims"), whole(event, "time")
    said = None
    if isinstance(claims, dict):
        names = ("used", "last_start", "first_end", "last_end", "uncommitted", "final")
        said = Claims(whole(claims, "heartbeat"), *(number(claims, name) for name in names))
    return OpenOrder(
        run=text(event, "run"),
        name=text(event, "name"),
        node=text(event, "node"),
        principal=text(event, "principal"),
        user=text(event, "user"),
        cores=whole(event, "cores"),
        started=whole(event, "started"),
        asked=asked,
        deadline=whole(event, "deadline"),
        kind=text(event, "kind"),
        draining=truth(event, "draining"),
        predicted=whole(event, "promised"),
        claims=said,
        since=asked,
    )


def _outcome(event: Event) -> PilotOutcome:
    return PilotOutcome(
        text(event, "run"),
        text(event, "user"),
        whole(event, "ended"),
        whole(event, "predicted"),
        whole(event, "realised"),
        whole(event, "possible"),
    )
