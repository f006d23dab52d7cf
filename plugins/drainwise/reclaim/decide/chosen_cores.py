"""Choose by cores alone with the one chooser, from a snapshot and its balance; `core_plans` does it today."""

from __future__ import annotations

import numpy as np

from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.choose.by_cores import plan_cores
from drainwise.reclaim.choose.plan import Rules
from drainwise.reclaim.choose.problem import CORES, KILL, Limits, Real, Rows, Whole
from drainwise.reclaim.decide.by_user import able_and_closed, pilots_by_user
from drainwise.reclaim.history import History, cores_allowed, left_of_cycle
from drainwise.reclaim.quota import Balance
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.valued import cost_of


def chosen_cores(
    snapshot: Snapshot, balance: Balance, now: int, settings: ReclaimSettings, history: History, rules: Rules
) -> tuple[tuple[Pilot, float], ...]:
    """Return the pilots that go for the balance's deficit at `now` (UNIX s), each with its cost, core-seconds."""
    pilots = pilots_by_user(snapshot.pilots)
    found: list[Pilot] = []
    user: list[int] = []
    cost: list[Real] = []
    accounts: list[int] = []
    binds: list[tuple[int, ...]] = []
    most = [float(left_of_cycle(history, now, settings))]
    for account, over in enumerate(balance.over):
        most.append(float(over.cores))
        of_account = len(most) - 1
        for name in over.users:
            able, _ = able_and_closed(pilots.get((over.account, name), ()), now, settings, history)
            most.append(float(cores_allowed(name, history, now, settings)))
            binds.append((0, of_account, len(most) - 1))
            user += [len(accounts)] * len(able)
            accounts.append(account)
            cost.append(cost_of(able.figures, settings))
            found += able.pilots
    rows = _rows(found, np.array(user, dtype=np.int64), np.concatenate([np.zeros(0), *cost]), now)
    limits = Limits(
        np.array(accounts, dtype=np.int64),
        np.arange(len(accounts), dtype=float),
        np.array(binds, dtype=np.int64).reshape(len(accounts), 3),
        np.array(most),
        np.full(len(most), CORES),
        np.full(len(accounts), np.nan),
    )
    plan = plan_cores(rows, limits, float(balance.deficit), rules)
    return tuple((found[row], float(rows.claim[row])) for row in np.flatnonzero(plan.gone).tolist())


def _rows(pilots: list[Pilot], user: Whole, cost: Real, now: int) -> Rows:
    every = np.arange(len(pilots))
    cores = np.array([pilot.cores for pilot in pilots], dtype=float)
    age = np.array([max(0, now - pilot.started) for pilot in pilots], dtype=float)
    spends = np.column_stack((cores, 0 * cores))
    return Rows(every, np.full(len(pilots), KILL), user, spends, cores * age, cost, every, 0 * every, cores[:, None])
