"""Cases of several parameters: what a run looks at that is not one of everything."""

from __future__ import annotations

import itertools

import pytest

import more_examples
from more_examples import combined

VALUES = ("abcde", "xy", "12")


def test_any_two_parameters_have_each_pair_of_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of all cases; a run of everything has all."""
    monkeypatch.setattr(more_examples, "IS_THOROUGH", False)
    cases = combined(*VALUES)
    assert len(cases) == 5 * 2
    for one, other in itertools.combinations(range(3), 2):
        assert {(case[one], case[other]) for case in cases} == set(itertools.product(VALUES[one], VALUES[other]))
    monkeypatch.setattr(more_examples, "IS_THOROUGH", True)
    assert combined(*VALUES) == list(itertools.product(*VALUES))
