"""Explain why a pilot got an order, each time, and what became of it: from the journal alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from drainwise.facts.clients import PAPER
from drainwise.facts.units import clock, core_hours, duration
from drainwise.journal.event import Event, Kind, Outcome, moment, number, objects, text, texts, truth, whole
from drainwise.journal.read import PassedOver, event_of, kind_of, lines_of
from drainwise.pool.identity import ANYBODY, PilotIdentity, as_values, identity_of

_MOST_PARTS = 5
"""Wishes for cores of one pilot that are shown; each cycle may have another one."""


def explain(paths: Iterable[str], sought: Sought, passed_over: PassedOver | None = None) -> list[Explained]:
    """Return every run that is sought, in the order in which the journal's files first name it.

    A line with the name that is not sound is passed over and counted. Raises UsageError for a file that cannot be read.
    """
    found = Stories(sought).read(paths, passed_over or PassedOver())
    return [one for one in found if _is_sound(one)]


def _is_sound(one: Explained) -> bool:
    try:
        return bool(in_words(one))
    except ValueError:
        return False


def in_words(one: Explained) -> list[str]:
    """Return the lines that say why one run got an order; names in them are as the journal has them."""
    known = one.orders[0].order if one.orders else one.spared or one.parts[0]
    lines = [
        f"{text(known, 'name')}: {text(known, 'user')} of {text(known, 'account')},"
        f" {whole(known, 'cores')} cores on {text(known, 'node')}, running since {clock(moment(known, 'started'))}",
        f"  run {one.run}{_client(known)}",
    ]
    if sent := identity_in(known).in_words():
        lines.append(f"  {sent}")
    for one_order in one.orders:
        lines += _order_in_words(one_order)
    lines += _parts_in_words(one.parts)
    if one.spared_count:
        times = "once" if one.spared_count == 1 else f"{one.spared_count} times"
        lines.append(f"  {clock(one.spared_at)}  spared ({times} in all): {text(one.spared, 'reason')}")
    return lines


def _parts_in_words(parts: Sequence[Event]) -> list[str]:
    """Say when it was asked to return cores; of many wishes the last ones."""
    lines = [f"  asked to return cores {len(parts)} times; the last are"] if len(parts) > _MOST_PARTS else []
    for one in parts[-_MOST_PARTS:]:
        done = "asked" if one.get("outcome") == Outcome.DONE else f"not asked ({text(one, 'detail')})"
        wish = f"to have returned {whole(one, 'asked')} cores in all; it had returned {whole(one, 'returned')}"
        lines.append(f"  {clock(moment(one, 'time'))}  {done} {wish}: {text(one, 'reason')}")
    return lines


def _client(event: Event) -> str:
    """Name the kind of client, where it is another one than the paper's; earlier journals do not tell."""
    name = text(event, "client") if "client" in event else PAPER.name
    return "" if name == PAPER.name else f", client {name}"


def _order_in_words(one: ExplainedOrder) -> list[str]:
    order, time = one.order, moment(one.order, "time")
    until = f"{clock(moment(order, 'deadline'))} ({duration(moment(order, 'deadline') - time)})"
    done = order.get("outcome") == Outcome.DONE
    head = f"ordered to end by {until}" if done else f"not ordered; it was to end by {until}"
    if order.get("outcome") == Outcome.UNANSWERED:
        head = f"ordered to end by {until}; nobody answered, and the order may have been carried out"
    lines = [f"  {clock(time)}  {head}"]
    rows = [
        ("why", _why(one)),
        ("room", _room(order)),
        ("rule", f"{text(order, 'policy')}: {text(order, 'reason')}"),
        ("ways", _ways(order)),
    ]
    if not done or "found" in order:
        rows.insert(0, ("note", text(order, "detail")))
    rows.append(("others", _others(one)))
    lines += [f"    {title:<7} {words}" for title, words in rows if words]
    return lines + _end_in_words(one)


def _why(one: ExplainedOrder) -> str:
    order, decision = one.order, one.decision
    if order.get("request"):
        return _why_requested(text(order, "request"), decision)
    if order.get("instead_of"):
        return f"in place of {', '.join(texts(order, 'instead_of')[:5])}, which costs more by far"
    words = f"{whole(order, 'deficit')} cores had to be given back"
    if not decision:
        return words
    waiting = ", ".join(f"{text(one, 'account')} ({number(one, 'cores'):g})" for one in objects(decision, "waiting"))
    words += f" to those who wait and are owed cores: {waiting or 'nobody named'}"
    words += f"; {number(decision, 'free'):g} were free, {number(decision, 'leaving'):g} on their way already"
    whose = text(order, "account"), text(order, "user")
    for user in objects(decision, "users"):
        if (text(user, "account"), text(user, "user")) == whose:
            words += f"; {whose[0]} is over its quota, {whose[1]} gives back {whole(user, 'cores')} of it"
    return words


def _why_requested(name: str, decision: Event) -> str:
    """Say for which request an order was given; of a closing that the batch system plans only the name is known."""
    known = objects(decision, "requests") if "requests" in decision else []
    request = next((one for one in known if one.get("name") == name), None)
    if request is None:
        return f"for {name}: a request, or nodes that the batch system closes"
    nodes = texts(request, "nodes")
    what = f"{', '.join(nodes[:5])}{', ...' if len(nodes) > 5 else ''} empty"
    if not nodes:
        what = f"{whole(request, 'cores')} cores"
        what += "".join(f" of {kind} {text(request, kind)}" for kind in ("user", "account") if request.get(kind))
    who, reason = text(request, "who"), text(request, "reason")
    words = f"for request {name}{f' of {who}' if who else ''}, made {clock(moment(request, 'made'))}"
    return f"{words}: {what} by {clock(moment(request, 'by'))}" + (f": {reason}" if reason else "")


def _room(order: Event) -> str:
    """Say for which waiting jobs the pilot made room, with others on its place; "" where cores were counted."""
    room = order.get("room")
    if not isinstance(room, dict):
        return ""
    jobs = "; ".join(
        f"{whole(one, 'jobs')} of {text(one, 'account')} ({text(one, 'asks')})"
        + (f" such as {text(one, 'example')}" if text(one, "example") else "")
        for one in objects(room, "jobs")
    )
    return f"on {text(room, 'place')} for {jobs or 'a job of several nodes'}"


def _ways(order: Event) -> str:
    named = {
        "leave": "leaving by itself",
        "cut": "being cut",
        "commit": "being cut after a checkpoint",
        "kill": "being killed",
    }
    return "; ".join(
        f"{named.get(text(way, 'kind'), 'another way')} by {clock(moment(way, 'deadline'))}"
        f" wastes {core_hours(whole(way, 'expected_waste'))}"
        for way in objects(order, "options")
    )


def _others(one: ExplainedOrder) -> str:
    if not one.decision:
        return ""
    whose = text(one.order, "account"), text(one.order, "user")
    spared = objects(one.decision, "spared")
    first = next((one for one in spared if (text(one, "account"), text(one, "user")) == whose), None)
    chosen = len(objects(one.decision, "chosen"))
    words = f"{chosen} ordered and {whole(one.decision, 'spared_count')} spared in the same decision"
    return (
        words if first is None else f"{words}; the next would have been {text(first, 'name')}: {text(first, 'reason')}"
    )


def _end_in_words(one: ExplainedOrder) -> list[str]:
    end = one.end
    if not end:
        return []
    if end["event"] == Kind.WITHDRAWAL:
        return [f"  {clock(moment(end, 'time'))}  the order was withdrawn: {text(end, 'reason')}"]
    ended, deadline = moment(end, "ended"), moment(end, "deadline")
    apart = duration(abs(deadline - ended))
    when = (
        "at its deadline" if ended == deadline else f"{apart} {'before' if ended < deadline else 'after'} its deadline"
    )
    how = "ended by the batch system" if truth(end, "vacated") else "left by itself"
    if end.get("by_others") is True:
        how = "ended by an administrator or a fault of its node"
    wasted = core_hours(whole(end, "realised"))
    promise = f"{core_hours(whole(end, 'predicted'))} {'promised' if truth(end, 'believed') else 'expected'}"
    return [
        f"  {clock(ended)}  {how}, {when}, {duration(ended - moment(end, 'ordered'))} after its order",
        f"    wasted  {wasted}; {promise}; at most {core_hours(whole(end, 'possible'))} could be lost",
    ]


def as_json(found: Sequence[Explained]) -> list[dict[str, object]]:
    """Return the explanations as plain values: the journal's own events, put together by run."""
    return [
        {
            "run": one.run,
            "orders": [
                {"order": it.order, "decision": it.decision or None, "end": it.end or None} for it in one.orders
            ],
            "spared_count": one.spared_count,
            "spared": one.spared or None,
            "spared_at": one.spared_at or None,
            **({"parts": one.parts} if one.parts else {}),
        }
        for one in found
    ]


def identity_in(event: Event) -> PilotIdentity:
    """Return who sent the pilot of an event, as far as that is known."""
    values = event.get("identity")
    return (identity_of(values) if isinstance(values, dict) else None) or ANYBODY


@dataclass(frozen=True)
class Sought:
    """The runs that are sought: those that are called so (None: any), and who sent them, as far as it is named.

    also: decides by user, account and node in an event; None: any.
    """

    called: str | None = None
    identity: PilotIdentity = ANYBODY
    also: Callable[[Event], bool] | None = None

    def texts(self) -> list[tuple[bytes, bytes]]:
        """Return what stands in each line about such a run that says who sent it: as the journal writes it, and plain.

        Another program may have written the journal anew, and not have escaped what is not ASCII.
        """
        found = [self.called] if self.called is not None else []
        found += (as_values(self.identity) or {}).values()
        return [(json.dumps(one)[1:-1].encode(), one.encode("utf-8", "replace")) for one in found]

    def fits(self, one: Event) -> bool:
        """Decide whether this is such a run; one: an event, or a part of one, that says who sent it."""
        is_called = self.called is None or self.called in names_of(text(one, "run"), text(one, "name"))
        return is_called and identity_in(one).fits(self.identity) and (self.also is None or self.also(one))


def names_of(run: str, name: str) -> set[str]:
    """Return all names of a pilot: the run, its name (a slot, or the job's number), the job.

    An HTCondor job is its GlobalJobId, `<cluster>.<process>` or the cluster; a Slurm job its number, `<array>_<task>`.
    """
    job = run.rpartition("@")[0]
    known = {run, name, job}
    parts = job.split("#")
    if len(parts) == 3:
        known |= {parts[1], parts[1].partition(".")[0]}
    return known - {""}


@dataclass
class ExplainedOrder:
    """One order: the decision that it came from ({} when that is lost), and how it ended ({}: not known)."""

    order: Event
    decision: Event
    end: Event = field(default_factory=dict)


@dataclass
class Explained:
    """All that the journal knows of one run. spared: how often, with the last decision and its words ({}: never)."""

    run: str
    orders: list[ExplainedOrder] = field(default_factory=list)
    spared_count: int = 0
    spared: Event = field(default_factory=dict)
    spared_at: int = 0
    parts: list[Event] = field(default_factory=list)

    def add(self, order: Event, decision: Event) -> None:
        """Add an order, in place of the one before where the event says what became of that."""
        last = self.orders[-1] if self.orders else None
        if last is not None and "found" in order and last.order.get("time") == order.get("time"):
            decision = decision or last.decision
            self.orders.pop()
        self.orders.append(ExplainedOrder(order, decision))

    def end(self, event: Event) -> None:
        """Add the end of the last order that was given."""
        last = next((one for one in reversed(self.orders) if one.order.get("outcome") == Outcome.DONE), None)
        if last is not None:
            last.end = event


class Stories:
    """All that the journal's files tell of the runs that are sought, in the order in which they first name them."""

    def __init__(self, sought: Sought) -> None:
        self._sought = sought
        self._texts = sought.texts()
        self._names_identity = sought.identity != ANYBODY
        self._stories: dict[str, Explained] = {}
        self._decisions: dict[int, Event] = {}

    def read(self, paths: Iterable[str], passed_over: PassedOver) -> list[Explained]:
        """Return the runs. A line about them that is not sound is passed over and counted.

        Raises UsageError for a file that cannot be read.
        """
        for line in lines_of(paths):
            if not self._concerns(line):
                continue
            event = event_of(line)
            try:
                if event is not None:
                    self._take_in(event)
                    continue
            except ValueError:
                pass  # a line of somebody else's is no reason to hide the others
            passed_over.lines += 1
        return list(self._stories.values())

    def _concerns(self, line: bytes) -> bool:
        """Decide whether a line may be about such a run. What ends an order does not say who sent the pilot."""
        if self._names_identity and self._stories and kind_of(line) in {Kind.ENDED, Kind.WITHDRAWAL}:
            return True
        return all(text in line or plain in line for text, plain in self._texts)

    def _take_in(self, event: Event) -> None:
        kind = event["event"]
        if kind == Kind.DECISION:
            self._decide(event)
        elif kind == Kind.ORDER and self._sought.fits(event):
            decision = self._decisions.get(moment(event, "taken"), {})
            self._story(event).add(event, decision)
        elif kind == Kind.PART and self._sought.fits(event):
            self._story(event).parts.append(event)
        elif (
            kind in {Kind.WITHDRAWAL, Kind.ENDED}
            and event.get("outcome", Outcome.DONE) == Outcome.DONE
            and self._is_known(event)
        ):
            self._story(event).end(event)

    def _is_known(self, event: Event) -> bool:
        if self._names_identity:
            return text(event, "run") in self._stories
        return self._sought.fits(event)

    def _decide(self, event: Event) -> None:
        if not truth(event, "acting"):
            return  # it gave no order and spared nobody
        self._decisions.clear()  # orders follow the decision that they come from
        self._decisions[moment(event, "taken")] = event
        for one in objects(event, "spared"):
            if self._sought.fits(one):
                story = self._story(one)
                story.spared_count, story.spared, story.spared_at = story.spared_count + 1, one, moment(event, "time")

    def _story(self, one: Event) -> Explained:
        return self._stories.setdefault(text(one, "run"), Explained(text(one, "run")))
