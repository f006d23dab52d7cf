"""How much one cycle may ask for: per cycle, per user and cycle, per user and hour, and not too soon after the last."""

from __future__ import annotations

from drainwise.reclaim.record import Record
from drainwise.reclaim.settings import Settings
from drainwise.reclaim.words import duration

HOUR = 3600


def too_soon(record: Record, now: int, settings: Settings) -> str:
    """Why nobody may be asked yet at `now` (UNIX s), or ""."""
    last = max((one.time for one in record.asked), default=None)
    if last is None or now - last >= settings.min_between_acts:
        return ""
    least = duration(settings.min_between_acts)
    return f"the last order is {duration(max(0, now - last))} old and {least} must lie between two cycles that ask"


def cores_allowed(user: str, record: Record, now: int, settings: Settings) -> int:
    """Cores that may be asked of `user` at `now` (UNIX s), whatever the cycle as a whole allows."""
    lately = sum(one.cores for one in record.asked if one.user == user and one.time > now - HOUR)
    return max(0, min(settings.max_cores_per_user, settings.max_cores_per_user_hour - lately))
