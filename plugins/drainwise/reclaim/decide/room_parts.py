"""Choose parts for the jobs that wait by kind: what pilots return on a place must make room for whole jobs there.

What pilots are asked for already serves first. Then kind after kind, each user in turn, on the places where it may run:
what is missing beside cores that lie free there, the cheapest mix of parts and whole pilots, and where no pilot alone
returns enough for a job, several of a place together. A pilot may return cores for several kinds. Of a mix the parts
are asked for; what they return serves the jobs that have then room, memory and all, and for the others whole pilots
make room as ever.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from drainwise.pool.amounts import Amounts, sum_of
from drainwise.pool.facts import Pilot
from drainwise.pool.job_kinds import JobKind
from drainwise.reclaim.candidates import Candidates, candidates_of
from drainwise.reclaim.decide.kinds_left import KindsLeft
from drainwise.reclaim.parts.part_plans import Mix, PartsUntil, free_by_place, mix_of, order_of, standing, together
from drainwise.reclaim.plan import PartOrder
from drainwise.reclaim.policy import Need


@dataclass(frozen=True)
class Parts:
    """One user's parts. expected: they should come back and serve jobs. more: asked as well, as it costs nothing."""

    expected: tuple[PartOrder, ...] = ()
    more: tuple[PartOrder, ...] = ()

    @property
    def cores(self) -> int:
        """Cores that serve jobs."""
        return sum(one.counted for one in self.expected)


def room_parts(
    kinds: KindsLeft, users: Sequence[Candidates], limits: Mapping[str, int], until: PartsUntil
) -> tuple[KindsLeft, list[Parts]]:
    """Return what waits still when the parts are back, and the parts of each user.

    users: the pilots of each among which may be chosen. limits: of cores by name, see `names_of_limits`.
    """
    chosen = _Chosen(kinds, users, dict(limits), until)
    chosen.keep_standing()
    for row, kind in enumerate(kinds.facts.kinds):
        if kind.places > 1 or kind.whole or kind.needs.gpus or kind.needs.others:
            continue
        places = zip(kinds.facts.places, kinds.facts.may[row].tolist())
        here = frozenset(place.name for place, may in places if may)
        for number in range(len(users)):
            chosen.serve(kind, number, here)
    return chosen.left, [Parts(together(one), tuple(more)) for one, more in zip(chosen.expected, chosen.more)]


class _Chosen:
    """What is chosen so far, and what waits still beside it: `expected` and `more` of each user, as in `Parts`."""

    def __init__(
        self, kinds: KindsLeft, users: Sequence[Candidates], limits: dict[str, int], until: PartsUntil
    ) -> None:
        self._kinds, self._users, self._limits, self._until = kinds, users, limits, until
        self.left, self._free = kinds, dict[int, dict[str, int]]()
        self._at = [_by_place(able.pilots) for able in users]
        self.expected: list[list[PartOrder]] = [[] for _ in users]
        self.more: list[list[PartOrder]] = [[] for _ in users]

    def keep_standing(self) -> None:
        """Keep the wishes that stand as far as what they bring back serves jobs that wait."""
        largest = max((one.cores for one in self._kinds.facts.kinds if self._kinds.jobs.get(one.name)), default=1)
        until = replace(self._until, chunk=largest)
        stand = [(number, one) for number, able in enumerate(self._users) for one in standing(able, until)]
        if not stand:
            return
        after = self._kinds.after(returned_by(one for _, one in stand))
        used: dict[str, int] = Counter()
        for served in after.left.served:
            used[served.place] += served.returning.cores
        for place, held in self._kinds.returning.items():
            used[place] -= held.cores  # what comes back anyway serves first
        wanted = dict(used)
        for number, one in stand:
            names, place = names_of_limits(one.pilot), one.pilot.place
            cores = min(used.get(place, 0), *(self._limits[name] for name in names))
            if cores < 1:
                continue
            kept = one.of_these(cores)
            kept = replace(kept, cores=max(kept.counted, min(kept.cores, wanted[place])))
            used[place] -= kept.counted
            for name in names:
                self._limits[name] -= kept.counted
            self.expected[number].append(kept)
        self.left = self._kinds.after(returned_by(one for some in self.expected for one in some))

    def serve(self, kind: JobKind, number: int, here: frozenset[str]) -> None:
        """Choose parts of one user's pilots `here` for the jobs of a kind without room."""
        if kind.cores == 1:
            self._single_cores(kind, number, here)
            return
        ahead = {place: free for place, free in self._ahead(number).items() if place in here}
        for place, free in ahead.items():  # what lies free there, and is too little for a job, is a part of one
            while self._jobs(kind) and (missing := self._missing(kind, place)) < min(kind.cores, free + 1):
                if not self._take(kind, number, {place}, missing, missing, is_alone=True):
                    break
        self._take(kind, number, here, self._jobs(kind) * kind.cores, kind.cores, is_sure=True)
        rest = self._mix(kind, number, here, self._jobs(kind) * kind.cores, kind.cores)
        most = rest.price * kind.cores if rest is not None and rest.whole else math.inf
        for place, free in ahead.items():
            while self._jobs(kind) and (missing := self._missing(kind, place)) <= free:
                if not self._take(kind, number, {place}, missing, 1, is_alone=True, most=most):
                    break
        self._take(kind, number, here, self._jobs(kind) * kind.cores, kind.cores)

    def _single_cores(self, kind: JobKind, number: int, here: frozenset[str]) -> None:
        """Ask every other pilot for all single cores that are missing, too, where any are counted on."""
        self._take(kind, number, here, self._jobs(kind), 1)
        missing, able = self._kinds.jobs.get(kind.name, 0), self._users[number]
        if self._jobs(kind) == missing:
            return
        asked = {one.pilot.run for one in (*self.expected[number], *self.more[number])}
        for row, pilot in enumerate(able.pilots):
            if pilot.run not in asked and pilot.place in here and _able_for(pilot, kind).can_return:
                one = order_of(able, row, missing, replace(self._until, chunk=1))
                self.more[number] += [] if one is None else [one]

    def _ahead(self, number: int) -> dict[str, int]:
        """Return by place how many cores one user's pilots should free in time, those that serve jobs included."""
        if number not in self._free:
            self._free[number] = free_by_place(self._users[number], self._until)
        return self._free[number]

    def _jobs(self, kind: JobKind) -> int:
        return self.left.jobs.get(kind.name, 0)

    def _missing(self, kind: JobKind, place: str) -> int:
        """Return the cores that the next job of a kind lacks on a place."""
        unused = int(self.left.left.room[self.left.facts.index[place]][0])
        return kind.cores - unused % kind.cores

    def _take(
        self,
        kind: JobKind,
        number: int,
        here: Collection[str],
        cores: int,
        chunk: int,
        *,
        is_sure: bool = False,
        is_alone: bool = False,
        most: float = math.inf,
    ) -> bool:
        """Ask for so many cores in such chunks; whether fewer jobs are without room then.

        is_sure: only for what should come free in time; is_alone: also for all or nothing, and only where it wastes no
        more than `most` core-seconds.
        """
        mix = self._mix(kind, number, here, cores, chunk, is_sure=is_sure or is_alone)
        if mix is None or not mix.parts:
            return False
        if is_alone and (mix.whole or sum(one.cores for one in mix.parts) < cores):
            return False
        # Beside what lies free, these are of use together only.
        parts = _of_use_together(mix.parts) if is_alone else list(mix.parts)
        if sum(one.waste for one in parts) > most:
            return False
        expected = [*(one for some in self.expected for one in some), *parts]
        after = self._kinds.after(returned_by(expected))
        if after.cores >= self.left.cores:
            return False  # something else than cores and memory is missing there
        self.left = after
        self.expected[number] += parts
        for name in names_of_limits(parts[0].pilot):
            self._limits[name] -= sum(one.counted for one in parts)
        return True

    def _mix(
        self, kind: JobKind, number: int, here: Collection[str], cores: int, chunk: int, *, is_sure: bool = False
    ) -> Mix | None:
        """Return the cheapest mix of one user's pilots `here` for so many cores; None where no pilot returns any."""
        pilots = [_able_for(one, kind) for place in here for one in self._at[number].get(place, ())] if cores else []
        if not any(one.can_return for one in pilots):
            return None
        most = min(self._limits[name] for name in names_of_limits(pilots[0]))
        cores = min(cores, most // chunk * chunk)
        if cores < chunk:
            return None
        it = self._users[number]
        able = candidates_of(pilots, it.figures.now, it.settings, it.history)
        taken = {one.pilot.run: one.counted for one in together(self.expected[number])}
        until = replace(self._until, chunk=chunk)
        return mix_of(able, Need(cores, most), until, able.settings, taken, is_sure)


def _of_use_together(parts: Iterable[PartOrder]) -> list[PartOrder]:
    """Return the parts of one place that serve a job together: each in one chunk, idle until the last one is back."""
    parts = tuple(parts)
    last = max(one.cores_back or one.by for one in parts)
    return [
        replace(one, chunk=one.cores, waste=one.waste + one.cores * (last - (one.cores_back or one.by)))
        for one in parts
    ]


def _by_place(pilots: Iterable[Pilot]) -> dict[str, list[Pilot]]:
    found: dict[str, list[Pilot]] = {}
    for one in pilots:
        found.setdefault(one.place, []).append(one)
    return found


def names_of_limits(pilot: Pilot) -> tuple[str, str, str]:
    """Return the names of the limits on cores that bind the user of a pilot."""
    return f"account {pilot.account}", f"user {pilot.user}", "cycle"


def _able_for(pilot: Pilot, kind: JobKind) -> Pilot:
    """Return the pilot; it can return nothing where a job of the kind needs more memory than comes with its cores."""
    is_enough = amounts_of(pilot, kind.cores).memory >= kind.needs.memory
    return pilot if is_enough else replace(pilot, can_return=0)


def amounts_of(pilot: Pilot, cores: int) -> Amounts:
    """Return what comes back with so many cores of a pilot: its memory in proportion, neither GPUs nor disk."""
    holds = pilot.holds or Amounts()
    return Amounts(cores=cores, memory=holds.memory * cores // max(1, pilot.cores))


def returned_by(parts: Iterable[PartOrder]) -> dict[str, Amounts]:
    """Return by place what these parts bring back."""
    found: dict[str, list[Amounts]] = {}
    for one in parts:
        found.setdefault(one.pilot.place, []).append(amounts_of(one.pilot, one.counted))
    return {place: sum_of(some) for place, some in found.items()}
