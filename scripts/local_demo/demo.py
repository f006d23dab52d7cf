"""The steps of the demonstration: fill, arrive, decide, drain, count. What it shows and counts is pure."""

from __future__ import annotations

import time

from drainwise.agent.act import carry_out
from drainwise.agent.cycle_facts import CycleBasis, CycleOutcome
from drainwise.journal.event import Outcome
from drainwise.local.job import ENDED, RUNNING, WAITING
from drainwise.pool.facts import Snapshot
from drainwise.reclaim.candidates import candidates_of
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.settings import ReclaimSettings
from local_demo.demo_pool import PILOTS_STOP, DemoPool, DemoPoolError
from local_demo.frame import Frame, Row, expected_of, gone_row, job_row, pilot_row, released_row
from local_demo.interrupts import Interrupts, Late
from local_demo.outcome import DemoOutcome, Display, MemoryJournal, Released
from local_demo.spent import Spent, spent
from local_demo.sums import Leave, Rival, Sums, leave_of, leave_without_report, youngest_first
from local_demo.timeline import Freed
from local_demo.workload import BOBS_JOB, DemoWorkload

ALICE, BOB = "alice", "bob"
PATIENCE = 20.0  # seconds for what should take a moment
PAUSE = 0.25
_LOOK = 1.5  # seconds in which a person sees what has changed


class Demo:
    """Run one workload on the demonstration's pool."""

    def __init__(self, workload: DemoWorkload, system: DemoPool, interrupts: Interrupts, display: Display) -> None:
        self._workload, self._system, self._interrupts, self._display = workload, system, interrupts, display
        self._settings = ReclaimSettings(
            policy="least-waste",
            horizon=workload.grace,
            grace=workload.grace,
            max_grace=workload.grace,
            heartbeat_limit=3600,
            max_cores=workload.cores,
            max_cores_per_user=workload.cores,
            max_cores_per_user_hour=workload.cores,
            margin=workload.margin,
            min_grace=workload.margin,
            vacate=PILOTS_STOP,
            min_age=0,
        )
        self._began = time.time()
        self._title = "the pool starts"
        self._jobs: dict[int, str] = {}  # alice's, by id
        self._bobs: dict[int, str] = {}
        self._started: dict[str, float] = {}
        self._plan: Plan | None = None
        self._decided = 0.0
        self._leaves: dict[str, tuple[Leave, float]] = {}
        self._room: list[tuple[str, int]] = []  # who left cores that none of bob's jobs has taken yet
        self._released: frozenset[str] = frozenset()  # runs

    def run(self) -> DemoOutcome:
        """Run from the first pilot to the last sum. Raises Interrupted, Late, DemoPoolError, DrainwiseError."""
        self._open()
        self._fill()
        self._arrive()
        snapshot, plan, rival = self._decide()
        acts = MemoryJournal()
        outcome = self._act(snapshot, plan, acts)
        refused = [act.detail for act in outcome.acts if act.outcome != Outcome.DONE]
        if refused:
            raise DemoPoolError(f"an order was not carried out: {refused[0]}")
        self._drain(plan)
        spent = self._spent()
        leaves = tuple(leave for leave, _ in self._leaves.values())
        sums = Sums(leaves, float(plan.waste), rival, self._needed, self._freed)
        released = self._closing_scene()
        self._look_on(_LOOK)
        ordered = {order.pilot.run for order in plan.orders}
        names = self._names()
        return DemoOutcome(
            snapshot,
            plan,
            outcome,
            tuple(acts.lines),
            self._decided,
            names,
            {name: job_id for job_id, name in self._jobs.items()},
            dict(self._started),
            tuple(name for run, name in names.items() if run not in ordered and self._runs(name)),
            sums,
            spent,
            tuple(self._system.ran(self._jobs)),
            released,
        )

    def _act(self, seen: Snapshot, plan: Plan, journal: MemoryJournal) -> CycleOutcome:
        """Carry out a plan; seen: the snapshot that it was decided on."""
        basis = CycleBasis(seen, seen.taken, self._settings, History())
        return carry_out(plan, basis, self._system.pool, lambda: int(time.time()), journal)

    def _closing_scene(self) -> Released | None:
        """What comes after the sums; nothing here."""
        return None

    # The acts

    def _open(self) -> None:
        workload = self._workload
        self._system.set_quota(ALICE, workload.alices_quota)
        self._system.set_quota(BOB, workload.bobs_quota)
        for width, payloads in workload.payloads.items():
            self._system.fill_queue(f"width-{width}", payloads)
        self._say(
            f"a local pool of {workload.cores} made-up cores: {ALICE} is owed {workload.alices_quota},"
            f" {BOB} {workload.bobs_quota}"
        )

    def _fill(self) -> None:
        """Alice's pilots come one after the other."""
        self._title = f"{ALICE} fills the pool with pilots; nobody else wants the cores"
        workload = self._workload
        for part in workload.pilots:
            self._look_on(self._began + part.after - time.time())
            job_id = self._system.submit_pilot(ALICE, part.cores, workload.lease, f"width-{part.width}")
            self._jobs[job_id] = part.name
            self._say(f"{ALICE}'s pilot {part.name}: {part.cores} cores, payloads of {_cores(part.width)}")
        self._look_on(self._began + workload.arrival - time.time())
        try:
            self._interrupts.wait_for("alice's pilots to run and report", PATIENCE, self._all_report, PAUSE)
        except Late as late:
            raise Late(f"{late}{self._system.why_not(self._jobs)}") from None

    def _look_on(self, seconds: float) -> None:
        """Show how it goes for so long."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._look()
            self._interrupts.wait(min(PAUSE, left))
        self._interrupts.check()

    def _arrive(self) -> None:
        workload = self._workload
        self._title = f"{BOB} is owed {workload.bobs_quota} cores and waits for them"
        for number in range(1, workload.bobs_jobs + 1):
            job_id = self._system.submit_job(BOB, BOBS_JOB, workload.bobs_run + workload.grace)
            self._bobs[job_id] = f"b{number}"
        self._say(
            f"{BOB} arrives: {workload.bobs_jobs} jobs of {BOBS_JOB} cores; all {workload.cores} cores are {ALICE}'s"
        )
        self._look_on(_LOOK)

    def _decide(self) -> tuple[Snapshot, Plan, Rival]:
        """The plan, and on the very same snapshot what youngest-first would have done."""
        found: list[tuple[Snapshot, Plan]] = []

        def needed() -> bool:
            snapshot = self._system.pool.snapshot(int(time.time()))
            plan = make_plan(snapshot, snapshot.taken, self._settings)
            found[:] = [(snapshot, plan)]
            return plan.balance.deficit >= self._needed

        self._interrupts.wait_for("the pool to see who waits", PATIENCE, needed, PAUSE)
        [(snapshot, plan)] = found
        self._decided = time.time()
        rival = youngest_first(snapshot, self._settings, self._system.ran(self._jobs), self._names(), self._decided)
        self._plan = plan
        self._title = "the cheapest pilots drain, their payloads end, their cores come back"
        given = sum(user.cores_given for user in plan.users)
        self._say(
            f"the agent ({plan.policy}): {len(plan.orders)} pilots give back {given} of {plan.balance.deficit} cores,"
            f" expected waste {plan.waste} core-s"
        )
        names = self._names()
        for order in plan.orders:
            self._say(f"  {names[order.pilot.run]} ({order.pilot.cores} cores) {expected_of(order)} core-s")
        for user in plan.users:
            for one in user.spared:
                name, cores = names[one.candidate.pilot.run], one.candidate.pilot.cores
                self._say(f"  {name} ({cores} cores) spared: to drain would waste {one.candidate.drained.waste} core-s")
        return snapshot, plan, rival

    def _drain(self, plan: Plan) -> None:
        """Look on until those ordered are gone and bob's jobs run."""
        names = self._names()
        ordered = {names[order.pilot.run]: order.pilot.cores for order in plan.orders}
        by_name = {name: job_id for job_id, name in self._jobs.items()}
        latest = time.monotonic() + self._workload.grace + PATIENCE
        while len(self._leaves) < len(ordered) or len(self._started) < len(self._bobs):
            if time.monotonic() > latest:
                raise Late("bob's cores did not come back in time")
            for name in ordered:
                if name not in self._leaves and self._system.has_ended(by_name[name]):
                    self._goes(name, by_name[name])
            self._bobs_start()
            self._look()
            self._interrupts.wait(PAUSE)
        self._title = f"{BOB} has his {self._needed} cores; {ALICE}'s other pilots never noticed"

    def _bobs_start(self) -> None:
        """Say which of bob's jobs run by now."""
        for job_id, name in self._bobs.items():
            job = self._system.job(job_id)
            if name not in self._started and job.state not in {WAITING, ENDED}:
                self._started[name] = float(job.started)
                whose = self._take_room(job.cores)
                self._say(f"{BOB}'s job {name} starts on {job.cores} cores{whose}")

    def _take_room(self, cores: int) -> str:
        """Take so many cores of the room that was made, the oldest first; whose they were, in words."""
        names = []
        while cores > 0 and self._room:
            name, there = self._room.pop(0)
            names.append(name)
            if there > cores:
                self._room.insert(0, (name, there - cores))
            cores -= there
        return f": the room of {' and '.join(names)}" if names else ""

    def _goes(self, name: str, job_id: int) -> None:
        report, job = self._system.exit_report(job_id), self._system.job(job_id)
        ended = job.ended or time.time()
        if report is not None:
            leave = leave_of(name, report)
        else:
            self._say(f"{name} was cut by the batch system before it could report; its records are counted")
            ran = self._system.ran(self._jobs)
            leave = leave_without_report(name, job.cores, float(job.started), ended, self._decided, ran)
        after = ended - self._decided
        self._leaves[name] = (leave, after)
        self._room.append((name, leave.cores))
        self._say(
            f"{name} is gone after {after:.1f} s, {leave.cores} cores are back:"
            f" {leave.drain_idle:.0f} core-s idle, {leave.drain_lost:.0f} lost"
        )

    def _spent(self) -> Spent:
        """What it cost the machine until now."""
        bobs = [(BOBS_JOB, self._system.started_at(job_id)) for job_id in self._bobs]
        return spent(self._workload.cores, self._system.ran(self._jobs), bobs, self._decided, time.time())

    # What is seen

    @property
    def _needed(self) -> int:
        return self._workload.bobs_quota

    @property
    def _freed(self) -> tuple[Freed, ...]:
        return tuple(Freed(after, leave.cores) for leave, after in self._leaves.values())

    def _say(self, text: str) -> None:
        self._display.say(time.time() - self._began, text)

    def _names(self) -> dict[str, str]:
        return {self._system.job(job_id).run: name for job_id, name in self._jobs.items()}

    def _runs(self, name: str) -> bool:
        return any(one == name and self._system.job(job_id).state == RUNNING for job_id, one in self._jobs.items())

    def _all_report(self) -> bool:
        self._look()
        snapshot = self._system.pool.snapshot(int(time.time()))
        reporting = [one for one in snapshot.pilots if one.report is not None]
        return len(reporting) == len(self._jobs)

    def _look(self) -> None:
        now = time.time()
        snapshot = self._system.pool.snapshot(int(now))
        names = self._names()
        hers = [one for one in snapshot.pilots if one.run in names]
        rows: dict[str, Row] = {}
        for one in candidates_of(hers, int(now), self._settings):
            name = names[one.pilot.run]
            row = pilot_row(name, one, self._plan, now)
            rows[name] = released_row(row) if one.pilot.run in self._released else row
        for name, (leave, after) in self._leaves.items():
            rows[name] = gone_row(name, ALICE, leave.cores, leave, after)
        room = sum(cores for _, cores in self._room)
        for name in self._bobs.values():
            here = 0 if name in self._started else min(room, BOBS_JOB)
            room -= here
            rows[name] = job_row(name, BOB, BOBS_JOB, self._started, now, here)
        order = [*self._jobs.values(), *self._bobs.values()]
        self._display.show(
            Frame(
                self._title,
                now - self._began,
                self._workload.cores,
                snapshot.accounts,
                tuple(rows[name] for name in order if name in rows),
                self._freed,
                self._needed,
                now - self._decided if self._plan is not None else None,
                float(self._workload.grace),
            )
        )


def _cores(number: int) -> str:
    return "1 core" if number == 1 else f"{number} cores"
