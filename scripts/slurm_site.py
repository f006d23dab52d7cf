"""A real Slurm cluster on which a site has installed drainwise: hooks, settings, and an agent on every node.

Rendered by `drainwise config`'s own code, put where a site has it. The agents are root's processes on their nodes, as
systemd would have them, with their log in /run/agent.log.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from drainwise.siteconfig import SiteConfig
from drainwise.slurm.jobs.admin_comment import Published, published_in
from drainwise.slurm.setup.render import agent_path, fragment_path, render
from slurm_cluster import Job, SlurmCluster

PACKAGE = Path(__file__).parents[1] / "plugins" / "drainwise"
PILOT = Path(__file__).parent / "scenario" / "pilot_job.py"
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}
LIBRARY, PILOT_JOB, AGENT_LOG = "/usr/share/drainwise", "/usr/share/pilot_job.py", "/run/agent.log"
PERIOD = 1
"""Seconds between two rounds of an agent here."""
SECONDS = 60.0
"""How long anything may take on a busy machine."""


class SlurmSite:
    """A running cluster with drainwise on it; `site` as for its site file, but for the agents' period."""

    def __init__(self, cluster: SlurmCluster, site: SiteConfig) -> None:
        self.cluster = cluster
        self.site = replace(site, slurm=replace(site.slurm, agent_period=PERIOD, library_dir=LIBRARY))
        self._agents: dict[str, int] = {}

    # ---- what the site does ----

    def install(self) -> None:
        """Put package, hooks, settings and lines of slurm.conf into place, and have the daemons use them."""
        self.cluster.copy_in(str(PACKAGE), f"{LIBRARY}/drainwise")
        for file in render(self.site, "node"):
            if "systemd" not in file.path:
                self.cluster.write(file.path, file.text, mode=file.mode)
        self.cluster.write(PILOT_JOB, PILOT.read_text())
        fragment = fragment_path(self.site)
        self.cluster.configure(next(file.text for file in render(self.site, "controller") if file.path == fragment))
        self.cluster.restart()

    def start_agent(self, node: str) -> None:
        """Start the agent of a node, and wait until prologs can call it."""
        command = f"setsid {agent_path(self.site)} </dev/null >/dev/null 2>>{AGENT_LOG} & echo $!"
        before = self.agent_log(node).count("looks after")
        self._agents[node] = int(self.cluster.run(["sh", "-c", command], node=node).stdout)
        self.cluster.wait_for(lambda: self.agent_log(node).count("looks after") > before, SECONDS, f"agent of {node}")

    def stop_agent(self, node: str, how: str = "TERM") -> None:
        """End the agent of a node by a signal, and wait until it has gone."""
        number = str(self._agents.pop(node))
        self.cluster.run(["kill", f"-{how}", number], node=node)
        self.cluster.wait_for(
            lambda: self.cluster.run(["kill", "-0", number], node=node, check=False).returncode, SECONDS, "its end"
        )

    def agent_log(self, node: str) -> str:
        """All that the agents of a node have said."""
        path = self.cluster.path(AGENT_LOG, node=node)
        return Path(path).read_text(encoding="ascii") if os.path.exists(path) else ""

    # ---- what users do ----

    def pilot(self, *mixes: str, options: tuple[str, ...] = (), user: str = "alice") -> int:
        """Submit the reference pilot with payloads of CORESxSECONDS, in a directory of its own."""
        script = (
            f"mkdir -p $HOME/$SLURM_JOB_ID && cd $HOME/$SLURM_JOB_ID && "
            f"exec /usr/bin/python3 {PILOT_JOB} {' '.join(mixes)}"
        )
        return self.cluster.submit(script, user, ("--requeue", f"--output=/home/{user}/out.%j", *options))

    def running(self, number: int) -> Job:
        """The job, once it runs."""
        self.cluster.wait_for(lambda: self.cluster.job(number).state == "RUNNING", SECONDS, f"job {number} to run")
        return self.cluster.job(number)

    def end_of(self, number: int) -> Job:
        """The job, once it has ended."""
        self.cluster.wait_for(lambda: self.cluster.job(number).state in ENDED, SECONDS, f"the end of job {number}")
        return self.cluster.job(number)

    # ---- what is seen ----

    def tree(self, job: Job) -> Path:
        """A job's tree on its first node, as this machine finds it."""
        node = job.nodes[0]
        return Path(self.cluster.seen_on(node, f"/run/drainwise/{node}/{job.id}"))

    def comment(self, number: int) -> str:
        """A job's AdminComment, "" when it has none."""
        line = self.cluster.run(["scontrol", "--oneliner", "show", "job", str(number)]).stdout
        return line.partition(" AdminComment=")[2].split(" ")[0].strip()

    def published(self, number: int) -> Published | None:
        """What the job's node published of it."""
        return published_in(self.comment(number))
