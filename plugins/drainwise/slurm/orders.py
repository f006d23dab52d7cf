"""Orders to one run: a lease that ends sooner, or the end at once; each bound to the run that was meant.

The lease is EndTime: slurmctld itself ends the job then (within half a minute, and KillWait for what ignores SIGTERM),
with nobody of ours needed. It is the record of the order, too: a lease that ends before its time limit says was
shortened. The reason, and what the lease was, are written into the accounting record, where `sacct -o SystemComment`
shows it, also when the job has ended: AdminComment is the node's, which writes there from elsewhere at the same time;
Comment and Extra are the owner's, who could make the lease longer by it; and `scontrol update` takes no SystemComment.
"""

from __future__ import annotations

import re
import time

from drainwise.errors import ActionRefused, PoolError, PoolUnreachable
from drainwise.slurm.commands import SlurmCommands
from drainwise.slurm.run import RUNNING, RunState, current_run, label_and_start

REQUEUE, CANCEL = "requeue", "cancel"
_LONGEST_REASON = 200
_MINUTE = 60
_MORE, _LESS = 29, 89  # s
# slurmctld tells slurmdbd of a start when it comes to it; one that has lost slurmdbd looks for it every ten seconds.
_RECORD_SECONDS, _RECORD_PAUSE = 12.0, 0.5
_NO_RECORD_YET = "didn't affect anything"
_ENDLESS = "none"
_GRANTED = re.compile(r"drainwise: asked to be gone by (\d{9,10}) \(lease of (\S+) until (\d{9,10}|none)\)")


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


def granted_in(comment: str, run: str, end: int) -> tuple[int | None] | None:
    """When the lease of this run was to end before it was shortened (UNIX s; None without end), by a record of ours.

    None when the record is of another run, or of something else, or when the lease ends (`end`) before it was asked to:
    then somebody else has shortened it since, and what that was for nobody knows.
    """
    match = _GRANTED.match(comment)
    if match is None or match[2] != run or end < int(match[1]):
        return None
    return (None,) if match[3] == _ENDLESS else (int(match[3]),)


def steps_to(end: int, wanted: int) -> list[int]:
    """The ends (UNIX s) to set one after the other so that the last is `wanted` and the time limit stays as it is.

    With each new end Slurm changes the time limit by the difference and half a minute, in whole minutes cut towards 0:
    so many seconds more or less change nothing.
    """
    steps = []
    while end != wanted:
        end = min(wanted, end + _MORE) if end < wanted else max(wanted, end - _LESS)
        steps.append(end)
    return steps


class Orders:
    """Gives orders by Slurm's commands; vacate: `requeue` or `cancel`, what becomes of a run that must end at once."""

    def __init__(self, commands: SlurmCommands, vacate: str = REQUEUE) -> None:
        self._commands, self._vacate = commands, vacate

    def shorten(self, run: str, deadline: int, reason: str) -> RunState:
        """Have this run end by `deadline` (UNIX s); the run as it is then. Raises as `Pool.ask_to_leave`."""
        state = self.must_run(run)
        sooner = sooner_end(state.start or 0, state.end, deadline)
        granted = self._granted(run, state) or (state.end,)
        until = _ENDLESS if granted[0] is None else str(granted[0])
        # First, so that whoever takes the order back knows what the lease was.
        self._record(state, f"asked to be gone by {sooner} (lease of {run} until {until}): {reason}")
        self._commands.order("scontrol", "update", f"JobId={state.label}", f"EndTime=uts{sooner}")
        after = self.must_run(run)
        if after.end != sooner:
            raise PoolUnreachable(f"{run}: slurmctld has {after.end} as its end after it was set to {sooner}")
        return after

    def lengthen(self, run: str, reason: str) -> RunState:
        """Give this run the lease back that it had before it was shortened; the run as it is then.

        Time limit and end become what they were, so that nobody takes it for a run that was asked. See `Pool.take_back`
        for what is raised.
        """
        state = self.must_run(run)
        if not _looks_shortened(state):
            return state
        granted = self._granted(run, state)
        if granted is None:
            raise ActionRefused(
                f"{run}: the order stands, as nobody knows what its lease was: that is kept in the accounting record"
                " (SystemComment), which is not there, says something else, is shared by an array, or is older than"
                " the lease as it is"
            )
        end = granted[0]
        limit = "UNLIMITED" if end is None else str((end - (state.start or 0)) // _MINUTE)
        self._commands.order("scontrol", "update", f"JobId={state.label}", f"TimeLimit={limit}")
        now = self.must_run(run).end
        for step in () if end is None or now is None else steps_to(now, end):
            self._commands.order("scontrol", "update", f"JobId={state.label}", f"EndTime=uts{step}")
        after = self.must_run(run)
        if after.end != end:
            raise PoolUnreachable(f"{run}: slurmctld has {after.end} as its end after it was set to {end}")
        self._record(state, f"not asked to leave any more: {reason}")
        return after

    def _granted(self, run: str, state: RunState) -> tuple[int | None] | None:
        """What the accounting record says of the lease as it was granted; None when it does not say."""
        if state.end is None or not _looks_shortened(state) or state.number == state.array:
            return None
        try:
            answer = self._commands.ask(
                *("sacct", "--allocations", "--noheader", "--parsable2"),
                *(f"--jobs={state.number}", "--format=SystemComment"),
            )
        except PoolUnreachable:
            return None
        found = (granted_in(line, run, state.end) for line in answer.splitlines())
        return next((one for one in found if one is not None), None)

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
            return None  # sacctmgr would write it to all tasks of the array
        words = f"drainwise: {plain(text)}"[:_LONGEST_REASON]
        place = ("modify", "job", "where", f"jobid={state.number}")
        end = time.monotonic() + _RECORD_SECONDS
        while True:
            try:
                return self._commands.order("sacctmgr", "--immediate", *place, "set", f"SystemComment={words}")
            except PoolError as fault:
                if _NO_RECORD_YET not in str(fault) or time.monotonic() > end:
                    return None
            time.sleep(_RECORD_PAUSE)


def _looks_shortened(state: RunState) -> bool:
    """A lease that nobody changed lasts whole minutes; `sooner_end` sees to it that one of ours does not."""
    return state.end is not None and (state.end - (state.start or 0)) % _MINUTE != 0


def plain(text: str) -> str:
    """The text without what could mean something to sacctmgr or to who reads its lines."""
    letters = (
        letter if letter.isascii() and letter.isprintable() and letter not in "\"'\\|=`$" else " " for letter in text
    )
    return " ".join("".join(letters).split())
