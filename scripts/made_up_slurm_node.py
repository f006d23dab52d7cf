"""A Slurm node without any daemon: the hooks as a site has them installed, run as slurmd runs them.

For the tests of what runs on a node and for the measurements.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace

from drainwise.features.host import scratch_bytes
from drainwise.node.settings import DEFAULT_SCRATCH_DIR
from drainwise.siteconfig import FeaturesSection, SiteConfig
from drainwise.slurm.node.facts import NodeRecord, write_record
from drainwise.slurm.node.job_tree import open_node
from drainwise.slurm.setup.render import render
from made_up_node import PYTHON, Ran, run_as

FEATURES = FeaturesSection(wall_limit=86400)


@dataclass(frozen=True)
class MadeUpJob:
    """A job with what slurmd knows of it; `started` and `ends` (UNIX s) since Slurm 24.11 only, else None."""

    number: int
    uid: int
    node: str = "node2"
    node_list: str = "node[1-3]"
    cpus_per_node: str = "4(x2),2"
    started: int | None = None
    ends: int | None = None
    restarts: int = 0
    work_dir: str = "/home/alice"

    def environment(self) -> dict[str, str]:
        """What slurmd gives a prolog and an epilog, and nothing else."""
        variables = {
            "SLURM_CLUSTER_NAME": "cluster",
            "SLURM_CONF": "/etc/slurm/slurm.conf",
            "SLURMD_NODENAME": self.node,
            "SLURM_JOB_ACCOUNT": "atlas",
            "SLURM_JOB_COMMENT": "a b",
            "SLURM_JOB_CPUS_PER_NODE": self.cpus_per_node,
            "SLURM_JOB_GID": str(self.uid),
            "SLURM_JOB_ID": str(self.number),
            "SLURM_JOB_NUM_NODES": "3",
            "SLURM_JOB_PARTITION": "main",
            "SLURM_JOB_RESTART_COUNT": str(self.restarts),
            "SLURM_JOB_UID": str(self.uid),
            "SLURM_JOB_USER": "alice",
            "SLURM_JOB_WORK_DIR": self.work_dir,
            "SLURM_NODELIST": self.node_list,
        }
        if self.started is not None:
            variables["SLURM_JOB_START_TIME"] = str(self.started)
        if self.ends is not None:
            variables["SLURM_JOB_END_TIME"] = str(self.ends)
        return variables


@dataclass(frozen=True)
class SlurmNode:
    """Hooks, settings and package below `base`, a directory that everybody may enter."""

    base: str
    site: SiteConfig

    @property
    def runtime_dir(self) -> str:
        """Where the jobs' trees lie."""
        return self.site.slurm.runtime_dir

    def tree(self, job: MadeUpJob) -> str:
        """The tree of a job."""
        return f"{self.runtime_dir}/{job.node}/{job.number}"

    def record(self, job: MadeUpJob, total_cpu: int, phys_cores: int, log_cores: int) -> None:
        """What the agent does at its start, on the node of a job."""
        node = open_node(self.runtime_dir, job.node, create=True)
        if node is None:
            raise FileNotFoundError(self.runtime_dir)
        write_record(node, NodeRecord(total_cpu, phys_cores, log_cores, scratch_bytes(DEFAULT_SCRATCH_DIR)))
        os.close(node)

    def hook(self, name: str) -> str:
        """The program: `prolog`, `task_prolog` or `epilog`."""
        slurm = self.site.slurm
        if name == "task_prolog":
            return f"{slurm.libexec_dir}/slurm-task-prolog"
        return f"{slurm.config_dir}/{name}.d/50-drainwise"

    def run(self, name: str, job: MadeUpJob, uid: int, more: Mapping[str, str]) -> Ran:
        """Run a hook as `uid` in the environment of slurmd, with `more` variables."""
        return run_as(uid, [self.hook(name)], {**job.environment(), **more})

    def prolog(self, job: MadeUpJob, **more: str) -> Ran:
        """The prolog, as root."""
        return self.run("prolog", job, 0, more)

    def task_prolog(self, job: MadeUpJob, **more: str) -> Ran:
        """The task prolog, as the job's user."""
        return self.run("task_prolog", job, job.uid, more)

    def epilog(self, job: MadeUpJob, **more: str) -> Ran:
        """The epilog, as root."""
        return self.run("epilog", job, 0, more)


def install(package: str, base: str, runtime_dir: str, site: SiteConfig, library: str = "") -> SlurmNode:
    """Put the rendered hooks below `base`, and the package, byte-compiled, where it is not there yet."""
    library = library or f"{base}/library"
    slurm = replace(
        site.slurm,
        python=PYTHON,
        library_dir=library,
        libexec_dir=f"{base}/libexec",
        node_file=f"{base}/node.conf",
        state_dir=base,
        config_dir=f"{base}/slurm",
        runtime_dir=runtime_dir,
    )
    site = replace(site, slurm=slurm)
    if not os.path.isdir(library):
        shutil.copytree(package, f"{library}/drainwise", ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run([PYTHON, "-m", "compileall", "-q", library], check=True)
    for file in render(site, "node"):
        if file.path.startswith(f"{base}/"):  # not the agent's unit
            os.makedirs(os.path.dirname(file.path), exist_ok=True)
            with open(file.path, "w", encoding="ascii") as stream:
                stream.write(file.text)
            os.chmod(file.path, file.mode)
    return SlurmNode(base, site)
