"""Find the running jobs' directories below $(EXECUTE), and their slots: only from what a user cannot forge.

The slot's refreshed ad says it. Since 25.4 it lies in the daemon's directory. Before, it lies in the user's, who can
replace it: there the slot must be the one of the starter whose pid names the directory and whose parent is our startd.
A job that forges its id or its slot then only loses its own report, since an ad reaches a slot by slot name *and* job;
one that forges its cores spoils its own figures, which whoever reads them bounds by the slot's own cores again.
"""

from __future__ import annotations

import posix

from drainwise.facts import fact
from drainwise.facts.errors import RefusedFile
from drainwise.htcondor.node import sandbox
from drainwise.node.ad_text import literals, string
from drainwise.node.hook import read_bounded
from drainwise.pilotad.safe_open import open_dir, reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SLOT_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.@"
_JOB_ID = _SLOT_NAME + "#:+/"
_LONGEST, _TOO_LARGE = 255, 10**12
_IDENTITY = ("Name", "GlobalJobId", "Cpus", "JobStart")
_MOST_CORES = 4096  # of one slot: before 25.4 a user can write any number there, and sums over slots would show it
_PROC_LIMIT = 1 << 16  # bytes; a starter's command line is short


@fact
class JobSandbox:
    """One job's directory, open: the caller closes `descriptor`.

    `slot` is the slot's full name, `job` its GlobalJobId, `uid` the owner of the directory, `cores` the slot's cores,
    `started` the start of this run in UNIX seconds or None, `starter` the pid that names the directory.
    """

    descriptor: int
    uid: int
    slot: str
    job: str
    cores: int
    started: int | None
    starter: int


def _made_of(text: str, letters: str) -> bool:
    """Decide whether `text` may stand in a constraint: no quotes, no blanks, not too long."""
    return len(text) <= _LONGEST and not text.strip(letters)


def children_of(startd: int) -> frozenset[str]:
    """Return the pids of the processes that our startd started, as far as the kernel lists them at once.

    None if the startd is PID 1, which inherits every orphan: then each process has to be looked at.
    """
    if startd == 1:
        return frozenset()
    try:
        return frozenset(read_bounded(f"/proc/{startd}/task/{startd}/children", _PROC_LIMIT).decode("ascii").split())
    except OSError:
        return frozenset()


def is_starter(pid: str, startd: int, daemon_uid: int) -> bool:
    """Decide whether this process is a child of `startd` with root's real uid or, in a pool without root, `daemon_uid`.

    No process of a user is that, whatever its command line says. Raises OSError.
    """
    status = read_bounded(f"/proc/{pid}/status", _PROC_LIMIT)
    if b"\nPPid:\t%d\n" % startd not in status:
        return False
    return b"\nUid:\t0\t" in status or b"\nUid:\t%d\t" % daemon_uid in status


def starter_slot(pid: str, startd: int, daemon_uid: int, children: frozenset[str]) -> str | None:
    """Return the slot (`slot1_1`) that the starter with this pid serves; None when our startd has no such starter."""
    try:
        if pid not in children and not is_starter(pid, startd, daemon_uid):
            return None
        words = read_bounded(f"/proc/{pid}/cmdline", _PROC_LIMIT).split(b"\0")
        slot = words[words.index(b"-a") + 1].decode("ascii")
    except (OSError, ValueError, IndexError):
        return None
    return slot if slot and _made_of(slot, _SLOT_NAME) else None


def identity(ad: bytes) -> tuple[str, str, int, int | None] | None:
    """Return slot name, job, cores and start of the run by a slot's ad; None when one of the first three is wrong."""
    slot = literals(ad, _IDENTITY)
    name, job = string(slot, "Name"), string(slot, "GlobalJobId")
    cores, started = slot.get("Cpus"), slot.get("JobStart")
    if not name or not job or not _made_of(name, _SLOT_NAME) or not _made_of(job, _JOB_ID):
        return None
    if type(cores) is not int or not 0 < cores < _TOO_LARGE:
        return None
    return name, job, min(cores, _MOST_CORES), started if type(started) is int and 0 <= started < _TOO_LARGE else None


def _found(directory: int, ad: str) -> tuple[str, str, int, int | None] | None:
    try:
        return identity(read_bounded(ad, sandbox.AD_LIMIT, directory))
    except OSError as error:
        raise RefusedFile(reason_of(error)) from error


def _since_25_4(directory: int, pid: str) -> JobSandbox | None:
    found = _found(directory, f"{sandbox.ADS}/{sandbox.UPDATE_AD}")
    if found is None:
        return None
    scratch = open_dir(sandbox.SCRATCH, directory)
    return JobSandbox(scratch, posix.fstat(scratch).st_uid, *found, int(pid))


def _before_25_4(directory: int, uid: int, pid: str, startd: int, children: frozenset[str]) -> JobSandbox | None:
    served = starter_slot(pid, startd, posix.geteuid(), children)
    found = None if served is None else _found(directory, sandbox.UPDATE_AD)
    if found is None or not found[0].startswith(f"{served}@"):
        return None
    return JobSandbox(directory, uid, *found, int(pid))


def open_job_directory(execute: int, name: str, startd: int, children: frozenset[str]) -> JobSandbox | None:
    """Open the job in `dir_<pid>` below the open $(EXECUTE); None without a job of ours (yet). Raises RefusedFile."""
    directory = open_dir(name, execute)
    found, uid, pid = None, posix.fstat(directory).st_uid, name[len("dir_") :]
    try:
        if uid == posix.geteuid():  # nobody else can have put anything into it
            try:
                return _since_25_4(directory, pid)
            except RefusedFile as refused:
                if refused.reason != "absent":
                    raise  # else perhaps a pool without root, where the user's directory is the daemon's, too
        found = _before_25_4(directory, uid, pid, startd, children)
        return found
    finally:
        if found is None:
            posix.close(directory)


def job_directory_names(execute: int) -> Iterator[str]:
    """List the names `dir_<pid>` below the open $(EXECUTE), in order."""
    names = sorted(posix.listdir(execute))
    return (name for name in names if name.isascii() and name.startswith("dir_") and name[4:].isdigit())
