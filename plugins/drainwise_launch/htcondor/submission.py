"""What jobs ask of HTCondor: the table [backends.htcondor] of a launch file, options, submit descriptions and scripts.

Pure; nobody can break out of a submit description's quotes. Arguments and environment stand in a script that is
transferred with the job, and in no ad: ads can be read by all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from drainwise.common.typed_table import in_file, key, matching, read_keys, truth, whole
from drainwise.facts.errors import UsageError
from drainwise_launch.backend import DEFAULT_MAX_QUEUED, Start, option_words
from drainwise_launch.choice.resources import MEM, TMP, Resources
from drainwise_launch.job_script import job_script

COMMANDS = ("requirements", "rank", "accounting_group", "accounting_group_user", "concurrency_limits")
"""Submit commands that a job may give as resources, and the command line for all jobs."""
TEXT_LIMIT = 1000

_SECTION = "backends.htcondor"
_ADDRESS = matching(r"[A-Za-z0-9@._:<>?&=\[\]-]{1,500}", "a name or an address")


@dataclass(frozen=True)
class CondorLaunchSettings:
    """The keys of [backends.htcondor].

    n_max_queued_jobs: how many of one bucket may be idle. use_prio: tell each job's JobPrio by when it should start.
    schedd: the name of the access point, where it is not this machine's; collector: the pool it is in.
    command_seconds: how long a question or a submission may take. check_seconds: how often the queue is asked for jobs
    whose ends the event log does not tell. history_seconds: how long a job that has left the queue may still be missing
    in its history before it counts as vanished. check_slots: refuse what no slot of the pool can hold now.
    fail_held: a job that its owner holds has failed, like one that HTCondor puts on hold.
    options: submit command → value, of the command line.
    """

    n_max_queued_jobs: int = key(whole(1, 100_000), DEFAULT_MAX_QUEUED)
    use_prio: bool = key(truth(), True)
    schedd: str = key(_ADDRESS, "")
    collector: str = key(_ADDRESS, "")
    command_seconds: int = key(whole(1, 600), 20)
    check_seconds: int = key(whole(1, 86_400), 30)
    history_seconds: int = key(whole(0, 86_400), 60)
    check_slots: bool = key(truth(), False)
    fail_held: bool = key(truth(), False)
    options: Mapping[str, str] = field(default_factory=dict)


def condor_settings(table: Mapping[str, object], options: str, file: str) -> CondorLaunchSettings:
    """Read the settings in a table of `file`, with the options of the command line.

    Raises ConfigurationError for a wrong key or value, UsageError for a wrong option.
    """
    wrong = in_file(file, _SECTION)
    found = read_keys(table, CondorLaunchSettings, wrong)
    if "collector" in found and "schedd" not in found:
        raise wrong("collector", found["collector"], "the name of one of its access points beside it: schedd")
    return CondorLaunchSettings(**found, options=_options(options))


def _options(text: str) -> dict[str, str]:
    words = option_words(text, "htcondor")
    found = {}
    for word in words:
        name, is_set, value = word.partition("=")
        name, value = name.strip(), value.strip()
        if name not in COMMANDS or not is_set or not is_command_text(value):
            known = ", ".join(COMMANDS)
            raise UsageError(f"options for htcondor: {word[:60]!r}: expected NAME=VALUE with a name of: {known}")
        found[name] = value
    return found


def is_command_text(text: str) -> bool:
    """Tell whether a text can be the value of a submit command, and is itself there.

    A backslash would join its line with the next one; of two signs of a macro nobody can make a text.
    """
    if not text.isprintable() or len(text) > TEXT_LIMIT or "$$" in text:
        return False
    return text.strip() != "" and not text.rstrip().endswith("\\")


TAG = "DrainwiseLaunchTag"
"""The attribute of a job's ad by which the job is found again."""
PRIORITY_ORIGIN = 1_672_531_200
"""2023-01-01 00:00:00 UTC, UNIX s: where JobPrio counts from, as the nice values of open-lmake do."""

MOST_MB = 1 << 42
"""HTCondor counts memory and disk in 64 bits of bytes, and takes a negative number for what does not fit in."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]+")
# What stands for something else in `request_NAME`, or for nothing: HTCondor leaves it out without a word.
_OTHERWISE = {
    "cpu": "cpu",
    "cpus": "cpu",
    "memory": "mem",
    "disk": "tmp",
    "gpu": "gpus",
    **dict.fromkeys(("gpu_memory", "gpus_memory"), "requirements"),
}
_UNSOUND = re.compile(r"[^A-Za-z0-9_.,:;@|&+!=~^(){}<>#*?/ -]")
_NO_PATH = re.compile(r"\"| $")
_OF_HTCONDOR = ("_CONDOR_", "_CHIRP_")
_LONGEST_NAME = 200
_MOST_PRIORITY = (1 << 31) - 1  # HTCondor's are of 32 bits


def unfit(resources: Resources) -> str:
    """Return why no job of HTCondor can ask for these resources; empty when one can, as far as one can know."""
    for name in (MEM, TMP):
        if resources.amounts()[name] >= MOST_MB:
            return f"{name} = {resources.amounts()[name]} MB: more than HTCondor can count"
    counted = set()
    for name, amount in resources.others:
        if name in COMMANDS:
            if not is_command_text(str(amount)):
                return f"{name} = {str(amount)[:60]!a}: expected printable text without $$, and no backslash at its end"
        elif not isinstance(amount, int):
            known = ", ".join(COMMANDS)
            return f"{name} = {amount[:60]!r}: HTCondor counts its resources; as texts there are {known}"
        elif name.lower() in _OTHERWISE:
            return f"{name}: for HTCondor that is to be said as {_OTHERWISE[name.lower()]}"
        elif not _NAME.fullmatch(name):
            return f"{name}: HTCondor's names of resources have two or more letters, digits and _, a letter first"
        elif name.lower() in counted:
            return f"{name}: HTCondor takes it for the same as another one, of large or small letters"
        counted.add(name.lower())
    return ""


def without_slot(resources: Resources, sizes: list[tuple[int, int]]) -> str:
    """Return why no slot of these sizes (cores, MiB) can hold a job; empty when one can."""
    if not sizes:
        return "the pool has no slots now"
    if any(cores >= resources.cpu and memory >= resources.mem for cores, memory in sizes):
        return ""
    cores, memory = max(sizes)
    return f"no slot has {resources.cpu} cores and {resources.mem} MiB; the largest has {cores} and {memory} MiB"


def is_sound(directory: str) -> bool:
    """Tell whether a path can stand in a submit description and in a job's ad, and means there what it says."""
    return is_command_text(directory) and not _NO_PATH.search(directory)


def job_priority(priority: float) -> int:
    """Return JobPrio, the higher the sooner, of a job that should start at `priority` (UNIX s)."""
    return int(max(-_MOST_PRIORITY, min(_MOST_PRIORITY, PRIORITY_ORIGIN - priority)))


def description(
    job: Start, key: str, script: str, log: str, directory: str, use_prio: bool, options: Mapping[str, str]
) -> dict[str, str]:
    """Make the submit description. script, log, directory: absolute paths; options: submit commands for all jobs."""
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
        "submit_event_user_notes": job.tag,
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
    if _is_carried(job):
        words |= {
            "initialdir": literal(job.cwd),
            "output": literal(job.stdout),
            "transfer_input_files": ", ".join(map(literal, job.inputs)),
            "transfer_output_files": ", ".join(map(literal, job.outputs)) or '""',
        }
    for name, amount in job.resources.others:
        if name in COMMANDS:
            words[name] = literal(str(amount))
        else:
            words[f"request_{name}"] = str(amount)
    return {**words, **{name: literal(value) for name, value in options.items()}}


def script_of(job: Start) -> str:
    """Write the job as a script, without the variables that HTCondor sets anew for each job.

    Raises ActionRefused, see `job_script`.
    """
    ours = job.environment.get("_CONDOR_SCRATCH_DIR")
    mine = {
        name: value
        for name, value in job.environment.items()
        if not name.startswith(_OF_HTCONDOR) and (not ours or value != ours)  # TMPDIR, TMP, TEMP
    }
    if _is_carried(job):
        job = replace(job, cwd=".", stdout="")
    return job_script(replace(job, environment=mine))


def _is_carried(job: Start) -> bool:
    """Decide whether files travel with the job; it runs in the directory that HTCondor makes on the node then."""
    return bool(job.inputs or job.outputs)


def literal(text: str) -> str:
    """Quote the macros of a text for a submit description; see `is_command_text`."""
    return text.replace("$", "$(DOLLAR)")


def shown_name(key: str, name: str) -> str:
    """Return `key:name` as people see it in condor_q, of sound characters."""
    return _UNSOUND.sub("_", f"{key}:{name}" if key else name)[:_LONGEST_NAME]
