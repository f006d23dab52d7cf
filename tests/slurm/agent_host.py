"""A host with jobs of several users and the agent's rounds on it; slurmctld is played by a recorded `scontrol`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from drainwise.common.bounded_command import MOST_OUTPUT, Running
from drainwise.common.service import Faults
from drainwise.node.settings import NodeSettings, SettingsFile
from drainwise.pilotad.jobstatus import write_jobstatus
from drainwise.pilotad.report import PilotReport
from drainwise.slurm.jobs.admin_comment import Published, published_in
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.node.job_tree import open_node
from drainwise.slurm.node.lease import SlurmLease
from drainwise.slurm.node.prolog import make_tree
from drainwise.slurm.node_agent.round import NodeAgent
from made_up_scontrol import MadeUpScontrol, recorded_job

from .recorded_cluster import recorded

ALICE, BOB = 54321, 54322
NODE = "node1"


def as_user(uid: int, step: Callable[[], object]) -> None:
    """Do something as a user, in a child."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            step()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


class Commands(SlurmCommands):
    """Commands whose time limit a test may set."""

    seconds = 10.0

    def start(
        self, name: str, *arguments: str, seconds: float | None = None, stdin: str = "", most: int = MOST_OUTPUT
    ) -> Running:
        return super().start(name, *arguments, seconds=seconds or self.seconds, stdin=stdin, most=most)


class AgentHost:
    """Everything below `base`, which all users may enter. `now`: the time of the rounds, UNIX s."""

    def __init__(self, base: str, version: str = "24.11", **settings: str) -> None:
        self.base, self.runtime = base, f"{base}/run"
        template = recorded_job(recorded(version, "scontrol.txt").decode("utf-8", "replace"), 10)
        self.slurm = MadeUpScontrol(f"{base}/bin", sys.executable, template)
        keys = {"runtime_dir": self.runtime, "shutdown_file": f"{base}/shutdowntime", **settings}
        self.settings = NodeSettings(keys)
        self.now = int(time.time())
        self.said: list[str] = []
        self.restart()

    def restart(self, node: str = "") -> None:
        """A new agent, which knows nothing; node: of this machine, before its first job."""
        self.commands = Commands(self.slurm.bin_dir)
        self.agent = NodeAgent(
            SettingsFile(f"{self.base}/none", self.settings), self.commands, Faults(self.said.append), host=node
        )

    def start(self, number: int, uid: int = ALICE, *, limit: int = 3600, cores: int = 8, **more: object) -> SlurmLease:
        """Start a job: its tree as the prolog of Slurm 22.05 makes it, and slurmctld's record of it.

        `more`: fields of SlurmLease, and of `show job`.
        """
        fields = {name: more.pop(name) for name in ("work_dir", "restarts", "start_known", "ends") if name in more}
        start = self.now - 100
        if "work_dir" in fields:
            more.setdefault("WorkDir", os.fsdecode(fields["work_dir"]))  # type: ignore[arg-type]
        lease = SlurmLease(job=str(number), uid=uid, gid=uid, started=start, cores=cores, **fields)  # type: ignore[arg-type]
        node = open_node(self.runtime, NODE, create=True)
        assert node is not None
        make_tree(node, f"{self.runtime}/{NODE}", lease, self.settings, self.now)
        os.close(node)
        hours = f"{limit // 3600:02}:{limit // 60 % 60:02}:{limit % 60:02}"
        self.slurm.job(number, uid, start, start + limit, {"TimeLimit": hours, "Restarts": lease.restarts, **more})
        return lease

    def tree(self, number: int) -> Path:
        """A job's tree."""
        return Path(self.runtime, NODE, str(number))

    def status(self, number: int) -> str:
        """A job's $JOBSTATUS."""
        return f"{self.tree(number)}/.jobstatus"

    def report(self, number: int, uid: int = ALICE, used: float = 6.0) -> None:
        """A pilot's report, written by the user into $JOBSTATUS."""
        report = PilotReport(
            self.now,
            used_cpu=used,
            last_job_start=self.now - 50,
            first_exp_job_end=self.now + 500,
            last_exp_job_end=self.now + 900,
            last_max_job_end=self.now + 1800,
            add_uncom_time=100.0,
            add_final_exp_waste=2000.0,
            priority_factor=1,
            can_postpone_last_job=True,
        )
        as_user(uid, lambda: write_jobstatus(self.status(number), report))

    def round(self) -> bool:
        """A round of the agent."""
        asked = self.agent.round(self.now)
        assert self.slurm.complaints() == ""
        return asked

    def published(self, number: int | str) -> Published | None:
        """What is published of a job."""
        return published_in(self.slurm.comment(number))

    def features(self, number: int) -> dict[str, str]:
        """All keys of a job's features; what is being written has a hidden name, and a key may go at any time."""
        tree = self.tree(number)
        files = [*(tree / ".machinefeatures").iterdir(), *(tree / ".jobfeatures").iterdir()]
        keys: dict[str, str] = {}
        for file in files:
            with suppress(FileNotFoundError):
                if not file.name.startswith("."):
                    keys[file.name] = file.read_text().strip()
        return keys

    def site_ad(self, number: int) -> str:
        """A job's `.site.ad`, "" when there is none."""
        path = Path(self.status(number), ".site.ad")
        try:
            return path.read_text()
        except FileNotFoundError:
            return ""
