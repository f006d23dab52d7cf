"""Find the glideins of a user's jobs, as that user: by the startds that run in them, wherever their directories are.

A job of Slurm has no directory of its own that all sites agree on: glideins run below a home, in /tmp or a container.
Each startd is in its local directory's `log`. Its job is the one of its control group, or where jobs have none, the one
that it was told by Slurm; a user can only make his own jobs look like each other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Generator, Sequence

from drainwise.facts.errors import RefusedFile
from drainwise.node.glidein_files import read_glideins
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.safe_open import reason_of

SECONDS = 0.5
"""What looking through the processes of a user may take."""
MOST_STARTDS = 16
"""Glideins of one job that are read."""
_STARTD = b"condor_startd\n"
_LIMIT = 1 << 18  # bytes of a process's environment
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PLACE = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


def startds(uid: int, jobs: Collection[str], proc: str = "/proc") -> dict[str, list[str]]:
    """Return the pids of the startds of user `uid` in each of these jobs, as far as they are found in time."""
    end = time.monotonic() + SECONDS
    found: dict[str, list[str]] = {}
    for pid in os.listdir(proc):
        if not pid.isdigit():
            continue
        if time.monotonic() > end:
            break
        try:
            if os.stat(f"{proc}/{pid}").st_uid != uid or _read(f"{proc}/{pid}/comm", 64) != _STARTD:
                continue
            job = _job_of(f"{proc}/{pid}", jobs)
        except OSError:
            continue  # it has just ended
        if job is not None and len(found.setdefault(job, [])) < MOST_STARTDS:
            found[job].append(pid)
    return found


def report_of_startds(
    pids: Sequence[str], uid: int, cores: int, begun: int, now: int, proc: str = "/proc"
) -> tuple[PilotReport | None, str]:
    """Report the glideins that these startds are, and what was refused, "" for nothing; see `read_glideins`."""
    try:
        return read_glideins(_local_directories(pids, proc), uid, cores, begun, now), ""
    except RefusedFile as refused:
        return None, f"the glidein's files: {refused.reason}"


def _local_directories(pids: Sequence[str], proc: str) -> Generator[int, None, None]:
    seen = set()
    for pid in pids:
        try:
            # As the user: wherever his processes are, no further than he gets himself.
            log = os.open(f"{proc}/{pid}/cwd", _PLACE)
            try:
                directory = os.open("..", _PLACE, dir_fd=log)
            finally:
                os.close(log)
        except FileNotFoundError:
            continue  # it has just ended
        except OSError as error:
            raise RefusedFile(reason_of(error)) from error
        try:
            found = os.fstat(directory)
            if (found.st_dev, found.st_ino) not in seen:  # a startd forks now and then
                seen.add((found.st_dev, found.st_ino))
                yield directory
        finally:
            os.close(directory)


def _job_of(process: str, jobs: Collection[str]) -> str | None:
    parts = _read(f"{process}/cgroup", _LIMIT).replace(b"\n", b"/").split(b"/")
    of_slurm = [part[4:].decode() for part in parts if part.startswith(b"job_") and part[4:].isdigit()]
    if not of_slurm:
        names = (b"SLURM_JOB_ID=", b"SLURM_JOBID=")
        told = [word for word in _read(f"{process}/environ", _LIMIT).split(b"\0") if word.startswith(names)]
        of_slurm = [word.partition(b"=")[2].decode("ascii", "replace") for word in told]
    return of_slurm[0] if of_slurm and of_slurm[0] in jobs else None


def _read(path: str, limit: int) -> bytes:
    descriptor = os.open(path, _READ)
    try:
        pieces, left = [], limit
        while left > 0 and (piece := os.read(descriptor, left)):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)
