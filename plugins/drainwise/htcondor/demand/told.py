"""Define what a pool tells of its demand: the idle jobs as the access points have them, the places of the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from drainwise.pool.amounts import Amounts


@dataclass(frozen=True)
class IdleJobs:
    """Idle jobs of one submitter at one access point that ask for the same.

    priority: JobPrio, larger first. first: the first job, (cluster, process). asks: their requirements beside the
    amounts, with the job's own values put in; key: all by which they match otherwise than other jobs. ad: the text of a
    ClassAd with what matching needs. classes: of the places where they may run and could, were they empty; None where
    that could not be found out. limits: what each job takes of concurrency limits, by their names. whole: it takes all
    of a place, however large.
    """

    schedd: str
    submitter: str
    jobs: int
    needs: Amounts
    priority: int = 0
    first: tuple[int, int] = (0, 0)
    asks: str = ""
    key: str = ""
    ad: str = ""
    classes: frozenset[str] | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    whole: bool = False


class SeenPlace(NamedTuple):
    """A slot that is not dynamic and takes jobs: `free` as it says itself, `heard` of at that UNIX time (s).

    is_unclaimed: its state, which is that of what is free.
    """

    name: str
    machine: str
    node_class: str
    free: Amounts
    total: Amounts
    divisible: bool
    heard: int | None
    is_unclaimed: bool = True


@dataclass(frozen=True)
class Told:
    """What was told. silent: why an access point did not tell its jobs, by its name; notices: what is not exact.

    limits_left: what is left of concurrency limits, by their names; one that is not there is not known.
    """

    places: Sequence[SeenPlace] = ()
    jobs: Sequence[IdleJobs] = ()
    answered: frozenset[str] = frozenset()
    silent: Mapping[str, str] = field(default_factory=dict)
    notices: Sequence[str] = ()
    limits_left: Mapping[str, float] = field(default_factory=dict)
