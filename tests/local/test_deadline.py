"""A lease gets SIGTERM at its end and SIGKILL a while later, whatever made it end."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.local.deadline import KILL, TERM, due, next_due, why_due
from drainwise.local.job import RUNNING, Job, JobRequest

JOB = Job(1, JobRequest("alice", "alice", 8, ("pilot",), 100), 0.0, state=RUNNING, run="1@1000", started=1000)


def test_nothing_happens_before_the_end() -> None:
    assert due(JOB, 1099.9, 10) is None and next_due(JOB, 10) == 1100


@pytest.mark.parametrize(
    ("change", "when", "why"),
    [
        ({}, 1100, "wall limit"),
        ({"deadline": 1050}, 1050, "deadline"),
        ({"deadline": 2000}, 1100, "wall limit"),
        ({"removed": True}, 1000, "removed"),
    ],
)
def test_the_end_is_the_earliest_of_its_reasons(change: dict[str, object], when: int, why: str) -> None:
    job = dataclasses.replace(JOB, **change)  # type: ignore[arg-type]
    assert due(job, when, 10) == TERM
    assert "removed" in change or due(job, when - 0.1, 10) is None
    assert why in why_due(job)


def test_the_kill_comes_after_kill_wait_and_is_repeated_every_second() -> None:
    asked = dataclasses.replace(JOB, term_sent=1100.0)
    assert due(asked, 1109.9, 10) is None and due(asked, 1110, 10) == KILL
    killed = dataclasses.replace(asked, kill_sent=1110.0)
    assert due(killed, 1110.9, 10) is None and due(killed, 1111, 10) == KILL


@given(
    st.integers(900, 1300) | st.none(),
    st.integers(900, 1300) | st.none(),
    st.integers(0, 60) | st.none(),
    st.integers(900, 1400),
    st.integers(0, 60),
)
def test_the_daemon_that_sleeps_until_next_due_misses_nothing(
    deadline: int | None, term: int | None, killed_after: int | None, now: int, kill_wait: int
) -> None:
    kill = None if term is None or killed_after is None else float(term + kill_wait + killed_after)
    job = dataclasses.replace(JOB, deadline=deadline, term_sent=term, kill_sent=kill)
    if due(job, now, kill_wait) is None:
        assert next_due(job, kill_wait) > now
        assert due(job, next_due(job, kill_wait), kill_wait) is not None
