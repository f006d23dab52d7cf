"""Facts of a small pool to decide on: alice is over her quota, bob waits."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.values import curve_text
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.reclaim.columns import claimed_values
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
    saved: int | None = None,
    next_save: int | None = None,
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
        saved=saved,
        next_save=next_save,
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


_MOMENT = st.integers(NOW - 30_000, NOW + 200_000)
_AMOUNT = st.floats(0, 1e9, allow_nan=False)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "heartbeat": st.integers(NOW - 10_000, NOW + 100),
    "used_cpu": st.none() | st.floats(0, 200),
    "last_job_start": st.none() | _MOMENT,
    "first_exp_job_end": st.none() | _MOMENT,
    "last_exp_job_end": st.none() | _MOMENT,
    "last_max_job_end": st.none() | _MOMENT,
    "add_uncom_time": st.none() | _AMOUNT,
    "add_final_exp_waste": st.none() | _AMOUNT,
    "priority_factor": st.none() | st.integers(-(2**31), 2**31 - 1),
    "can_postpone_last_job": st.none() | st.booleans(),
    "exp_waste_curve": st.none() | curves(),
    "last_checkpoint": st.none() | _MOMENT,
    "next_checkpoint": st.none() | _MOMENT,
    "checkpoint_seconds": st.none() | st.integers(0, 10_000),
    "restart_cost": st.none() | st.integers(0, 2**31 - 1),
}
_SHARE = st.floats(0, 1)
_END = st.integers(NOW, NOW + 3000) | st.integers(NOW, NOW + 7000) | st.integers(NOW, NOW + 50_000)
_SOUND = st.tuples(_SHARE, st.tuples(_END, _END), _SHARE, _SHARE, _SHARE)
_SAME = st.just(dict[str, Any]())
_ONE_VALUE = st.one_of(*(st.fixed_dictionaries({name: values}) for name, values in _VALUES.items()))
_ALL_VALUES = st.fixed_dictionaries(_VALUES)
_CHANGED = st.one_of(_SAME, _SAME, _ONE_VALUE, _SAME, _SAME, _ONE_VALUE, st.none(), _ALL_VALUES)


def but(said: PilotReport, **other: Any) -> PilotReport:
    """The same report with other values."""
    return PilotReport(**{name: getattr(said, name) for name in PilotReport.__match_args__} | other)


def _sound(
    cores: int, started: int, used: float, ends: tuple[int, int], run: float, uncommitted: float, final: float
) -> PilotReport:
    """From shares of what is possible."""
    start, busy, span = started + int(run * (NOW - started)), used * cores, abs(ends[1] - ends[0])
    return report(
        busy,
        first_end=min(ends),
        last_end=max(ends),
        start=start,
        uncommitted=uncommitted * busy * (start - started),
        final=(cores - busy + final * busy) * span,
    )


def sound_reports(cores: int, started: int = STARTED) -> st.SearchStrategy[PilotReport]:
    """Fresh reports of a pilot with `cores` that do not contradict themselves; many end within two hours."""
    return _SOUND.map(lambda shares: _sound(cores, started, *shares))


def reports(cores: int = 8, started: int = STARTED) -> st.SearchStrategy[PilotReport | None]:
    """Whatever a pilot may say, or nothing.

    Values drawn each by itself hardly ever make a report that is believed: so most are sound for its cores and its
    start, or sound but for one value.
    """
    return st.builds(
        lambda shares, other: None if other is None else but(_sound(cores, started, *shares), **other), _SOUND, _CHANGED
    )


def believed(*pilots: Pilot) -> int:
    """How many of these pilots say what counts."""
    return sum(claimed_values(one, NOW, SETTINGS.heartbeat_limit) is not None for one in pilots)
