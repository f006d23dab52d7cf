"""As a job's user: `.site.ad` in the job's WorkDir, for pilots that look nowhere else.

The directory is the user's, and what lies there is, too: only a file that names a run of a job (SITE_AD_RUN) was made
here, and nothing else is ever replaced or removed. It must be the user's own directory, and no link: everybody's, such
as /tmp, has other users' pilots in it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from drainwise.common.local_file import create_file
from drainwise.facts.errors import RefusedFile
from drainwise.pilotad.attributes import SITE_AD
from drainwise.pilotad.safe_open import read_file, reason_of
from drainwise.pilotad.site_ad import SITE_AD_LIMIT, SiteAd, parse_site_ad, site_ad_text

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LEFT_OVER = 3600
"""Seconds after its deadline when a notice is a left-over: slurmctld has ended that run long ago."""
_LINKED = "hard link"


@dataclass(frozen=True)
class WorkDirTask:
    """A task for one job's WorkDir. `key`: how its result names it. `run`: job and start, `17@1795248000`.

    notice: the content of the file, None where there must be none. alone: whether no other job of the user's has the
    directory, as far as names tell; others: WorkDirs of these other jobs, which may be the same by another name.
    temporary: the name of the new file until it is whole; no other node has the same.
    """

    key: str
    work_dir: bytes
    uid: int
    run: str
    temporary: str
    notice: SiteAd | None
    alone: bool = True
    others: tuple[bytes, ...] = ()


def bring_to_work_dir(task: WorkDirTask) -> tuple[bool, str]:
    """Bring the file up to date; whether it stands there afterwards, and what was in the way ("" for nothing)."""
    try:
        directory = os.open(task.work_dir, _DIRECTORY)
    except OSError:
        return False, ""  # absent, a link, or not for this user: nothing of ours can be there
    try:
        status = os.fstat(directory)
        if status.st_uid != task.uid:
            return False, ""
        alone = task.alone and not _is_any_of(status, task.others)
        return _brought(directory, task, alone)
    except OSError as error:
        return False, f"WorkDir: {SITE_AD}: {reason_of(error)}"
    finally:
        os.close(directory)


def remove_left_over(directory: int, uid: int, now: int) -> None:
    """Remove a notice whose deadline has been over for long, in an open WorkDir: its node was lost before it could.

    uid: the user's, whose directory it must be; now: UNIX s. Raises nothing.
    """
    with suppress(OSError, RefusedFile):
        if os.fstat(directory).st_uid != uid:
            return
        ad = parse_site_ad(read_file(directory, SITE_AD, uid, SITE_AD_LIMIT)[0])[0]
        if ad is not None and ad.run and ad.payload_deadline is not None and ad.payload_deadline < now - LEFT_OVER:
            os.unlink(SITE_AD, dir_fd=directory)


def _is_any_of(status: os.stat_result, others: Iterable[bytes]) -> bool:
    for other in others:
        with suppress(OSError, ValueError):
            if os.path.samestat(status, os.stat(other)):
                return True
    return False


def _brought(directory: int, task: WorkDirTask, alone: bool) -> tuple[bool, str]:
    data, reason = _there(directory, task)
    stands = parse_site_ad(data)[0] if data is not None else None
    run = stands.run if stands is not None else ""
    if task.notice is None or not alone:
        if run and (alone or run == task.run):  # alone: the job of another run has ended and left it
            os.unlink(SITE_AD, dir_fd=directory)
        return False, ""
    wanted = site_ad_text(SiteAd(task.notice.vacate_desired, task.notice.payload_deadline, task.run))
    if data == wanted:
        return True, ""
    if reason != "absent" and not run:
        return False, f"WorkDir: {SITE_AD} there is somebody's own ({reason or 'it names no run'}) and left alone"
    _put(directory, task.temporary, wanted, is_ours=bool(run))
    return True, ""


def _there(directory: int, task: WorkDirTask) -> tuple[bytes | None, str]:
    """Return what stands there, and why it cannot be read ("" where it can)."""
    for _ in range(2):
        try:
            return read_file(directory, SITE_AD, task.uid, SITE_AD_LIMIT)[0], ""
        except RefusedFile as refused:
            reason = refused.reason
        if reason != _LINKED:
            break
        _clear(directory, task.temporary)  # of one who was stopped between two steps
    return None, reason


def _put(directory: int, temporary: str, content: bytes, is_ours: bool) -> None:
    """Put a whole file there: by rename in place of one of ours, else by a link, which replaces nothing."""
    _clear(directory, temporary)
    create_file(temporary, content, directory)
    try:
        if is_ours:
            os.rename(temporary, SITE_AD, src_dir_fd=directory, dst_dir_fd=directory)
        else:
            os.link(temporary, SITE_AD, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    finally:
        _clear(directory, temporary)


def _clear(directory: int, temporary: str) -> None:
    with suppress(FileNotFoundError):
        if stat.S_ISREG(os.stat(temporary, dir_fd=directory, follow_symlinks=False).st_mode):
            os.unlink(temporary, dir_fd=directory)
