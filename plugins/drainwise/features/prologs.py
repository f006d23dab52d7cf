"""What LSF, PBS, Grid Engine and Flux say of a job that starts: in its environment, and asked by their commands.

Each has one function, which asks by the function that it is given and is pure but for that. A fact that cannot be read
is left out, and a command that fails has said nothing.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Optional, Union

from drainwise.common.bounded_command import Running
from drainwise.facts.errors import PoolUnreachable
from drainwise.facts.units import parse_amount, parse_clock
from drainwise.features.host import cpu_list

Fact = Optional[Union[int, float, str]]
Ask = Callable[..., str]
"""Runs a command, given by its words, and returns what it prints: "" where it fails."""

COMMAND_SECS = 5.0
_LARGEST = 1 << 20
_LSF_MINUTES = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(?:\s*min.*|/.*)?")
_LSF_CLOCK = re.compile(r"([0-9]{1,9}):([0-9]{2})(?:/.*)?")
_REQUESTED = "hard resource_list:"


class DescribedJob(NamedTuple):
    """Facts of a job and of its machine by their keys; owner: its user's name or number where that is told."""

    job: dict[str, Fact]
    machine: dict[str, Fact]
    owner: str | None = None


def described_by(system: str, environment: Mapping[str, str], now: int) -> DescribedJob:
    """Describe the job that starts here; now: UNIX s. A command that fails or takes too long has said nothing."""

    def ask(*command: str) -> str:
        try:
            ran = Running(command, environment, COMMAND_SECS, most=_LARGEST).answer()
        except PoolUnreachable:
            return ""
        return ran.text if ran.code == 0 else ""

    return SYSTEMS[system](environment, ask, os.uname().nodename, now)


def lsf(environment: Mapping[str, str], ask: Ask, host: str, now: int) -> DescribedJob:
    """Describe a job of LSF on `host` that starts `now`, UNIX s: `LSB_*`, `bjobs -json` and `bhosts -json`.

    The run limit is taken as real time, as with ABS_RUNLIMIT=y; MEMLIMIT and SWAPLIMIT are in KB where they have no
    unit.
    """
    name, index = environment.get("LSB_JOBID", ""), environment.get("LSB_JOBINDEX", "0")
    name = name if index in {"", "0"} else f"{name}[{index}]"
    limits = _first_record(ask("bjobs", "-json", "-o", "jobid runtimelimit memlimit swaplimit", name))
    words = environment.get("LSB_MCPU_HOSTS", "").split()
    here = [count(number) or 0 for other, number in zip(words[::2], words[1::2]) if _is_host(other, host)]
    return DescribedJob(
        {
            "job_id": name or None,
            "jobstart_secs": now,
            "allocated_cpu": sum(here) or count(environment.get("LSB_DJOB_NUMPROC")),
            "wall_limit_secs": _run_limit(limits.get("RUNTIMELIMIT", "").strip()),
            "max_rss_bytes": size(limits.get("MEMLIMIT"), 1024),
            "max_swap_bytes": size(limits.get("SWAPLIMIT"), 1024),
        },
        {"jobslots": count(_first_record(ask("bhosts", "-json", "-o", "host_name max", host)).get("MAX"))},
        environment.get("LSFUSER") or None,
    )


def _first_record(text: str) -> dict[str, str]:
    """Return the one record of an answer of LSF, texts alone; empty for anything else."""
    try:
        found = json.loads(text)["RECORDS"][0]
        return {name: value for name, value in found.items() if isinstance(value, str)}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}


def _run_limit(text: str) -> int | None:
    """Return the seconds of `60.0/hostA`, `60.0 min of hostA` (minutes) or `1:00` (hours and minutes)."""
    clock, minutes = _LSF_CLOCK.fullmatch(text), _LSF_MINUTES.fullmatch(text)
    if clock is not None:
        return (int(clock[1]) * 60 + int(clock[2])) * 60
    return int(float(minutes[1]) * 60) if minutes is not None else None


def pbs(environment: Mapping[str, str], ask: Ask, host: str, now: int) -> DescribedJob:
    """Describe a job of PBS Pro, OpenPBS or Torque on `host` that starts `now`, UNIX s: `PBS_JOBID`, `qstat -f`."""
    name = environment.get("PBS_JOBID", "")
    job = pbs_attributes(ask("qstat", "-f", name))
    cores = cores_on(job.get("exec_host", ""), host)
    stated = (environment.get("NCPUS"), job.get("Resource_List.ncpus"), environment.get("PBS_NUM_PPN"))
    begins = (_local_time(job.get(name, "")) for name in ("stime", "start_time"))
    return DescribedJob(
        {
            "job_id": name or None,
            "jobstart_secs": next(filter(None, begins), now),
            "allocated_cpu": next(filter(None, (cores, *map(count, stated))), None),
            "wall_limit_secs": seconds(job.get("Resource_List.walltime")),
            "cpu_limit_secs": seconds(job.get("Resource_List.cput")),
            "max_rss_bytes": size(job.get("Resource_List.mem")),
            "scratch_limit_bytes": size(job.get("Resource_List.file")),
        },
        {},
        job.get("euser") or job.get("Job_Owner", "").partition("@")[0] or None,
    )


def pbs_attributes(text: str) -> dict[str, str]:
    """Return the attributes that `qstat -f` prints; a line that begins with a tab goes on with the one before."""
    lines = (line.partition(" = ") for line in text.replace("\n\t", "").splitlines())
    return {name.strip(): value.strip() for name, equals, value in lines if equals}


def cores_on(exec_host: str, host: str) -> int:
    """Count the cores on a host: of PBS Pro `n1/0*8+n2/0*8`, of Torque `n1/0-3,6+n2/0` or `n1/0+n1/1`.

    >>> cores_on("n1/0*8+n2/0*4", "n1"), cores_on("n1/0-3,6+n2/0", "n1.pool"), cores_on("n1/0+n1/1", "n1")
    (8, 5, 2)
    """
    cores = 0
    for chunk in exec_host.split("+"):
        name, _, place = chunk.partition("/")
        if _is_host(name.strip(), host):
            _, times, number = place.partition("*")
            cores += (count(number) or 0) if times else len(cpu_list(place)) or 1
    return cores


def _local_time(text: str) -> int | None:
    try:
        return int(time.mktime(time.strptime(text, "%a %b %d %H:%M:%S %Y")))
    except (ValueError, OverflowError):
        return None


def grid_engine(environment: Mapping[str, str], ask: Ask, host: str, now: int) -> DescribedJob:
    """Describe a job of Grid Engine on `host` that starts `now`, UNIX s: its `config`, `qstat -j` and `qconf -sq`.

    Memory limits are for each slot, as Grid Engine enforces them. Of a resource, the queue's limit and the job's, the
    tighter one counts.
    """
    name, task = environment.get("JOB_ID", ""), environment.get("SGE_TASK_ID", "undefined")
    lines = ask("cat", f"{environment.get('SGE_JOB_SPOOL_DIR', '')}/config").splitlines()
    config = dict(line.partition("=")[::2] for line in lines)
    wanted = requested(ask("qstat", "-j", name))
    lines = ask("qconf", "-sq", environment.get("QUEUE", "")).replace("\\\n", " ").splitlines()
    queue = {key: value.strip() for key, _, value in (line.partition(" ") for line in lines)}
    cores = count(config.get("host_slots")) or count(environment.get("NSLOTS"))
    memory = _least(size(config.get("h_rss")), size(config.get("h_vmem")))
    of_all, *of_hosts = queue.get("slots", "").split(",")  # `8,[n1=16],[n2=4]`
    own = [part.strip("[] ").partition("=")[::2] for part in of_hosts]
    return DescribedJob(
        {
            "job_id": f"{name}.{task}" if name and task != "undefined" else name or None,
            "jobstart_secs": now,
            "allocated_cpu": cores,
            "wall_limit_secs": _least(*(seconds(one.get(key)) for one in (wanted, queue) for key in ("h_rt", "s_rt"))),
            "cpu_limit_secs": _least(*(seconds(config.get(key)) for key in ("h_cpu", "s_cpu"))),
            "max_rss_bytes": memory * (cores or 1) if memory else None,
            "scratch_limit_bytes": size(config.get("h_fsize")),
        },
        {"jobslots": next((count(number) for other, number in own if _is_host(other, host)), count(of_all))},
        config.get("job_owner"),
    )


def requested(text: str) -> dict[str, str]:
    """Return the hard resources that a job asked for, by their names, of what `qstat -j` prints."""
    lines = [line[len(_REQUESTED) :] for line in text.splitlines() if line.startswith(_REQUESTED)]
    return dict(part.strip().partition("=")[::2] for line in lines for part in line.split(","))


def flux(environment: Mapping[str, str], ask: Ask, _: str, now: int) -> DescribedJob:
    """Describe a job of Flux that starts `now`, UNIX s, unless its R (RFC 20) says when: by this broker's rank."""
    name = environment.get("FLUX_JOB_ID", "")
    try:
        execution = {**json.loads(ask("flux", "job", "info", name, "R"))["execution"]}
    except (ValueError, LookupError, TypeError, RecursionError):
        execution = {}
    times = (execution.get("starttime"), execution.get("expiration"))
    start, end = (float(one) if isinstance(one, (int, float)) and 0 < one < 1e11 else None for one in times)
    return DescribedJob(
        {
            "job_id": name or None,
            "jobstart_secs": int(start) if start else now,
            "allocated_cpu": _cores_of_rank(execution, count(ask("flux", "getattr", "rank"))),
            "wall_limit_secs": int(end - start) if start and end and end > start else None,
        },
        {},
        environment.get("FLUX_JOB_USERID") or None,
    )


def _cores_of_rank(execution: dict[str, Any], rank: int | None) -> int | None:
    try:
        here = [one for one in execution["R_lite"] if rank in cpu_list(str(one["rank"]).strip("[]"))]
        return len(cpu_list(here[0]["children"]["core"])) or None
    except (LookupError, TypeError, AttributeError):
        return None


SYSTEMS = {"lsf": lsf, "pbs": pbs, "sge": grid_engine, "flux": flux}
"""By the name on the command line."""


def size(text: str | None, unit: int = 1) -> int | None:
    """Return the bytes of `4gb`, `512 M` or `2 Gbytes`; unit: bytes of a number that has none."""
    found = parse_amount((text or "").strip(), unit)
    return None if found is None else int(found)


def seconds(text: str | None) -> int | None:
    """Return the seconds of `86400`, `24:00:00` or `1:00:00:00`, of which the first are days."""
    found = parse_clock((text or "").strip())
    return None if found is None else int(found)


def count(text: str | None) -> int | None:
    """Return a plain whole number; None for anything else."""
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _is_host(name: str, host: str) -> bool:
    """Say whether two names, with their domains or without, are one host's."""
    return name.partition(".")[0] == host.partition(".")[0]


def _least(*limits: int | None) -> int | None:
    """Return the tightest limit there is."""
    return min((one for one in limits if one), default=None)
