"""Names of people's jobs become names of files: none leaves its directory, no two are one."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import PoolUnreachable
from drainwise_launch.choice.graph import Graph
from drainwise_launch.choice.resources import Resources
from drainwise_launch.choice.work import Work
from drainwise_launch.run.starts import Starts, amounts_environment, file_name, is_of, tag_of

names = st.text(min_size=1, max_size=200) | st.sampled_from(["..", ".", "a/b", "a_b", "a~b", "$(id)", "-rf", "a" * 200])


@given(names, names)
def test_a_file_for_each_name(one: str, other: str) -> None:
    """HOSTILE 15, 44: dots, slashes, newlines, anything; at most 255 bytes; only letters, digits and ._+-~."""
    found = file_name(one)
    assert found.isascii() and "/" not in found and not found.startswith(".") and len(found) <= 200
    assert all(letter.isalnum() or letter in "._+-~" for letter in found)
    assert (file_name(other) == found) == (one == other)


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16))
def test_a_tag_says_what_the_job_was(one: bytes, other: bytes) -> None:
    tag = tag_of("0a1b2c3d", one)
    assert is_of(tag, one) and is_of(tag, other) == (one[:6] == other[:6])
    assert tag.startswith("0a1b2c3d-") and len(tag) <= 64 and tag != tag_of("0a1b2c3d", one)


def test_amounts_are_told_by_name() -> None:
    told = amounts_environment(Resources(2, 3, 4, (("gpu:a", 1), ("partition", "x"))))
    assert told == {
        "DRAINWISE_CPU": "2",
        "DRAINWISE_MEM": "3",
        "DRAINWISE_TMP": "4",
        "DRAINWISE_RESOURCE_GPU_A": "1",
        "DRAINWISE_RESOURCE_PARTITION": "x",
    }


def test_what_may_pass_is_no_fault_of_the_job(tmp_path: Path) -> None:
    """HOSTILE 28: no descriptors left. A directory that is not there is no matter of waiting."""
    [job] = Graph().add([Work("a", ("true",))])
    starts = Starts({}, str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(PoolUnreachable, match="Too many open files"):
            starts.start_of(job, "t", 0.0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert starts.start_of(job, "t", 0.0).stdout == f"{tmp_path}/a.out"
    with pytest.raises(OSError, match="No such file"):
        Starts({}, f"{tmp_path}/none").start_of(job, "t", 0.0)
