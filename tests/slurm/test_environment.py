"""What slurmd says, with the types it should have; what may become a path is checked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import UsageError
from drainwise.slurm.node.environment import identity, job_id, node_name, text, whole


@pytest.mark.parametrize(
    "value", [b"", b"0", b"-1", b"+1", b"1.5", b"0x1", b"17;id", b"../17", b"17\n", b"1 7", b"\xd9\xa1", b"4294967295"]
)
def test_a_job_is_a_number(value: bytes) -> None:
    """HOSTILE 44: nothing else becomes a path."""
    with pytest.raises(UsageError, match="SLURM_JOB_ID"):
        job_id({b"SLURM_JOB_ID": value})


def test_a_job_in_its_plain_form() -> None:
    """Leading zeros would be a second name of the same job."""
    assert job_id({b"SLURM_JOB_ID": b"0017"}) == "17"


@pytest.mark.parametrize("name", ["n1", "node-07.site_x.org", "7"])
def test_the_name_of_a_node(name: str) -> None:
    """Letters, digits and . _ - make one component of a path."""
    assert node_name({b"SLURMD_NODENAME": name.encode()}) == name


@pytest.mark.parametrize("value", [b"", b".", b"..", b".new.1", b"a/b", b"n 1", b"n\n", b"$(id)", b"\xff", b"n" * 256])
def test_what_is_no_name_of_a_node(value: bytes) -> None:
    """HOSTILE 15, 44: no way out of the runtime directory, and none to hidden names."""
    with pytest.raises(UsageError, match="SLURMD_NODENAME"):
        node_name({b"SLURMD_NODENAME": value})


@given(st.binary(max_size=24))
def test_any_bytes_are_a_value_or_none(value: bytes) -> None:
    """Nothing is raised, and nothing but printable ASCII comes out."""
    environment = {b"X": value}
    assert text(environment, "X").isprintable()
    assert text(environment, "X").isascii()
    number = whole(environment, "X")
    assert number is None or value == b"%d" % number or value.startswith(b"0")
    assert identity(environment, "X") in {number, None}


@pytest.mark.parametrize(("value", "uid"), [(b"0", 0), (b"4294967294", 4294967294), (b"4294967295", None), (b"", None)])
def test_a_user_is_a_number_that_can_be_one(value: bytes, uid: int | None) -> None:
    """The last number means nobody at all to chown: it must never get there."""
    assert identity({b"SLURM_JOB_UID": value}, "SLURM_JOB_UID") == uid
