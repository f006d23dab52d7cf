"""Which running job lies in which directory of $(EXECUTE), and in which slot: only from what a user cannot forge.

Since 25.4 the daemon's own `htcondor/.update.ad` says it. Before, the ads lie in the user's directory, who can replace
them: there the slot is what the starter serves whose pid names the directory and whose parent is our own startd. A job
that forges its name or its slot's then only loses its own report, because an ad reaches a slot by slot name *and* job;
one that forges its cores spoils its own figures, which whoever reads them bounds by the slot's own cores again.
"""

from __future__ import annotations

import posix

from drainwise.errors import RefusedFile
from drainwise.htcondor import sandbox
from drainwise.htcondor.ad_text import literals, string, whole
from drainwise.htcondor.hook_io import read_bounded
from drainwise.pilotad.safe_open import open_dir, reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from drainwise.htcondor.ad_text import Literal

_SLOT = ("Name", "Cpus", "GlobalJobId", "JobStart")
_MACHINE = ("Name", "Cpus")
_JOB = ("GlobalJobId", "JobCurrentStartDate")
_SLOT_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.@"
_JOB_ID = _SLOT_NAME + "#:+/"
_LONGEST = 255
_PROC_LIMIT = 1 << 16  # bytes; a starter's command line is short


class JobDirectory:
    """One job's directory, open: the caller closes `descriptor`.

    `slot` is the slot's full name, `job` its GlobalJobId, `uid` the owner of the directory, `cores` the slot's cores,
    `started` the start of this run in UNIX seconds or None.
    """

    __slots__ = ("cores", "descriptor", "job", "slot", "started", "uid")

    def __init__(self, descriptor: int, uid: int, slot: str, job: str, cores: int, started: int | None) -> None:
        self.descriptor, self.uid, self.slot, self.job = descriptor, uid, slot, job
        self.cores, self.started = cores, started


def _made_of(text: str, letters: str) -> bool:
    """Whether `text` may stand in a constraint: no quotes, no blanks, not too long."""
    return len(text) <= _LONGEST and not text.strip(letters)


def starter_slot(pid: str, startd: int, daemon_uid: int, proc: str = "/proc") -> str | None:
    """The slot (`slot1_1`) that the starter with this pid serves; None when it is not a starter of our startd.

    A starter is a child of `startd` whose real uid is root's or, in a pool without root, `daemon_uid`: no process of a
    user is that, whatever its command line says.
    """
    try:
        status = read_bounded(f"{proc}/{pid}/status", _PROC_LIMIT)
        if b"\nPPid:\t%d\n" % startd not in status:
            return None
        if b"\nUid:\t0\t" not in status and b"\nUid:\t%d\t" % daemon_uid not in status:
            return None
        words = read_bounded(f"{proc}/{pid}/cmdline", _PROC_LIMIT).split(b"\0")
        slot = words[words.index(b"-a") + 1].decode("ascii")
    except (OSError, ValueError, IndexError):
        return None
    return slot if slot and _made_of(slot, _SLOT_NAME) else None


def _read_ad(directory: int, name: str, wanted: tuple[str, ...]) -> dict[str, Literal]:
    try:
        return literals(read_bounded(name, sandbox.AD_LIMIT, directory), wanted)
    except OSError as error:
        raise RefusedFile(reason_of(error)) from error


def identity(slot: dict[str, Literal], job: dict[str, Literal]) -> tuple[str, str, int, int | None] | None:
    """Slot name, job, cores and start of the run; None when one of the first three is missing or unsound.

    `slot` holds the literals of the slot's ad, `job` those of the job's (the same ad where that names the job).
    """
    name, job_id, cores = string(slot, "Name"), string(job, "GlobalJobId"), whole(slot, "Cpus")
    if not name or not job_id or not cores:
        return None
    if not _made_of(name, _SLOT_NAME) or not _made_of(job_id, _JOB_ID):
        return None
    return name, job_id, cores, whole(job, "JobStart") or whole(job, "JobCurrentStartDate")


def _since_25_4(directory: int) -> JobDirectory | None:
    slot = _read_ad(directory, f"{sandbox.ADS}/{sandbox.UPDATE_AD}", _SLOT)
    found = identity(slot, slot)
    if found is None:
        return None
    scratch = open_dir(sandbox.SCRATCH, directory)
    return JobDirectory(scratch, posix.fstat(scratch).st_uid, *found)


def _before_25_4(directory: int, uid: int, pid: str, startd: int) -> JobDirectory | None:
    served = starter_slot(pid, startd, posix.geteuid())
    if served is None:
        return None
    slot = _read_ad(directory, sandbox.MACHINE_AD, _MACHINE)
    found = identity(slot, _read_ad(directory, sandbox.JOB_AD, _JOB))
    if found is None or not found[0].startswith(served + "@"):
        return None
    return JobDirectory(directory, uid, *found)


def open_job_directory(execute: int, name: str, startd: int) -> JobDirectory | None:
    """The job in `dir_<pid>` below the open $(EXECUTE); None when it holds no job of ours (yet). Raises RefusedFile."""
    directory = open_dir(name, execute)
    found = None
    try:
        uid = posix.fstat(directory).st_uid
        if uid == posix.geteuid():  # nobody else can have put anything into it
            try:
                return _since_25_4(directory)
            except RefusedFile as refused:
                if refused.reason != "absent":
                    raise  # else perhaps a pool without root, where the user's directory is the daemon's, too
        found = _before_25_4(directory, uid, name[len("dir_") :], startd)
        return found
    finally:
        if found is None:
            posix.close(directory)


def job_directory_names(execute: int) -> Iterator[str]:
    """The names `dir_<pid>` below the open $(EXECUTE), in order."""
    names = sorted(posix.listdir(execute))
    return (name for name in names if name.isascii() and name.startswith("dir_") and name[4:].isdigit())


__all__ = ["JobDirectory", "RefusedFile", "identity", "job_directory_names", "open_job_directory", "starter_slot"]
