"""The pilot's curve is what its payloads would waste on average, however their ends fall."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_mock import MockerFixture

from drainwise.facts.cut_deadline import between
from drainwise.pilot.decide.estimates import AHEAD, MOST_PAYLOADS, waste_curve
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.decide.workload import RunningPayload, running_since
from drainwise.pilotad.values import curve_points
from drainwise_simulate.policies.clairvoyant import waste_when_ended
from more_examples import more_examples

from .work import T0, workload_of

LONG = 10**6


class Falls:
    """Payloads of a task end at one of a few ages, each as likely as another."""

    def __init__(self, **ages: Sequence[float]) -> None:
        self._ages = ages

    def look(self, now: float) -> None:
        """Nothing to look at."""

    def run_time(self, task: str, cores: int, events: float, elapsed: float) -> float | None:
        return None

    def still_running(self, task: str, elapsed: float, ages: Sequence[float]) -> Sequence[float] | None:
        known = self._ages.get(task)
        return None if known is None else [sum(one > age for one in known) / len(known) for age in ages]


def running(name: str, task: str, cores: int = 1, age: float = 0.0, maximum: float = LONG) -> RunningPayload:
    return running_since(Payload(name, cores, ("true",), 1.0, maximum, task=task), T0 - age)


@more_examples(1.5)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.lists(st.integers(1, 90_000), min_size=1, max_size=3)), max_size=3).filter(
        bool
    )
)
def test_it_is_the_mean_over_all_that_may_happen(payloads: list[tuple[int, list[int]]]) -> None:
    """Lost exactly; idle as exactly as its grid is fine: an end within a part counts from its middle, or its ends."""
    cores = sum(width for width, _ in payloads) + 1
    names = [f"t{number}" for number in range(len(payloads))]
    estimates = Falls(**{name: ends for name, (_, ends) in zip(names, payloads)})
    work = workload_of(*(running(name, name, width) for name, (width, _) in zip(names, payloads)))
    found = curve_points(waste_curve(work, cores, T0, estimates) or "")
    assert found is not None
    widths = [width for width, _ in payloads]
    ways = list(itertools.product(*(ends for _, ends in payloads)))
    assert len(found) == 5 and found[-1][0] == T0 + AHEAD[-1]
    for moment, idle, lost in found:
        ahead = moment - T0
        wastes = [[(width, T0, T0 + end) for width, end in zip(widths, way)] for way in ways]
        gone = sum(width * ahead for way in ways for width, end in zip(widths, way) if end > ahead) / len(ways)
        whole = sum(waste_when_ended(cores, way, T0, T0 + ahead) for way in wastes) / len(ways)
        assert lost == pytest.approx(gone, abs=1)
        coarse = max(later - sooner for sooner, later in itertools.pairwise((0.0, *AHEAD)) if sooner < ahead) / 4
        assert idle + lost == pytest.approx(whole, abs=cores * coarse * len(widths) + 2)


def test_who_runs_alone_never_idles_and_leaves_at_its_end() -> None:
    """A pilot of one payload on all its cores: nothing idles, and what is lost is the share that runs still."""
    work = workload_of(running("p", "t", 8, age=100))
    found = curve_points(waste_curve(work, 8, T0, Falls(t=[4000, 1e7])) or "")
    assert found is not None
    assert [idle for _, idle, _ in found] == [0] * 5
    assert [lost for _, _, lost in found] == [
        round((1.0 if 100 + moment - T0 < 4000 else 0.5) * 8 * (100 + moment - T0)) for moment, _, _ in found
    ]


def test_nothing_is_stated_where_an_end_is_not_known() -> None:
    """Without estimates, of a payload on its own, of an unknown task, of too many, and when nothing runs."""
    known = Falls(t=[4000])
    assert waste_curve(workload_of(running("p", "t")), 8, T0, None) is None
    assert waste_curve(workload_of(running("p", "t"), running("q", "")), 8, T0, known) is None
    assert waste_curve(workload_of(running("p", "t"), running("q", "other")), 8, T0, known) is None
    assert waste_curve(workload_of(), 8, T0, known) is None
    many = workload_of(*(running(f"p{number}", "t") for number in range(MOST_PAYLOADS + 1)))
    assert waste_curve(many, 1000, T0, known) is None


def test_no_payload_runs_beyond_its_maximum() -> None:
    work = workload_of(running("p", "t", maximum=3000))
    found = curve_points(waste_curve(work, 1, T0, Falls(t=[LONG])) or "")
    assert found is not None
    assert [(moment - T0, lost) for moment, _, lost in found if moment - T0 in {2999, 3000}] == [
        (2999, 2999),
        (3000, 0),
    ]
    assert all(lost == 0 for moment, _, lost in found if moment - T0 > 3000)


def test_the_points_lie_where_the_waste_changes() -> None:
    """Half of its like end after five hours and all after twelve: neither lies at a time that is looked at anyway."""
    work = workload_of(running("p", "t", 8, age=600))
    found = curve_points(waste_curve(work, 8, T0, Falls(t=[18_000, 43_200])) or "")
    assert found is not None
    times = [float(T0), *(moment for moment, _, _ in found)]
    lost = [8.0 * 600, *(each for _, _, each in found)]
    for ahead, running_still in (
        (7200, 1.0),
        (14_400, 1.0),
        (21_600, 0.5),
        (36_000, 0.5),
        (60_000, 0.0),
        (80_000, 0.0),
    ):
        assert between(times, lost, T0 + ahead) == pytest.approx(running_still * 8 * (600 + ahead), rel=0.02)


def test_reports_stay_quick_to_make(mocker: MockerFixture) -> None:
    """However many maxima its payloads have, few are looked at."""
    work = workload_of(*(running(f"p{number}", "t", maximum=1000.0 + 7 * number) for number in range(200)))
    looked = mocker.spy(Falls, "still_running")
    assert waste_curve(work, 200, T0, Falls(t=[4000, 9000]))
    assert max(len(call.args[3]) for call in looked.call_args_list) <= 30
