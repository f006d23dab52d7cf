"""What the programs that a site hangs into Slurm find in their environment, recorded from real jobs of every kind."""

from __future__ import annotations

import json
import os

from slurm_cluster.cluster import SlurmCluster

HOOKS = ("PrologSlurmctld", "Prolog", "TaskProlog", "TaskEpilog", "Epilog", "EpilogSlurmctld", "HealthCheckProgram")
_NOTES = "/home/notes"
_DIRECTORY = "/etc/site"
_HOOK = f"""#!/bin/sh
/usr/bin/env -0 >{_NOTES}/HOOK.$(/bin/hostname).$$.new
/bin/pwd >{_NOTES}/HOOK.$(/bin/hostname).$$.cwd
/bin/mv {_NOTES}/HOOK.$(/bin/hostname).$$.new {_NOTES}/HOOK.$(/bin/hostname).$$
"""
# Kind of job → its user and options.
JOBS: dict[str, tuple[str, list[str]]] = {
    "one core": ("alice", ["--time=10", "--mem=3000", "--comment=a b;c"]),
    "exclusive node, all memory": ("bob", ["--exclusive", "--mem=0"]),
    "uneven on three nodes": ("alice", ["--nodes=3", "--ntasks=5", "--mem-per-cpu=500"]),
    "array": ("bob", ["--array=3-4"]),
    "heterogeneous": ("bob", ["--ntasks=1", ":", "--nodes=2", "--ntasks-per-node=2"]),
}


def hooks(cluster: SlurmCluster) -> str:
    """Run a job of every kind with a program in every place; what each found, as JSON. The cluster is as before."""
    os.mkdir(cluster.root + _NOTES)
    os.chmod(cluster.root + _NOTES, 0o1777)  # noqa: S103 - the job's users write there, too
    for name in HOOKS:
        cluster.write(f"{_DIRECTORY}/{name}", _HOOK.replace("HOOK", name), mode=0o755)
    lines = [f"{name}={_DIRECTORY}/{name}" for name in HOOKS]
    cluster.configure("\n".join([*lines, "HealthCheckInterval=5", "HealthCheckNodeState=ANY"]))
    cluster.restart()
    kinds: dict[int, str] = {}
    for kind, (user, options) in JOBS.items():
        number = cluster.submit("srun true", user, options)
        cluster.wait_for(lambda: _all_over(cluster, number), 60, f"the end of job {number}")  # noqa: B023 - used at once
        kinds.update({job.id: kind for job in cluster.jobs(f"--jobs={number}")})
    cluster.wait_for(lambda: any("HealthCheck" in name for name in _notes(cluster)), 30, "a health check")
    found = [_note(cluster, name, kinds) for name in sorted(_notes(cluster))]
    cluster.configure("")
    cluster.restart()
    return json.dumps(sorted(found, key=_order), indent=1) + "\n"


def _all_over(cluster: SlurmCluster, number: int) -> bool:
    """Whether the job and its epilogs have ended."""
    return all(job.state == "COMPLETED" for job in cluster.jobs(f"--jobs={number}"))


def _notes(cluster: SlurmCluster) -> list[str]:
    return [name for name in os.listdir(cluster.root + _NOTES) if not name.endswith((".new", ".cwd"))]


def _note(cluster: SlurmCluster, name: str, kinds: dict[int, str]) -> dict[str, object]:
    with open(f"{cluster.root}{_NOTES}/{name}", encoding="utf-8") as file:
        environment = dict(entry.split("=", 1) for entry in file.read().split("\0") if entry)
    with open(f"{cluster.root}{_NOTES}/{name}.cwd", encoding="utf-8") as file:
        directory = file.read().strip()
    kind = kinds.get(int(environment.get("SLURM_JOB_ID", 0)), "")
    hook, machine, _pid = name.split(".")
    return {"hook": hook, "machine": machine, "job": kind, "cwd": directory, "environment": environment}


def _order(note: dict[str, object]) -> tuple[str, int, str, str]:
    kinds = [*JOBS, ""]
    return str(note["hook"]), kinds.index(str(note["job"])), str(note["machine"]), json.dumps(note["environment"])
