"""The site's notice to one job while it runs: `.site.ad` and both shutdown files say the same.

They cannot be written in one moment, and a shutdown file without `.site.ad` means something else to a pilot: its lease
is shorter, so it drains, but may start what ends in time; and a shutdown that is planned for the machine looks like an
order. So `.site.ad` is written first and withdrawn last. In between, and where a round was cut short there, the pilot
finds the old notice or the new one, with a deadline of theirs; the next round writes what is missing.

What a client must not see (`facts.clients`) is never written, and removed where it stands.
"""

from __future__ import annotations

from drainwise.facts import fact
from drainwise.facts.clients import PAPER
from drainwise.facts.errors import FeatureError
from drainwise.features.facts import HostFacts, deadline_values, earlier_deadline, machine_values
from drainwise.features.write import update_directory
from drainwise.node import JOB_FEATURES, MACHINE_FEATURES
from drainwise.node.hook import status_of
from drainwise.pilotad.site_ad import SiteAd, remove_site_ad, write_site_ad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from drainwise.facts.clients import ClientProfile
    from drainwise.features.facts import Values
    from drainwise.pilotad.partial_return import Acknowledgement, PartialReturn

_FARTHEST = 365 * 86400  # seconds ahead: Slurm gives a lease without end a year; what is so far is no deadline


def is_far(deadline: int | None, now: int) -> bool:
    """Decide whether a deadline is so far ahead of `now` (UNIX s) that it is none: no pilot is told of it."""
    return deadline is not None and deadline - now >= _FARTHEST


@fact
class SiteNotice:
    """What a site tells one run: `deadline` is the job's own, `planned` the machine's, UNIX s.

    A planned shutdown of the machine shortens the lease without asking to drain now: VACATE_DESIRED stays False.
    client: what it may see, and which times. part, answer: what is asked and acknowledged of a partial return; it
    changes no shutdown file.
    """

    deadline: int | None = None
    planned: int | None = None
    client: ClientProfile = PAPER
    part: PartialReturn | None = None
    answer: Acknowledgement | None = None

    def site_ad(self, now: int) -> SiteAd | None:
        """Return the content of `.site.ad` at `now` (UNIX s); None when there must not be one."""
        if not self.client.site_ad:
            return None
        deadline = None if is_far(self.deadline, now) else self.deadline
        overdue = deadline is not None and deadline <= now
        lease_end = deadline if overdue else earlier_deadline(self.planned, deadline, now)
        if lease_end is None and self.part is None and self.answer is None:
            return None
        return SiteAd(deadline is not None, lease_end, part=self.part, answer=self.answer)

    def shutdown_values(self, now: int) -> tuple[Values, Values]:
        """Return the machine's and the job's shutdown key as the client is to see them at `now` (UNIX s)."""
        if not self.client.shutdown_files:
            return deadline_values(None, None, now)
        ordered = None if is_far(self.deadline, now) else self.deadline
        later = self.client.shown_later
        machine, job = (None if end is None else end + later for end in (self.planned, ordered))
        return deadline_values(machine, job, now)


def write_shutdown_files(place: str, values: tuple[Values, Values]) -> None:
    """Bring the shutdown files of the features directories below `place` up to date: see `SiteNotice`.

    A directory that is not there is passed over. Raises FeatureError after having tried both.
    """
    machine, job = f"{place}/{MACHINE_FEATURES}", f"{place}/{JOB_FEATURES}"
    take_all(lambda: _update(machine, values[0]), lambda: _update(job, values[1]))


def take_all(*steps: Callable[[], object]) -> None:
    """Take all steps; raises FeatureError afterwards, with the reasons of all that did."""
    faults: list[str] = []
    for step in steps:
        try:
            step()
        except FeatureError as error:
            faults.append(str(error))
    if faults:
        raise FeatureError("; ".join(faults))


def _update(path: str, values: Values) -> None:
    if status_of(path) is not None:
        update_directory(path, values)


def write_job_slots(place: str, slots: int | None) -> None:
    """Bring `jobslots` below `place` up to date, which may change with a reconfiguration; raises FeatureError.

    One that is not known (any more) stays as it is; a directory that is not there is passed over.
    """
    text = None if slots is None else machine_values(HostFacts(jobslots=slots))["jobslots"]
    if text is not None:
        _update(f"{place}/{MACHINE_FEATURES}", {"jobslots": text})


def bring_site_ad(directory: int | str, notice: SiteAd | None) -> None:
    """Bring `.site.ad` in a directory (a descriptor or a path) up to date, as its owner. Raises FeatureError."""
    if notice is None:
        remove_site_ad(directory)
    else:
        write_site_ad(directory, notice.vacate_desired, notice.payload_deadline, notice.part, notice.answer)


def give_notice(scratch: str, notice: SiteNotice, now: int) -> None:
    """Bring `.site.ad` and the shutdown files of one job up to date; raises FeatureError after having tried all three.

    now: UNIX s. A features directory that is not there (the prepare hook has not run yet, or the job removed it) is
    passed over.
    """
    ad = notice.site_ad(now)
    steps: list[Callable[[], None]] = [
        lambda: bring_site_ad(scratch, ad),
        lambda: write_shutdown_files(scratch, notice.shutdown_values(now)),
    ]
    if ad is None or ad.payload_deadline is None:
        steps.reverse()
    take_all(*steps)
