"""A node's sign of life: what its agent writes into the node's Extra, where that is nobody else's. Both directions.

    {"drainwise":1,"version":"0.1.0","at":1795249000}

`at` is the node's own time, UNIX s. Only root and operators may change a node's Extra, slurmctld keeps it, and `sinfo`
shows it with everything else.
"""

from __future__ import annotations

import re

from drainwise import __version__
from drainwise.slurm.jobs.admin_comment import published_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from drainwise.slurm.jobs.job import SlurmJob

_SIGN = re.compile(r'\{"drainwise":\d{1,3},"version":"([a-z0-9.+-]{1,32})","at":(\d{1,12})[^\s|]{0,200}\}')


def sign_text(now: int) -> str:
    """Return what stands in Extra of a node that lives at `now` (UNIX s)."""
    return f'{{"drainwise":1,"version":"{__version__}","at":{now}}}'


def sign_in(extra: str) -> tuple[int, str] | None:
    """Return when a node last gave a sign (UNIX s) and its version, by its Extra; None where that is none of ours."""
    found = _SIGN.fullmatch(extra)
    return (int(found[2]), found[1]) if found else None


def signs_of(
    jobs: Iterable[SlurmJob], extras: Iterable[tuple[str, str]]
) -> tuple[dict[str, tuple[int, str]], frozenset[str]]:
    """Return of each node its last sign of life (UNIX s) and version: by its Extra, and by the comments of what runs.

    extras: the name of a node and its Extra. Returned, too, the nodes that should give signs: none while no Extra has
    one, as by an earlier drainwise. A node whose Extra is somebody else's can give none without a job that reports, so
    its silence means nothing.
    """
    free, found = set[str](), dict[str, tuple[int, str]]()
    for node, extra in extras:
        if not extra:
            free.add(node)
        elif (sign := sign_in(extra)) is not None:
            found[node] = sign
    awaited = frozenset(free | found.keys() if found else ())
    for said in (published_of(job) for job in jobs if job.runs):
        if said is not None:
            found[said.node] = max((said.report.heartbeat, said.version), found.get(said.node, (0, "")))
    return found, awaited
