"""What is lost when a pilot drains until a deadline and is cut there: for numbers and arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drainwise.waste import at_least, at_most

if TYPE_CHECKING:
    from drainwise.waste import Quantity


def cut_waste(
    cores: Quantity,
    used: Quantity,
    last_start: Quantity,
    first_end: Quantity,
    last_end: Quantity,
    uncommitted: Quantity,
    final: Quantity,
    now: Quantity,
    deadline: Quantity,
) -> tuple[Quantity, Quantity]:
    """Core-seconds that idle until `deadline` when the pilot drains from now on, and those lost when it is cut there.

    Times in UNIX s, cores and used in cores, uncommitted (f × cores) and final (i × cores) in core-seconds.
    Until the first expected end (h) the `used` cores stay busy. From h to the last (g) the pilot told only the integral
    of its idle cores, i × cores; it counts as evenly spread, so cores − i·cores/(g − h) are busy in between:
        idle = (cores − used)·(min(T, h) − now) + (i·cores/(g − h))·(T − h)⁺
        lost = share·(f·cores + used·(T − e))    share = of the cores busy now, those still busy at T
    Before h all payloads are still running at T: lost is then exactly the kill waste at T.

    In this, idle + lost grows by `cores` for each second that T is later, save that it falls at h and at g. So of all
    deadlines until a limit the best are now (a kill), h, and g (the pilot leaves by itself): there is no need to look
    at others.
    """
    first = at_least(first_end, now)
    last = at_least(last_end, first)
    span = at_least(last - first, 1)
    tail = at_most(at_least(deadline - first, 0), last - first)
    busy = at_most(at_least(cores - final / span, 0), used)
    idle = (cores - used) * (at_most(deadline, first) - now) + (cores - busy) * tail
    share = (deadline < first) + (deadline >= first) * (deadline < last) * busy / at_least(used, 1e-9)
    return idle, share * (uncommitted + used * at_least(deadline - last_start, 0))
