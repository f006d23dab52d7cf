"""A leader's chunk jobs in HTCondor: by the tools of its node, in the schedd that the leader's own job came from.

The job must have the right to submit there: a token in its user's home, or one that came with the job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from drainwise.common.bounded_command import Answer, run_in_path
from drainwise.facts.errors import ActionRefused, UsageError
from drainwise.htcondor.launch.submission import literal
from drainwise.node.ad_text import literals, string, whole
from drainwise.systems.chunk_jobs import ChunkJob, ChunkJobs

LEADER = "DrainwiseLeader"
"""The attribute of a chunk job's ad that has the GlobalJobId of its leader."""
_SECONDS = 20.0  # for a submission
_LAST_SECONDS = 5.0  # for what a leader does when its time is over
_AD_LIMIT = 1 << 20
_JOB = ("GlobalJobId", "RequestMemory", "RequestCpus", "AcctGroup", "AcctGroupUser")
_NUMBER = re.compile(r"([0-9]+)\.([0-9]+)")
_NONE_LEFT = "couldn't find/remove"
_OF_THE_LEADER = ("_CONDOR_", "_CHIRP_", "BATCH_SYSTEM")
_KEPT = "_CONDOR_SEC_"  # how its user proves who they are, such as the directory of a token


def chunk_jobs(environment: Mapping[str, str]) -> ChunkJobs | None:
    """Return HTCondor as the job in `environment` reaches it; None where this is no job of HTCondor's.

    Raises UsageError where its ads cannot be read.
    """
    places = [environment.get(name, "") for name in ("_CONDOR_JOB_AD", "_CONDOR_MACHINE_AD")]
    if not all(places):
        return None
    ads = []
    for place in places:
        try:
            with open(place, "rb") as file:
                ads.append(file.read(_AD_LIMIT))
        except OSError as fault:
            raise UsageError(f"{place}: {fault.strerror}") from None
    return CondorChunkJobs(environment, *ads)


class CondorChunkJobs:
    """See `ChunkJobs`. job, machine: the ads of the leader's job and slot."""

    def __init__(self, environment: Mapping[str, str], job: bytes, machine: bytes) -> None:
        self._job = literals(job, _JOB)
        self.node = string(literals(machine, ("Machine",)), "Machine") or ""
        self._leader = string(self._job, "GlobalJobId") or ""
        if not self.node or "#" not in self._leader:
            raise UsageError("the ads of this job name no Machine or no GlobalJobId")
        scratch = environment.get("_CONDOR_SCRATCH_DIR")
        self._environment = {
            name: value
            for name, value in environment.items()
            if (name.startswith(_KEPT) or not name.startswith(_OF_THE_LEADER)) and (not scratch or value != scratch)
        }

    def submit(self, job: ChunkJob) -> str:
        """See `ChunkJobs`."""
        answer = self._run(_SECONDS, "condor_submit", "-terse", "-", stdin=description(job, self._job, self.node))
        number = _NUMBER.match(answer.text)
        if answer.code or number is None:
            raise ActionRefused(f"condor_submit failed: {answer.complaint}")
        return number[0]

    def remove_waiting(self, ids: Sequence[str]) -> None:
        """See `ChunkJobs`."""
        which = " || ".join(f"ClusterId == {one.partition('.')[0]}" for one in ids)
        mine = f'JobStatus == 1 && {LEADER} == "{self._leader}" && ({which})'
        answer = self._run(_LAST_SECONDS, "condor_rm", "-constraint", mine)
        if answer.code and _NONE_LEFT not in answer.whole.lower():
            raise ActionRefused(f"condor_rm failed: {answer.complaint}")

    def _run(self, seconds: float, name: str, *arguments: str, stdin: str = "") -> Answer:
        schedd = ("-name", self._leader.partition("#")[0])
        return run_in_path(name, *schedd, *arguments, environment=self._environment, seconds=seconds, stdin=stdin)


def description(job: ChunkJob, leader: Mapping[str, str | int | float | bool], node: str) -> str:
    """Return the submit description of a chunk job. leader: the ad of the leader's job. Pure."""
    ad = dict(leader)
    program, *arguments = job.argv
    memory = whole(ad, "RequestMemory")
    words = {
        "universe": "vanilla",
        "executable": literal(program),
        "transfer_executable": "False",
        "arguments": literal(f'"{" ".join(map(_quoted, arguments))}"'),
        "getenv": "True",
        "should_transfer_files": "YES",
        "when_to_transfer_output": "ON_EXIT",
        "transfer_output_files": '""',
        "notification": "Never",
        "batch_name": f'"{job.name}"',
        "requirements": f'Machine == "{node}"',
        "request_cpus": str(job.cores),
        **({} if not memory else {"request_memory": str(max(1, int(memory * job.share)))}),
        f"My.{LEADER}": f'"{string(ad, "GlobalJobId")}"',
    }
    for name, command in (("AcctGroup", "accounting_group"), ("AcctGroupUser", "accounting_group_user")):
        if value := string(ad, name):
            words[command] = value
    lines = [f"{name} = {value}" for name, value in words.items()]
    return "\n".join([*lines, *job.options, "queue"]) + "\n"


def _quoted(word: str) -> str:
    """Quote an argument in HTCondor's new syntax."""
    inside = word.replace('"', '""').replace("'", "''")
    return f"'{inside}'"
