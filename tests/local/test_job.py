"""A request is sound or refused by name; nodes are written as NUMBERxCORES."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.errors import UsageError
from drainwise.local.job import Job, JobRequest, Node, check_request, parse_nodes

SOUND = JobRequest("alice", "alice", 8, ("sleep", "60"), 3600)


def test_nodes_are_numbered_through() -> None:
    assert parse_nodes("2x16,1x8") == (Node("node1", 16), Node("node2", 16), Node("node3", 8))


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


def test_a_lease_ends_with_its_wall_limit_or_earlier_if_asked() -> None:
    job = Job(1, SOUND, 0.0, started=1000)
    assert job.lease_end == 4600
    assert dataclasses.replace(job, deadline=2000).lease_end == 2000
    assert dataclasses.replace(job, deadline=9000).lease_end == 4600
