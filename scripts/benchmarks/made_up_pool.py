"""A made-up pool of pilots that report, as a snapshot shows it: for what the screens cost."""

from __future__ import annotations

from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Account, Pilot, Snapshot

PILOTS_PER_NODE, CORES, USERS = 7, 8, 20


class Dice:
    """Made-up numbers, the same in every run: `random` would cost the process that is measured its import."""

    def __init__(self) -> None:
        self._state = 1

    def below(self, end: int) -> int:
        """A number from 0 to `end` - 1."""
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self._state >> 33) % end


def made_up_pool(pilots: int, now: int) -> Snapshot:
    """A pool at `now` (UNIX s) that twenty users hold; another account waits for half of it, up to 800 cores."""
    dice, found = Dice(), list[Pilot]()
    for number in range(pilots):
        ran, used = 600 + dice.below(79_400), float(1 + dice.below(CORES))
        first, last = now + dice.below(9000), now + 9000 + dice.below(21_000)
        start, user = now - ran, f"alice{dice.below(USERS)}@pool.test"
        node = f"wn{number // PILOTS_PER_NODE:05d}.pool.test"
        report = PilotReport(
            now - 60,
            used_cpu=used,
            last_job_start=now - dice.below(ran),
            first_exp_job_end=first,
            last_exp_job_end=last,
            last_max_job_end=now + 40_000,
            add_uncom_time=float(dice.below(9000)),
            add_final_exp_waste=(CORES - used) * (last - first),
            can_postpone_last_job=True,
        )
        run, name = f"ce.pool.test#{number}.0#{start - 60}@{start}", f"slot1_{number % PILOTS_PER_NODE + 1}@{node}"
        found.append(Pilot(run, name, node, f"group_alice.{user}", user, CORES, start, report=report))
    held: dict[str, int] = {}
    for one in found:
        held[one.account] = held.get(one.account, 0) + one.cores
    waits = float(min(800, pilots * CORES // 2) // CORES * CORES)
    accounts = [Account(name, cores, cores * 0.9, 0.0, 900.0) for name, cores in held.items()]
    accounts.append(Account("group_bob", 0.0, waits, waits, 500.0, float(CORES)))
    return Snapshot(now, tuple(found), tuple(accounts), 0.0, dict.fromkeys((one.user for one in found), 900.0))
