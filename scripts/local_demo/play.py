"""The play itself: fill, arrive, decide, drain, count. Reads the clock and acts; what it shows and counts is pure."""

from __future__ import annotations

import time

from drainwise.journal.event import DONE
from drainwise.local.job import ENDED, RUNNING, WAITING
from drainwise.pool import Snapshot
from drainwise.reclaim.action import carry_out
from drainwise.reclaim.candidates import candidates_of
from drainwise.reclaim.plan import Plan, make_plan
from drainwise.reclaim.settings import Settings
from local_demo.cast import BOBS_JOB, Cast
from local_demo.curtain import Curtain, Late
from local_demo.frame import Frame, Row, gone_row, job_row, pilot_row, why_asked
from local_demo.stage import PILOTS_STOP, Stage, StageError
from local_demo.story import Acts, Display, Story
from local_demo.sums import Leave, Rival, Sums, leave_of, leave_without_report, youngest_first
from local_demo.timeline import Freed

ALICE, BOB = "alice", "bob"
_PATIENCE = 20.0  # seconds for what should take a moment
_PAUSE = 0.25
_LOOK = 1.5  # seconds in which a person sees what has changed


class Play:
    """One performance of a cast on a stage."""

    def __init__(self, cast: Cast, stage: Stage, curtain: Curtain, display: Display) -> None:
        self._cast, self._stage, self._curtain, self._display = cast, stage, curtain, display
        self._settings = Settings(
            policy="least-waste",
            horizon=cast.grace,
            grace=cast.grace,
            max_grace=cast.grace,
            heartbeat_limit=3600,
            max_cores=cast.cores,
            max_cores_per_user=cast.cores,
            max_cores_per_user_hour=cast.cores,
            margin=cast.margin,
            vacate=PILOTS_STOP,
            min_age=0,
        )
        self._rose = time.time()
        self._title = "the stage is set"
        self._jobs: dict[int, str] = {}  # alice's, by id
        self._bobs: dict[int, str] = {}
        self._started: dict[str, float] = {}
        self._plan: Plan | None = None
        self._decided = 0.0
        self._leaves: dict[str, tuple[Leave, float]] = {}

    def perform(self) -> Story:
        """From the first pilot to the last sum. Raises Interrupted, Late, StageError, DrainwiseError."""
        self._open()
        self._fill()
        self._arrive()
        snapshot, plan, rival = self._decide()
        acts = Acts()
        outcome = carry_out(plan, self._stage.pool, self._settings, lambda: int(time.time()), acts)
        refused = [act.detail for act in outcome.acts if act.outcome != DONE]
        if refused:
            raise StageError(f"an order was not carried out: {refused[0]}")
        self._drain(plan)
        leaves = tuple(leave for leave, _ in self._leaves.values())
        sums = Sums(leaves, float(plan.waste), rival, self._needed, self._freed)
        self._look_on(_LOOK)
        asked = {order.pilot.run for order in plan.orders}
        names = self._names()
        return Story(
            snapshot,
            plan,
            outcome,
            tuple(acts.lines),
            self._decided,
            names,
            {name: job_id for job_id, name in self._jobs.items()},
            dict(self._started),
            tuple(name for run, name in names.items() if run not in asked and self._runs(name)),
            sums,
        )

    # The acts

    def _open(self) -> None:
        cast = self._cast
        self._stage.set_quota(ALICE, cast.alices_quota)
        self._stage.set_quota(BOB, cast.bobs_quota)
        for width, payloads in cast.payloads.items():
            self._stage.fill_queue(f"width-{width}", payloads)
        self._say(
            f"a local pool of {cast.cores} made-up cores: {ALICE} is owed {cast.alices_quota}, {BOB} {cast.bobs_quota}"
        )

    def _fill(self) -> None:
        """Alice's pilots come one after the other."""
        self._title = f"{ALICE} fills the pool with pilots; nobody else wants the cores"
        cast = self._cast
        for part in cast.pilots:
            self._look_on(self._rose + part.after - time.time())
            job_id = self._stage.submit_pilot(ALICE, part.cores, cast.lease, f"width-{part.width}")
            self._jobs[job_id] = part.name
            self._say(f"{ALICE}'s pilot {part.name}: {part.cores} cores, payloads of {_cores(part.width)}")
        self._look_on(self._rose + cast.arrival - time.time())
        try:
            self._curtain.wait_for("alice's pilots to run and report", _PATIENCE, self._all_report, _PAUSE)
        except Late as late:
            raise Late(f"{late}{self._stage.why_not(self._jobs)}") from None

    def _look_on(self, seconds: float) -> None:
        """Show how it goes for so long."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._look()
            self._curtain.wait(min(_PAUSE, left))
        self._curtain.check()

    def _arrive(self) -> None:
        cast = self._cast
        self._title = f"{BOB} is owed {cast.bobs_quota} cores and waits for them"
        for number in range(1, cast.bobs_jobs + 1):
            job_id = self._stage.submit_job(BOB, BOBS_JOB, cast.bobs_run + cast.grace)
            self._bobs[job_id] = f"b{number}"
        self._say(f"{BOB} arrives: {cast.bobs_jobs} jobs of {BOBS_JOB} cores; all {cast.cores} cores are {ALICE}'s")
        self._look_on(_LOOK)

    def _decide(self) -> tuple[Snapshot, Plan, Rival]:
        """The plan, and on the very same snapshot what youngest-first would have done."""
        found: list[tuple[Snapshot, Plan]] = []

        def needed() -> bool:
            snapshot = self._stage.pool.snapshot(int(time.time()))
            plan = make_plan(snapshot, snapshot.taken, self._settings)
            found[:] = [(snapshot, plan)]
            return plan.balance.deficit >= self._needed

        self._curtain.wait_for("the pool to see who waits", _PATIENCE, needed, _PAUSE)
        [(snapshot, plan)] = found
        self._decided = time.time()
        rival = youngest_first(snapshot, self._settings, self._stage.ran(self._jobs), self._names(), self._decided)
        self._plan = plan
        self._title = "the cheapest pilots drain, their payloads end, their cores come back"
        given = sum(user.cores_given for user in plan.users)
        self._say(
            f"the agent ({plan.policy}): {len(plan.orders)} pilots give back {given} of {plan.balance.deficit} cores,"
            f" expected waste {plan.waste} core-s"
        )
        names = self._names()
        for order in plan.orders:
            self._say(f"  {names[order.pilot.run]} ({order.pilot.cores} cores) {why_asked(order)} core-s")
        for user in plan.users:
            for one in user.spared:
                name, cores = names[one.candidate.pilot.run], one.candidate.pilot.cores
                self._say(f"  {name} ({cores} cores) spared: asking it would waste {one.candidate.asked.waste} core-s")
        return snapshot, plan, rival

    def _drain(self, plan: Plan) -> None:
        """Look on until those asked are gone and bob's jobs run."""
        names = self._names()
        asked = {names[order.pilot.run]: order.pilot.cores for order in plan.orders}
        by_name = {name: job_id for job_id, name in self._jobs.items()}
        latest = time.monotonic() + self._cast.grace + _PATIENCE
        while len(self._leaves) < len(asked) or len(self._started) < len(self._bobs):
            if time.monotonic() > latest:
                raise Late("bob's cores did not come back in time")
            for name in asked:
                if name not in self._leaves and self._stage.has_ended(by_name[name]):
                    self._goes(name, by_name[name])
            for job_id, name in self._bobs.items():
                job = self._stage.job(job_id)
                if name not in self._started and job.state not in {WAITING, ENDED}:
                    self._started[name] = float(job.started)
                    self._say(f"{BOB}'s job {name} starts on {job.cores} cores")
            self._look()
            self._curtain.wait(_PAUSE)
        self._title = f"{BOB} has his {self._needed} cores; {ALICE}'s other pilots never noticed"

    def _goes(self, name: str, job_id: int) -> None:
        report, job = self._stage.exit_report(job_id), self._stage.job(job_id)
        ended = job.ended or time.time()
        if report is not None:
            leave = leave_of(name, report)
        else:
            self._say(f"{name} was cut by the batch system before it could report; its records are counted")
            ran = self._stage.ran(self._jobs)
            leave = leave_without_report(name, job.cores, float(job.started), ended, self._decided, ran)
        after = ended - self._decided
        self._leaves[name] = (leave, after)
        self._say(
            f"{name} is gone after {after:.1f} s, {leave.cores} cores are back:"
            f" {leave.drain_idle:.0f} core-s idle, {leave.drain_lost:.0f} lost"
        )

    # What is seen

    @property
    def _needed(self) -> int:
        return self._cast.bobs_quota

    @property
    def _freed(self) -> tuple[Freed, ...]:
        return tuple(Freed(after, leave.cores) for leave, after in self._leaves.values())

    def _say(self, text: str) -> None:
        self._display.say(time.time() - self._rose, text)

    def _names(self) -> dict[str, str]:
        return {self._stage.job(job_id).run: name for job_id, name in self._jobs.items()}

    def _runs(self, name: str) -> bool:
        return any(one == name and self._stage.job(job_id).state == RUNNING for job_id, one in self._jobs.items())

    def _all_report(self) -> bool:
        self._look()
        snapshot = self._stage.pool.snapshot(int(time.time()))
        reporting = [one for one in snapshot.pilots if one.report is not None]
        return len(reporting) == len(self._jobs)

    def _look(self) -> None:
        now = time.time()
        snapshot = self._stage.pool.snapshot(int(now))
        names = self._names()
        hers = [one for one in snapshot.pilots if one.run in names]
        rows: dict[str, Row] = {}
        for one in candidates_of(hers, int(now), self._settings):
            name = names[one.pilot.run]
            rows[name] = pilot_row(name, one, self._plan, now)
        for name, (leave, after) in self._leaves.items():
            rows[name] = gone_row(name, ALICE, leave.cores, leave, after)
        for name in self._bobs.values():
            rows[name] = job_row(name, BOB, BOBS_JOB, self._started, now)
        order = [*self._jobs.values(), *self._bobs.values()]
        self._display.show(
            Frame(
                self._title,
                now - self._rose,
                self._cast.cores,
                snapshot.principals,
                tuple(rows[name] for name in order if name in rows),
                self._freed,
                self._needed,
                now - self._decided if self._plan is not None else None,
                float(self._cast.grace),
            )
        )


def _cores(number: int) -> str:
    return "1 core" if number == 1 else f"{number} cores"
