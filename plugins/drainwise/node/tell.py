"""The site's word to one job while it runs: `.site.ad` and both shutdown files say the same."""

from __future__ import annotations

import posix

from drainwise.errors import FeatureError
from drainwise.features.values import deadline_values, earlier_deadline
from drainwise.features.write import update_directory
from drainwise.node import JOB_FEATURES, MACHINE_FEATURES
from drainwise.pilotad.site_ad import remove_site_ad, write_site_ad


def _exists(path: str) -> bool:
    try:
        posix.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return True


def tell(scratch: str, deadline: int | None, planned: int | None, now: int) -> None:
    """Bring `.site.ad` and the shutdown files of one job up to date; raises FeatureError after having tried all three.

    `deadline` is the job's own, `planned` the machine's. A planned shutdown of the machine shortens the lease without
    asking to drain now: VACATE_DESIRED stays False. A features directory that is not there (the prepare hook has not
    run yet, or the job removed it) is passed over.
    """
    faults: list[str] = []
    machine_values, job_values = deadline_values(planned, deadline, now)
    for directory, values in ((MACHINE_FEATURES, machine_values), (JOB_FEATURES, job_values)):
        path = f"{scratch}/{directory}"
        try:
            if _exists(path):
                update_directory(path, values)
        except FeatureError as error:
            faults.append(str(error))
    overdue = deadline is not None and deadline <= now
    lease_end = deadline if overdue else earlier_deadline(planned, deadline, now)
    try:
        if lease_end is None:
            remove_site_ad(scratch)
        else:
            write_site_ad(scratch, deadline is not None, lease_end)
    except FeatureError as error:
        faults.append(str(error))
    if faults:
        raise FeatureError("; ".join(faults))
