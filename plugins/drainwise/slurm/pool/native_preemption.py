"""Steer Slurm's own preemption (preempt/qos), so that it ends the chosen run when a job that may preempt it waits.

Slurm has no hook that ranks whom it preempts, but it never preempts a run whose priority is too high, and root may set
the priority of a running job (its owner may not). So the runs that were chosen are exposed by the lowest priority, and
all others are safe:
  * with `PreemptParameters=min_exempt_priority=2` (23.02 and later) by Slurm's own rule, whatever we do;
  * before that, with a QOS of `PreemptMode=REQUEUE,WITHIN`, by the highest priority, which they are given here. A run
    that starts later has it only from the next order on (PreemptExemptTime covers that time).
`scontrol release` gives a job, also a running one, back the priority that Slurm computes. A preempted run that waits
again needs that, or it would wait behind everybody; `settle` does it.

It is off unless the site says `native_preemption = yes`. An exposed run has no deadline: its user gets Slurm's own
warning alone (the QOS's GraceTime and signals).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from drainwise.facts.errors import ActionRefused, OrderUnanswered, PoolUnreachable, RightsRefused, RunEnded
from drainwise.slurm.jobs.commands import SHOW_CONFIG, SlurmCommands, settings_in
from drainwise.slurm.jobs.job import SlurmJob, label_and_start
from drainwise.slurm.jobs.squeue_lines import jobs_in_states

EXPOSED = 1
PROTECTED = 4_000_000_000
"""Priorities that nothing but us gives to a job; 0 is one that is held."""

_EXEMPT = re.compile(r"min_exempt_priority=(\d+)")


def exempt_from(parameters: str) -> int | None:
    """Return the priority from which on runs are safe, by PreemptParameters; None where Slurm has no such rule."""
    match = _EXEMPT.search(parameters)
    return int(match[1]) if match else None


def to_protect(states: Iterable[SlurmJob], chosen: str, exempt: int | None) -> list[str]:
    """Return the labels of runs that Slurm could preempt beside the `chosen` one (a label) and those chosen before."""
    safe = PROTECTED if exempt is None else exempt
    others = (state for state in states if state.label != chosen and state.priority not in {None, EXPOSED})
    return [state.label for state in others if (state.priority or 0) < safe]


def to_release(states: Iterable[SlurmJob]) -> list[str]:
    """Return the labels of waiting jobs that have kept a priority that was meant for a run of theirs."""
    return [state.label for state in states if state.restarts and state.priority in {EXPOSED, PROTECTED}]


class SlurmPreemption:
    """Steers the preemption of the cluster that `commands` reach."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands

    def expose(self, run: str) -> None:
        """Have Slurm preempt this run, and none but those exposed, as soon as a job that may preempt needs its cores.

        Raises RunEnded, ActionRefused when Slurm's configuration does not allow it, and as `SlurmCommands.order`.
        """
        label, start = label_and_start(run)
        settings = settings_in(self._commands.ask(*SHOW_CONFIG))
        if settings.get("preempttype") != "preempt/qos":
            raise ActionRefused("[slurm] native_preemption = yes needs PreemptType=preempt/qos")
        states = jobs_in_states(self._commands)
        state = _run_in(states, label, start)
        if state is None:
            raise RunEnded(f"{run} does not run any more")
        if state.het is not None:
            raise ActionRefused(f"{run} is part of a heterogeneous job: it is no pilot")
        # First the others, so that at no moment one of them is worth less than the chosen one.
        others = to_protect(states, label, exempt_from(settings.get("preemptparameters", "")))
        self._send(f"update JobId={one} Priority={PROTECTED}\n" for one in others)
        self._send([f"update JobId={label} Priority={EXPOSED}\n"])
        try:
            after = jobs_in_states(self._commands)
        except PoolUnreachable as fault:
            raise OrderUnanswered(str(fault)) from None
        state = _run_in(after, label, start)
        if state is not None and state.priority != EXPOSED:
            raise OrderUnanswered(
                f"{run}: slurmctld has {state.priority} as its priority after it was set to {EXPOSED}", run
            )

    def settle(self) -> list[str]:
        """Give jobs that were preempted (or requeued otherwise) and wait again their own priority; their labels."""
        labels = to_release(jobs_in_states(self._commands, "PENDING"))
        self._send(f"release {label}\n" for label in labels)
        return labels

    def _send(self, lines: Iterable[str]) -> None:
        """Give orders of numbers and labels, all of them ours, through scontrol's standard input: one process."""
        text = "".join(lines)
        if not text:
            return
        try:
            self._commands.order("scontrol", stdin=text)
        except RightsRefused:
            raise
        except ActionRefused:
            return  # a job that has ended since is refused, and the others are not: what counts is read back


def _run_in(states: Iterable[SlurmJob], label: str, start: int) -> SlurmJob | None:
    return next((one for one in states if (one.label, one.start) == (label, start)), None)
