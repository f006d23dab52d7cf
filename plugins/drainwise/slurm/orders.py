"""Orders to one run: a lease that ends sooner, or the end at once; each bound to the run that was meant.

The lease is EndTime: slurmctld itself ends the job then (within half a minute, and KillWait for what ignores SIGTERM),
with nobody of ours needed. It is the record of the order, too: a lease that ends before its time limit says was
shortened. The reason is written into the accounting record, where `sacct -o SystemComment` shows it, also when the job
has ended: AdminComment is the node's, which writes there from elsewhere at the same time; Comment and Extra are the
owner's; and `scontrol update` takes no SystemComment.
"""

from __future__ import annotations

from drainwise.errors import ActionRefused, PoolError, PoolUnreachable
from drainwise.slurm.commands import SlurmCommands
from drainwise.slurm.run import RUNNING, RunState, current_run, label_and_start

REQUEUE, CANCEL = "requeue", "cancel"
_LONGEST_REASON = 200
_MINUTE = 60


def is_shortened(start: int, end: int, limit: int | None) -> bool:
    """Whether a lease was made to end sooner: before its time limit in minutes (None: without limit) is over."""
    return limit is not None and end < start + limit * _MINUTE


def sooner_end(start: int, end: int | None, deadline: int) -> int:
    """The end to set so that the run is gone by `deadline` and its lease is seen to be shortened; all UNIX s.

    Slurm makes the time limit the whole minutes that the new end needs. An end on the minute could not be told from a
    lease of that length, so it becomes a second earlier. `end` is None for a lease without end. Raises ActionRefused
    when the lease ends before `deadline`.
    """
    if end is not None and deadline > end:
        raise ActionRefused(f"its lease ends by {end} already; it is not given until {deadline}")
    sooner = deadline if end is None else min(deadline, end - 1)
    return sooner - 1 if (sooner - start) % _MINUTE == 0 else sooner


class Orders:
    """Gives orders by Slurm's commands; vacate: `requeue` or `cancel`, what becomes of a run that must end at once."""

    def __init__(self, commands: SlurmCommands, vacate: str = REQUEUE) -> None:
        self._commands, self._vacate = commands, vacate

    def shorten(self, run: str, deadline: int, reason: str) -> None:
        """Have this run end by `deadline` (UNIX s). See `Pool.ask_to_leave` for what is raised."""
        state = self.must_run(run)
        sooner = sooner_end(state.start or 0, state.end, deadline)
        self._commands.order("scontrol", "update", f"JobId={state.label}", f"EndTime=uts{sooner}")
        after = self.must_run(run)
        if after.end != sooner:
            raise PoolUnreachable(f"{run}: slurmctld has {after.end} as its end after it was set to {sooner}")
        self._record(state, f"asked to be gone by {sooner}: {reason}")

    def end_now(self, run: str, reason: str, requeue: bool = True) -> None:
        """Have this run end at once; it goes back into the queue when the site, its owner and `requeue` let it.

        A requeued job waits for two minutes before it may start again. That is left as it is:
        without it a node refuses the job that it has just ended, and the job could have its cores back before others.
        """
        state = self.must_run(run)
        self._record(state, f"to end now: {reason}")  # before a requeue begins a new record
        if requeue and self._vacate == REQUEUE and state.can_requeue:
            self._commands.order("scontrol", "requeue", state.label)
        else:
            self._commands.order("scancel", state.label)
        after = current_run(self._commands, state.label)
        if after is not None and after.state == RUNNING and after.start == state.start:
            raise PoolUnreachable(f"{run}: it still runs after it was told to end")

    def must_run(self, run: str) -> RunState:
        """The run as it is right now. Raises PoolUnreachable when it has ended, ActionRefused when it is no pilot."""
        label, start = label_and_start(run)
        state = current_run(self._commands, label)
        if state is None or state.state != RUNNING or state.start != start:
            raise PoolUnreachable(f"{run} does not run any more")
        if state.het or state.nodes != 1:
            kind = "part of a heterogeneous job" if state.het else "a job of several nodes"
            raise ActionRefused(f"{run} is {kind}: an order to it would reach other nodes as well")
        return state

    def _record(self, state: RunState, text: str) -> None:
        """Write the reason down, if slurmdbd lets us: the order stands without it, and the journal has it as well."""
        if state.number == state.array:
            return  # sacctmgr would write it to all tasks of the array
        words = f"drainwise: {plain(text)}"[:_LONGEST_REASON]
        place = ("modify", "job", "where", f"jobid={state.number}")
        try:
            self._commands.order("sacctmgr", "--immediate", *place, "set", f"SystemComment={words}")
        except PoolError:
            return


def plain(text: str) -> str:
    """The text without what could mean something to sacctmgr or to who reads its lines."""
    letters = (
        letter if letter.isascii() and letter.isprintable() and letter not in "\"'\\|=`$" else " " for letter in text
    )
    return " ".join("".join(letters).split())
