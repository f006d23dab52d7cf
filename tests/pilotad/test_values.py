"""One value's text: strict, ASCII, ranged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilotad.attributes import COUNT, FLAG, PRIORITY, TIME
from drainwise.pilotad.values import READ, decimal, decimal_text, whole

NOT_NUMBERS = ["", "-", "+5", "1_000", "0x10", "1e9", "1.5", "5 5", "--5", "nan", "inf", "1e309", "5L", "٣", "５", "²"]


@given(st.integers(-(10**19) + 1, 10**19 - 1))
def test_whole_numbers_of_up_to_19_digits(number: int) -> None:
    """They are read as they are."""
    assert whole(str(number).encode()) == number


@pytest.mark.parametrize("text", [*NOT_NUMBERS, "1" * 20, "-" + "1" * 20, "9" * 5000])
def test_nothing_else_is_a_whole_number(text: str) -> None:
    """36: what int() would take and what would make it slow are both unknown."""
    assert whole(text.encode()) is None
    assert READ[TIME](text.encode()) is None
    assert READ[PRIORITY](text.encode()) is None


@pytest.mark.parametrize("text", [text for text in NOT_NUMBERS if text != "1.5"] + ["1.", ".5", "1.-5", "1.5.5", "-.5"])
def test_nothing_else_is_a_decimal(text: str) -> None:
    """36: no exponent, no nan, no infinity."""
    assert decimal(text.encode()) is None


@given(st.floats(0, 1e15))
def test_decimals_there_and_back(value: float) -> None:
    """Written with six decimals and read again."""
    read = decimal(decimal_text(value).encode())
    assert read == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("value, text", [(6.0, "6"), (5.5, "5.5"), (0.0, "0"), (100.0, "100"), (1e20, "1" + "0" * 20)])
def test_decimal_text_is_the_shortest_plain_one(value: float, text: str) -> None:
    """A whole number has no point and keeps its zeros."""
    assert decimal_text(value) == text


@pytest.mark.parametrize(
    "text, value",
    [
        *((946_684_800, 946_684_800), (4_102_444_800, 4_102_444_800)),
        *((946_684_799, None), (4_102_444_801, None), (0, None), (-1, None)),
    ],
)
def test_times_lie_between_2000_and_2100(text: int, value: int | None) -> None:
    """37: 1970 is not when a payload started, and 2106 not when it ends."""
    assert READ[TIME](str(text).encode()) == value


@pytest.mark.parametrize(
    "text, value",
    [(5, 5), (-5, -5), (2**31 - 1, 2**31 - 1), (2**31, 2**31 - 1), (-(2**31), -(2**31)), (-(2**63), -(2**31))],
)
def test_priorities_are_clamped(text: int, value: int) -> None:
    """39: extreme ones become the largest that every reader can hold."""
    assert READ[PRIORITY](str(text).encode()) == value


@pytest.mark.parametrize("text, value", [(0, 0), (2**31 - 1, 2**31 - 1), (2**31, 2**31 - 1), (-1, None)])
def test_counts_have_a_largest_one(text: int, value: int | None) -> None:
    assert READ[COUNT](str(text).encode()) == value


@pytest.mark.parametrize(
    "text, value", [(b"True", True), (b"false", False), (b"TRUE", True), (b"1", None), (b"yes", None), (b"", None)]
)
def test_flags(text: bytes, value: bool | None) -> None:
    """True and False in any case, no other word."""
    assert READ[FLAG](text) is value
