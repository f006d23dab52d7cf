"""A lease: cores, a time and a directory, given to one job. It is started here; all its other parts are named here."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from drainwise.errors import FeatureError, PoolError, RefusedFile, UsageError
from drainwise.features import host as machine
from drainwise.features.facts import HostFacts, JobFacts
from drainwise.features.local_file import read_small
from drainwise.local.lease_end import MARK, kill, terminate
from drainwise.local.lease_files import Outcome, abandon, find_lease, outcome_of, records_directory, work_directory
from drainwise.local.order import checked_command, checked_environment, clean_environment, written_order
from drainwise.local.processes import Process, is_alive, read_proc
from drainwise.node import JOB_STATUS
from drainwise.node.hook import printable
from drainwise.node.job_features import make_features
from drainwise.pilotad.node_reader import read_report
from drainwise.pilotad.patience import Patience
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.safe_open import open_dir

__all__ = [
    "LeaseRequest",
    "Outcome",
    "Process",
    "abandon",
    "find_lease",
    "is_alive",
    "kill",
    "outcome_of",
    "report_of",
    "start_lease",
    "terminate",
    "work_directory",
]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_PROGRAM = f"import sys; sys.path.append({_PACKAGE!r}); from drainwise.local.keeper import main; main()"
_START_LIMIT = 20.0  # seconds; a start takes some hundredths, the rest is patience with a machine under load
_LOG, _LOG_LIMIT = "log", 1 << 16


@dataclass(frozen=True)
class LeaseRequest:
    """What a job is to get: `run` names this run of job `job_id` and no other; wall_limit is in seconds."""

    run: str
    job_id: str
    user: str
    account: str
    cores: int
    command: tuple[str, ...]
    wall_limit: int
    environment: Mapping[str, str]


def start_lease(
    directory: str, request: LeaseRequest, host: HostFacts, planned: int | None, now: int, kill_wait: float
) -> Process:
    """Make `directory` (0700, its parent must exist), the job's features in it, and start the job; returns its keeper.

    planned: a planned shutdown of the machine, now: UNIX s. kill_wait: seconds from a terminate to the kill.
    Returns as soon as the job's process is made. A command that cannot be run is no error here: the job ends with 127
    or 126, as in a shell, and a line on its `err`. Raises UsageError for a command or an environment that cannot be,
    PoolError when the lease could not be started; then nothing of it is left running.
    """
    if not (math.isfinite(kill_wait) and kill_wait >= 0):
        raise UsageError(f"kill_wait = {kill_wait!r}: expected seconds")
    directory = os.path.abspath(directory)
    command = checked_command(request.command)
    environment = {**clean_environment(os.environb), **checked_environment({**request.environment, MARK: directory})}
    try:
        for path in (directory, work_directory(directory), records_directory(directory)):
            os.mkdir(path, 0o700)
    except OSError as error:
        raise PoolError(f"{error.filename}: the lease's directory cannot be made: {error.strerror}") from error
    features = make_features(work_directory(directory), host, _job_facts(request, directory, now), planned, now)
    environment.update(checked_environment(features))
    return _start_keeper(directory, written_order(command, environment), kill_wait)


def report_of(
    directory: str, cores: int, patience: Patience | None = None
) -> tuple[PilotReport | None, tuple[str, ...]]:
    """What the job's pilot says, not bounded yet, and what was refused of it; raises nothing the job can bring about.

    cores: of the lease. patience: shared by the leases of a round.
    """
    try:
        work = open_dir(work_directory(directory), uid=os.getuid())
    except RefusedFile as refused:
        return None, (f"work: {refused.reason}",)
    try:
        return read_report(work, os.getuid(), cores, JOB_STATUS, patience)
    finally:
        os.close(work)


def _job_facts(request: LeaseRequest, directory: str, now: int) -> JobFacts:
    """What a job of this machine has: no limit but time and cores, so memory, swap and scratch are all there is."""
    return JobFacts(
        allocated_cpu=request.cores,
        jobstart_secs=now,
        job_id=request.job_id,
        wall_limit_secs=request.wall_limit,
        cpu_limit_secs=request.wall_limit * request.cores,
        max_rss_bytes=machine.memory_bytes(),
        max_swap_bytes=_swap_bytes(),
        scratch_limit_bytes=machine.scratch_bytes(directory),
    )


def _swap_bytes() -> int | None:
    """The machine's swap space (SwapTotal) in bytes; None where the kernel does not say."""
    try:
        after = read_proc("/proc/meminfo").partition(b"\nSwapTotal:")[2].split(None, 2)
    except OSError:
        return None
    return int(after[0]) * 1024 if after[1:2] == [b"kB"] else None


def _start_keeper(directory: str, order: bytes, kill_wait: float) -> Process:
    quiet = ["-B"] if sys.dont_write_bytecode else []
    program = [sys.executable, "-I", "-S", *quiet, "-c", _PROGRAM, directory, repr(kill_wait)]
    # A lease that is started by a job of another lease is a part of that one.
    above = {MARK: os.environ[MARK]} if MARK in os.environ else {}
    log = f"{records_directory(directory)}/{_LOG}"
    try:
        with open(log, "xb") as errors:
            said = _answer(program, order, above, errors.fileno())
    except OSError as error:
        raise PoolError(f"{directory}: the lease's keeper cannot be started: {error.strerror}") from error
    try:
        pid, birth = said.split()
        return Process(int(pid), int(birth))
    except ValueError:
        pass
    if not abandon(directory):  # one that comes late finds its place taken; one that came is ended
        kill(find_lease(directory), directory)
    raise PoolError(f"{directory}: the lease's keeper did not start: {_last_line(log)}")


def _answer(program: list[str], order: bytes, environment: Mapping[str, str], errors: int) -> bytes:
    """What the keeper says when its job is made; nothing when it could not, or not in time. Raises OSError."""
    with subprocess.Popen(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd="/",
        env=environment,
        start_new_session=True,
    ) as starter:
        try:
            said, _ = starter.communicate(order, _START_LIMIT)
        except subprocess.TimeoutExpired:
            starter.kill()
            return b""
        return said


def _last_line(path: str) -> str:
    try:
        content, _ = read_small(path, _LOG_LIMIT) or (b"", None)
    except FeatureError as error:
        return str(error)
    lines = content.decode("ascii", "replace").splitlines()
    return printable(lines[-1]) if lines else "it said nothing"
