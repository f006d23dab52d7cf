"""Choose parts for the jobs that wait by kind: what pilots return on a place must make room for whole jobs there.

Kind after kind, each user in turn: the cheapest mix of parts and whole pilots for the kind's jobs, on the places where
it may run. Of that mix the parts are asked for; what they return serves the jobs that have then room, memory and all,
and for the others whole pilots make room as ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from drainwise.pool.amounts import Amounts, sum_of
from drainwise.pool.facts import Pilot
from drainwise.pool.job_kinds import JobKind
from drainwise.reclaim.candidates import Candidates, candidates_of
from drainwise.reclaim.decide.kinds_left import KindsLeft
from drainwise.reclaim.decide.part_plans import PartsUntil, mix_of, order_of
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
        return sum(one.cores for one in self.expected)


def room_parts(
    kinds: KindsLeft, users: Sequence[Candidates], limits: Mapping[str, int], until: PartsUntil
) -> tuple[KindsLeft, list[Parts]]:
    """Return what waits still when the parts are back, and the parts of each user.

    users: the pilots of each among which may be chosen. limits: of cores by name, see `names_of_limits`.
    """
    found, left, open_limits = [Parts() for _ in users], kinds, dict(limits)
    for row, kind in enumerate(kinds.facts.kinds):
        if kind.places > 1 or kind.whole or kind.needs.gpus or kind.needs.others:
            continue
        places = zip(kinds.facts.places, kinds.facts.may[row].tolist())
        here = frozenset(place.name for place, may in places if may)
        for number, able in enumerate(users):
            jobs = left.jobs.get(kind.name, 0)
            parts = _of_kind(kind, jobs, able, found[number], here, open_limits, until) if jobs else Parts()
            if not parts.expected:
                continue
            expected = [*(one for some in found for one in some.expected), *parts.expected]
            after = kinds.after(returned_by(expected))
            if after.cores >= left.cores:
                continue  # something else than cores and memory is missing there
            left = after
            for name in names_of_limits(able.pilots[0]):
                open_limits[name] -= parts.cores
            known = found[number]
            found[number] = Parts((*known.expected, *parts.expected), (*known.more, *parts.more))
    return left, found


def names_of_limits(pilot: Pilot) -> tuple[str, str, str]:
    """Return the names of the limits on cores that bind the user of a pilot."""
    return f"account {pilot.account}", f"user {pilot.user}", "cycle"


def _of_kind(
    kind: JobKind,
    jobs: int,
    users: Candidates,
    known: Parts,
    here: frozenset[str],
    limits: Mapping[str, int],
    until: PartsUntil,
) -> Parts:
    """Return the parts for so many jobs of a kind, of the pilots `here` that nobody asked yet."""
    taken = {one.pilot.run for one in (*known.expected, *known.more)}
    some = [_able_for(one, kind) for one in users.pilots if one.place in here and one.run not in taken]
    if not any(one.can_return for one in some):
        return Parts()
    most = min(limits[name] for name in names_of_limits(some[0]))
    cores = min(jobs * kind.cores, most // kind.cores * kind.cores)
    if cores < 1:
        return Parts()
    able = candidates_of(some, users.figures.now, users.settings, users.history)
    of_kind = replace(until, chunk=kind.cores)
    mix = mix_of(able, Need(cores, most), of_kind, able.settings)
    if mix is None:
        return Parts()
    asked = {one.pilot.run for one in mix.parts}
    others = [row for row, pilot in enumerate(able.pilots) if pilot.run not in asked and row not in mix.whole]
    more = [order_of(able, row, cores, of_kind) for row in others] if kind.cores == 1 else []
    return Parts(mix.parts, tuple(one for one in more if one is not None))


def _able_for(pilot: Pilot, kind: JobKind) -> Pilot:
    """Return the pilot; it can return nothing where a job of the kind needs more memory than comes with its cores."""
    is_enough = amounts_of(pilot, kind.cores).memory >= kind.needs.memory
    return pilot if is_enough else replace(pilot, can_return=0)


def amounts_of(pilot: Pilot, cores: int) -> Amounts:
    """Return what comes back with so many cores of a pilot: its memory in proportion, neither GPUs nor disk."""
    holds = pilot.holds or Amounts()
    return Amounts(cores=cores, memory=holds.memory * cores // max(1, pilot.cores))


def returned_by(parts: Sequence[PartOrder]) -> dict[str, Amounts]:
    """Return by place what these parts bring back."""
    found: dict[str, list[Amounts]] = {}
    for one in parts:
        found.setdefault(one.pilot.place, []).append(amounts_of(one.pilot, one.cores))
    return {place: sum_of(some) for place, some in found.items()}
