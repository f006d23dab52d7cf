"""What a job may ask for, and what is refused by name."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from all_but_one import all_but_one
from drainwise.facts.errors import UsageError
from drainwise_launch.choice.resources import Amount, Resources, parse_resources


def written(resources: Resources) -> dict[str, Amount]:
    """All of it by name, as it is read."""
    return {**resources.amounts(), **dict(resources.others)}


def test_amounts_texts_and_units() -> None:
    """mem and tmp count MB; a text that looks like a number is one; the others are passed on as they are."""
    found = parse_resources(
        {"cpu": "2", "mem": "2G", "tmp": "1025k", "gpu": "1", "tokens": "4k", "partition": "long"}, "job a"
    )
    assert found == Resources(2, 2048, 2, (("gpu", 1), ("partition", "long"), ("tokens", 4096)))
    assert found.amounts() == {"cpu": 2, "mem": 2048, "tmp": 2, "gpu": 1, "tokens": 4096}
    assert found.texts() == {"partition": "long"}
    assert parse_resources(written(found), "job a") == found
    assert parse_resources({}, "job a") == Resources(1, 0, 0)


def test_the_amounts_of_another_component_have_the_same_units() -> None:
    """`mem1 = "500M"` is 500 MB as `mem = "500M"` is; what is no amount of memory keeps its plain letters."""
    found = parse_resources({"mem1": "500M", "tmp1": "2G", "cpu1": "4", "mem12": 7, "memory1": "1k"}, "job a")
    assert found.others == (("cpu1", 4), ("mem1", 500), ("mem12", 7), ("memory1", 1024), ("tmp1", 2048))
    assert parse_resources(written(found), "job a") == found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cpu", 0), ("cpu", -1), ("cpu", 1_000_001), ("cpu", 1.5), ("cpu", True), ("cpu", "2M"), ("mem", -1),
        ("mem", 1 << 51), ("mem", 10**5000), ("mem", "0x10"), ("mem", "+5"), ("mem", "1_000"), ("mem", "٣"),
        ("mem", ""),
        ("mem", None), ("tmp", float("nan")), ("gpu", 0), ("gpu", -3), ("gpu", []), ("gpu", "a\nb"), ("gpu", ""),
        ("gpu", "x" * 1001), ("1st", 1), ("a b", 1), ("", 1), ("a;b", 1), ("x" * 101, 1),
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_zero_absurd_and_unsound_amounts_are_refused_in_one_line(name: str, value: object) -> None:
    """HOSTILE 36: signs, hexadecimal, underscores, other digits, 5,000 digits, NaN."""
    with pytest.raises(UsageError, match="job a") as caught:
        parse_resources({name: value}, "job a")
    assert len(str(caught.value)) < 300 and "\n" not in str(caught.value)


odd = st.integers() | st.text(max_size=8) | st.none() | st.floats()
sound = {"cpu": st.integers(1, 64), "mem": st.integers(0, 2**40) | st.just("2G"), "gpu": st.integers(1, 8)}


@given(st.dictionaries(st.text(max_size=8), odd, max_size=4) | all_but_one(sound, odd))
def test_whatever_is_written_is_sound_or_refused(found: dict[str, object]) -> None:
    try:
        resources = parse_resources(found, "job a")
    except UsageError:
        return
    assert resources.cpu >= 1 and resources.mem >= 0 and resources.tmp >= 0
    assert all(amount >= 1 for name, amount in resources.amounts().items() if name not in {"mem", "tmp"})
    assert hash(resources) == hash(parse_resources(written(resources), "job a"))
