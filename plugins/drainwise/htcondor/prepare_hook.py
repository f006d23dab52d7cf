"""The starter's prepare hook: before a job starts, make its feature directories and export their names.

Runs as the job's user, in the job's directory, with the job ad on standard input; what it prints is merged into the
starter's copy of that ad. It makes everything inside the job's own directory, so nothing is left to clean up.
"""

from __future__ import annotations

import posix
import time

from drainwise.features import host, planned_shutdown
from drainwise.features.facts import HostFacts, JobFacts
from drainwise.htcondor import acl, sandbox
from drainwise.htcondor.ad_text import literals, raw_values, string, whole
from drainwise.htcondor.job_environment import with_variables
from drainwise.htcondor.next_hook import put_input, run_before
from drainwise.node.hook import (
    read_bounded,
    read_input,
    run_to_end,
    say,
    settings_or_defaults,
    variable,
    write_output,
)
from drainwise.node.job_features import make_features

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from drainwise.htcondor.ad_text import Literal
    from drainwise.node.settings import NodeSettings

MIB = 1 << 20
JOB_ATTRIBUTES = ("GlobalJobId", "JobCurrentStartDate", "AllowedExecuteDuration", "AllowedJobDuration")
MACHINE_ATTRIBUTES = ("Cpus", "Memory", "Disk", "TotalCpus", "DetectedPhysicalCpus", "DetectedCpus")


def host_facts(machine: dict[str, Literal], settings: NodeSettings) -> HostFacts:
    """What this host is, from the slot's ad and the site's settings."""
    total = whole(machine, "TotalCpus")
    physical, logical = whole(machine, "DetectedPhysicalCpus"), whole(machine, "DetectedCpus")
    if not physical or not logical:
        physical, logical = host.cores()
    elif logical == physical:
        logical = 0  # the draft's way of saying that hyper-threading is off
    return HostFacts(
        total_cpu=total,
        jobslots=settings.whole("jobslots") or total,
        phys_cores=physical,
        log_cores=logical,
        hs06=settings.decimal("hs06"),
        hs23=settings.decimal("hs23"),
        shutdown_command=settings.text("shutdown_command"),
        grace_secs=settings.whole("grace_secs"),
    )


def job_facts(job: dict[str, Literal], machine: dict[str, Literal], settings: NodeSettings, now: int) -> JobFacts:
    """What this job was given: the slot's cores, memory and disk, and the tightest limit on its run time.

    The CPU limit is the site's per-core limit, else what the run time limit lets all cores use. `now` is UNIX seconds.
    """
    cores = whole(machine, "Cpus")
    limits = [whole(job, "AllowedExecuteDuration"), whole(job, "AllowedJobDuration"), settings.whole("wall_limit_secs")]
    wall = min((limit for limit in limits if limit), default=None)
    per_core = settings.whole("cpu_limit_secs_per_core") or wall
    memory, disk = whole(machine, "Memory"), whole(machine, "Disk")
    return JobFacts(
        allocated_cpu=cores,
        jobstart_secs=whole(job, "JobCurrentStartDate") or now,
        job_id=string(job, "GlobalJobId"),
        wall_limit_secs=wall,
        cpu_limit_secs=per_core * cores if per_core and cores else None,
        cpufactor_lrms=settings.decimal("cpufactor_lrms"),
        max_rss_bytes=memory * MIB if memory else None,
        max_swap_bytes=settings.whole("max_swap_bytes"),
        scratch_limit_bytes=settings.whole("scratch_limit_bytes") or (disk * 1024 if disk else None),
        grace_secs_job=settings.whole("grace_secs_job"),
    )


def machine_ad() -> dict[str, Literal]:
    """What the starter says of the slot; empty, and said, when it cannot be read: that costs some keys, no more."""
    try:
        return literals(read_bounded(variable("_CONDOR_MACHINE_AD"), sandbox.AD_LIMIT), MACHINE_ATTRIBUTES)
    except (KeyError, OSError) as error:
        say(f"no machine ad, so cores, memory and disk are left out of the features: {error}")
        return {}


def lend_passage(scratch: str) -> None:
    """Let the daemon's user, who owns the directory above, pass through the job's directory to its reports.

    In a pool without root that is the job's user itself, who needs no passage.
    """
    above = sandbox.parent(scratch)
    owner = posix.stat(above).st_uid
    if owner == posix.geteuid():
        return
    try:
        if owner == 0:
            raise ValueError(f"{above} belongs to root, not to HTCondor's own user")
        acl.lend(scratch, owner, acl.PASS_THROUGH)
    except (OSError, ValueError) as error:
        say(f"this job's pilot reports cannot be published: no access list on its directory: {error}")


def with_line(ad: bytes, line: bytes) -> bytes:
    """The ad with this line, `Name = value`, in the place of what it has under that name."""
    name = line[: line.index(b" ")].lower()
    kept = [one for one in ad.splitlines() if one.partition(b"=")[0].strip().lower() != name]
    return b"\n".join([*kept, line, b""])


def prepare(settings_path: str) -> bytes:
    """Make the three directories and print the job's new environment; returns the job's ad with it."""
    settings, now = settings_or_defaults(settings_path), int(time.time())
    scratch = variable("_CONDOR_SCRATCH_DIR").rstrip("/")
    lend_passage(scratch)
    ad, machine = read_input(sandbox.AD_LIMIT), machine_ad()
    host_side = host_facts(machine, settings)
    job_side = job_facts(literals(ad, JOB_ATTRIBUTES), machine, settings, now)
    planned, remark = planned_shutdown.read(settings.shutdown_file, now)
    if remark:
        say(remark)
    variables = make_features(scratch, host_side, job_side, planned, now)
    if not variables:
        return ad
    raw = raw_values(ad, ("Environment", "Env", "EnvDelim"))
    delimiter = raw.get("EnvDelim", '";"')[1:-1] or ";"
    line = with_variables(raw.get("Environment"), raw.get("Env"), delimiter, variables).encode("latin-1")
    write_output(line + b"\n")
    return with_line(ad, line)


def main(settings_path: str, site_hook: Sequence[str] = ()) -> NoReturn:
    """The hook; ends this process, or becomes the site's own hook, a path and its arguments."""
    if site_hook:
        run_before(site_hook, lambda: put_input(prepare(settings_path)))
    run_to_end(lambda: prepare(settings_path), orderly=True)
