"""A local batch system in a directory of its own, with a real daemon that can be killed, for tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from drainwise.local.control import start_daemon, stop_daemon
from drainwise.local.daemon_lock import find_daemon
from drainwise.local.job import AccountQuota, JobRequest, LocalJob, LocalNode
from drainwise.local.lease.files import work_directory
from drainwise.local.leases import DaemonSettings
from drainwise.local.pool import LocalPool
from drainwise.local.store import LocalStore
from drainwise.local.wake import wake_daemon
from drainwise.processes.process import each_bearer
from real_daemons.waiting import wait_for

PLUGINS = str(Path(__file__).parents[1] / "plugins")
ENVIRONMENT = {**os.environ, "PYTHONPATH": PLUGINS, "PYTHONDONTWRITEBYTECODE": "1"}


class Batch:
    """A local batch system in a directory of its own, of 16 cores when nothing else is said."""

    def __init__(self) -> None:
        self.directory = tempfile.mkdtemp(prefix="drainwise-")
        self.pool = LocalPool(self.directory)

    def start(self, nodes: int = 1, cores: int = 16, kill_wait: float = 10.0) -> int:
        """Start its daemon; the pid."""
        made = [LocalNode(f"node{number}", cores) for number in range(1, nodes + 1)]
        return start_daemon(self.directory, DaemonSettings(kill_wait=kill_wait), made)

    def kill_daemon(self) -> None:
        """End its daemon with SIGKILL, if there is one."""
        found = find_daemon(self.directory)
        if found is not None and found.process is not None:
            os.kill(found.process.pid, signal.SIGKILL)
            wait_for(lambda: find_daemon(self.directory) is None, what="the daemon is dead")

    def account(self, name: str, quota: int) -> None:
        """Make an account, or change its quota."""
        with LocalStore(self.directory, create=True) as store:
            store.set_account(AccountQuota(name, quota))

    def submit(self, script: str, account: str = "alice", cores: int = 8, wall: int = 600, count: int = 1) -> list[int]:
        """Submit shell scripts; their numbers."""
        request = JobRequest(account, account, cores, ("/bin/sh", "-c", script), wall)
        with LocalStore(self.directory) as store:
            ids = store.submit(request, time.time(), count)
        wake_daemon(self.directory)
        return ids

    def job(self, job_id: int) -> LocalJob:
        """A job by its number."""
        with LocalStore(self.directory) as store:
            found = store.job(job_id)
        if found is None:
            raise AssertionError(f"no job {job_id}")
        return found

    def work(self, job_id: int) -> Path:
        """The directory in which a job works."""
        with LocalStore(self.directory) as store:
            return Path(work_directory(store.lease_directory(self.job(job_id).run)))

    def await_state(self, state: str, *job_ids: int) -> None:
        """Wait until these jobs are in that state."""
        wait_for(lambda: all(self.job(job_id).state == state for job_id in job_ids), what=f"{job_ids} {state}")

    def said(self, *words: str, code: int = 0) -> str:
        """Run a command as a user does; what it printed, or with a `code` other than 0 its error."""
        command = [sys.executable, "-m", "drainwise", *words, "--directory", self.directory]
        ran = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=60)
        if ran.returncode != code:
            raise AssertionError(f"{words} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
        return ran.stdout if code == 0 else ran.stderr

    def log(self) -> str:
        """What its daemon logged."""
        return (Path(self.directory) / "daemon.log").read_text()

    def close(self) -> None:
        """End everything and remove it."""
        stop_daemon(self.directory, kill=True)
        shutil.rmtree(self.directory)

    def jobs(self) -> list[LocalJob]:
        """The jobs that wait or run."""
        with LocalStore(self.directory) as store:
            return store.jobs()

    def empty(self) -> bool:
        """Whether no process of any of its leases lives."""
        with LocalStore(self.directory) as store:
            jobs = [job for job in store.jobs(ended=True) if job.run]
            directories = {os.fsencode(store.lease_directory(job.run)) for job in jobs}
        return not any(True for _ in each_bearer("DRAINWISE_LEASE", directories.__contains__))
