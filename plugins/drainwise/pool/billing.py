"""Weigh what a job holds as the site bills it: `CPU=1,Mem=0.25G,GRES/gpu=16`, in the syntax of Slurm's
TRESBillingWeights.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drainwise.facts.units import BILLING_H, CORE_H

if TYPE_CHECKING:
    from drainwise.pool.facts import Pilot

CORES, SITE = "cores", "site"
"""What a site writes that bills cores alone, or what its batch system says."""
LEAST = 1e-3
"""A core is billed at least this: no job is free to end, whatever the site bills for it."""
_MEBIBYTES = {"": 1, "K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2}
_WEIGHT = re.compile(r"([A-Za-z][\w/:.+-]{0,63})=([0-9]{1,9}(?:\.[0-9]{1,9})?)([KMGT]?)")


@dataclass(frozen=True)
class Billing:
    """The weight of one of each resource, by its name in `pool.amounts.Amounts`; memory: of a MiB. None: the batch
    system's own, which it tells of each job.
    """

    weights: tuple[tuple[str, float], ...] | None = ((CORES, 1.0),)

    @property
    def unit(self) -> str:
        """What is billed, times hours."""
        return CORE_H if self == CORES_ALONE else BILLING_H

    def each_core(self, pilot: Pilot) -> float:
        """Return what the site bills for all that a job holds, for each of its cores; it holds its cores at least."""
        if self == CORES_ALONE:
            return 1.0
        if self.weights is None:
            return 1.0 if pilot.billed is None else max(LEAST, pilot.billed / max(1, pilot.cores))
        has = {**dict(pilot.held.named()), CORES: pilot.cores}
        return max(LEAST, sum(weight * has.get(name, 0) for name, weight in self.weights) / max(1, pilot.cores))


CORES_ALONE = Billing()
"""What a site bills that says nothing."""


def parse_billing(written: str) -> Billing:
    """Parse `cores`, `site`, or weights as Slurm's TRESBillingWeights has them. Raises ValueError for everything else.

    The names are CPU, Mem (of a MB; `0.25G`: of a GB), GRES/gpu, GRES/gpu:TYPE and GRES/NAME, in any case.
    """
    if written == CORES:
        return CORES_ALONE
    if written == SITE:
        return Billing(None)
    weights: dict[str, float] = {}
    for row in written.split(","):
        match = _WEIGHT.fullmatch(row.strip())
        if match is None:
            raise ValueError(f"{row.strip()!r} is no weight")
        name, number, unit = match[1].lower(), float(match[2]), match[3]
        known = {"cpu": CORES, "mem": "memory", "gres/gpu": "gpus"}.get(name, name.partition("gres/")[2])
        if not known or known in weights or (unit and known != "memory"):
            raise ValueError(f"{row.strip()!r} is no weight of CPU, Mem or GRES/NAME, or a second one")
        weights[known] = number / _MEBIBYTES[unit]
    if not any(weights.values()):
        raise ValueError("every weight is 0")
    return Billing(tuple(sorted(weights.items())))
