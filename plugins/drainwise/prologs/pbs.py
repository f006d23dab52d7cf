"""PBS Pro, OpenPBS and Torque: `PBS_JOBID` in the environment, `qstat -f`."""

from __future__ import annotations

import time
from collections.abc import Mapping

from drainwise.features.host import cpu_list
from drainwise.prologs.described import DescribedJob, Questions, count, is_this_host, seconds, size


def questions(environment: Mapping[str, str], host: str) -> Questions:  # noqa: ARG001 - as the others have it
    """Return what is to be asked."""
    return {"job": ["qstat", "-f", environment.get("PBS_JOBID", "")]}


def described(environment: Mapping[str, str], answers: Mapping[str, str], host: str, now: int) -> DescribedJob:
    """Make the facts of a job on `host` that starts `now`, UNIX s."""
    job = attributes(answers.get("job", ""))
    wanted = {name: job.get(f"Resource_List.{name}") for name in ("walltime", "cput", "mem", "vmem", "ncpus", "file")}
    cores = cores_on(job.get("exec_host", ""), host) or count(environment.get("NCPUS")) or count(wanted["ncpus"])
    return DescribedJob(
        {
            "job_id": environment.get("PBS_JOBID") or None,
            "jobstart_secs": _started(job) or now,
            "allocated_cpu": cores or count(environment.get("PBS_NUM_PPN")),
            "wall_limit_secs": seconds(wanted["walltime"]),
            "cpu_limit_secs": seconds(wanted["cput"]),
            "max_rss_bytes": size(wanted["mem"]),
            "scratch_limit_bytes": size(wanted["file"]),
        },
        {},
        job.get("euser") or job.get("Job_Owner", "").partition("@")[0] or None,
    )


def attributes(text: str) -> dict[str, str]:
    """Return the attributes that `qstat -f` prints; a line that begins with a tab goes on with the one before."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("\t") and name:
            found[name] += line.strip()
            continue
        name, equals, value = (part.strip() for part in line.partition(" = "))
        if equals:
            found[name] = value
        else:
            name = ""
    return found


def cores_on(exec_host: str, host: str) -> int:
    """Count the cores on a host: of PBS Pro `n1/0*8+n2/0*8`, of Torque `n1/0-3,6+n2/0` or `n1/0+n1/1`.

    >>> cores_on("n1/0*8+n2/0*4", "n1"), cores_on("n1/0-3,6+n2/0", "n1.pool"), cores_on("n1/0+n1/1", "n1")
    (8, 5, 2)
    """
    cores = 0
    for chunk in exec_host.split("+"):
        name, _, place = chunk.partition("/")
        if is_this_host(name.strip(), host):
            _, times, number = place.partition("*")
            cores += (count(number) or 0) if times else len(cpu_list(place)) or 1
    return cores


def _started(job: Mapping[str, str]) -> int | None:
    for name in ("stime", "start_time"):
        try:
            return int(time.mktime(time.strptime(job[name], "%a %b %d %H:%M:%S %Y")))
        except (KeyError, ValueError, OverflowError):
            continue
    return None
