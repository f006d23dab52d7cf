"""The site's word to one job while it runs: `.site.ad` and both shutdown files say the same.

They cannot be written in one moment, and a shutdown file without `.site.ad` means something else to a pilot: its lease
is shorter, so it drains, but may start what ends in time; and a shutdown that is planned for the machine looks like an
order. So `.site.ad` is written first and taken back last. In between, and where a round was cut short there, the pilot
finds the old word or the new one, with a deadline of theirs; the next round writes what is missing.
"""

from __future__ import annotations

import posix

from drainwise.errors import FeatureError
from drainwise.features.values import deadline_values, earlier_deadline
from drainwise.features.write import update_directory
from drainwise.node import JOB_FEATURES, MACHINE_FEATURES
from drainwise.pilotad.site_ad import SiteAd, remove_site_ad, write_site_ad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def _exists(path: str) -> bool:
    try:
        posix.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return True


def site_word(deadline: int | None, planned: int | None, now: int) -> SiteAd | None:
    """What `.site.ad` has to say; None when there must not be one. Parameters as for `tell`. Pure."""
    overdue = deadline is not None and deadline <= now
    lease_end = deadline if overdue else earlier_deadline(planned, deadline, now)
    return None if lease_end is None else SiteAd(deadline is not None, lease_end)


def tell_features(place: str, deadline: int | None, planned: int | None, now: int) -> None:
    """Bring the shutdown files of the features directories below `place` up to date. Parameters as for `tell`.

    A directory that is not there is passed over. Raises FeatureError after having tried both.
    """
    faults: list[str] = []
    machine_values, job_values = deadline_values(planned, deadline, now)
    for directory, values in ((MACHINE_FEATURES, machine_values), (JOB_FEATURES, job_values)):
        path = f"{place}/{directory}"
        try:
            if _exists(path):
                update_directory(path, values)
        except FeatureError as error:
            faults.append(str(error))
    if faults:
        raise FeatureError("; ".join(faults))


def tell_pilot(directory: int | str, word: SiteAd | None) -> None:
    """Bring `.site.ad` in a directory (a descriptor or a path) up to date, as its owner. Raises FeatureError."""
    if word is None:
        remove_site_ad(directory)
    else:
        write_site_ad(directory, word.vacate_desired, word.payload_deadline)


def tell(scratch: str, deadline: int | None, planned: int | None, now: int) -> None:
    """Bring `.site.ad` and the shutdown files of one job up to date; raises FeatureError after having tried all three.

    `deadline` is the job's own, `planned` the machine's, `now` the time, all UNIX s. A planned shutdown of the machine
    shortens the lease without asking to drain now: VACATE_DESIRED stays False. A features directory that is not there
    (the prepare hook has not run yet, or the job removed it) is passed over.
    """
    word = site_word(deadline, planned, now)
    faults: list[str] = []
    steps: list[Callable[[], None]] = [
        lambda: tell_pilot(scratch, word),
        lambda: tell_features(scratch, deadline, planned, now),
    ]
    if word is None:
        steps.reverse()
    for step in steps:
        try:
            step()
        except FeatureError as error:
            faults.append(str(error))
    if faults:
        raise FeatureError("; ".join(faults))
