"""How programs and people reach a running cluster: inside, as one of its users, or outside, by its client tools."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence

from real_daemons.errors import DaemonsError
from real_daemons.furnish import person, write_file
from real_daemons.logs import tails
from real_daemons.site import CENTRAL, USERS, Site, finish
from slurm_cluster import daemons, layout
from slurm_cluster.jobs import FORMAT, Job, parse_jobs
from slurm_cluster.recipe import recipe_of

TOOLS = (
    *("sacct", "sacctmgr", "salloc", "sbatch", "scancel", "scontrol", "sdiag", "sinfo", "sprio", "squeue", "sreport"),
    *("srun", "sshare", "sstat"),
)
_CLIENTS_DIR = "/srv/clients"
_SEPARATOR = "\x1f"
_UNKILLED = "Kill task failed"  # slurmctld's reason for the drain


class ClusterAccess(Site):
    """The running cluster as others see it: its nodes, its files, its jobs, commands in it and from outside."""

    def __init__(self, release: str, nodes: int) -> None:
        super().__init__(recipe_of(release))
        self.node_names = layout.node_names(nodes)
        self._daemons = daemons.daemons_of(release, self.node_names)

    @property
    def version(self) -> tuple[int, int, int]:
        """Slurm's version, e.g. (22, 5, 8)."""
        major, minor, patch = self.run(["sinfo", "--version"]).stdout.split()[-1].split(".")
        return int(major), int(minor), int(patch)

    # ---- files and logs ----

    def path(self, path: str, node: str = CENTRAL) -> str:
        """Where this machine's root finds the file that programs on `node` call `path` (see `Site.root`)."""
        return self.root + layout.private_place(node, path)

    def write(self, path: str, text: str, mode: int = 0o644, owner: str = "root") -> None:
        """Replace a file that all machines share by `text`, in one step; its directory is made if it is missing."""
        os.makedirs(os.path.dirname(self.root + path), exist_ok=True)
        write_file(self.root, path, text, mode, self.uid(owner))

    def log(self, daemon: str) -> str:
        """The whole log of a daemon (munged, mariadbd, slurmdbd, slurmctld, or a node's name for its slurmd)."""
        with open(self.root + daemons.find(self._daemons, daemon).log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def log_tails(self) -> str:
        """The last lines of every daemon's log."""
        logs = []
        for daemon in self._daemons.values():
            logs += [(f"{daemon.name} (output)", daemon.output), (daemon.name, daemon.log)]
        return tails((name, self.root + path) for name, path in logs if os.path.exists(self.root + path))

    # ---- jobs ----

    def submit(self, script: str, user: str, options: Sequence[str] = ()) -> int:
        """Submit a script as `user`, in the user's home and with a clean environment; return the job's number.

        A script without `#!` is one of sh.
        """
        text = script if script.startswith("#!") else f"#!/bin/sh\n{script}\n"
        said = self.run(["sbatch", "--parsable", *options], user=user, stdin=text).stdout
        return int(said.partition(";")[0])

    def jobs(self, *filters: str) -> list[Job]:
        """The jobs slurmctld knows, ended ones too (for MinJobAge); `filters` are options of squeue."""
        command = ["squeue", "--all", "--array", "--noheader", "--states=all", f"--format={FORMAT}", *filters]
        return parse_jobs(self.run(command, environment={"SLURM_TIME_FORMAT": "%s"}).stdout)

    def job(self, number: int) -> Job:
        """The job with this number; raises DaemonsError if slurmctld knows none."""
        for job in self.jobs():
            if job.id == number:
                return job
        raise DaemonsError(f"slurmctld knows no job {number}")

    def accounting(self, number: int, *fields: str) -> list[dict[str, str]]:
        """What sacct has of a job, without its steps: one dictionary of `fields` for it or for each of its tasks."""
        options = ["--allocations", "--parsable2", "--noheader", f"--delimiter={_SEPARATOR}"]
        text = self.run(["sacct", *options, f"--jobs={number}", f"--format={','.join(fields)}"]).stdout
        return [dict(zip(fields, line.split(_SEPARATOR))) for line in text.split("\n") if line]

    def cancel_all(self, seconds: float = 30.0) -> None:
        """Cancel every user's jobs, wait until none is left, and resume the nodes that Slurm drained for one of them.

        On a busy machine proctrack/linuxproc now and then misses a process of a job that ends as soon as it has begun.
        After UnkillableStepTimeout the step is given up, and its node takes no job any more.
        """
        for user in USERS:
            self.run(["scancel", f"--user={user}"])
        self.wait_for(lambda: not self.run(["squeue", "--noheader"]).stdout, seconds, "the end of all jobs")
        for line in self.run(["sinfo", "--noheader", "--Node", "--format=%N|%E"]).stdout.splitlines():
            node, _, reason = line.partition("|")
            if reason.strip() == _UNKILLED:
                self.run(["scontrol", "update", f"NodeName={node}", "State=RESUME"])

    # ---- from outside ----

    def outside_env(self, user: str = "root") -> dict[str, str]:
        """Environment for a program of the host that shall use the cluster's client tools as `user` of the cluster.

        Its PATH begins with a folder of wrappers, kept in the cluster: `squeue` there is the cluster's own squeue, run
        inside with the caller's standard input and output and most of its environment, and ended with its caller.
        """
        directory = f"{_CLIENTS_DIR}/{user}"
        if not os.path.isdir(self.root + directory):
            os.makedirs(self.root + directory)
            home = person(self.root, user)[1]
            for tool in TOOLS:
                command = shlex.join(self._inside.tool_command(tool, CENTRAL, user, home))
                write_file(self.root, f"{directory}/{tool}", f'#!/bin/sh\nexec {command} "$@"\n', 0o755)
        return {**os.environ, "PATH": f"{self.root}{directory}:{os.environ.get('PATH', os.defpath)}"}

    def run_outside(
        self,
        argv: Sequence[str],
        user: str = "root",
        stdin: str = "",
        check: bool = True,
        timeout: float = 60.0,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the host (the tests' own Python, say) in the cluster's network, as the host's root.

        The Slurm commands it calls by name are the cluster's, run as `user` of the cluster. Raises CommandError if it
        is not done within `timeout` seconds, or if `check` and its code is not 0.
        """
        variables = {**self.outside_env(user), **(environment or {})}
        return finish(self.outside_command(argv), argv, stdin, check, timeout, variables)
