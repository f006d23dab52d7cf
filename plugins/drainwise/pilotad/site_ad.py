"""`.site.ad`: the site notice to one pilot. Written as the job's user into the job's directory; read by the pilot."""

from __future__ import annotations

import posix

from drainwise.common.local_file import replace_file
from drainwise.facts import fact
from drainwise.facts.errors import RefusedFile
from drainwise.pilotad.attributes import (
    HELD_CORES,
    PAYLOAD_DEADLINE,
    RETURN_BY,
    RETURN_CHUNK,
    RETURN_CORES,
    RETURN_SEEN,
    SITE_AD,
    SITE_AD_RUN,
    USABLE_CORES,
    VACATE_DESIRED,
)
from drainwise.pilotad.partial_return import Acknowledgement, PartialReturn
from drainwise.pilotad.pilot_ad import known_values
from drainwise.pilotad.safe_open import JobDirectory, not_written, open_dir, read_file
from drainwise.pilotad.values import count, flag, unix_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from drainwise.pilotad.pilot_ad import Value

SITE_AD_LIMIT = 4096
"""Bytes the file may hold."""

_RUN_SIGNS = b"0123456789@"
_LONGEST_RUN = 32


def _run(text: bytes) -> str | None:
    """Read the name of a run of a job, in quotes; None for anything else."""
    name = text[1:-1]
    quoted = len(text) > 2 and text[:1] == text[-1:] == b'"'
    return name.decode("ascii") if quoted and len(name) <= _LONGEST_RUN and not name.strip(_RUN_SIGNS) else None


_ROWS = {
    VACATE_DESIRED.encode(): (VACATE_DESIRED, flag),
    PAYLOAD_DEADLINE.encode(): (PAYLOAD_DEADLINE, unix_time),
    SITE_AD_RUN.encode(): (SITE_AD_RUN, _run),
    RETURN_CORES.encode(): (RETURN_CORES, count),
    RETURN_BY.encode(): (RETURN_BY, unix_time),
    RETURN_CHUNK.encode(): (RETURN_CHUNK, count),
    RETURN_SEEN.encode(): (RETURN_SEEN, unix_time),
    USABLE_CORES.encode(): (USABLE_CORES, count),
    HELD_CORES.encode(): (HELD_CORES, count),
}


@fact
class SiteAd:
    """The paper's table 2. vacate_desired: start draining. payload_deadline: the lease's new end, UNIX s, or None.

    run: the run of a job that it is for, job and start (`17@1795248000`), "" where it lies in a place of that job's.
    part, answer: of a partial return, which the paper does not have.
    """

    vacate_desired: bool
    payload_deadline: int | None = None
    run: str = ""
    part: PartialReturn | None = None
    answer: Acknowledgement | None = None


def site_ad_text(ad: SiteAd) -> bytes:
    """Write the file's content."""
    content = f"{VACATE_DESIRED} = {ad.vacate_desired}\n"
    if ad.payload_deadline is not None:
        content += f"{PAYLOAD_DEADLINE} = {ad.payload_deadline}\n"
    if ad.run:
        content += f'{SITE_AD_RUN} = "{ad.run}"\n'
    if ad.part is not None:
        content += f"{RETURN_CORES} = {ad.part.cores}\n"
        if ad.part.by is not None:
            content += f"{RETURN_BY} = {ad.part.by}\n"
        if ad.part.chunk > 1:
            content += f"{RETURN_CHUNK} = {ad.part.chunk}\n"
    if ad.answer is not None:
        content += f"{RETURN_SEEN} = {ad.answer.since}\n{USABLE_CORES} = {ad.answer.usable}\n"
        if ad.answer.held is not None:
            content += f"{HELD_CORES} = {ad.answer.held}\n"
    return content.encode("ascii")


def write_site_ad(
    directory: int | str,
    vacate_desired: bool,
    payload_deadline: int | None = None,
    part: PartialReturn | None = None,
    answer: Acknowledgement | None = None,
) -> bool:
    """Make `.site.ad` in `directory` (a descriptor or a path) say this; True when it had to be written.

    payload_deadline: UNIX s. part, answer: of a partial return. A file that says it already is left alone, so its mtime
    is the time of the order; one that the user deleted, changed or replaced by something else is written again. Raises
    FeatureError.
    """
    wanted = site_ad_text(SiteAd(vacate_desired, payload_deadline, "", part, answer))
    with JobDirectory(directory) as dir_fd:
        try:
            if read_file(dir_fd, SITE_AD, posix.geteuid(), SITE_AD_LIMIT)[0] == wanted:
                return False
        except RefusedFile:
            pass  # absent, or nothing we wrote: the rename puts ours in its place
        try:
            replace_file(SITE_AD, wanted, dir_fd)
        except OSError as error:
            raise not_written(SITE_AD, error) from error
    return True


def remove_site_ad(directory: int | str) -> bool:
    """Remove `.site.ad`: no draining is requested (any more); True when there was one. Raises FeatureError."""
    with JobDirectory(directory) as dir_fd:
        try:
            posix.unlink(SITE_AD, dir_fd=dir_fd)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise not_written(SITE_AD, error) from error
    return True


def read_site_ad(directory: int | str, uid: int | None = None) -> tuple[SiteAd | None, str]:
    """Return the site notice in `directory`, and its fault ("" for none); for pilots, never raises.

    uid: the owner the file must have (None: any). No file: (None, "absent"), no draining is requested.
    A deadline or a partial return that makes no sense is left out and named; without a sound VACATE_DESIRED there is
    no order.
    """
    try:
        dir_fd = directory if isinstance(directory, int) else open_dir(directory)
        try:
            data = read_file(dir_fd, SITE_AD, uid, SITE_AD_LIMIT)[0]
        finally:
            if dir_fd != directory:
                posix.close(dir_fd)
    except RefusedFile as refused:
        return None, refused.reason
    return parse_site_ad(data)


def parse_site_ad(data: bytes) -> tuple[SiteAd | None, str]:
    """Parse as `read_site_ad`, from the file's bytes. Pure."""
    values = known_values(data, _ROWS)
    vacate = values.get(VACATE_DESIRED)
    if vacate is None:
        return None, f"no sound {VACATE_DESIRED}"
    deadline = values.get(PAYLOAD_DEADLINE, 0)
    part, part_fault = _part(values)
    answer, answer_fault = _answer(values)
    fault = PAYLOAD_DEADLINE if deadline is None else part_fault or answer_fault
    run = str(values.get(SITE_AD_RUN) or "")
    ad = SiteAd(bool(vacate), int(deadline) if deadline else None, run, part, answer)
    return ad, f"no sound {fault}" if fault else ""


def _part(values: Mapping[str, Value]) -> tuple[PartialReturn | None, str]:
    """Return what the site asks for, and the name of what makes no sense: then nothing is asked."""
    if RETURN_CORES not in values:
        return None, ""
    cores, by, chunk = values[RETURN_CORES], values.get(RETURN_BY, 0), values.get(RETURN_CHUNK, 1)
    if cores is None or by is None or not chunk:
        return None, RETURN_CORES if cores is None else RETURN_BY if by is None else RETURN_CHUNK
    return PartialReturn(int(cores), int(by) or None, int(chunk)), ""


def _answer(values: Mapping[str, Value]) -> tuple[Acknowledgement | None, str]:
    """Return what the site acknowledges, and the name of what makes no sense: then nothing is acknowledged."""
    if RETURN_SEEN not in values:
        return None, ""
    since, usable, held = values[RETURN_SEEN], values.get(USABLE_CORES), values.get(HELD_CORES)
    if since is None or not usable:
        return None, RETURN_SEEN if since is None else USABLE_CORES
    return Acknowledgement(int(since), int(usable), None if held is None else int(held)), ""
