"""Make room kind by kind, each at the least value beside the kinds before it, for what is too large for all at once."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np

from drainwise.room.facts import Real, RoomFacts, Whole
from drainwise.room.one_kind import Offers, cheapest_places
from drainwise.room.part import PlacePart, RoomPart
from drainwise.room.pilot_sets import PilotSets

_DEAR = 1e6  # of a place that later kinds need more
_MOST_ROUNDS = 8
_MOST_PAIRS = 400
_LEAST_LOOKS = 5000  # what a look at few sets costs, too
_ENDLESS = 1 << 53


class KindByKind:
    """What the kinds so far take of each place, and the cheapest set there that makes it."""

    def __init__(self, facts: RoomFacts, sets: PilotSets, room: Real) -> None:
        """Start with nothing taken; room: P × R, that this user may use beside its pilots'."""
        self._facts, self._sets = facts, sets
        self._at_place = sets.places[sets.of]
        self._room = room.T[:, self._at_place] + sets.holds
        self._able = np.ones(len(sets), dtype=bool)
        self._now = sets.first.copy()
        self._jobs: dict[int, dict[int, int]] = defaultdict(dict)
        self._value = sets.cores + 1j * sets.cost
        self._dear = np.zeros(len(sets.places))
        self._closed = np.zeros(len(sets.places), dtype=bool)

    def serve(self, kind: int, wanted: int, most: int, later: Real | None = None) -> tuple[int, int]:
        """Make room for as many jobs of a kind as can be, at most `wanted`, for at most so many cores.

        later: P, how much later kinds need each place: of places with the same cores those are taken that they need
        least. Returns the jobs and the cores.
        """
        self._dear = np.zeros(len(self._sets.places)) if later is None else later[self._sets.places] * _DEAR
        several = int(self._facts.several[kind])
        offers, sets = self.offers(kind, wanted)
        if several == 1:
            last = np.append(offers.place[1:] != offers.place[:-1], True)[: len(offers)]
            wanted = min(wanted, int(offers.jobs[last].sum()))
        low, high, best = 0, wanted, None
        trial = high
        while low < high:
            found = self._try(offers, trial, several, most)
            if found is None:
                high = trial - 1
            else:
                low, best = trial, found
            trial = (low + high + 1) // 2
        if best is None:
            return 0, 0
        before = self._sets.cores[self._now].sum()
        self.take(kind, offers, sets, best, low, several)
        return low, int(self._sets.cores[self._now].sum() - before)

    def improve(self, looks: float, *, same_cores: bool) -> None:
        """Look for each kind's places anew beside those of all others, as often as that betters something.

        looks: at so many sets at most, about. same_cores: only what loses as many cores as before. No kind has fewer
        jobs afterwards.
        """
        each = len(self._sets) + _LEAST_LOOKS
        for _ in range(_MOST_ROUNDS):
            kinds = sorted({kind for jobs in self._jobs.values() for kind in jobs})
            looks -= len(kinds) * each
            if looks < 0 or not sum(self._place_anew(kind, same_cores=same_cores) for kind in kinds):
                break
        tries = min(_MOST_PAIRS, int(max(0, looks) / each))
        alone = [kind for kind in kinds if self._facts.several[kind] == 1 and not self._facts.whole[kind]]
        for one, other in itertools.combinations(alone, 2):
            better = True
            while better and tries > 0:
                tries, better = tries - 1, self._pair_anew(one, other, same_cores=same_cores)

    def _pair_anew(self, one: int, other: int, *, same_cores: bool) -> bool:
        """Put a job of each of two kinds together where that costs the least; return whether it betters anything."""
        before, moved = self._total(), []
        for kind in (one, other):
            place = self._dearest(kind)
            self.put(kind, place, -1)
            moved.append((kind, place))
        it, facts = self._sets, self._facts
        needs = facts.needs[one] + facts.needs[other]
        able = self._able & (self._room >= needs[:, None]).all(axis=0)
        shared = facts.may[one] & facts.may[other] & facts.divisible
        able &= (shared[it.places] & ~self._closed)[it.of]
        found = np.flatnonzero(able)
        if len(found):
            offers = self._value[found] - self._value[self._now[it.of[found]]]
            place = int(it.of[found[np.lexsort((offers.imag, offers.real))[0]]])
            for kind in (one, other):
                self.put(kind, place, 1)
            if self._is_better(before, same_cores=same_cores):
                return True
            for kind in (one, other):
                self.put(kind, place, -1)
        for kind, place in moved:
            self.put(kind, place, 1)
        return False

    def _dearest(self, kind: int) -> int:
        """Return the place where one job less of a kind saves the most."""
        found = []
        for place, jobs in sorted(self._jobs.items()):
            if kind in jobs:
                part, needs = self._slice(place), self._facts.needs[kind][:, None]
                able = (self._room[:, part] + needs >= 0).all(axis=0)
                saves = self._value[self._now[place]] - self._value[part.start + int(np.argmax(able))]
                found.append((-saves.real, -saves.imag, place))
        return min(found)[2]

    def _is_better(self, before: complex, *, same_cores: bool) -> bool:
        after = self._total()
        if after.real == before.real:
            return after.imag < before.imag * (1 - 1e-9)
        return not same_cores and after.real < before.real

    def _place_anew(self, kind: int, *, same_cores: bool) -> bool:
        before, jobs = self._total(), self._withdraw(kind)
        number = sum(jobs.values()) // int(self._facts.several[kind])
        made, _ = self.serve(kind, number, _ENDLESS)
        if made == number and self._is_better(before, same_cores=same_cores):
            return True
        self._withdraw(kind)
        for place, count in jobs.items():
            self.put(kind, place, count)
        return False

    def start(self, part: RoomPart) -> int:
        """Put the jobs of a part on its places; return the cores that this loses."""
        for one in part.places:
            for kind, jobs in one.jobs:
                self.put(kind, int(np.searchsorted(self._sets.places, one.place)), jobs)
        return self.cores

    @property
    def cores(self) -> int:
        """Cores lost so far."""
        return int(self._sets.cores[self._now].sum())

    def _total(self) -> complex:
        return complex(self._value[self._now].sum())

    def put(self, kind: int, place: int, jobs: int) -> None:
        """Put so many jobs more on one place, where the cheapest set goes that makes room for all; jobs < 0: fewer."""
        part = self._slice(place)
        here = self._jobs[place]
        here[kind] = here.get(kind, 0) + jobs
        if not here[kind]:
            del here[kind]
        if not here:
            del self._jobs[place]
        self._room[:, part] -= jobs * self._facts.needs[kind][:, None]
        able = (self._room[:, part] >= 0).all(axis=0)
        if jobs > 0 and self._facts.whole[kind]:
            able &= self._room[0, part] + self._facts.needs[kind, 0] >= self._facts.totals[self._sets.places[place], 0]
        self._able[part] = able
        self._now[place] = part.start + int(np.argmax(able))
        alone = self._facts.whole[kind] or not self._facts.divisible[self._sets.places[place]]
        self._closed[place] = alone and jobs > 0

    def _withdraw(self, kind: int) -> dict[int, int]:
        """Take all jobs of a kind off their places; return where how many were."""
        found = {place: jobs[kind] for place, jobs in self._jobs.items() if kind in jobs}
        for place, count in found.items():
            self.put(kind, place, -count)
        return found

    def _try(self, offers: Offers, jobs: int, several: int, most: int) -> Whole | None:
        if several > 1:
            offers = Offers(offers.place, np.minimum(offers.jobs, jobs), offers.value)
            first = np.append(True, (offers.place[1:] != offers.place[:-1]) | (offers.jobs[1:] != offers.jobs[:-1]))
            kept = np.flatnonzero(first[: len(offers)])
            some = cheapest_places(offers.part(kept), jobs * several)
            found = None if some is None else kept[some]
        else:
            found = cheapest_places(offers, jobs)
        return None if found is None or offers.value[found].real.sum() > most else found

    def offers(self, kind: int, most: int) -> tuple[Offers, Whole]:
        """Return what each place offers to a kind, `most` jobs at most, and the set of each offer."""
        it, facts = self._sets, self._facts
        possible = facts.may[kind][it.places] & ~self._closed
        if facts.whole[kind]:
            possible[list(self._jobs)] = False
        which = np.flatnonzero(possible[it.of])
        of = it.of[which]
        fit = np.minimum(facts.fitting(kind, self._room[:, which], self._at_place[which]), most)
        fit[~self._able[which]] = 0
        height = float(most + 1)
        key = of * height + fit
        highest = np.maximum.accumulate(key)
        before = np.maximum(np.append(-1.0, highest[:-1])[: len(key)], of * height)
        better = np.flatnonzero(key > before)
        place, found = of[better], which[better]
        value = self._value[found] - self._value[self._now[place]] + 1j * self._dear[place]
        return Offers(place, fit[better].astype(np.int64), value), found

    def offer_of(self, kind: int, place: int) -> tuple[float, float, int, int] | None:
        """Return cores, cost, place and set of one more job of a kind on one place."""
        if self._closed[place] or self._facts.whole[kind]:
            return None
        part = self._slice(place)
        fit = self._facts.fitting(kind, self._room[:, part], self._at_place[part])
        enough = np.flatnonzero((fit >= 1) & self._able[part])
        if not len(enough):
            return None
        found = part.start + int(enough[0])
        value = complex(self._value[found] - self._value[self._now[place]])
        return value.real, value.imag, place, found

    def take(self, kind: int, offers: Offers, sets: Whole, chosen: Whole, jobs: int, several: int) -> None:
        """Take the chosen offers for so many jobs, each on `several` places."""
        left = jobs * several
        for one in chosen.tolist():
            here = min(int(offers.jobs[one]), jobs, left)
            if here:
                left -= here
                self.take_one(kind, int(offers.place[one]), int(sets[one]), here)

    def take_one(self, kind: int, place: int, one: int, jobs: int = 1) -> None:
        """Put so many jobs more on one place, where a set goes."""
        part = self._slice(place)
        self._jobs[place][kind] = self._jobs[place].get(kind, 0) + jobs
        self._now[place] = one
        self._room[:, part] -= jobs * self._facts.needs[kind][:, None]
        self._able[part] = (self._room[:, part] >= 0).all(axis=0)
        alone = self._facts.whole[kind] or not self._facts.divisible[self._sets.places[place]]
        self._closed[place] = self._closed[place] or alone

    def added(self, place: int, one: int) -> set[int]:
        """Return the rows of the pilots that go on one of the sets' places with a set, and do not go now."""
        return set(self._sets.rows(one)) - set(self._sets.rows(int(self._now[place])))

    def _slice(self, place: int) -> slice:
        last = place + 1 == len(self._sets.first)
        return slice(int(self._sets.first[place]), len(self._sets) if last else int(self._sets.first[place + 1]))

    def part(self) -> RoomPart:
        """Return the part so far."""
        it, facts = self._sets, self._facts
        total = np.zeros(len(facts.kinds), dtype=np.int64)
        places = []
        for place, jobs in sorted(self._jobs.items()):
            for kind, number in jobs.items():
                total[kind] += number
            rows = tuple(it.rows(int(self._now[place])))
            places.append(PlacePart(int(it.places[place]), tuple(sorted(jobs.items())), rows))
        chosen = self._now[sorted(self._jobs)]
        cores, cost = int(it.cores[chosen].sum()), float(it.cost[chosen].sum())
        return RoomPart(total // facts.several, cores, cost, tuple(places))
