"""What is done as a job's user: the site notice is written where the job looks, and the pilot's report is read there.

`$JOBSTATUS` lies in the job's tree and is no other job's. The directory that a job was submitted from may be shared by
all its user's jobs on all nodes, and lie on a file server: it is looked at only for a job that says nothing in
$JOBSTATUS, after everything else is done, and believed only when no other job of that user here has the same.

For a job that says nothing anywhere, the files of its glidein say it, where it is one. A job of Slurm has no directory
of its own that all sites agree on: glideins run below a home, in /tmp or a container. Each startd is in its local
directory's `log`. Its job is the one of its control group, or where jobs have none, the one that it was told by Slurm;
a user can only make his own jobs look like each other.

`.site.ad` in a WorkDir is for pilots that look nowhere else. What lies there is the user's: only a file that names a
run of a job (SITE_AD_RUN) was made here, and nothing else is ever replaced or removed. It must be the user's own
directory, and no link: everybody's, such as /tmp, has other users' pilots in it.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice

from drainwise.common.local_file import Held, create_file
from drainwise.facts.errors import FeatureError, RefusedFile
from drainwise.node import JOB_STATUS
from drainwise.node.glidein import read_glideins
from drainwise.node.hook import read_bounded
from drainwise.node.site_notice import bring_site_ad
from drainwise.pilotad.attributes import JOBSTATUS, PILOT_AD, SITE_AD
from drainwise.pilotad.node_reader import read_report, reasons_line
from drainwise.pilotad.report import PilotReport, as_plain, from_plain
from drainwise.pilotad.safe_open import Patience, open_dir, read_file, reason_of
from drainwise.pilotad.site_ad import SITE_AD_LIMIT, SiteAd, parse_site_ad, site_ad_text

PATIENCE = 1.0
"""Seconds that all jobs of a user together may make a round wait for locks and for files that are being written."""
SHARED = f"WorkDir: {PILOT_AD}: another job has the same directory"
LEFT_OVER = 3600
"""Seconds after its deadline when a notice is a left-over: slurmctld has ended that run long ago."""
SECONDS = 0.5
"""What looking through the processes of a user may take."""
MOST_FILES = 1000
"""Entries of a directory that are looked at for checkpoints."""
MOST_STARTDS = 16
"""Glideins of one job that are read."""
_AS_JSON = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_LINES = 16
"""Results that are sent at a time: what is not sent is lost with the child."""
_LINKED = "hard link"
_STARTD = b"condor_startd\n"
_LIMIT = 1 << 23  # bytes of a process's environment, more than the kernel allows
_PLACE = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True)
class UserTask:
    """A task for one job. `tree`: a descriptor of its tree. notice: of its `.site.ad` (None: no such file).

    cores: of the lease, 0 when its report is not wanted. work_dir: where its `.pilot.ad` may be, b"" when it is not
    to be looked for; `shared` with another job. started: UNIX s. job: its number, "" when its glidein is not to be
    looked for. stale: a report of before that counts as none, UNIX s. checkpoints: patterns of files below the WorkDir
    that hold what a silent job has saved.
    """

    tree: int
    uid: int
    notice: SiteAd | None
    cores: int
    work_dir: bytes
    shared: bool
    started: int
    job: str = ""
    stale: int = 0
    checkpoints: tuple[str, ...] = ()

    def is_silent(self, found: UserTaskResult) -> bool:
        """Decide whether nothing that is fresh was found."""
        return found.report is None or found.report.heartbeat < self.stale


@dataclass(frozen=True)
class UserTaskResult:
    """The result of a task. report: not judged nor bounded yet. refused, fault: one line each, "" for nothing.

    saved: when the job last wrote a file of its checkpoints, UNIX s, 0 where it is not known.
    """

    report: PilotReport | None = None
    refused: str = ""
    fault: str = ""
    in_work_dir: bool = False
    saved: int = 0


def run_tasks(tasks: Mapping[str, UserTask], send: Callable[[bytes], None]) -> None:
    """Do all tasks as the user that this process is by now, and send a line for each that is done.

    What may never end comes last, so that it costs nothing but itself.
    """
    patience = Patience(PATIENCE)
    found, lines = {}, []
    for name, task in tasks.items():
        found[name] = _in_tree(task, patience)
        lines.append(result_line(name, found[name]))
        if len(lines) == _LINES:
            send(b"".join(lines))
            lines = []
    send(b"".join(lines))
    silent = {name: task for name, task in tasks.items() if task.cores and task.is_silent(found[name])}
    for name, task in silent.items():
        if task.work_dir and found[name].report is None:
            found[name] = _in_work_dir(task, found[name], patience)
            send(result_line(name, found[name]))
    silent = {name: task for name, task in silent.items() if task.job and task.is_silent(found[name])}
    there = startds(os.geteuid(), {task.job for task in silent.values()}) if silent else {}
    for name, task in silent.items():
        if task.job in there:
            send(result_line(name, _in_glideins(task, found[name], there[task.job])))


def _in_tree(task: UserTask, patience: Patience) -> UserTaskResult:
    fault, report = "", None
    refused: tuple[str, ...] = ()
    try:
        directory = open_dir(JOB_STATUS, task.tree, task.uid)
    except RefusedFile as error:
        return UserTaskResult(refused=f"{JOBSTATUS}: {error.reason}")
    with Held(directory):
        try:
            bring_site_ad(directory, task.notice)
        except FeatureError as error:
            fault = str(error)
        if task.cores:
            report, refused = read_report(directory, task.uid, task.cores, "", patience)
    return UserTaskResult(report, reasons_line(refused), fault)


def _in_work_dir(task: UserTask, before: UserTaskResult, patience: Patience) -> UserTaskResult:
    """Read the `.pilot.ad` there, unless it is from before the job's start: then an earlier job left it."""
    try:
        # As the user: wherever his links lead, no further than he gets himself.
        directory = os.open(task.work_dir, _PLACE)
    except OSError as error:
        reason = reason_of(error)
        return before if reason == "absent" else replace(before, refused=before.refused or f"WorkDir: {reason}")
    with Held(directory):
        report, refused = read_report(directory, task.uid, task.cores, None, patience)
        if not task.shared:
            _remove_left_over(directory, task.uid, int(time.time()))
            before = replace(before, saved=newest_file(directory, task))
    if report is not None and report.heartbeat < task.started:
        return before
    if task.shared:
        return replace(before, refused=before.refused or (SHARED if report is not None else ""))
    in_work_dir = report is not None
    return replace(before, report=report, refused=before.refused or reasons_line(refused), in_work_dir=in_work_dir)


def newest_file(directory: int, task: UserTask) -> int:
    """Return when the newest of the user's files that fit `checkpoints` was written since the job's start, UNIX s.

    0 for none. Of each directory MOST_FILES entries are looked at, and no link is followed.
    """
    found = 0
    for pattern in task.checkpoints:
        folder, _, name = pattern.rpartition("/")
        for place in _folders(directory, folder):
            with Held(place):
                for entry in _entries(place, name):
                    with suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode) and status.st_uid == task.uid:
                            found = max(found, int(status.st_mtime))
    return found if task.started < found <= time.time() else 0


def _folders(directory: int, pattern: str) -> Iterator[int]:
    """Yield a descriptor of the directory itself, or of each directory in it that fits the pattern."""
    for name in [entry.name for entry in _entries(directory, pattern)] if pattern else ["."]:
        with suppress(OSError):
            yield os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)


def _entries(directory: int, pattern: str) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), Held(os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)) as place:
        for entry in islice(os.scandir(place), MOST_FILES):
            if fnmatchcase(entry.name, pattern):
                yield entry


def result_line(name: str, found: UserTaskResult) -> bytes:
    """Return a result as a line."""
    report = None if found.report is None else as_plain(found.report)
    return _AS_JSON([name, report, found.refused, found.fault, found.in_work_dir, found.saved]).encode("ascii") + b"\n"


def result_in(line: bytes) -> tuple[str, UserTaskResult]:
    """Read a result out of its line. Raises ValueError for anything else."""
    try:
        name, values, refused, fault, in_work_dir, saved = json.loads(line)
        report = None if values is None else from_plain(values)
        return str(name), UserTaskResult(report, str(refused), str(fault), bool(in_work_dir), int(saved))
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"no result of a task: {error}") from None


# ---- glideins ----


def startds(uid: int, jobs: Collection[str]) -> dict[str, list[str]]:
    """Return the pids of the startds of user `uid` in each of these jobs, as far as they are found in time."""
    end = time.monotonic() + SECONDS
    found: dict[str, list[str]] = {}
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        if time.monotonic() > end:
            break
        try:
            if os.stat(f"/proc/{pid}").st_uid != uid or read_bounded(f"/proc/{pid}/comm", 64) != _STARTD:
                continue
            job = _job_of(pid)
        except OSError:
            continue  # it has just ended
        if job in jobs and len(found.setdefault(job, [])) < MOST_STARTDS:
            found[job].append(pid)
    return found


def _in_glideins(task: UserTask, before: UserTaskResult, pids: Sequence[str]) -> UserTaskResult:
    """Report the glideins that these startds are, beside what was found before."""
    try:
        directories = _local_directories(pids)
        report = read_glideins(directories, task.uid, task.cores, task.started, int(time.time()))
    except RefusedFile as refused:
        return replace(before, refused=before.refused or f"the glidein's files: {refused.reason}")
    return before if report is None else replace(before, report=report, in_work_dir=False)


def _local_directories(pids: Sequence[str]) -> Generator[int, None, None]:
    seen = set()
    for pid in pids:
        try:
            # As the user: wherever his processes are, no further than he gets himself.
            with Held(os.open(f"/proc/{pid}/cwd", _PLACE)) as log:
                directory = os.open("..", _PLACE, dir_fd=log)
        except FileNotFoundError:
            continue  # it has just ended
        except OSError as error:
            raise RefusedFile(reason_of(error)) from error
        with Held(directory):
            found = os.fstat(directory)
            if (found.st_dev, found.st_ino) not in seen:  # a startd forks now and then
                seen.add((found.st_dev, found.st_ino))
                yield directory


def _job_of(pid: str) -> str:
    parts = read_bounded(f"/proc/{pid}/cgroup", _LIMIT).replace(b"\n", b"/").split(b"/")
    jobs = [part[4:] for part in parts if part.startswith(b"job_") and part[4:].isdigit()]
    if not jobs:
        words = read_bounded(f"/proc/{pid}/environ", _LIMIT).split(b"\0")
        jobs = [word.partition(b"=")[2] for word in words if word.startswith((b"SLURM_JOB_ID=", b"SLURM_JOBID="))]
    return jobs[0].decode("ascii", "replace") if jobs else ""


# ---- site notices in WorkDirs ----


@dataclass(frozen=True)
class WorkDirTask:
    """A task for one job's WorkDir. `run`: job and start, `17@1795248000`.

    notice: the content of the file, None where there must be none. alone: whether no other job of the user's has the
    directory, as far as names tell; others: WorkDirs of these other jobs, which may be the same by another name.
    temporary: the name of the new file until it is whole; no other node has the same.
    """

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
        directory = os.open(task.work_dir, _PLACE | os.O_NOFOLLOW)
    except OSError:
        return False, ""  # absent, a link, or not for this user: nothing of ours can be there
    with Held(directory):
        try:
            status = os.fstat(directory)
            if status.st_uid != task.uid:
                return False, ""
            return _brought(directory, task, task.alone and not _is_any_of(status, task.others))
        except OSError as error:
            return False, f"WorkDir: {SITE_AD}: {reason_of(error)}"


def _remove_left_over(directory: int, uid: int, now: int) -> None:
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
    # A whole file, by rename in place of one of ours, else by a link, which replaces nothing.
    _clear(directory, task.temporary)
    create_file(task.temporary, wanted, directory)
    try:
        if run:
            os.rename(task.temporary, SITE_AD, src_dir_fd=directory, dst_dir_fd=directory)
        else:
            os.link(task.temporary, SITE_AD, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    finally:
        _clear(directory, task.temporary)
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


def _clear(directory: int, temporary: str) -> None:
    with suppress(FileNotFoundError):
        if stat.S_ISREG(os.stat(temporary, dir_fd=directory, follow_symlinks=False).st_mode):
            os.unlink(temporary, dir_fd=directory)
