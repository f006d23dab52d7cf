"""What waits, in as few kinds of jobs as differ in what they ask, and the places where each kind could run.

Jobs of one account are of one kind when they ask for the same amounts on the same classes of places. The kinds with the
most cores are kept; the rest is named, and waits as before for what those leave.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from drainwise.pool.amounts import NOTHING, Amounts, sum_of

MOST_KINDS = 50


@dataclass(frozen=True)
class Place:
    """One place where jobs can start and cores come back: a node, or a slot of HTCondor that is not dynamic.

    node: its node. node_class: places of one class run the same kinds of jobs. free: unclaimed, for new jobs; total:
    all that it has. divisible: several jobs can share it. unseen: neither free nor in use by all that was seen,
    as between the end of a run and its node's next report.
    """

    name: str
    node: str
    node_class: str
    free: Amounts
    total: Amounts
    divisible: bool = True
    unseen: Amounts = NOTHING

    def beside(self, held: Iterable[Amounts], *, tells_all: bool) -> Place:
        """Return the place with `held` in use there, whatever it says: its node may have been asked at another moment.

        tells_all: it says all that is free, so what is neither free nor held is unseen.
        """
        open_room = self.total.minus(sum_of(held))
        free = self.free.at_most(open_room)
        unseen = open_room.minus(free) if tells_all else NOTHING
        # What is told of a disk is never exact.
        return replace(self, free=free, unseen=unseen if unseen.cores else NOTHING)


@dataclass(frozen=True)
class JobKind:
    """Waiting jobs of one `account` that ask for the same: `jobs` of them would start if there were room.

    name: the same in each snapshot for the same account and ask. needs: what a job takes of one place; places: on so
    many places at once; whole: the job shares no place. classes: of the places where it may run and could, were they
    empty; none: it can run nowhere. asks: what it asks beside the amounts, in the batch system's words. example: a job
    of the kind, for the administrator. starting: so many of the `jobs` will start in cores that the account holds
    already, without a job in them. planned: places where the batch system means to start jobs of the kind. barred:
    those whose free room it does not take; at: those that alone will do, none for all.
    """

    name: str
    account: str
    jobs: int
    needs: Amounts
    classes: frozenset[str]
    places: int = 1
    whole: bool = False
    asks: str = ""
    example: str = ""
    starting: int = 0
    planned: frozenset[str] = frozenset()
    barred: frozenset[str] = frozenset()
    at: frozenset[str] = frozenset()

    @property
    def cores(self) -> int:
        """Cores of one job."""
        return max(1, self.needs.cores) * self.places

    def in_words(self) -> str:
        """Return what a job asks, for an administrator."""
        words = self.needs.in_words() + (f" on each of {self.places} nodes" if self.places > 1 else "")
        words += ", the node for itself" if self.whole else ""
        return f"{words}, {self.asks}" if self.asks else words


@dataclass(frozen=True)
class RoomFor:
    """The jobs that a place has room for when the pilots that get an order there have left: a kind and how many."""

    place: str
    jobs: tuple[tuple[JobKind, int], ...]

    def in_words(self) -> str:
        """Return it for an administrator."""
        jobs = "; ".join(f"{number} of {kind.account} ({kind.in_words()})" for kind, number in self.jobs)
        return f"makes room on {self.place} for {jobs or 'a job of several nodes'}"


def kind_name(account: str, needs: Amounts, asks: str, places: int = 1, *, whole: bool = False) -> str:
    """Return the name of a kind: by all that its jobs ask, never by what the pool has just now."""
    said = "\n".join((account, needs.in_words(), asks, str(places), str(whole)))
    import hashlib  # noqa: PLC0415 - where no kinds are known, nothing is named

    return f"{account}:{needs.cores * places}c-{hashlib.sha256(said.encode('utf-8', 'replace')).hexdigest()[:8]}"


def merged(kinds: Iterable[JobKind], most: int = MOST_KINDS) -> tuple[tuple[JobKind, ...], tuple[str, ...]]:
    """Return the kinds, those of the same name together, in the order in which the first of each came.

    At most `most`, those with the most cores; sentences that name what was left out.
    """
    found: dict[str, JobKind] = {}
    for one in kinds:
        before = found.get(one.name)
        found[one.name] = (
            one
            if before is None
            else replace(
                before,
                jobs=before.jobs + one.jobs,
                starting=before.starting + one.starting,
                planned=before.planned | one.planned,
            )
        )
    if len(found) <= most:
        return tuple(found.values()), ()
    largest = sorted(found.values(), key=lambda one: -one.jobs * one.cores)
    kept = {one.name for one in largest[:most]}
    left: dict[str, int] = defaultdict(int)
    for one in largest[most:]:
        left[one.account] += one.jobs * one.cores
    shown = ", ".join(
        f"{account} ({cores} cores)" for account, cores in sorted(left.items(), key=lambda it: -it[1])[:5]
    )
    sentence = (
        f"{len(found) - most} kinds of waiting jobs beyond the {most} largest get no room of their own: of"
        f" {shown}{', …' if len(left) > 5 else ''}"
    )
    return tuple(one for one in found.values() if one.name in kept), (sentence,)
