"""Which pilots may get an order, how many cores a user may be ordered to give back now, and by which key."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.history import HOUR, History, why_closed
from drainwise.reclaim.prices import BY_WASTE
from drainwise.reclaim.reasons import NO_PLACE, REASONS, Reason
from drainwise.reclaim.settings import ReclaimSettings

MOST_GPUS, MOST_OF_CYCLE, MOST_IN_HOUR = "max_gpus_per_user_per_hour", "max_cores_per_cycle", "max_cores_per_hour"
MOST_OF_USER, MOST_OF_USER_IN_HOUR = "max_cores_per_user_per_cycle", "max_cores_per_user_per_hour"
LIMITS = (MOST_OF_CYCLE, MOST_OF_USER, MOST_OF_USER_IN_HOUR, MOST_IN_HOUR)
"""The keys of [reclaim] that can leave cores to a later cycle."""


def pilots_by_user(pilots: Iterable[Pilot]) -> Mapping[tuple[str, str], Sequence[Pilot]]:
    """Return the pilots by account and user; none where there are none."""
    found: dict[tuple[str, str], list[Pilot]] = defaultdict(list)
    for pilot in pilots:
        found[pilot.account, pilot.user].append(pilot)
    return found


def able_and_closed(
    pilots: Iterable[Pilot],
    now: int,
    settings: ReclaimSettings,
    history: History,
    places: Container[str] | None = None,
) -> Mapping[tuple[str, str], tuple[list[Pilot], list[tuple[Pilot, Reason]]]]:
    """Return the pilots of each user that may get an order at `now` (UNIX s), and the others with why, by account and
    user, in the order of their runs.

    places: names of those where room is made, where only pilots there may get one; None: all may.
    """
    found: dict[tuple[str, str], tuple[list[Pilot], list[tuple[Pilot, Reason]]]] = defaultdict(lambda: ([], []))
    for pilot in sorted(pilots, key=lambda pilot: pilot.run):
        reason = why_closed(pilot, now, settings, history)
        if places is not None and not reason and not any(place in places for place, _ in pilot.returns()):
            reason = Reason(REASONS[NO_PLACE], NO_PLACE)
        able, closed = found[pilot.account, pilot.user]
        if reason:
            closed.append((pilot, reason))
        else:
            able.append(pilot)
    return found


def within_gpus(snapshot: Snapshot, history: History, now: int, settings: ReclaimSettings) -> Snapshot:
    """Return the snapshot in which no user can lose more GPUs within the hour at `now` (UNIX s) than the site allows.

    Of the pilots with GPUs those that have run for the shortest time may be ordered, by facts alone.
    """
    if settings.max_gpus_user_hour == ReclaimSettings.max_gpus_user_hour:
        return snapshot  # as by default, which is no limit
    left = defaultdict[str, int](lambda: settings.max_gpus_user_hour)
    for one in history.orders:
        left[one.user] -= one.gpus if one.time > now - HOUR else 0
    barred: dict[str, str] = {}
    for pilot in sorted(snapshot.pilots, key=lambda pilot: (-pilot.started, pilot.run)):
        gpus = 0 if why_closed(pilot, now, settings, history) else pilot.gpus
        if gpus > left[pilot.user]:
            barred[pilot.run] = f"[reclaim] {MOST_GPUS} lets no more GPUs of {pilot.user} be taken now"
        else:
            left[pilot.user] -= gpus
    pilots = (replace(one, cannot=barred[one.run]) if one.run in barred else one for one in snapshot.pilots)
    return replace(snapshot, pilots=tuple(pilots)) if barred else snapshot


class Allowed(NamedTuple):
    """So many `cores`; `key` of [reclaim] is the bound, and `words` say so."""

    cores: int
    key: str
    words: str


class Allowances:
    """What users may be ordered to give back at `now` (UNIX s).

    most_extra: cores beyond what facts take that reports may cost a user, not a number where its pilots say it; extra:
    what they have cost it within the hour, by user.
    """

    def __init__(self, history: History, now: int, settings: ReclaimSettings) -> None:
        self._settings, self._lately, self.extra = settings, Counter[str](), Counter[str]()
        most = math.nan if settings.extra_cores is None else settings.extra_cores
        self.most_extra = most if settings.policy in BY_WASTE else 0  # another policy's price is no waste
        for one in history.orders:
            if one.time > now - HOUR:
                self._lately[one.user] += one.cores
                self.extra[one.user] += one.extra
        self._hour = settings.max_cores_hour - sum(self._lately.values())

    def together(self) -> int:
        """Return what all users together may be ordered to give back in one cycle."""
        return max(0, min(self._settings.max_cores, self._hour))

    def of(self, user: str, cycle: int, taken: int) -> Allowed:
        """Return what one user may be ordered to give back.

        cycle: cores that this cycle may still order. taken: cores of the user that it has ordered already.
        """
        site = self._settings
        bounds = {
            MOST_OF_CYCLE: cycle,
            MOST_IN_HOUR: self._hour - (site.max_cores - cycle),  # without what this cycle has ordered
            MOST_OF_USER: site.max_cores_per_user - taken,
            MOST_OF_USER_IN_HOUR: site.max_cores_per_user_hour - self._lately[user] - taken,
        }
        key = min(bounds, key=bounds.__getitem__)
        cores = max(0, bounds[key])
        return Allowed(cores, key, f"[reclaim] {key} allows {cores} cores now")
