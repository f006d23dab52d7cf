"""A request is sound or refused by name; nodes are written as NUMBERxCORES; a lease gets SIGTERM, then SIGKILL."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import UsageError
from drainwise.local.job import (
    KILL,
    RUNNING,
    TERM,
    JobRequest,
    LocalJob,
    LocalNode,
    check_request,
    due,
    next_due,
    parse_nodes,
    why_due,
)

JOB = LocalJob(1, JobRequest("alice", "alice", 8, ("pilot",), 100), 0.0, state=RUNNING, run="1@1000", started=1000)
SOUND = JobRequest("alice", "alice", 8, ("sleep", "60"), 3600)


def test_nodes_are_numbered_through() -> None:
    assert parse_nodes("2x16,1x8") == (LocalNode("node1", 16), LocalNode("node2", 16), LocalNode("node3", 8))


@pytest.mark.parametrize(
    "text", ["", "4", "x8", "0x8", "4x0", "4x8,", "-1x8", "4 x 8", "٤x8", "99999x1,99999x1", "4x8\n"]
)
def test_other_nodes_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="such as 4x16"):
        parse_nodes(text)


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 999)), min_size=1, max_size=5))
def test_nodes_have_the_cores_that_were_written(parts: list[tuple[int, int]]) -> None:
    nodes = parse_nodes(",".join(f"{number}x{cores}" for number, cores in parts))
    assert sum(node.cores for node in nodes) == sum(number * cores for number, cores in parts)
    assert len({node.name for node in nodes}) == len(nodes)


def test_a_sound_request_is_taken_as_it_is() -> None:
    assert check_request(SOUND) is SOUND


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"account": "al ice"}, "account"),
        ({"account": ""}, "account"),
        ({"user": "-rf"}, "user"),
        ({"user": "a\nb"}, "user"),
        ({"user": "a" * 101}, "user"),
        ({"cores": 0}, "cores"),
        ({"cores": 1_000_001}, "cores"),
        ({"wall_limit": 0}, "wall limit"),
        ({"wall_limit": 366 * 86400}, "wall limit"),
        ({"command": ()}, "command"),
        ({"command": ("sleep", "6\0")}, "command"),
        ({"environment": {"A=B": "x"}}, "environment"),
        ({"priority": 2**40}, "priority"),
    ],
)
def test_what_is_not_sound_is_named(change: dict[str, object], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        check_request(dataclasses.replace(SOUND, **change))  # type: ignore[arg-type]


def test_a_lease_ends_with_its_wall_limit_or_earlier_if_ordered() -> None:
    job = LocalJob(1, SOUND, 0.0, started=1000)
    assert job.lease_end == 4600
    assert dataclasses.replace(job, deadline=2000).lease_end == 2000
    assert dataclasses.replace(job, deadline=9000).lease_end == 4600


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
