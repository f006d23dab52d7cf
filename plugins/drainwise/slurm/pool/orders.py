"""Orders to one run: a lease that ends sooner, or the end at once; each bound to the run that was meant.

The lease is EndTime: slurmctld itself ends the job then (within half a minute, and KillWait for what ignores SIGTERM),
with nobody of ours needed. It is the record of the order, too: a lease that ends before its time limit says was
shortened. The reason, and what the lease was, are written into the accounting record, where `sacct -o SystemComment`
shows it, also when the job has ended: AdminComment is the node's, which writes there from elsewhere at the same time;
Comment and Extra are the owner's, who could make the lease longer by it; and `scontrol update` takes no SystemComment.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from drainwise.facts.errors import ActionRefused, OrderUnanswered, PoolError, PoolUnreachable, RunEnded
from drainwise.slurm.jobs.commands import SlurmCommands, is_no_answer
from drainwise.slurm.jobs.job import SlurmJob, is_shortened, label_and_start, run_name, sooner_end, steps_to
from drainwise.slurm.jobs.squeue_lines import current_run
from drainwise.slurm.jobs.values import ENDLESS_MINUTES, PENDING

_LONGEST_REASON = 200
_MINUTE = 60
# slurmctld reports a start to slurmdbd when it comes to it. One that has lost slurmdbd lets ten seconds pass, and looks
# every ten seconds whether they have.
_RECORD_SECONDS, _RECORD_PAUSE = 25.0, 0.5
_IN_VAIN_SECONDS = 300.0
# What sacctmgr says where it changes nothing; 26.05 has the second alone.
_NO_RECORD_YET = ("didn't affect anything", "Data has not changed since")
_MOST_REQUEUED = 64
_MOST_BEYOND = 600  # s that a time limit lies beyond the end that orders have set: 90 at most for each
_ENDLESS = "none"
# Earlier versions wrote the first of the two wordings.
_GRANTED = re.compile(
    r"drainwise: (?:asked to be gone|ordered to end) by (\d{9,10}) \(lease of (\S+) until (\d{9,10}|none)\)"
)


def granted_in(comment: str, run: str, end: int) -> tuple[int | None] | None:
    """Read in a record of ours when the lease of this run was to end before it was shortened (UNIX s; None: never).

    None when the record is of another run, or of something else, or when the lease ends (`end`) before its deadline:
    then somebody else has shortened it since, and what that was for nobody knows.
    """
    match = _GRANTED.match(comment)
    if match is None or match[2] != run or end < int(match[1]):
        return None
    return (None,) if match[3] == _ENDLESS else (int(match[3]),)


class SlurmOrders:
    """Gives orders by Slurm's commands."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands
        self.as_one: Collection[str] = ()
        """Runs that an order may reach on all their nodes: a heterogeneous job is ordered by its first component."""
        self._looked: set[tuple[int, int]] = set()  # job and how many times it was requeued
        self._leases: dict[str, tuple[int | None]] = {}
        """When leases were to end, by run, before an order of this process."""
        self._waits_from = 0.0  # of the monotonic clock: until then no order waits for the accounting

    def shorten(self, run: str, deadline: int, reason: str) -> SlurmJob:
        """Have this run end by `deadline` (UNIX s); the run as it is then. Raises as `Pool.give_order`."""
        state = self.must_run(run)
        sooner = sooner_end(state.start or 0, state.end, deadline)
        with contextlib.suppress(PoolUnreachable):  # what a record says that cannot be read now is not overwritten
            granted = self._leases[run] = self._granted(run, state) or (state.end,)
            until = _ENDLESS if granted[0] is None else str(granted[0])
            # First, so that whoever takes the order back knows what the lease was.
            self._record(state, f"ordered to end by {sooner} (lease of {run} until {until}): {reason}")
        self._commands.order("scontrol", "update", f"JobId={state.label}", f"EndTime=uts{sooner}")
        after = self._after_order(state, sooner)
        if after.end is None or after.end > sooner:
            raise OrderUnanswered(f"{run}: slurmctld has {after.end} as its end after it was set to {sooner}", run)
        return after

    def withdraw(self, run: str, reason: str) -> SlurmJob:
        """Give this run the lease back that it had before it was shortened; the run as it is then.

        Time limit and end become what they were, so that nobody takes it for a run with an order. A lease that somebody
        else has made longer meanwhile is left. Raises as
        `Pool.withdraw_order`; while the accounting does not answer, PoolUnreachable for this run alone.
        """
        state = self.must_run(run)
        try:
            granted = self._granted(run, state)
        except PoolUnreachable as fault:
            raise PoolUnreachable(f"{run}: the order stands until the accounting answers: {fault}", run) from None
        if granted is None and not is_shortened(state):
            return state
        if granted is None:
            raise ActionRefused(
                f"{run}: the order stands, as nobody knows what its lease was: that is kept in the accounting record"
                " (SystemComment), which is not there, says something else, is shared by an array, or is older than"
                " the lease as it is"
            )
        if granted[0] == state.end:
            return state
        end = granted[0]
        self._set_limit(state, end)
        now = self.must_run(run).end
        for step in () if end is None or now is None else steps_to(now, end):
            self._commands.order("scontrol", "update", f"JobId={state.label}", f"EndTime=uts{step}")
        after = self._after_order(state, end)
        if after.end != end:
            raise OrderUnanswered(f"{run}: slurmctld has {after.end} as its end after it was set to {end}", run)
        self._record(state, f"order withdrawn: {reason}")
        return after

    def requeue(self, run: str) -> None:
        """Have a run with an order wait in the queue again, with the time limit that it was granted.

        The limit first: whoever is stopped in between leaves a run that goes on, and no job whose later runs are short.
        Its record stays as the order wrote it. Raises as `end_now`; ActionRefused for a run that no order is known of.
        """
        state, end = self._ordered(run)
        self._set_limit(state, end)
        self._end(state, "scontrol", "requeue")

    def warn(self, run: str) -> None:
        """Send SIGTERM to the steps of a run with an order. Raises as `requeue`."""
        self._commands.order("scancel", "--signal=TERM", self._ordered(run)[0].label)

    def _ordered(self, run: str) -> tuple[SlurmJob, int | None]:
        """Return a run that may be requeued and has an order of ours, and when its lease was to end."""
        state = self.must_run(run)
        try:
            granted = self._granted(run, state)
        except PoolUnreachable:
            granted = self._leases.get(run)
        if granted is None or not state.can_requeue:
            why = "its owner does not let it" if granted else "nobody knows what its lease was, or who shortened it"
            raise ActionRefused(f"{run}: {why}")
        return state, granted[0]

    def _set_limit(self, state: SlurmJob, end: int | None) -> None:
        """Give a run the time limit of a lease that ends then (UNIX s, None: never)."""
        limit = "UNLIMITED" if end is None else str((end - (state.start or 0)) // _MINUTE)
        self._commands.order("scontrol", "update", f"JobId={state.label}", f"TimeLimit={limit}")

    def _granted(self, run: str, state: SlurmJob) -> tuple[int | None] | None:
        """Return what the accounting record says of the lease as it was granted; None when it does not say.

        Raises PoolUnreachable when the accounting does not answer; one that there is not says nothing.
        """
        if state.end is None or not _may_be_shortened(state):
            return None
        if state.number == state.array:  # its record is that of all tasks: only who gave the order knows
            return self._leases.get(run)
        lines = self._records([state.number])
        found = [one for one in map(_GRANTED.match, lines) if one is not None and one[2] == run]
        if found and _is_longer(state, int(found[-1][1])):
            return (state.end,)
        known = (granted_in(line, run, state.end) for line in lines)
        return next((one for one in known if one is not None), None)

    def _records(self, numbers: Sequence[int]) -> list[str]:
        """Return the SystemComment of each record of these jobs, of earlier runs as well.

        Raises PoolUnreachable when the accounting does not answer; one that there is not has none.
        """
        words = ("sacct", "--allocations", "--duplicates", "--noheader", "--parsable2")
        jobs = f"--jobs={','.join(map(str, numbers))}"
        answer = self._commands.start(*words, jobs, "--format=SystemComment").answer()
        if answer.code != 0 and is_no_answer(answer):
            raise PoolUnreachable(f"sacct failed: {answer.complaint}")
        return answer.text.splitlines()

    def give_limits_back(self, jobs: Iterable[SlurmJob]) -> list[str]:
        """Give jobs that were requeued the time limit back that an order to an earlier run took; say to whom.

        Slurm keeps the limit that EndTime left. Each run is looked at once, by its record in the accounting; where that
        does not answer, later.
        """
        asked = {
            job.number: job
            for job in jobs
            if job.restarts and job.number != job.array and (PENDING in job.states or job.runs)
            if (job.number, job.restarts) not in self._looked
        }
        done: list[str] = []
        with contextlib.suppress(PoolError):
            numbers = sorted(asked)[:_MOST_REQUEUED]
            records = self._records(numbers) if numbers else []
            for number in numbers:
                job = asked[number]
                run = run_name(job.label, job.start or 0)
                ours = [one for one in map(_GRANTED.match, records) if one is not None and one[2] != run]
                earlier = [one for one in ours if label_and_start(one[2])[0] == job.label]
                with contextlib.suppress(ActionRefused):  # of this job alone: in the next cycle
                    if earlier and not is_shortened(job) and _is_left_by(job.limit, earlier[-1]):
                        limit = _limit_of(earlier[-1])
                        words = "UNLIMITED" if limit is None else str(limit)
                        self._commands.order("scontrol", "update", f"JobId={job.label}", f"TimeLimit={words}")
                        done.append(
                            f"{job.label} has the time limit back that an order to an earlier run took: {words}"
                        )
                    self._looked.add((number, job.restarts))
        return done

    def end_now(self, run: str, reason: str, requeue: bool = True) -> None:
        """Have this run end at once; it goes back into the queue when its owner and `requeue` let it.

        A requeued job waits for two minutes before it may start again. That is left as it is:
        without it a node refuses the job that it has just ended, and the job could have its cores back before others.
        """
        state = self.must_run(run)
        self._record(state, f"to end now: {reason}")  # before a requeue begins a new record
        self._end(state, *(("scontrol", "requeue") if requeue and state.can_requeue else ("scancel",)))

    def _end(self, state: SlurmJob, *command: str) -> None:
        self._commands.order(*command, state.label)
        after = self._after(state.label)
        if after is not None and after.runs and after.start == state.start:
            run = run_name(state.label, state.start or 0)
            raise OrderUnanswered(f"{run}: it still runs after the order to end", run)

    def must_run(self, run: str) -> SlurmJob:
        """Return the run as it is right now. Raises RunEnded, PoolUnreachable, or ActionRefused when it is no pilot."""
        label, start = label_and_start(run)
        state = current_run(self._commands, label)
        if state is None or not state.runs or state.start != start:
            raise RunEnded(f"{run} does not run any more")
        if state.het is not None and run not in self.as_one:
            raise ActionRefused(f"{run} is part of a heterogeneous job: an order to it would reach other nodes as well")
        return state

    def _after_order(self, state: SlurmJob, end: int | None) -> SlurmJob:
        """Return a run after its end was set (UNIX s; None: without end); as ordered when it has just ended."""
        after = self._after(state.label)
        if after is None or not after.runs or after.start != state.start:
            return replace(state, end=end)
        return after

    def _after(self, label: str) -> SlurmJob | None:
        """Return a job after an order to it. Raises OrderUnanswered when slurmctld does not answer."""
        try:
            return current_run(self._commands, label)
        except PoolUnreachable as fault:
            raise OrderUnanswered(str(fault)) from None

    def _record(self, state: SlurmJob, text: str) -> None:
        """Write the reason down, if slurmdbd lets us: the order stands without it, and the journal has it as well.

        Waits until slurmdbd answers and knows the job; after it has waited in vain not again for some minutes.
        """
        if state.number == state.array:
            return None  # sacctmgr would write it to all tasks of the array
        words = f"drainwise: {plain(text)}"[:_LONGEST_REASON]
        place = ("modify", "job", "where", f"jobid={state.number}")
        begun = time.monotonic()
        while True:
            try:
                return self._commands.order("sacctmgr", "--immediate", *place, "set", f"SystemComment={words}")
            except PoolError as fault:
                may_come = isinstance(fault, OrderUnanswered) or any(words in str(fault) for words in _NO_RECORD_YET)
                if not may_come or begun < self._waits_from:
                    return None
                if time.monotonic() > begun + _RECORD_SECONDS:
                    self._waits_from = time.monotonic() + _IN_VAIN_SECONDS
                    return None
            time.sleep(_RECORD_PAUSE)


def _limit_of(record: re.Match[str]) -> int | None:
    """Return the time limit of a run in minutes as it was granted, by a record of ours; None for none."""
    if record[3] == _ENDLESS:
        return None
    return (int(record[3]) - label_and_start(record[2])[1]) // _MINUTE


def _is_left_by(limit: int | None, record: re.Match[str]) -> bool:
    """Decide whether a time limit (minutes) is what an order left; another one somebody has set since."""
    if limit is None or limit >= ENDLESS_MINUTES:
        return limit is not None and record[3] == _ENDLESS
    beyond = limit * _MINUTE - (int(record[1]) - label_and_start(record[2])[1])
    return limit != _limit_of(record) and -_MINUTE < beyond < _MOST_BEYOND


def _is_longer(state: SlurmJob, deadline: int) -> bool:
    """Decide whether somebody has made a lease longer since an order made it end at `deadline` (UNIX s).

    One that was suspended ends later, too, but after its time limit.
    """
    limit = (state.start or 0) + (state.limit or 0) * _MINUTE
    return state.end is not None and deadline < state.end <= limit


def _may_be_shortened(state: SlurmJob) -> bool:
    """Decide whether an order of ours may have shortened a lease: what was suspended ends after its time limit."""
    return is_shortened(state) or (state.end is not None and (state.end - (state.start or 0)) % _MINUTE != 0)


def plain(text: str) -> str:
    """Return the text without what could mean something to sacctmgr or to who reads its lines."""
    letters = (
        letter if letter.isascii() and letter.isprintable() and letter not in "\"'\\|=`$" else " " for letter in text
    )
    return " ".join("".join(letters).split())
