"""The event of a kind of jobs that does not start where it should: what `reclaim.untaken_room` remembers of it."""

from __future__ import annotations

from drainwise.journal.event import UNTAKEN, VERSION, Event, moment, objects, text, whole
from drainwise.reclaim.untaken_room import UntakenRoom


def untaken_event(one: UntakenRoom, now: int) -> dict[str, object]:
    """Return the event that replaces all earlier ones of one kind from `now` (UNIX s) on; times in UNIX s."""
    places = [{"place": name, "cores": cores, "since": since} for name, (cores, since) in one.places.items()]
    facts = {"account": one.account, "kind": one.kind, "jobs": one.jobs, "since": one.since, "made": one.made}
    return {"event": UNTAKEN, "version": VERSION, "time": now, **facts, "places": places}


def untaken_of(event: Event) -> UntakenRoom:
    """Return what an event of `untaken_event` remembers. Raises ValueError for an event that is not sound."""
    places = {text(one, "place"): (whole(one, "cores"), whole(one, "since")) for one in objects(event, "places")}
    account, kind, jobs = text(event, "account"), text(event, "kind"), whole(event, "jobs")
    made = moment(event, "made") if event.get("made") else 0
    return UntakenRoom(account, kind, jobs, whole(event, "since"), places, made)
