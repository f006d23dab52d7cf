"""`.site.ad`: the site notice to one pilot. Written as the job's user into the job's directory; read by the pilot."""

from __future__ import annotations

import posix

from drainwise.common.local_file import replace_file
from drainwise.facts import fact
from drainwise.facts.errors import RefusedFile
from drainwise.pilotad.attributes import ATTRIBUTES, COUNT, FLAG, PILOT_AD, SITE_AD, SITE_AD_RUN, TIME
from drainwise.pilotad.partial_return import Acknowledgement, PartialReturn
from drainwise.pilotad.pilot_ad import known_values
from drainwise.pilotad.safe_open import JobDirectory, open_dir, read_file
from drainwise.pilotad.values import READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VACATE_DESIRED = "VACATE_DESIRED"
PAYLOAD_DEADLINE = "PAYLOAD_DEADLINE"
RETURN_CORES = "RETURN_CORES"
"""How many cores the pilot is to have returned in all; see `partial_return`."""
RETURN_BY = "RETURN_BY"
RETURN_CHUNK = "RETURN_CHUNK"
RETURN_SEEN = "RETURN_SEEN"
CHECKPOINT_DESIRED = "CHECKPOINT_DESIRED"
"""Whether the pilot is to save its work, if it can do so on demand; with each order."""
CHECKPOINT_BY = "CHECKPOINT_BY"
USABLE_CORES = "USABLE_CORES"
HELD_CORES = "HELD_CORES"

SITE_AD_LIMIT = 4096
"""Bytes the file may hold."""

_SAVING = next(row for row in ATTRIBUTES if row.field == "checkpoint_seconds")
_RUN_SIGNS = b"0123456789@"
_LONGEST_RUN = 32


def _run(text: bytes) -> str | None:
    """Read the name of a run of a job, in quotes; None for anything else."""
    name = text[1:-1]
    quoted = len(text) > 2 and text[:1] == text[-1:] == b'"'
    return name.decode("ascii") if quoted and len(name) <= _LONGEST_RUN and not name.strip(_RUN_SIGNS) else None


_KINDS = {
    VACATE_DESIRED: FLAG,
    PAYLOAD_DEADLINE: TIME,
    RETURN_CORES: COUNT,
    RETURN_BY: TIME,
    RETURN_CHUNK: COUNT,
    RETURN_SEEN: TIME,
    USABLE_CORES: COUNT,
    HELD_CORES: COUNT,
    CHECKPOINT_DESIRED: FLAG,
    CHECKPOINT_BY: TIME,
}
_ROWS = {
    SITE_AD_RUN.encode(): (SITE_AD_RUN, _run),
    **{name.encode(): (name, READ[kind]) for name, kind in _KINDS.items()},
}


@fact
class SiteAd:
    """The paper's table 2. vacate_desired: start draining. payload_deadline: the lease's new end, UNIX s, or None.

    run: the run of a job that it is for, job and start (`17@1795248000`), "" where it lies in a place of that job's.
    part, answer: of a partial return, which the paper does not have. checkpoint_by: until when the pilot is asked to
    save its work, UNIX s; None where it is not. Who states how long that takes is asked with each order.
    """

    vacate_desired: bool
    payload_deadline: int | None = None
    run: str = ""
    part: PartialReturn | None = None
    answer: Acknowledgement | None = None
    checkpoint_by: int | None = None


def site_ad_text(ad: SiteAd) -> bytes:
    """Write the file's content."""
    part, answer = ad.part, ad.answer
    values: dict[str, object] = {VACATE_DESIRED: ad.vacate_desired, PAYLOAD_DEADLINE: ad.payload_deadline}
    values[SITE_AD_RUN] = f'"{ad.run}"' if ad.run else None
    if part is not None:
        values |= {RETURN_CORES: part.cores, RETURN_BY: part.by, RETURN_CHUNK: part.chunk if part.chunk > 1 else None}
    if answer is not None:
        values |= {RETURN_SEEN: answer.since, USABLE_CORES: answer.usable, HELD_CORES: answer.held}
    if ad.checkpoint_by is not None:
        values |= {CHECKPOINT_DESIRED: True, CHECKPOINT_BY: ad.checkpoint_by}
    return "".join(f"{name} = {value}\n" for name, value in values.items() if value is not None).encode("ascii")


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
    with JobDirectory(directory, SITE_AD) as dir_fd:
        save_by = payload_deadline if vacate_desired and _saves_on_demand(dir_fd) else None
        wanted = site_ad_text(SiteAd(vacate_desired, payload_deadline, "", part, answer, save_by))
        try:
            if read_file(dir_fd, SITE_AD, posix.geteuid(), SITE_AD_LIMIT)[0] == wanted:
                return False
        except RefusedFile:
            pass  # absent, or nothing we wrote: the rename puts ours in its place
        replace_file(SITE_AD, wanted, dir_fd)
    return True


def _saves_on_demand(dir_fd: int) -> bool:
    """Decide whether the pilot whose directory this is, or whose `$JOBSTATUS`, states how long saving takes."""
    for name, row in ((PILOT_AD, _SAVING.ad_name), (_SAVING.status_name, "")):
        try:
            data = read_file(dir_fd, name, posix.geteuid(), SITE_AD_LIMIT)[0]
        except RefusedFile:
            continue
        if not row or known_values(data, {row.encode(): (row, READ[COUNT])}).get(row) is not None:
            return True
    return False


def remove_site_ad(directory: int | str) -> bool:
    """Remove `.site.ad`: no draining is requested (any more); True when there was one. Raises FeatureError."""
    with JobDirectory(directory, SITE_AD) as dir_fd:
        try:
            posix.unlink(SITE_AD, dir_fd=dir_fd)
        except FileNotFoundError:
            return False
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
    values: dict[str, Any] = {RETURN_BY: 0, RETURN_CHUNK: 1}
    values |= known_values(data, _ROWS)
    if values.get(VACATE_DESIRED) is None:
        return None, f"no sound {VACATE_DESIRED}"
    part = answer = None
    unsound = [PAYLOAD_DEADLINE] if values.get(PAYLOAD_DEADLINE, 0) is None else []
    if RETURN_CORES in values:
        odd = [name for name in (RETURN_CORES, RETURN_BY) if values[name] is None]
        odd += [] if values[RETURN_CHUNK] else [RETURN_CHUNK]
        unsound += odd
        part = None if odd else PartialReturn(values[RETURN_CORES], values[RETURN_BY] or None, values[RETURN_CHUNK])
    if RETURN_SEEN in values:
        odd = [name for name in (RETURN_SEEN, USABLE_CORES) if not values.get(name)]
        unsound += odd
        answer = None if odd else Acknowledgement(values[RETURN_SEEN], values[USABLE_CORES], values.get(HELD_CORES))
    run = values.get(SITE_AD_RUN) or ""
    save_by = values.get(CHECKPOINT_BY) if values.get(CHECKPOINT_DESIRED) else None
    unsound += [CHECKPOINT_BY] if values.get(CHECKPOINT_DESIRED) and save_by is None else []
    ad = SiteAd(values[VACATE_DESIRED], values.get(PAYLOAD_DEADLINE), run, part, answer, save_by)
    return ad, f"no sound {unsound[0]}" if unsound else ""
