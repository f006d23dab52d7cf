"""The site's notice to one job while it runs: `.site.ad` and both shutdown files say the same.

They cannot be written in one moment, and a shutdown file without `.site.ad` means something else to a pilot: its lease
is shorter, so it drains, but may start what ends in time; and a shutdown that is planned for the machine looks like an
order. So `.site.ad` is written first and withdrawn last. In between, and where a round was cut short there, the pilot
finds the old notice or the new one, with a deadline of theirs; the next round writes what is missing.

What a client must not see (`facts.clients`) is never written, and removed where it stands.
"""

from __future__ import annotations

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


def site_notice(
    deadline: int | None,
    planned: int | None,
    now: int,
    client: ClientProfile = PAPER,
    part: PartialReturn | None = None,
    answer: Acknowledgement | None = None,
) -> SiteAd | None:
    """Return the content of `.site.ad`; None when there must not be one. Parameters as for `give_notice`. Pure."""
    if not client.site_ad:
        return None
    deadline = None if is_far(deadline, now) else deadline
    overdue = deadline is not None and deadline <= now
    lease_end = deadline if overdue else earlier_deadline(planned, deadline, now)
    if lease_end is None and part is None and answer is None:
        return None
    return SiteAd(deadline is not None, lease_end, part=part, answer=answer)


def shutdown_values(
    deadline: int | None, planned: int | None, now: int, client: ClientProfile = PAPER
) -> tuple[Values, Values]:
    """Return the machine's and the job's shutdown key as the client is to see them. Pure; see `give_notice`."""
    if not client.shutdown_files:
        return deadline_values(None, None, now)
    ordered = None if deadline is None or is_far(deadline, now) else deadline
    machine, job = (None if end is None else end + client.shown_later for end in (planned, ordered))
    return deadline_values(machine, job, now)


def write_shutdown_files(place: str, values: tuple[Values, Values]) -> None:
    """Bring the shutdown files of the features directories below `place` up to date: see `shutdown_values`.

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


def give_notice(
    scratch: str,
    deadline: int | None,
    planned: int | None,
    now: int,
    client: ClientProfile = PAPER,
    part: PartialReturn | None = None,
    answer: Acknowledgement | None = None,
) -> None:
    """Bring `.site.ad` and the shutdown files of one job up to date; raises FeatureError after having tried all three.

    `deadline` is the job's own, `planned` the machine's, `now` the time, all UNIX s. A planned shutdown of the machine
    shortens the lease without asking to drain now: VACATE_DESIRED stays False. A features directory that is not there
    (the prepare hook has not run yet, or the job removed it) is passed over. client: what it may see, and which times.
    part, answer: what is asked and acknowledged of a partial return; it changes no shutdown file.
    """
    notice = site_notice(deadline, planned, now, client, part, answer)
    steps: list[Callable[[], None]] = [
        lambda: bring_site_ad(scratch, notice),
        lambda: write_shutdown_files(scratch, shutdown_values(deadline, planned, now, client)),
    ]
    if notice is None or notice.payload_deadline is None:
        steps.reverse()
    take_all(*steps)
