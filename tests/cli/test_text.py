"""JSON on a terminal holds no control character."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.cli.text import json_text


@given(st.dictionaries(st.text(), st.text()))
def test_json_has_no_raw_control_character_but_line_feeds_and_reads_back_the_same(value: dict[str, str]) -> None:
    shown = json_text(value)
    assert all(" " <= letter <= "~" or letter == "\n" for letter in shown)
    assert json.loads(shown) == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=20,
)


@given(JSON)
def test_whatever_is_shown_reads_back_the_same(value: object) -> None:
    assert json.loads(json_text(value)) == value


def test_what_holds_plain_values_alone_is_a_row() -> None:
    shown = json_text({"cores": {"free": 0, "held": 8}, "pilots": [{"run": "a"}, {"run": "b"}], "none": []})
    assert shown.splitlines() == [
        "{",
        '  "cores": {"free": 0, "held": 8},',
        '  "pilots": [',
        '    {"run": "a"},',
        '    {"run": "b"}',
        "  ],",
        '  "none": []',
        "}",
    ]


@pytest.mark.parametrize("value", [float("nan"), {"a": [{"b": float("inf")}]}])
def test_no_number_is_shown_that_json_does_not_have(value: object) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        json_text(value)
