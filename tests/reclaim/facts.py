"""Facts of a small pool to decide on: alice is over her quota, bob waits."""

from __future__ import annotations

from hypothesis import strategies as st

from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.waste_curve import curve_text
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.reclaim.settings import ReclaimSettings

NOW = 1795249000
STARTED = NOW - 20_000
SETTINGS = ReclaimSettings(
    policy="least-waste",
    horizon=7200,
    grace=7200,
    max_grace=86400,
    heartbeat_limit=3600,
    max_cores=100_000,
    max_cores_per_user=100_000,
    max_cores_per_user_hour=100_000,
    drain_only=False,
    priority_weight=0,
)


def report(
    used: float = 6.0,
    *,
    first_end: int = NOW + 1000,
    last_end: int = NOW + 2000,
    max_end: int | None = None,
    start: int = NOW - 1000,
    uncommitted: float = 0.0,
    final: float | None = None,
    heartbeat: int = NOW - 60,
    priority: int | None = None,
    can_postpone: bool | None = True,
    curve: str | None = None,
) -> PilotReport:
    """What a pilot says; by default it could be gone in 2000 s.

    final: by default the least that what is not in use of 8 cores makes between both ends.
    """
    if final is None:
        final = max(0.0, 8 - used) * max(0, last_end - first_end)
    return PilotReport(
        heartbeat,
        used_cpu=used,
        last_job_start=start,
        first_exp_job_end=first_end,
        last_exp_job_end=last_end,
        last_max_job_end=max_end,
        add_uncom_time=uncommitted,
        add_final_exp_waste=final,
        priority_factor=priority,
        can_postpone_last_job=can_postpone,
        exp_waste_curve=curve,
    )


def pilot(
    number: int,
    said: PilotReport | None = None,
    *,
    cores: int = 8,
    user: str = "alice",
    account: str = "group_a",
    started: int = STARTED,
    lease_end: int | None = None,
    contradictory: bool = False,
    deadline: int | None = None,
    leaving: bool = False,
    cannot: str = "",
    vacate: int | None = None,
) -> Pilot:
    """One pilot of alice's."""
    return Pilot(
        run=f"ce#{number}.0#{started - 9}@{started}",
        name=f"slot1_{number}@node1",
        node="node1",
        account=account,
        user=user,
        cores=cores,
        started=started,
        lease_end=lease_end,
        report=said,
        contradictory=contradictory,
        deadline=deadline,
        leaving=leaving,
        cannot=cannot,
        vacate=vacate,
    )


def account(
    name: str, in_use: float, owed: float, wanted: float = 0.0, priority: float = 500.0, per_job: float = 8.0
) -> Account:
    """One account."""
    return Account(name, in_use, owed, wanted, priority, per_job)


def snapshot(
    *pilots: Pilot, deficit: int = 8, surplus: int | None = None, free: float = 0.0, taken: int = NOW
) -> Snapshot:
    """A pool in which bob is owed `deficit` cores in 8-core jobs, and alice is over by `surplus` (default: as many)."""
    in_use = sum(one.cores for one in pilots)
    beyond = deficit if surplus is None else surplus
    accounts = (
        account("group_a", in_use, max(0, in_use - beyond), priority=900.0),
        account("group_b", 0, deficit, wanted=deficit, per_job=1.0),
    )
    return Snapshot(taken, pilots, accounts, free, {"alice": 900.0, "bob": 500.0})


@st.composite
def curves(draw: st.DrawFn) -> str:
    """Whatever curve a pilot may state: its text is sound, its figures need not be."""
    times = draw(st.lists(st.integers(NOW - 9000, NOW + 100_000), min_size=1, max_size=5, unique=True))
    idle = draw(st.lists(st.integers(0, 10**9), min_size=len(times), max_size=len(times)))
    lost = draw(st.lists(st.integers(0, 10**9), min_size=len(times), max_size=len(times)))
    return curve_text(list(zip(sorted(times), sorted(idle), lost)))


def reports() -> st.SearchStrategy[PilotReport | None]:
    """Whatever a pilot may say, sound or not, or nothing."""
    moment = st.integers(NOW - 30_000, NOW + 200_000)
    amount = st.floats(0, 1e9, allow_nan=False)
    return st.none() | st.builds(
        PilotReport,
        st.integers(NOW - 10_000, NOW + 100),
        used_cpu=st.none() | st.floats(0, 200),
        last_job_start=st.none() | moment,
        first_exp_job_end=st.none() | moment,
        last_exp_job_end=st.none() | moment,
        last_max_job_end=st.none() | moment,
        add_uncom_time=st.none() | amount,
        add_final_exp_waste=st.none() | amount,
        priority_factor=st.none() | st.integers(-(2**31), 2**31 - 1),
        can_postpone_last_job=st.none() | st.booleans(),
        exp_waste_curve=st.none() | curves(),
    )


def sound_reports(cores: int) -> st.SearchStrategy[PilotReport]:
    """Fresh reports of a pilot with `cores` that do not contradict themselves."""

    def build(used: float, ends: list[int], start: int, uncommitted: float, final: float) -> PilotReport:
        first, last = sorted(ends)
        return report(
            used,
            first_end=first,
            last_end=last,
            start=start,
            uncommitted=uncommitted * used * (start - STARTED),
            final=(cores - used + final * used) * (last - first),
            max_end=None,
        )

    return st.builds(
        build,
        st.floats(0, cores),
        st.lists(st.integers(NOW, NOW + 50_000), min_size=2, max_size=2),
        st.integers(STARTED, NOW),
        st.floats(0, 1),
        st.floats(0, 1),
    )
