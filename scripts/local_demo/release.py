"""The closing scene: bob is owed more, asks for it and takes it back; the pilot that has the order is released."""

from __future__ import annotations

import time
from collections.abc import Callable

from drainwise.journal.event import Outcome
from drainwise.pool.facts import Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.plan import Plan
from local_demo.demo import ALICE, BOB, PAUSE, Demo
from local_demo.demo_pool import DemoPoolError
from local_demo.outcome import MemoryJournal, Released
from local_demo.workload import BOBS_JOB

_PATIENCE = 8.0  # seconds for an order, a withdrawal, and the pilot's word on either
_AGREE = 2  # looks in a row that find an order without a reason, as the agent wants it


class ReleaseDemo(Demo):
    """The demonstration with this scene at its end; the sums are those of before it."""

    def _closing_scene(self) -> Released | None:
        """Order cores for one more job, remove the job, withdraw the order; None where no pilot got one, or it left."""
        workload, name = self._workload, f"b{len(self._bobs) + 1}"
        self._system.set_quota(ALICE, max(0, workload.alices_quota - BOBS_JOB))
        self._system.set_quota(BOB, workload.bobs_quota + BOBS_JOB)
        job_id = self._system.submit_job(BOB, BOBS_JOB, workload.bobs_run + workload.grace)
        self._bobs[job_id] = name
        self._title = f"{BOB} is owed {BOBS_JOB} more cores, and {name} waits for them"
        self._say(f"{BOB} is owed {BOBS_JOB} more cores; his job {name} waits for them")
        ordered = self._until(lambda plan: bool(plan.orders))
        if ordered is None:
            self._take_away(job_id, f"no pilot of {ALICE}'s can make room for {name}: {BOB} removes it")
            return None
        seen, plan = ordered
        runs = frozenset(order.pilot.run for order in plan.orders)
        names = tuple(found for run, found in self._names().items() if run in runs)
        self._plan, since = plan, time.time()
        self._carry_out(seen, plan)
        self._say(f"the agent gives {_all(names)} an order for {name}; the pilot drains")
        self._reports(runs, draining=True)
        self._take_away(job_id, f"{BOB} removes {name}: nobody waits any more")
        looks = 0

        def without_reason(plan: Plan) -> bool:
            nonlocal looks
            looks = looks + 1 if runs <= {one.pilot.run for one in plan.withdrawals} else 0
            return looks >= _AGREE

        withdrawn = self._until(without_reason, runs)
        if withdrawn is None:
            self._say(f"{_all(names)} had left by then")
            return None
        self._carry_out(*withdrawn)
        self._plan, self._released = withdrawn[1], runs
        self._title = f"nobody waits for {_all(names)} any more: the order is withdrawn, and it goes on"
        self._reports(runs, draining=False)
        self._say(f"{_all(names)} is released: the order is withdrawn, it takes payloads again")
        return Released(names, since, time.time())

    def _take_away(self, job_id: int, why: str) -> None:
        self._say(why)
        del self._bobs[job_id]
        self._system.remove(job_id)

    def _until(
        self, happened: Callable[[Plan], bool], runs: frozenset[str] = frozenset()
    ) -> tuple[Snapshot, Plan] | None:
        """Decide again and again until `happened`; None when it does not in time, or when all of `runs` have ended."""
        ends = time.monotonic() + _PATIENCE
        while time.monotonic() < ends:
            snapshot = self._system.pool.snapshot(int(time.time()))
            plan = make_plan(snapshot, snapshot.taken, self._settings)
            if happened(plan):
                return snapshot, plan
            if runs and runs.isdisjoint(one.run for one in snapshot.pilots):
                return None
            self._look()
            self._interrupts.wait(PAUSE)
        return None

    def _carry_out(self, seen: Snapshot, plan: Plan) -> None:
        outcome = self._act(seen, plan, MemoryJournal())
        said = [(act.outcome, act.detail) for act in outcome.acts]
        said += [(one.outcome, one.detail) for one in outcome.withdrawn]
        refused = [detail for what, detail in said if what not in {Outcome.DONE, Outcome.SKIPPED}]
        if refused:
            raise DemoPoolError(f"an order was not carried out: {refused[0]}")

    def _reports(self, runs: frozenset[str], draining: bool) -> None:
        """Look on until each of these pilots that is still there says that it drains, or that it does not."""
        ends = time.monotonic() + _PATIENCE
        while time.monotonic() < ends:
            self._look()
            pilots = [one for one in self._system.pool.snapshot(int(time.time())).pilots if one.run in runs]
            said = [one.report.can_postpone_last_job for one in pilots if one.report is not None]
            if all(can is not draining for can in said):
                return
            self._interrupts.wait(PAUSE)


def _all(names: tuple[str, ...]) -> str:
    return " and ".join(names)
