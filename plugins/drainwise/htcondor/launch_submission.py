"""What HTCondor is told about a job. Pure: a submit description of words that nobody can break out of.

Arguments and environment stand in a script that is transferred with the job, and in no ad: ads can be read by all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from drainwise.htcondor.launch_settings import COMMANDS, TEXT_LIMIT
from drainwise.launch.backend import Start
from drainwise.launch.resources import Resources

TAG = "DrainwiseLaunchTag"
"""The attribute of a job's ad by which the job is found again."""
PRIORITY_ORIGIN = 1_672_531_200
"""2023-01-01 00:00:00 UTC, UNIX s: where JobPrio counts from, as the nice values of open-lmake do."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSOUND = re.compile(r"[^A-Za-z0-9_.,:;@|&+!=~^(){}<>#*?/ -]")
_LONGEST_NAME = 200
_MOST_PRIORITY = (1 << 31) - 1  # HTCondor's are of 32 bits


def unfit(resources: Resources) -> str:
    """Why no job of HTCondor can ask for these resources, in words; empty when one can, as far as one can know."""
    for name, amount in resources.others:
        if isinstance(amount, int):
            if not _NAME.fullmatch(name):
                return f"{name}: HTCondor's names of resources have letters, digits and _ alone"
        elif name not in COMMANDS:
            known = ", ".join(COMMANDS)
            return f"{name} = {amount[:60]!r}: HTCondor counts its resources; as texts there are {known}"
        elif not amount.isprintable() or len(amount) > TEXT_LIMIT:
            return f"{name} = {amount[:60]!a}: expected printable text"
    return ""


def job_priority(priority: float) -> int:
    """JobPrio, the higher the sooner, of a job that should start at `priority` (UNIX s)."""
    return int(max(-_MOST_PRIORITY, min(_MOST_PRIORITY, PRIORITY_ORIGIN - priority)))


def description(
    job: Start, key: str, script: str, log: str, directory: str, use_prio: bool, options: Mapping[str, str]
) -> dict[str, str]:
    """The submit description. script, log, directory: absolute paths; options: submit commands for all jobs."""
    words = {
        "universe": "vanilla",
        "executable": literal(script),
        "transfer_executable": "True",
        "should_transfer_files": "YES",
        "when_to_transfer_output": "ON_EXIT",
        "transfer_output_files": '""',
        "initialdir": literal(directory),
        "log": literal(log),
        "notification": "Never",
        "description": literal(shown_name(key, job.name)),
        "batch_name": f'"{shown_name("", key)}"',
        "request_cpus": str(job.resources.cpu),
        f"My.{TAG}": f'"{job.tag}"',
    }
    if job.resources.mem:
        words["request_memory"] = f"{job.resources.mem}MB"
    if job.resources.tmp:
        words["request_disk"] = f"{job.resources.tmp}MB"
    if use_prio:
        words["priority"] = str(job_priority(job.priority))
    if job.wall_limit > 0:
        words["allowed_job_duration"] = str(job.wall_limit)
    for name, amount in job.resources.others:
        if isinstance(amount, int):
            words[f"request_{name}"] = str(amount)
        else:
            words[name] = literal(amount)
    return {**words, **{name: literal(value) for name, value in options.items()}}


def literal(text: str) -> str:
    """A text in a submit description, without its macros."""
    return text.replace("$", "$(DOLLAR)")


def shown_name(key: str, name: str) -> str:
    """`key:name` as people see it in condor_q, of sound characters."""
    return _UNSOUND.sub("_", f"{key}:{name}" if key else name)[:_LONGEST_NAME]
