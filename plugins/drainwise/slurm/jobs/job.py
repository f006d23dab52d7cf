"""A job as slurmctld has it: the one shape that each reader fills, whatever it asked and what that cost.

    squeue_lines      what a snapshot needs of all jobs; or one run, before and after an order
    written           the texts of jobs, which the lines have not got, by squeue's JSON or by pyslurm
    scontrol_jobs     a node's own jobs, each by its number: what a run may use, and its AdminComment

What a reader does not ask for is left at its default. Texts that a user chose are not among the facts, but for the
features that a waiting job asks for, and a job's name and comment, by which its site may tell what client it is and who
sent it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from drainwise.facts.client_rules import ACCOUNT, USER, ClientRules, of_glidein
from drainwise.facts.clients import PAPER, ClientProfile
from drainwise.facts.errors import ActionRefused
from drainwise.pilotad.values import LATEST
from drainwise.slurm import ENDLESS
from drainwise.slurm.jobs.gres import Gres
from drainwise.slurm.jobs.values import ENDLESS_MINUTES, RUNNING

MOST_CORES, MOST_NODES, MOST_TASKS = 1 << 24, 1 << 16, 1 << 22
"""More than any job of a Slurm has: 65,536 nodes and 4 million tasks are its own limits."""

MOST_TEXT = 1024
"""Characters of a text of its submitter."""

_NAMES = re.compile(r"[^&,|()\[\]*\s:]+")  # of features
_RUN = re.compile(r"([0-9]{1,10}(?:_[0-9]{1,10})?)@([0-9]{9,10})")


@dataclass(frozen=True)
class SlurmJob:
    """One job, one task of an array, one component of a heterogeneous job, or the tasks of an array that still wait.

    Times are UNIX s, memory bytes; None: none, or not known. Of a waiting job the times are what the scheduler expects,
    and `cores` what it asks for at least.

    * array: the array's number, None for a job of none; task: this one's. tasks: how many wait together here, of which
      no more may start than the array may have running at a time (at_once; None: all).
    * het: the number of the heterogeneous job that it belongs to; het_offset: which component it is.
    * states: see `values`. reason: why it waits, in Slurm's word.
    * cores: 0 where nobody asked. node_count: of a waiting job the fewest nodes that will do. node: its nodes, as Slurm
      writes them. whole_nodes: it shares no node; user_alone: it shares one with jobs of its own user alone.
    * limit: minutes, None without limit; at least ENDLESS_MINUTES for what an order makes of that.
    * priority: 0 for a held job. can_requeue: a batch job that its owner lets requeue.
    * memory: of all its nodes. features: what its nodes must have, as the user wrote it; required, excluded: nodes
      that it asks for and will not have, as Slurm writes them; disk: temporary space that a node must have, MiB.
    * gres: what it asks for on each node, or has there when it runs, as far as that is known; see `gres`.
    * ranks: its tasks in Slurm's sense (`--ntasks`), which may lie on as many nodes unless it says on how many.
    * reservation: in which it runs. qos: its quality of service. licences: as Slurm writes them.
    * threads: so many of each core it uses; None: all.
    * planned: the nodes where the scheduler means to start it, as Slurm writes them.
    * comments: what may be its AdminComment; several where a text of its user's looks like one.
    * billed: what its partition bills for all that it holds, None where that is not known.
    * name, comment: as the user wrote them, the first MOST_TEXT characters; "" where not asked for or not sure.
    * unknown: what Slurm says of it in a word that is not known, "" for nothing: nobody knows where it could start.
    * odd: which of its numbers no job can have, "" for none: nothing is to be calculated with it.
    """

    number: int
    array: int | None = None
    task: int | None = None
    tasks: int = 1
    het: int | None = None
    het_offset: int | None = None
    user: str = ""
    uid: int | None = None
    account: str = ""
    partitions: tuple[str, ...] = ()
    states: frozenset[str] = frozenset()
    reason: str = ""
    cores: int = 0
    node_count: int = 0
    node: str = ""
    start: int | None = None
    end: int | None = None
    limit: int | None = None
    restarts: int = 0
    priority: int | None = None
    can_requeue: bool = False
    comments: tuple[str, ...] = ()
    at_once: int | None = None
    whole_nodes: bool = False
    user_alone: bool = False
    memory: int | None = None
    memory_per_node: int | None = None
    memory_per_core: int | None = None
    features: str = ""
    required: str = ""
    excluded: str = ""
    disk: int = 0
    gres: Gres = ()
    ranks: int = 1
    reservation: str = ""
    qos: str = ""
    licences: str = ""
    threads: int | None = None
    planned: str = ""
    unknown: str = ""
    odd: str = ""
    name: str = ""
    comment: str = ""
    billed: int | None = None

    @property
    def label(self) -> str:
        """What Slurm's commands take for this job alone: the number of an array or of a heterogeneous job means all."""
        if self.array is not None and self.task is not None:
            return f"{self.array}_{self.task}"
        return str(self.number) if self.het is None or self.het_offset is None else f"{self.het}+{self.het_offset}"

    @property
    def single(self) -> bool:
        """Whether it has one node, and is no part of a heterogeneous job."""
        return self.node_count == 1 and self.het is None

    @property
    def runs(self) -> bool:
        """Whether it runs, and is neither about to nor being ended."""
        return self.states == {RUNNING}

    @property
    def admin_comment(self) -> str:
        """Its AdminComment, "" when it has none or is not sure."""
        return self.comments[0] if len(self.comments) == 1 else ""

    def memory_on_node(self, cores: int | None) -> int | None:
        """Return the job's memory limit on a node where it has `cores`."""
        if self.node_count == 1 and self.memory is not None:
            return self.memory
        if self.memory_per_node is not None:
            return self.memory_per_node
        return self.memory_per_core * cores if self.memory_per_core and cores else None


def run_name(label: str, start: int) -> str:
    """Return the name of one run of a job, or of a task of an array (`12_3`): no other run begins at this UNIX time."""
    return f"{label}@{start}"


def label_and_start(run: str) -> tuple[str, int]:
    """Return the job's label and when this run of it began. Raises ActionRefused for another text."""
    match = _RUN.fullmatch(run)
    if match is None:
        raise ActionRefused(f"{run[:80]!r} is not a run of a Slurm job: expected <job>@<start>")
    return match[1], int(match[2])


def odd_fields(cores: int | None, nodes: int | None, tasks: int, times: tuple[int | None, ...]) -> str:
    """Name those of a job's numbers that no job can have, with their values; "" when all are usual.

    times: of its run; those that the scheduler expects of a waiting job without limit are in the next century.
    """
    if (
        (cores or 0) <= MOST_CORES
        and (nodes or 0) <= MOST_NODES
        and tasks <= MOST_TASKS
        and all((time or 0) <= LATEST for time in times)
    ):
        return ""
    limits = {"cores": (cores, MOST_CORES), "nodes": (nodes, MOST_NODES), "tasks": (tasks, MOST_TASKS)}
    found = [f"{name} {value:.3g}" for name, (value, most) in limits.items() if value is not None and value > most]
    found += [f"time {time:.3g}" for time in times if time is not None and time > LATEST]
    return ", ".join(found)


def traits_of(job: SlurmJob) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return what the conditions of the site file ask of a job beside its user and account, by their keys."""
    licences = tuple(one.partition(":")[0].partition("@")[0] for one in job.licences.split(",") if one)
    texts = (("name", (job.name,)), ("comment", (job.comment,)), ("partition", job.partitions), ("qos", (job.qos,)))
    return (*texts, ("feature", tuple(_NAMES.findall(job.features))), ("licence", licences))


def client_of(job: SlurmJob, rules: ClientRules | None, is_glidein: bool = False) -> ClientProfile:
    """Return the profile of a job; that of all pilots where the site has no rows. is_glidein: as its node has seen."""
    found = PAPER
    if rules:
        found = rules.profile_of({USER: (job.user,), ACCOUNT: (job.account,), **dict(traits_of(job))})
    return of_glidein(found, rules) if is_glidein else found


# A lease lasts from a run's start to its end (EndTime). slurmctld keeps no earlier end, so two things tell of one
# that was shortened:
# * The time limit, for the snapshot and for orders, which may see the job for the first time. Slurm makes it the whole
#   minutes that a new end needs, so a lease that ends before its limit is over was shortened. An end on the minute
#   could not be known from a lease of that length: `sooner_end` sets none.
# * The granted end, for a node's agent, which keeps it since the job began. So the agent tells a job of every lease
#   that ends before that, also of one that somebody else has shortened to the minute.

_MINUTE = 60
_MORE, _LESS = 29, 89  # s


def is_shortened(job: SlurmJob) -> bool:
    """Decide by its time limit whether a run was made to end sooner."""
    if job.start is None or job.end is None or job.limit is None:
        return False
    return job.end < job.start + job.limit * _MINUTE


def shortened_end(job: SlurmJob, granted: int | None) -> int | None:
    """Return the end of a run that ends before the `granted` end (UNIX s, None: without end); None for another one."""
    if job.end is None or job.start is None:
        return None
    return job.end if job.end < (job.start + ENDLESS if granted is None else granted) else None


def granted_by_limit(job: SlurmJob) -> int | None:
    """Return the end that the time limit grants, UNIX s; None without end.

    An order that is older than this look has made the limit the whole minutes up to the new end: still after that end.
    """
    if job.start is None or job.limit is None or job.limit >= ENDLESS_MINUTES:
        return None
    return job.start + job.limit * _MINUTE


def lease_end(job: SlurmJob) -> int | None:
    """Return the end of a run, UNIX s; None without end: Slurm gives it a year then."""
    return None if job.end is None or job.end - (job.start or 0) >= ENDLESS else job.end


def sooner_end(start: int, end: int | None, deadline: int) -> int:
    """Return the end to set so that the run is gone by `deadline` and is seen to be shortened; all UNIX s.

    `end` is None for a lease without end. Raises ActionRefused when the lease ends before `deadline`.
    """
    if end is not None and deadline > end:
        raise ActionRefused(f"its lease ends by {end} already; an order cannot move it later to {deadline}")
    sooner = deadline if end is None else min(deadline, end - 1)
    return sooner - 1 if (sooner - start) % _MINUTE == 0 else sooner


def steps_to(end: int, wanted: int) -> list[int]:
    """Return the ends (UNIX s) to set one after the other so that the last is `wanted` and the time limit stays.

    With each new end Slurm changes the time limit by the difference and half a minute, in whole minutes cut towards 0:
    smaller changes leave it as it is.
    """
    steps = []
    while end != wanted:
        end = min(wanted, end + _MORE) if end < wanted else max(wanted, end - _LESS)
        steps.append(end)
    return steps
