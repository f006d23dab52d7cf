"""Explain why a pilot got an order, each time, and what became of it: from the journal alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drainwise.facts.clients import PAPER
from drainwise.facts.units import clock, core_hours, duration
from drainwise.journal.event import (
    DONE,
    UNANSWERED,
    WITHDRAWAL,
    Event,
    moment,
    number,
    objects,
    text,
    texts,
    truth,
    whole,
)
from drainwise.journal.read import PassedOver
from drainwise.journal.stories import Explained, ExplainedOrder, Sought, Stories, identity_in

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
        done = "asked" if one.get("outcome") == DONE else f"not asked ({text(one, 'detail')})"
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
    done = order.get("outcome") == DONE
    head = f"ordered to end by {until}" if done else f"not ordered; it was to end by {until}"
    if order.get("outcome") == UNANSWERED:
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
    named = {"leave": "leaving by itself", "cut": "being cut", "kill": "being killed"}
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
    if end["event"] == WITHDRAWAL:
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
            **({"parts": list(one.parts)} if one.parts else {}),
        }
        for one in found
    ]
