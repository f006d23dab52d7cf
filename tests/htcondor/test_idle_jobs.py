"""A group of idle jobs as a schedd tells it: whose they are, what they ask for, and which could not start now."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.demand.ask import JOB_ATTRIBUTES, idle_jobs
from drainwise.htcondor.demand.demand import IdleJobs
from drainwise.pool.amounts import Amounts

NOW = 1_795_249_000
# As 23.9.6 and 25.14.1 group them.
GROUP = {
    "JobCount": 3,
    "JobIds": "2.0 ... 2.2",
    "Owner": "bob",
    "User": "bob@pool.test",
    "JobPrio": 0,
    "RequestCpus": 4,
    "RequestMemory": 3000,
    "RequestDisk": 1024,
}


def read(**more: object) -> IdleJobs | None:
    return idle_jobs("ce1", {**GROUP, **more}.get, (), NOW)


def test_a_group_is_of_one_submitter_and_one_ask() -> None:
    assert read() == IdleJobs("ce1", "bob@pool.test", 3, Amounts(4, 3072, 0, 1), 0, (2, 0))


@pytest.mark.parametrize(
    ("more", "submitter"),
    [
        ({"AccountingGroup": "group_x.bob"}, "group_x.bob@pool.test"),
        ({"AccountingGroup": "group_x.bob@else.where"}, "group_x.bob@else.where"),
        ({"AccountingGroup": 7}, "bob@pool.test"),
        ({"User": None}, "bob"),
    ],
)
def test_the_submitter_is_named_as_in_submitter_ads(more: dict[str, object], submitter: str) -> None:
    found = read(**more)
    assert found is not None
    assert found.submitter == submitter


@pytest.mark.parametrize("more", [{"JobCount": 0}, {"JobCount": "3"}, {"JobCount": 10**12}, {"Owner": None}])
def test_what_is_no_group_is_left_out(more: dict[str, object]) -> None:
    assert read(**more) is None


@pytest.mark.parametrize(("start", "waits"), [(NOW + 86_400, False), (NOW + 60, True), (NOW - 60, True), ("x", True)])
def test_a_job_with_a_start_time_far_ahead_is_no_demand(start: object, waits: bool) -> None:
    assert (read(DeferralTime=start) is not None) == waits


odd = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just(10**400)


@given(st.dictionaries(st.sampled_from([*JOB_ATTRIBUTES, "JobCount", "JobIds"]), odd))
def test_any_group_is_jobs_or_none(ad: dict[str, object]) -> None:
    """HOSTILE 36: what users write there can be anything."""
    found = idle_jobs("ce1", {**GROUP, **ad}.get, ("GPUs",), NOW)
    assert found is None or (found.jobs > 0 and found.needs.cores > 0)
