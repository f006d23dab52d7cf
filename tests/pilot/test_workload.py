"""The sums equal brute force whatever happened before, and the report they make is always believed."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from drainwise.facts.errors import UsageError
from drainwise.facts.waste import draining_waste, kill_waste
from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.payload import LONGEST, Payload
from drainwise.pilot.decide.workload import Checkpoint, RunningPayload, Workload, report_of, running_since
from drainwise.pilotad.pilot_ad import parse_pilot_ad, pilot_ad_text
from drainwise.pilotad.report import FRESH, bounded, standing_and_rule

from .work import T0, final_waste, payload, uncommitted, workload_of, workloads


def run_second_by_second(workload: Workload, until: int) -> int:
    """Core-seconds run so far by what runs now, counted second by second."""
    earliest = min((int(running.start) for running in workload.running.values()), default=until)
    return sum(
        running.payload.cores
        for second in range(earliest, until)
        for running in workload.running.values()
        if running.start <= second
    )


def idle_second_by_second(workload: Workload, cores: int) -> int:
    """Core-seconds that idle from the first expected end to the last, counted second by second."""
    ends = [int(running.expected_end) for running in workload.running.values()]
    return sum(
        cores - sum(running.payload.cores for running in workload.running.values() if running.expected_end > second)
        for second in range(min(ends, default=0), max(ends, default=0))
    )


@given(workloads(), st.integers(0, 50))
def test_sums_equal_brute_force(workload: Workload, spare: int) -> None:
    """After any starts, ends and new estimates both sums are what counting each second gives, to the last one."""
    cores = workload.used + spare
    assert uncommitted(workload) == run_second_by_second(workload, int(workload.last_start))
    assert final_waste(workload, cores) == idle_second_by_second(workload, cores)


@given(workloads(whole=False), st.integers(0, 50))
def test_sums_equal_exact_fractions(workload: Workload, spare: int) -> None:
    """With any fractions of a second they equal the formulas in exact arithmetic, to a microsecond for each core."""
    cores, running = workload.used + spare, workload.running.values()
    last_start = Fraction(workload.last_start)
    ran = sum(each.payload.cores * (last_start - Fraction(each.start)) for each in running)
    assert uncommitted(workload) == pytest.approx(float(ran), abs=2e-6 * (1 + workload.used))
    ends = [Fraction(each.expected_end) for each in running]
    idle = cores * (max(ends, default=0) - min(ends, default=0)) - sum(
        each.payload.cores * (Fraction(each.expected_end) - min(ends)) for each in running
    )
    assert final_waste(workload, cores) == pytest.approx(float(idle), abs=2e-6 * (1 + cores))


@given(workloads(whole=False))
def test_what_is_known_of_the_ends(workload: Workload) -> None:
    """Cores, ends and overdue payloads are those of the payloads that run."""
    running = list(workload.running.values())
    assert workload.used == sum(each.payload.cores for each in running)
    assert workload.first_end == min((each.expected_end for each in running), default=None)
    assert workload.last_end == max((each.expected_end for each in running), default=None)
    assert workload.last_max_end == max((each.maximum_end for each in running), default=None)
    now = T0 + 2500.0
    assert {each.payload.name for each in workload.past_estimate(now)} == {
        each.payload.name for each in running if each.expected_end <= now
    }
    assert set(workload.past_maximum(now)) == {each for each in running if each.maximum_end <= now}
    assert workload.next_maximum_end(now) == min(
        (each.maximum_end for each in running if each.maximum_end > now), default=None
    )


def test_no_error_is_left_behind() -> None:
    """Forty thousand events of odd length on 1,000 cores leave the sums of an empty pilot at exactly nothing."""
    workload = Workload(T0)
    for number in range(20_000):
        workload.add(running_since(payload("p", cores=1000, maximum=0.1 + number / 3), T0 + number / 7))
        workload.remove("p")
    assert workload.run_until(T0) == workload.run_after(T0, 0, 1e12) == workload.used == 0


def test_the_last_start_outlives_its_payload() -> None:
    """e is when any payload started last: one that ended does not make the others cheaper to kill."""
    workload = workload_of(running_since(payload("long"), T0 + 10), running_since(payload("short"), T0 + 50))
    workload.remove("short")
    assert (workload.last_start, uncommitted(workload)) == (T0 + 50, 40)
    assert Workload(T0).last_start == T0


def test_names_are_unique() -> None:
    """A second payload of a name is refused and changes nothing, and so is the end of one that does not run."""
    workload = workload_of(running_since(payload("p", cores=3), T0))
    with pytest.raises(UsageError, match="'p'"):
        workload.add(running_since(payload("p"), T0 + 5))
    with pytest.raises(UsageError, match="'q'"):
        workload.remove("q")
    with pytest.raises(UsageError, match="'q'"):
        workload.move("q", T0)
    assert (workload.used, workload.last_start, uncommitted(workload)) == (3, T0, 0)


def test_the_view_cannot_be_changed() -> None:
    """Only through add, remove and move, or the sums would be wrong."""
    view = Workload(T0).running
    with pytest.raises(TypeError):
        view["p"] = running_since(payload("p"), T0)  # type: ignore[index]


def test_an_example_by_hand() -> None:
    """Eight cores; four since 0 s until 100 s, two since 20 s until 160 s: every attribute by pencil."""
    workload = workload_of(
        RunningPayload(payload("a", 4), T0, T0 + 100, T0 + 300),
        RunningPayload(payload("b", 2), T0 + 20, T0 + 160, T0 + 200),
    )
    report = report_of(workload, Lease(8, T0, T0 + 1000), True, 7, T0 + 40)
    assert (report.heartbeat, report.used_cpu, report.last_job_start) == (T0 + 40, 6.0, T0 + 20)
    assert (report.first_exp_job_end, report.last_exp_job_end, report.last_max_job_end) == (
        T0 + 100,
        T0 + 160,
        T0 + 300,
    )
    assert (report.add_uncom_time, report.add_final_exp_waste) == (4 * 20, 8 * 60 - 2 * 60)
    assert (report.priority_factor, report.can_postpone_last_job) == (7, True)


@pytest.mark.parametrize("now", [T0, T0 + 12.25])
def test_a_pilot_without_payloads_can_leave_at_once(now: float) -> None:
    """No cores used, nothing to lose, and all ends are now: complete, not silent."""
    report = report_of(Workload(T0), Lease(8, T0, T0 + 1000), True, 0, now)
    assert (report.used_cpu, report.add_uncom_time, report.add_final_exp_waste) == (0, 0, 0)
    assert now <= (report.first_exp_job_end or 0) < now + 1
    assert report.first_exp_job_end == report.last_exp_job_end == report.last_max_job_end
    assert standing_and_rule(report, int(now), 3600, T0) == (FRESH, "")


@given(
    workloads(whole=False),
    st.floats(-6000, 20_000),
    st.integers(0, 50),
    st.none() | st.integers(0, 20_000),
    st.none() | st.floats(0, 20_000),
    st.floats(0, 30),
)
def test_a_report_is_always_believed(
    workload: Workload, later: float, spare: int, length: int | None, limit: float | None, kill_wait: float
) -> None:
    """At any moment, also after a clock was set back, it is complete, without contradiction, and no estimate is past.

    Neither the clamps of the node nor the file's own scale change anything, as long as the lease lasts.
    """
    now = T0 + later
    lease = Lease(max(1, workload.used + spare), T0 - 6000, None if length is None else T0 + length)
    stop = None if limit is None else T0 + limit
    report = report_of(workload, lease, False, 0, now, stop, kill_wait)
    assert standing_and_rule(report, int(now), 3600, T0 - 6000, lease.cores) == (FRESH, "")
    assert report.first_exp_job_end is not None and report.first_exp_job_end >= now
    latest = min([end for end in (lease.end, stop) if end is not None], default=1e12)
    assert report.last_max_job_end is not None and report.last_max_job_end < max(latest, now) + 1
    assert report.last_job_start is not None and report.last_job_start <= now
    parsed, rejected = parse_pilot_ad(pilot_ad_text(report, lease.cores), lease.cores, report.heartbeat)
    assert not rejected and parsed.last_exp_job_end == report.last_exp_job_end
    assert standing_and_rule(parsed, int(now), 3600, T0 - 6000, lease.cores) == (FRESH, "")
    if length is None or now <= T0 + length:
        end = None if length is None else T0 + length
        assert bounded(report, lease.cores, T0 - 6000, end, int(now)) == report


@given(workloads(whole=False), st.integers(1, 60), st.floats(0, 8000), st.integers(0, 60))
def test_a_report_is_never_impossible(workload: Workload, cores: int, later: float, behind: int) -> None:
    """Also of a caller that runs more than it has, as the file says it, and by a clock a minute behind the site's."""
    now = T0 + later
    report = report_of(workload, Lease(cores, T0 - 1000, None), True, 0, now)
    started = min([int(each.start) for each in workload.running.values()], default=T0) + behind
    assume(report.heartbeat >= started)
    parsed, _ = parse_pilot_ad(pilot_ad_text(report, cores), cores, report.heartbeat)
    for said in (report, parsed):
        assert standing_and_rule(said, int(now), 3600, started, cores) == (FRESH, "")


@given(workloads(whole=False), st.integers(0, 50), st.floats(0, 8000), st.floats(0, 1))
def test_a_reader_finds_the_true_wastes(workload: Workload, spare: int, later: float, share: float) -> None:
    """The metrics from the report are what draining and killing really cost, to a second of the lease and its cores.

    They hold after the report as well, as long as no estimate passes.
    """
    written = max(T0 + later, workload.last_start)
    cores = max(1, workload.used + spare)
    running = list(workload.running.values())
    report = report_of(workload, Lease(cores, T0, None), True, 0, written)
    first, last = report.first_exp_job_end or 0, report.last_exp_job_end or 0
    ends = [max(written, each.expected_end) for each in running]
    assume(running)
    now = written + share * (min(ends) - written)
    idle = cores * (max(ends) - now) - sum(each.payload.cores * (end - now) for each, end in zip(running, ends))
    found = draining_waste(cores, report.used_cpu, first, report.add_final_exp_waste, now)
    assert idle - 0.001 <= found <= idle + cores + 0.001
    lost = sum(each.payload.cores * (now - each.start) for each in running)
    killed = kill_waste(report.add_uncom_time, report.used_cpu, report.last_job_start, now)
    assert lost - 0.001 <= killed <= lost + workload.used + 0.001
    assert last - 1 < max(ends) <= last


def test_a_payload_of_a_hundred_years_is_believed() -> None:
    """Without an end of the lease a maximum may lie past what readers take for a time: it is stated as their last."""
    workload = workload_of(running_since(payload("p", maximum=LONGEST, expected=LONGEST), T0))
    report = report_of(workload, Lease(1, T0, None), True, 0, T0)
    assert parse_pilot_ad(pilot_ad_text(report, 1), 1, T0) == (report, ())


def test_a_caller_that_runs_more_than_it_has() -> None:
    """It states all its cores, and of its work what so many cores can do: four run b for 400 s, then two 100 s of a."""
    workload = workload_of(running_since(payload("a", 8, 500), T0), running_since(payload("b", 8, 400), T0 + 10))
    report = report_of(workload, Lease(4, T0, None), True, 0, T0 + 10)
    assert (report.used_cpu, report.add_uncom_time, report.add_final_exp_waste) == (4, 4 * 10 / 2, 2 * 90)


def test_a_kept_promise_includes_the_time_to_stop() -> None:
    """A payload that ignores TERM is gone `kill_wait` after its maximum, and LAST_MAX_JOB_END says so."""
    workload = workload_of(RunningPayload(payload("p"), T0, T0 + 50, T0 + 100))
    assert report_of(workload, Lease(1, T0, None), True, 0, T0, kill_wait=5).last_max_job_end == T0 + 105


def seconds_for_an_event(count: int) -> float:
    """Of one payload's end, another's start and the report, while `count` run; the best of many."""
    workload = workload_of(*(running_since(payload(f"p{n}", maximum=1000 + n), T0 + n / 9) for n in range(count)))
    lease, best = Lease(count, T0, T0 + 9999), 1.0
    for number in range(300):
        name = f"p{number % count}"
        begin = time.perf_counter()
        workload.remove(name)
        workload.add(running_since(payload(name, maximum=500 + number), T0 + 200))
        report_of(workload, lease, True, 0, T0 + 300)
        best = min(best, time.perf_counter() - begin)
    return best


def test_a_thousand_payloads_cost_an_event_no_more_than_ten() -> None:
    """Within a factor that leaves room for a cache that is too small."""
    assert seconds_for_an_event(1000) < 3 * seconds_for_an_event(10)


def test_a_payload_that_saved_its_work_loses_what_it_did_since() -> None:
    """The sums are those of a payload that began then; all four keys are stated once each payload has saved."""
    work, lease = Workload(T0), Lease(8, T0, T0 + 90_000)
    for name, cores in (("a", 2), ("b", 6)):
        work.add(running_since(Payload(name, cores, (), 8000.0, 9000.0), T0))
    work.save("a", Checkpoint(T0 + 1000, T0 + 4600, 30, 50))
    half = report_of(work, lease, True, 0, T0 + 2000)
    assert half.last_checkpoint is half.next_checkpoint is half.checkpoint_seconds is half.restart_cost is None
    assert kill_waste(half.add_uncom_time, half.used_cpu, half.last_job_start, T0 + 2000) == 2 * 1000 + 6 * 2000
    work.save("b", Checkpoint(T0 + 1500, T0 + 5100, 60, 70))
    both = report_of(work, lease, True, 0, T0 + 2000)
    assert (both.last_checkpoint, both.next_checkpoint) == (T0 + 1000, T0 + 5100)
    assert (both.checkpoint_seconds, both.restart_cost) == (60, 120)
    assert kill_waste(both.add_uncom_time, both.used_cpu, both.last_job_start, T0 + 2000) == 2 * 1000 + 6 * 500
    work.move("b", T0 + 9500)
    work.remove("b")
    work.remove("a")
    ended = report_of(work, lease, True, 0, T0 + 2000)
    assert (ended.last_checkpoint, ended.add_uncom_time, ended.used_cpu) == (None, 0.0, 0.0)
