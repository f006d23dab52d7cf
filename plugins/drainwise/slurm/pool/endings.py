"""The ends of runs, by Slurm's accounting: state, end and CPU time of each run of a job, requeued ones too."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from drainwise.facts.errors import ActionRefused, PoolUnreachable
from drainwise.pool.facts import Ending
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import label_and_start, run_name
from drainwise.slurm.jobs.squeue_lines import FIELDS, jobs_in_states
from drainwise.slurm.jobs.values import BY_ITSELF, NODE_FAILED, cpu_seconds
from drainwise.slurm.node.host_list import hosts

_TOGETHER = 500  # jobs in one question
_FIELDS = ("JobID", "Start", "End", "State", "TotalCPU", "UID", "User")
_NOT_ENDED = frozenset({"RUNNING", "PENDING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STAGE_OUT", "SIGNALING"})
_ROOT = "0"


def endings_in(answer: str) -> dict[str, Ending]:
    """Return the runs that have ended in sacct's lines, by run; their steps are passed over.

    Raises PoolUnreachable when a line is none of a job.
    """
    endings = {}
    for line in answer.splitlines():
        words = line.split("|")
        if len(words) != len(_FIELDS):
            raise PoolUnreachable("incomplete answer: sacct printed a line that is no job")
        label, start, end, said, used, uid, user = words
        state, *by = said.split(" ")  # `CANCELLED by 0`
        if "." in label or not start.isdigit() or not end.isdigit() or state in _NOT_ENDED:
            continue
        run = run_name(label, int(start))
        cancelled_by = by[-1] if by[:1] == ["by"] else ""
        by_others = state in NODE_FAILED or _is_other(cancelled_by, uid, user)
        endings[run] = Ending(run, int(end), state not in BY_ITSELF, cpu_seconds(used), by_others)
    return endings


def _is_other(number: str, uid: str, user: str) -> bool:
    """Decide whether that user is surely not the job's own; sacct of 22.05 prints UID 0 for an unknown name."""
    if number == _ROOT:
        return user != "root"
    return number.isdigit() and uid.isdigit() and uid not in {_ROOT, number}


class SlurmEndings:
    """Asks for how runs have ended."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands

    def endings(self, runs: Collection[str]) -> dict[str, Ending]:
        """Return those of `runs` that are known to have ended. Raises PoolUnreachable when no records can be had."""
        labels = sorted({label for label in map(_label, runs) if label})
        words = ("sacct", "--duplicates", "--noheader", "--parsable2", f"--format={','.join(_FIELDS)}")
        found: dict[str, Ending] = {}
        try:
            for first in range(0, len(labels), _TOGETHER):
                jobs = ",".join(labels[first : first + _TOGETHER])
                found.update(endings_in(self._commands.ask(*words, f"--jobs={jobs}")))
        except PoolUnreachable:
            found = {}
            # What slurmctld remembers, where there is no accounting or it does not answer: no CPU time.
            for job in jobs_in_states(self._commands, "all"):
                if job.states & _NOT_ENDED or job.start is None or job.end is None:
                    continue
                run, was_ended = run_name(job.label, job.start), not job.states & BY_ITSELF
                found[run] = Ending(run, job.end, was_ended, by_others=bool(job.states & NODE_FAILED))
        wanted = set(runs)
        return {run: ending for run, ending in found.items() if run in wanted}

    def ended_on(self, nodes: Sequence[str], since: int) -> list[tuple[str, tuple[int, int, int]]]:
        """Return of the runs that began on these nodes after `since` (UNIX s) and ended: account; start, end, cores.

        By the accounting, else by what slurmctld remembers. Raises PoolUnreachable when neither answers.
        """
        words = ("sacct", "--allocations", "--duplicates", "--allusers", "--noheader", "--parsable2")
        where = (f"--nodelist={','.join(nodes)}", f"--starttime=uts{since}", "--format=Account,Start,End,AllocCPUS")
        try:
            lines = self._commands.ask(*words, *where).splitlines()
            rows = [row for line in lines if len(row := line.split("|")) == 4]
            ended = ((row[0], [int(one) for one in row[1:]]) for row in rows if all(map(str.isdigit, row[1:])))
            found = [(account, (start, end, cores)) for account, (start, end, cores) in ended]
        except PoolUnreachable:
            known = (job for job in jobs_in_states(self._commands, "all", fields=FIELDS) if not job.states & _NOT_ENDED)
            there = (job for job in known if job.node and not set(hosts(job.node)).isdisjoint(nodes))
            found = [(job.account, (job.start or 0, job.end or 0, job.cores)) for job in there]
        return [(account, run) for account, run in found if since <= run[0] <= run[1]]


def _label(run: str) -> str:
    """Return what names its job; "" for what is no run."""
    try:
        return label_and_start(run)[0]
    except ActionRefused:
        return ""
