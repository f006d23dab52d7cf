"""How strong a core of this job is: `hs06_job / allocated_cpu` of $JOBFEATURES, as the inverse of cpuTime needs it."""

from __future__ import annotations

from collections.abc import Mapping

from drainwise.errors import DrainwiseError
from drainwise.features.read import open_features


def core_power_here(environment: Mapping[str, str], cores: int) -> float | None:
    """HS06 of one core of this job; None when the site does not say, or says nothing that could be read.

    cores: of the job, where $JOBFEATURES does not say. Source: HSF-TN-2016-02.
    """
    location = environment.get("JOBFEATURES")
    if not location:
        return None
    try:
        reader = open_features(location)
        power = reader.decimal("hs06_job")
        allocated = reader.integer("allocated_cpu") or reader.integer("allocated_CPU") or cores
    except DrainwiseError:
        return None
    return None if power is None or allocated < 1 else power / allocated
