"""The reference pilot's own records as finished payloads: a line says that one started, a later one how it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from drainwise_tasks.estimate.records.record import NOT_AN_OBJECT, NOT_JSON, TOO_MANY_OPEN, Finished, json_of, sound_one

MOST_OPEN = 100_000
"""Payloads that may run at a time in all pilots of a file; the one that started first is given up."""
_STARTED, _ENDED, _OVER = "started", {"done": "finished", "failed": "failed"}, "requeued"
_UNKNOWN_EVENT, _NO_START = "unknown event", "an end without its start"
_REFUSED = "refused"
_USED = ("cpu_seconds", "memory_bytes", "read_bytes", "written_bytes", "work_bytes", "output_bytes")


class Pairing:
    """Starts that wait for their ends."""

    def __init__(self, skips: Counter[str]) -> None:
        self._skips = skips
        self._open: dict[tuple[object, object], Mapping[str, object]] = {}

    def take(self, line: bytes) -> Finished | None:
        """Return the payload that ended with this line, if one did; count what makes no sense."""
        found = json_of(line)
        if not isinstance(found, dict):
            self._skips[NOT_JSON if found == NOT_JSON else NOT_AN_OBJECT] += 1
            return None
        return self.take_object(found)

    def take_object(self, found: Mapping[str, object]) -> Finished | None:
        """Do the same for a line that was read already."""
        event = found.get("event")
        key = (str(found.get("pilot")), str(found.get("payload")))
        if event == _STARTED:
            if len(self._open) >= MOST_OPEN:
                del self._open[next(iter(self._open))]
                self._skips[TOO_MANY_OPEN] += 1
            self._open[key] = found
            return None
        if event == _OVER:
            # It was stopped and will run again: how long it takes is not known from this.
            self._open.pop(key, None)
            return None
        if event == _REFUSED:
            return None
        if not isinstance(event, str) or event not in _ENDED:
            self._skips[_UNKNOWN_EVENT] += 1
            return None
        start = self._open.pop(key, None)
        if start is None:
            self._skips[_NO_START] += 1
            return None
        return sound_one(_record(start, found, _ENDED[event]), self._skips)

    def running(self, now: float) -> Iterator[tuple[str, float]]:
        """Yield task and seconds of what has started and not ended at `now`, UNIX s.

        What is past its maximum does not run any more: its pilot died before it could say so.
        """
        for start in self._open.values():
            task, began, maximum = start.get("task"), start.get("time"), start.get("maximum")
            if not (isinstance(task, str) and isinstance(began, (int, float)) and isinstance(maximum, (int, float))):
                continue
            # Compared before it is taken off: a number of a thousand digits makes no float.
            if 1 <= began <= now and now - began < maximum:
                yield task, now - began


def read_pilot_records(lines: Iterable[bytes], skips: Counter[str]) -> Iterator[Finished]:
    """Yield the payloads that ended; those that were requeued or run still are not among them."""
    pairing = Pairing(skips)
    for line in lines:
        one = pairing.take(line)
        if one is not None:
            yield one


def _record(start: Mapping[str, object], end: Mapping[str, object], state: str) -> dict[str, object]:
    # How long it ran was measured on a clock that nobody sets; the start is as the machine's clock had it.
    ended, seconds = end.get("time"), end.get("seconds")
    began = start.get("time")
    if isinstance(began, (int, float)) and isinstance(seconds, (int, float)) and seconds >= 0:
        ended = began + seconds
    return {
        "task": start.get("task"),
        "state": state,
        "start": began,
        "end": ended,
        "cores": start.get("cores", 1),
        "events": start.get("events"),
        "core_power": start.get("core_power"),
        "requested_seconds": start.get("maximum"),
        **{name: end.get(name) for name in _USED},
    }
