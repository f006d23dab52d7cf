"""A pilot's claim of the cores in use, and of those that it keeps, held against what its node sees. Pure.

Two claims cannot be so: cores in use where for minutes nothing works, nothing waits for a disk and no CPU time is used;
and none in use where half of the cores or more work. What lies between is nobody's lie: payloads begin, copy and wait.
"""

from __future__ import annotations

from drainwise.facts import fact

_CLAIMED = 0.25  # part of the cores that must be claimed for nothing to be too little
_NOTHING = 0.01  # part of the claimed cores whose work counts as nothing
_MORE_CORES, _MORE_SHARE = 0.5, 0.1  # cores, and part of the kept ones, by which more may work than were kept
_BUSY, _NONE = 0.5, 0.05  # parts of the cores: that work though none is claimed


@fact
class Working:
    """How a whole job works: cores busy since the last look, whether a process of its runs or waits for a disk.

    elsewhere: whether its payloads may be where they are not seen: below the daemon of a container.
    """

    cores_busy: float
    is_active: bool
    elsewhere: bool


@fact
class KeptCores:
    """What a job has not returned, by its own statement, and the time of that statement, UNIX s."""

    cores: int
    since: int


def is_over(kept: KeptCores, working: Working, from_time: float) -> bool | None:
    """Decide whether a job worked on more cores than it kept; None where it stated so later than `from_time` (UNIX s).

    from_time: since when that is measured.
    """
    if kept.since > from_time or working.elsewhere:
        return None
    return working.cores_busy > kept.cores + max(_MORE_CORES, _MORE_SHARE * kept.cores)


def is_wrong(claimed: float, working: Working, cores: int) -> bool:
    """Decide whether a claim of so many cores in use cannot be so at this look; cores: of the job."""
    if working.elsewhere:
        return False
    if claimed >= max(1.0, _CLAIMED * cores):
        return not working.is_active and working.cores_busy < _NOTHING * claimed
    return claimed <= _NONE * cores and working.cores_busy >= max(1.0, _BUSY * cores)


def wrong_since(wrong: bool, before: int, now: int) -> int:
    """Return since when the claim has been wrong, UNIX s; 0 while it is not. before: what the last look found."""
    return (min(before, now) if before else now) if wrong else 0


def contradicts(since: int, now: int, after: int) -> bool:
    """Decide whether a claim that has been wrong since then contradicts what is seen; UNIX s, 0: it is not wrong.

    after: seconds for which it must have been wrong, at each look and at two at least.
    """
    return bool(since) and now - since >= after
