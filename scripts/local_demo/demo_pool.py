"""The demonstration's pool: a local batch system of its own in a temporary directory, removed without a trace."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from drainwise.local.job import ENDED, AccountQuota, JobRequest, LocalJob
from drainwise.local.lease.files import work_directory
from drainwise.local.pool import LocalPool
from drainwise.local.store import LocalStore
from drainwise.local.wake import wake_daemon
from drainwise.pilot.decide.payload import Payload, payload_text
from drainwise.pilot.queues.records import RECORDS
from local_demo.truth import Ran, read_records

PLUGINS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "plugins")
_DRAINWISE = (
    f"import sys; sys.path.append({PLUGINS!r}); from drainwise.cli.main import main; sys.exit(main(sys.argv[1:]))"
)
_ISOLATED = (sys.executable, "-B", "-I", "-S", "-c", _DRAINWISE)
_KILL_WAIT = 2  # seconds
_TRIES = 20
_LONGEST = 30.0  # seconds for a command of the batch system
PILOTS_STOP = 1
"""Seconds before its deadline when the agent counts a pilot's payloads as stopped: the pilots' margin, rounded up."""
_PILOT = {"margin": 0.5, "kill-wait": 0.5, "poll": 0.25, "heartbeat": 5.0, "idle-limit": 3600.0}
"""Seconds; a real pilot takes longer for everything, as its payloads do."""


class DemoPoolError(Exception):
    """The local batch system did not do what the demonstration needs."""


def command(*words: str) -> tuple[str, ...]:
    """`drainwise` with these words, from this clone, leaving no compiled files in it."""
    return (*_ISOLATED, *words)


class DemoPool:
    """A local pool of one node with `cores` made-up cores. Use as a context manager: its end leaves nothing behind."""

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self.base = ""
        self._pilots: dict[str, str] = {}

    def __enter__(self) -> DemoPool:
        self.base = tempfile.mkdtemp(prefix="drainwise-demo-")
        try:
            self.directory = os.path.join(self.base, "pool")
            self._run("start", "--nodes", f"1x{self._cores}", "--kill-wait", f"{_KILL_WAIT}s")
            self._store = LocalStore(self.directory)
            self.pool = LocalPool(self.directory)
        except BaseException:
            self._put_away()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()
        self._put_away()

    def _run(self, action: str, *words: str) -> None:
        """`drainwise local ACTION`, in a session of its own so that Ctrl-C cannot stop it half-way."""
        try:
            ran = subprocess.run(
                command("local", action, "--directory", self.directory, *words),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=_LONGEST,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise DemoPoolError(f"drainwise local {action} did not come back within {_LONGEST:.0f} s") from None
        if ran.returncode == -signal.SIGINT:  # Ctrl-C came before it had its session: it has not begun
            self._run(action, *words)
        elif ran.returncode:
            raise DemoPoolError(f"drainwise local {action} ended with {ran.returncode}: {ran.stderr.strip()[-500:]}")

    def _put_away(self) -> None:
        """End the daemon and all leases, and whatever the batch system should have left; remove the directory."""
        try:
            self._run("stop", "--kill")
        finally:
            for _ in range(_TRIES):
                for pid in processes_of(self.base):
                    _kill(pid)
                shutil.rmtree(self.base, ignore_errors=True)
                if not os.path.exists(self.base):
                    break
                time.sleep(0.1)  # somebody who is dying was still writing

    def set_quota(self, account: str, cores: int) -> None:
        """Make an account."""
        self._store.set_account(AccountQuota(account, cores))

    def fill_queue(self, name: str, payloads: tuple[Payload, ...]) -> None:
        """Make a queue of payloads that pilots share."""
        queue = self._queue(name)
        os.makedirs(queue)
        for payload in payloads:
            with open(os.path.join(queue, f"{payload.name}.json"), "w", encoding="ascii") as stream:
                stream.write(payload_text(payload))

    def _queue(self, name: str) -> str:
        return os.path.join(self.base, "queues", name)

    def submit_pilot(self, account: str, cores: int, lease: int, queue: str) -> int:
        """A pilot that takes its payloads from that queue; the id of its job."""
        options = [word for key, value in _PILOT.items() for word in (f"--{key}", f"{value:g}")]
        return self._submit(account, cores, lease, command("pilot", "run", "--queue", self._queue(queue), *options))

    def submit_job(self, account: str, cores: int, seconds: float) -> int:
        """A plain job that holds its cores for so long."""
        return self._submit(account, cores, int(seconds) + 60, ("sleep", f"{seconds:.3f}"))

    def remove(self, job_id: int) -> None:
        """Take a job out of the queue."""
        self._store.remove([job_id], time.time())
        wake_daemon(self.directory)

    def _submit(self, account: str, cores: int, wall_limit: int, words: tuple[str, ...]) -> int:
        request = JobRequest(account=account, user=account, cores=cores, command=words, wall_limit=wall_limit)
        [job_id] = self._store.submit(request, time.time())
        wake_daemon(self.directory)
        return job_id

    def job(self, job_id: int) -> LocalJob:
        """The job as the batch system has it."""
        job = self._store.job(job_id)
        if job is None:
            raise DemoPoolError(f"the local batch system does not know its job {job_id}")
        return job

    def started_at(self, job_id: int) -> float:
        """When a job that has started did so, UNIX s; the job itself says it in whole seconds."""
        return next(event.time for event in self._store.events(job_id) if event.text.startswith("started"))

    def why_not(self, job_ids: Iterable[int]) -> str:
        """What the batch system and the pilots themselves say of jobs that do not go as they should."""
        for job in map(self.job, job_ids):
            said = [job.note] if job.note else []
            try:
                with open(os.path.join(self._work(job.run), "err"), encoding="utf-8", errors="replace") as stream:
                    said += stream.read().splitlines()[-1:]
            except OSError:
                pass
            if said:
                return f"; job {job.job_id} ({job.state}): {'; '.join(said)[:300]}"
        return ""

    def has_ended(self, job_id: int) -> bool:
        """Whether the job's cores are free again."""
        return self.job(job_id).state == ENDED

    def exit_report(self, job_id: int) -> Mapping[str, Any] | None:
        """What a pilot said of its lease at its end; None when it could say nothing."""
        path = os.path.join(self._work(self.job(job_id).run), "pilot-report.json")
        try:
            with open(path, encoding="ascii") as stream:
                report: Mapping[str, Any] = json.load(stream)
        except OSError:
            return None
        return report

    def _work(self, run: str) -> str:
        return work_directory(self._store.lease_directory(run))

    def ran(self, jobs: Mapping[int, str]) -> list[Ran]:
        """All that pilots ran so far, from the records of the queues; `jobs` gives the name of each pilot's job."""
        places = {os.path.realpath(self._work(self.job(job_id).run)): name for job_id, name in jobs.items()}
        found: list[Ran] = []
        for queue in sorted(os.listdir(os.path.join(self.base, "queues"))):
            try:
                with open(os.path.join(self._queue(queue), RECORDS), encoding="ascii") as stream:
                    text = stream.read()
            except FileNotFoundError:
                continue
            found += read_records(text)
        for pilot in {one.pilot for one in found} - set(self._pilots):
            try:
                self._pilots[pilot] = places[_place_of(pilot)]
            except KeyError:
                raise DemoPoolError(f"nobody knows where pilot {pilot} runs") from None
        return [one.renamed(self._pilots[one.pilot]) for one in found]


def _place_of(pilot: str) -> str:
    """Where a pilot works: its process's number is the last but one part of its id."""
    try:
        return os.readlink(f"/proc/{pilot.split('-')[-2]}/cwd")
    except (OSError, IndexError):
        return ""


def processes_of(base: str) -> Iterator[int]:
    """Processes that work below `base`, were started with it, or belong to a lease in it."""
    mark = os.fsencode(base)
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid() and any(mark in text for text in _texts(entry)):
            yield int(entry)


def _texts(pid: str) -> Iterator[bytes]:
    for name in ("cmdline", "environ"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as stream:
                yield stream.read()
        except OSError:
            continue
    try:
        yield os.fsencode(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        return


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
