"""Starts a lease: cores, a time and a directory, given to one job and kept by a lease supervisor."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field

from drainwise.common.bounded_command import must_have_descriptors
from drainwise.common.local_file import read_small
from drainwise.common.printable import ascii_line
from drainwise.facts.errors import FeatureError, PoolError, UsageError
from drainwise.features import host as machine
from drainwise.features.facts import HostFacts, JobFacts
from drainwise.local.lease.files import MARK, abandon, find_lease, kill, records_directory, work_directory
from drainwise.local.lease.job_spec import checked_command, checked_environment, clean_environment, written_spec
from drainwise.node.job_features import job_facts, make_features
from drainwise.node.settings import NodeSettings
from drainwise.processes.children import isolated_program
from drainwise.processes.process import Process, read_proc

_START_LIMIT = 20.0  # seconds; a start takes some hundredths, the rest is patience with a machine under load
_LOG, _LOG_LIMIT = "log", 1 << 16


@dataclass(frozen=True)
class LeaseRequest:
    """A request for the lease of a job; wall_limit: in seconds.

    share: the cores of all leases that there can be at once, of which it has `cores`: its part of memory and swap;
    None: it has the machine for itself. settings: what the site says of its nodes.
    """

    job_id: str
    cores: int
    command: tuple[str, ...]
    wall_limit: int
    environment: Mapping[str, str]
    share: int | None = None
    settings: NodeSettings = field(default_factory=NodeSettings)


def start_lease(
    directory: str, request: LeaseRequest, host: HostFacts, planned: int | None, now: int, kill_wait: float
) -> Process:
    """Make `directory` (0700; its parent must exist) and the job's features, start the job, return its supervisor.

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
    return _start_supervisor(directory, written_spec(command, environment), kill_wait)


def _job_facts(request: LeaseRequest, directory: str, now: int) -> JobFacts:
    """Return a job's limits: its time, and its part of the machine's memory and swap by cores; scratch is shared."""
    cores = request.cores
    memory, swap = (
        None if whole is None else whole * min(cores, request.share or cores) // (request.share or cores)
        for whole in (machine.memory_bytes(), _swap_bytes())
    )
    disks = [machine.scratch_bytes(directory)]
    return job_facts(request.settings, request.job_id, cores, now, [request.wall_limit], memory, disks, swap)


def _swap_bytes() -> int | None:
    """Return the machine's swap space (SwapTotal) in bytes; None where the kernel does not say."""
    try:
        after = read_proc("/proc/meminfo").partition(b"\nSwapTotal:")[2].split(None, 2)
    except OSError:
        return None
    return int(after[0]) * 1024 if after[1:2] == [b"kB"] else None


def _start_supervisor(directory: str, spec: bytes, kill_wait: float) -> Process:
    program = isolated_program("drainwise.local.lease.supervisor:main", directory, repr(kill_wait))
    # A lease that is started by a job of another lease is a part of that one.
    above = {MARK: os.environ[MARK]} if MARK in os.environ else {}
    log = f"{records_directory(directory)}/{_LOG}"
    try:
        with open(log, "xb") as errors:
            said = _answer(program, spec, above, errors.fileno())
    except OSError as error:
        raise PoolError(f"{directory}: the lease supervisor cannot be started: {error.strerror}") from error
    try:
        pid, birth = said.split()
        return Process(int(pid), int(birth))
    except ValueError:
        pass
    if not abandon(directory):  # one that comes late finds its place taken; one that came is ended
        kill(find_lease(directory), directory)
    raise PoolError(f"{directory}: the lease supervisor did not start: {_last_line(log)}")


def _answer(program: list[str], spec: bytes, environment: Mapping[str, str], errors: int) -> bytes:
    """Return the supervisor's answer once its job is made; b"" when it could not be, or not in time. Raises OSError."""
    must_have_descriptors(6)
    try:
        ran = subprocess.run(
            program,
            input=spec,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd="/",
            env=environment,
            start_new_session=True,
            timeout=_START_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return b""
    return ran.stdout


def _last_line(path: str) -> str:
    try:
        content, _ = read_small(path, _LOG_LIMIT) or (b"", None)
    except FeatureError as error:
        return str(error)
    lines = content.decode("ascii", "replace").splitlines()
    return ascii_line(lines[-1]) if lines else "it said nothing"
