"""Write the text of PILOT_RETURN: how many of their cores the runs of a node are asked to return.

A blank-separated list of `<GlobalJobId>@<JobStart>=<cores>:<by>:<chunk>`, as `PartialReturn` has it; by is 0 where the
wish has no end. It ends no pilot and frees no core, but becomes part of a daemon's configuration as the orders do:
nothing enters it that does not match a strict pattern.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from drainwise.facts.errors import ActionRefused
from drainwise.htcondor.knobs.orders import is_run
from drainwise.htcondor.node.parts import asked_of
from drainwise.pilotad.partial_return import PartialReturn

RETURN_KNOB = "PILOT_RETURN"

_NUMBERS = re.compile(r"[0-9]{1,9}:(0|[1-9][0-9]{8,9}):[1-9][0-9]{0,8}")


def with_part(present: str, run: str, wish: PartialReturn, running: Collection[str]) -> str:
    """Return the knob's value with this wish to a run in the place of an earlier one, and those of the other runs.

    running: the node's runs; what stands for others is spent, and left out with what is no wish. A wish for 0 cores
    stays as such, so that the list is never empty. Raises ActionRefused for a run or a number that no wish may have.
    """
    word = f"{run}={wish.cores}:{wish.by or 0}:{wish.chunk}"
    if not is_run(run) or not _NUMBERS.fullmatch(word.rpartition("=")[2]):
        raise ActionRefused(f"{word[:80]!r} cannot be asked of a run: not a job id, start and three numbers")
    others = {one.rpartition("=")[0]: one for one in present.split() if _NUMBERS.fullmatch(one.rpartition("=")[2])}
    kept = [one for name, one in others.items() if name in running and name != run and is_run(name)]
    return " ".join((*kept, word))


def is_asked(value: str, run: str, wish: PartialReturn) -> bool:
    """Decide whether a knob has this wish to a run."""
    return asked_of(run, value) == wish
